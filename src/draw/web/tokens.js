/* tokens.js -- the coloured text: another measure, the number of each token, and what a model attends to. */
report.kinds.tokens = (figure, data) => {
  const STEPS = 8;
  const box = figure.querySelector(".tokens"), spans = [...box.children];
  const output = report.element("output", { class: "reading", "aria-live": "polite" });
  const scale = report.element("div", { class: "scale" });
  const readers = data.readers || [];
  const hint = "Point at a token, or focus the text and use the arrow keys, to read its numbers." +
    (readers.length ? " Click it, or press Enter, to see its attention." : "");
  let measure = data.measures[0], reader = readers[0], at = -1, pinned = -1;
  const shown = (i) => `“${spans[i].textContent.replace(/\n/g, "")}”`;
  const bands = (names) => report.element("span", { class: "steps", "aria-hidden": "true" },
    ...names.map((s) => report.element("i", s ? { class: s } : {})));

  /* What the pinned token attends to: [unit, percent] pairs, units that occur twice added up, the largest first. */
  const attended = () => {
    const weights = new Map(), list = reader.reads[pinned];
    for (let k = 0; k < list.length; k += 2) weights.set(list[k], (weights.get(list[k]) || 0) + list[k + 1]);
    return [...weights].sort((a, b) => b[1] - a[1]);
  };
  const paintAttention = () => {
    const pairs = attended(), most = Math.max(1, ...pairs.filter(([i]) => i >= 0).map(([, w]) => w));
    for (const span of spans) span.className = "";
    for (const [i, w] of pairs) if (i >= 0) spans[i].className = "u" + Math.max(1, Math.round((w / most) * STEPS));
    spans[pinned].classList.add("pinned");
    scale.textContent = "";
    scale.append("attention of " + reader.name + ": 0 %", bands(["", "u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8"]),
      report.number(Math.round(10 * most) / 10) + " %");
    const before = pairs.filter(([i]) => i < 0).map(([, w]) => `before the passage ${report.number(w)} %`);
    output.textContent = `To predict ${shown(pinned)}, ${reader.name} attends to ` +
      [...pairs.filter(([i]) => i >= 0).slice(0, 8).map(([i, w]) => `${shown(i)} ${report.number(w)} %`), ...before]
        .join(", ") + ". Click again to go back.";
  };

  const paint = () => {
    if (pinned >= 0) return paintAttention();
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
      bands(steps),
      ends[1] + report.number(limit) + " and more");
    if (at >= 0) spans[at].classList.add("now");
  };
  const go = (i) => {
    if (at >= 0) spans[at].classList.remove("now");
    at = i;
    if (pinned < 0) output.textContent = i < 0 ? hint : shown(i) + " " +
      data.measures.map((m) => `${m.name}: ${report.number(m.values[i])}`).join(" · ");
    if (i < 0) return;
    spans[i].classList.add("now");
    const seen = box.getBoundingClientRect(), span = spans[i].getBoundingClientRect();
    if (span.top < seen.top || span.bottom > seen.bottom) box.scrollTop += span.top - seen.top - seen.height / 2;
  };

  const pin = (i) => {
    if (!readers.length || i < 0) return;
    pinned = i === pinned ? -1 : i;
    paint();
    if (pinned < 0) go(i);
  };

  const choice = (label, list, change) => {
    const select = report.element("select", {}, ...list.map((m, i) => report.element("option", { value: i }, m.name)));
    select.addEventListener("change", () => { change(list[+select.value]); paint(); });
    return report.element("label", {}, label, select);
  };
  const bar = report.element("div", { class: "controls" });
  if (data.measures.length > 1) bar.append(choice("Colour: ", data.measures, (m) => { measure = m; pinned = -1; }));
  if (readers.length > 1) bar.append(choice("Attention of: ", readers, (r) => { reader = r; }));
  if (bar.childElementCount) box.before(bar);
  box.before(scale);
  box.before(output);
  box.addEventListener("pointerover", (event) => {
    const i = spans.indexOf(event.target);
    if (i >= 0) go(i);
  });
  box.addEventListener("click", (event) => pin(spans.indexOf(event.target)));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && at >= 0) { pin(at); event.preventDefault(); return; }
    if (event.key === "Escape" && pinned >= 0) { pin(pinned); return; }
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -20, ArrowDown: 20 }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    go(Math.max(0, Math.min(spans.length - 1, at + step)));
    event.preventDefault();
  });
  output.textContent = hint;
  paint();
};
