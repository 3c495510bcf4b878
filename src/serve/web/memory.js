/* memory.js -- what the memory of a branch does, live: slots, attention, and the same as a table. */
lamemo.memoryView = (card, branch) => {
  const heat = lamemo.heatView(card.querySelector(".alpha")), curves = lamemo.curvesView(card.querySelector(".distance"));
  const facts = card.querySelector(".facts"), progress = card.querySelector("progress"), label = card.querySelector(".segment-label");
  const details = card.querySelector("details"), table = card.querySelector("table");
  card.querySelector(".scroll").setAttribute("aria-label", `Numbers by layer of ${branch.name}`);
  card.querySelector(".alpha .steps").replaceChildren(...Array.from({ length: 9 }, (_, i) => lamemo.element("i", { class: `h${Math.round((i * 31) / 8)}` })));

  const write = () => {
    const memory = branch.memory;
    if (!details.open || !memory) return;
    const cell = (v) => lamemo.element("td", {}, v);
    const head = (...names) => lamemo.element("thead", {}, lamemo.element("tr", {}, ...names.map((n) => lamemo.element("th", { scope: "col" }, n))));
    const a = memory.attention || {};
    table.replaceChildren(head("layer", "mean α", "changed", "on the memory", "entropy, nats"),
      lamemo.element("tbody", {}, ...Array.from({ length: memory.layers }, (_, i) => {
        const alpha = memory.alpha && memory.alpha[i] ? lamemo.mean(memory.alpha[i]) : null; /* the last layer refreshes nothing */
        return lamemo.element("tr", {}, lamemo.element("th", { scope: "row" }, String(i + 1)),
          cell(alpha === null ? "–" : alpha.toFixed(3)), cell(alpha === null ? "–" : lamemo.percent(1 - alpha)),
          cell(a.memory_share ? lamemo.percent(a.memory_share[i]) : "–"), cell(a.entropy ? a.entropy[i].toFixed(2) : "–"));
      })));
  };
  details.addEventListener("toggle", write);

  const update = () => {
    const memory = branch.memory && branch.plain ? { ...branch.memory, slots: 0 } : branch.memory, segment = memory && memory.segment;
    facts.textContent = branch.plain ? "none" : memory ? `${lamemo.count(memory.remembered || 0)} of ${lamemo.several(memory.slots, "slot")} filled` : "";
    progress.value = segment ? segment.done / segment.length : 0;
    label.textContent = segment ? `Segment: ${lamemo.count(segment.done)} of ${lamemo.several(segment.length, "token")}` : "Segment: not begun";
    const layers = memory ? memory.layers : 0, steps = card.querySelector(".distance .steps");
    if (steps.childElementCount !== layers) {
      steps.replaceChildren(...Array.from({ length: layers }, (_, i) => lamemo.element("i", { class: `f${lamemo.layerColour(i, layers)}` })));
      card.querySelector(".distance .most").textContent = `layer ${layers}`;
    }
    heat.update(memory);
    curves.update(memory);
    write();
  };
  update();
  return { update, repaint: () => { heat.paint(); curves.paint(); } };
};
