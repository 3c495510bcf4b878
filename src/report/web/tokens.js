/* tokens.js -- the coloured text: another measure, and the number of each token. */
report.kinds.tokens = (figure, data) => {
  const STEPS = 8;
  const box = figure.querySelector(".tokens"), spans = [...box.children];
  const output = report.element("output", { class: "reading", "aria-live": "polite" });
  const scale = report.element("div", { class: "scale" });
  const hint = "Point at a token, or focus the text and use the arrow keys, to read its numbers.";
  let measure = data.measures[0], at = -1;

  const paint = () => {
    spans.forEach((span, i) => {
      const v = measure.values[i] === null ? 0 : measure.values[i] / measure.limit;
      const step = Math.min(STEPS, Math.ceil(Math.abs(v) * STEPS - 1e-9));
      const side = measure.diverging ? (v > 0 ? "u" : "t") : v > 0 ? "t" : "";
      span.className = step && side ? side + step : "";
    });
    const limit = +measure.limit.toPrecision(2);
    scale.textContent = "";
    const steps = measure.diverging ? ["t8", "t6", "t4", "t2", "", "u2", "u4", "u6", "u8"]
      : ["", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"];
    const ends = measure.ends ? [measure.ends[0] + ": ", measure.ends[1] + ": "] : ["", ""];
    scale.append(report.element("span", { class: "paper" }, measure.name + ": "),
      measure.diverging ? ends[0] + report.number(measure.ends ? limit : -limit) : "0",
      report.element("span", { class: "steps", "aria-hidden": "true" },
        ...steps.map((s) => report.element("i", s ? { class: s } : {}))),
      ends[1] + report.number(limit) + " and more");
    if (at >= 0) spans[at].classList.add("now");
  };
  const go = (i) => {
    if (at >= 0) spans[at].classList.remove("now");
    at = i;
    output.textContent = i < 0 ? hint : `“${spans[i].textContent.replace(/\n/g, "")}” ` +
      data.measures.map((m) => `${m.name}: ${report.number(m.values[i])}`).join(" · ");
    if (i < 0) return;
    spans[i].classList.add("now");
    const seen = box.getBoundingClientRect(), span = spans[i].getBoundingClientRect();
    if (span.top < seen.top || span.bottom > seen.bottom) box.scrollTop += span.top - seen.top - seen.height / 2;
  };

  if (data.measures.length > 1) {
    const select = report.element("select", {},
      ...data.measures.map((m, i) => report.element("option", { value: i }, m.name)));
    select.addEventListener("change", () => { measure = data.measures[+select.value]; paint(); });
    box.before(report.element("div", { class: "controls" }, report.element("label", {}, "Colour: ", select)));
  }
  box.before(scale);
  box.before(output);
  box.addEventListener("pointerover", (event) => {
    const i = spans.indexOf(event.target);
    if (i >= 0) go(i);
  });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -20, ArrowDown: 20 }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    go(Math.max(0, Math.min(spans.length - 1, at + step)));
    event.preventDefault();
  });
  output.textContent = hint;
  paint();
};
