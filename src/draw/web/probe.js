/* probe.js -- reading values off a chart with a pointer or the keyboard.
 *
 * A chart says how many columns and rows of places it has, which place lies under a point, how to mark one
 * and what to say of it; this does the rest. */
report.probe = (figure, chart) => {
  const plot = figure.querySelector(".plot");
  const output = report.element("output", { class: "reading", "aria-live": "polite" });
  const hint = report.hint(plot.classList.contains("live"));
  let at = null;
  output.classList.toggle("long", Boolean(chart.long)); /* it takes two lines: nothing below may move */
  plot.after(output);
  plot.tabIndex = 0;
  plot.setAttribute("role", "group");
  plot.setAttribute("aria-label",
    figure.querySelector("h2,h3").textContent + ": chart. Arrow keys read values.");
  output.textContent = hint;

  const go = (place) => {
    at = place;
    chart.mark(place);
    output.textContent = place ? chart.say(place) : hint;
  };
  plot.addEventListener("pointermove", (event) => {
    const place = chart.find(event);
    if (place || event.pointerType === "mouse") go(place);
  });
  plot.addEventListener("pointerdown", (event) => { if (chart.find(event)) go(chart.find(event)); });
  plot.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") go(null); });
  plot.addEventListener("blur", () => go(null));
  plot.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? 10 : 1;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step],
      ArrowDown: [0, step], Home: [-Infinity, 0], End: [Infinity, 0] };
    const { columns, rows } = chart.size();
    if (event.key === "Escape" && at) go(null);
    else if (!(event.key in moves) || event.altKey || event.ctrlKey || event.metaKey) return;
    else if (moves[event.key][1] && rows <= 1) return;
    else {
      const clamp = (v, n) => Math.max(0, Math.min(n - 1, v));
      const [dx, dy] = moves[event.key];
      go(at ? [clamp(at[0] + dx, columns), clamp(at[1] + dy, rows)]
            : [dx < 0 ? columns - 1 : 0, 0]);
    }
    event.preventDefault();
  });
};

/* The box inside the axes of an inline SVG, in the units of its view box, and a pointer's place in it. */
report.frame = (svg) => {
  const r = svg.querySelector(".frame");
  const box = { x: +r.getAttribute("x"), y: +r.getAttribute("y"),
    width: +r.getAttribute("width"), height: +r.getAttribute("height") };
  box.point = (event) => {
    const seen = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / seen.width;
    const x = ((event.clientX - seen.left) * scale - box.x) / box.width;
    const y = ((event.clientY - seen.top) * scale - box.y) / box.height;
    return x >= 0 && x <= 1 && y >= 0 && y <= 1 ? [x, y] : null;
  };
  return box;
};

/* A mark over an inline SVG: a rectangle in its units, or nothing. */
report.marker = (svg) => {
  const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  rect.setAttribute("class", "mark");
  svg.append(rect);
  return (box) => {
    rect.style.display = box ? "" : "none";
    for (const name of ["x", "y", "width", "height"]) if (box) rect.setAttribute(name, box[name]);
  };
};
