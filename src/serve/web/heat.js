/* heat.js -- alpha by layer and slot as a heat map, with what the look-ahead changed by slot below it and by layer on its
 * right.  Layer 1 is the lowest row, the oldest slot the leftmost column. */
(() => {
  const RAMP = 32; /* steps --h0 to --h31 of the palette */
  const ROW = 15;  /* pixels */
  const triple = (text) => [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
  const ramp = () => Array.from({ length: RAMP }, (_, i) => triple(lamemo.colour("h" + i)));
  /* By the square root: most slots of a trained model change by a few per cent. */
  const strength = (changed) => Math.max(0, Math.min(RAMP - 1, Math.floor(Math.sqrt(Math.max(0, changed)) * RAMP)));

  /* Bars of shares by layer, the highest layer on top.  A full bar is `full` or the largest share, whichever is more. */
  lamemo.layerBars = (title, full) => {
    const bars = lamemo.element("div", { class: "bars", "aria-hidden": "true" });
    const update = (shares) => {
      while (bars.childElementCount > shares.length) bars.lastChild.remove();
      while (bars.childElementCount < shares.length)
        bars.append(lamemo.element("div", {}, lamemo.element("i"), lamemo.element("span")));
      const most = Math.max(full, ...shares);
      shares.forEach((share, layer) => {
        const bar = bars.children[shares.length - 1 - layer];
        bar.firstChild.style.width = `${Math.max(0, (100 * share) / most)}%`;
        bar.lastChild.textContent = lamemo.percent(share);
        bar.title = `layer ${layer + 1}: ${title} ${lamemo.percent(share)}`;
      });
    };
    return { bars, update };
  };

  lamemo.heatView = (figure) => {
    const plot = figure.querySelector(".plot"), finding = figure.querySelector(".finding");
    const canvas = lamemo.element("canvas"), mark = lamemo.element("div", { class: "mark", hidden: "" });
    const field = lamemo.element("div", { class: "field" }, canvas, mark);
    const labels = lamemo.element("div", { class: "labels", "aria-hidden": "true" });
    const right = lamemo.layerBars("changed", 0.1);
    const area = lamemo.drawn("path", { class: "area" });
    const below = lamemo.drawn("svg", { class: "below", preserveAspectRatio: "none", "aria-hidden": "true" }, area);
    let alpha = null, changed = [];

    plot.append(lamemo.element("div", { class: "corner" }), lamemo.element("div", { class: "corner" }),
      lamemo.element("div", { class: "side" }, "changed"), labels, field, right.bars, lamemo.element("div", { class: "corner" }), below,
      lamemo.element("div", { class: "corner" }), lamemo.element("div", { class: "corner" }),
      lamemo.element("div", { class: "ends", "aria-hidden": "true" }, lamemo.element("span", {}, "oldest slot"),
        lamemo.element("span", {}, "changed by slot"), lamemo.element("span", {}, "newest")));

    const paint = () => {
      if (!alpha || !field.clientWidth) return;
      const layers = alpha.length, slots = alpha[0].length, colours = ramp();
      const width = Math.max(1, Math.min(slots, Math.round(field.clientWidth * devicePixelRatio)));
      canvas.width = width;
      canvas.height = layers;
      const picture = new ImageData(width, layers);
      for (let layer = 0; layer < layers; layer++)
        for (let x = 0; x < width; x++) {
          const from = Math.floor((x * slots) / width), to = Math.max(from + 1, Math.floor(((x + 1) * slots) / width));
          let sum = 0;
          for (let i = from; i < to; i++) sum += 1 - alpha[layer][i];
          picture.data.set([...colours[strength(sum / (to - from))], 255], 4 * ((layers - 1 - layer) * width + x));
        }
      canvas.getContext("2d").putImageData(picture, 0, 0);
      const bySlot = alpha[0].map((_, i) => lamemo.mean(alpha.map((row) => 1 - row[i])));
      const top = Math.max(0.02, ...bySlot);
      below.setAttribute("viewBox", `0 0 ${slots} 1`);
      area.setAttribute("d", `M0 1${bySlot.map((v, i) => `V${(1 - v / top).toFixed(4)}H${i + 1}`).join("")}V1Z`);
    };

    const probe = lamemo.probe(plot, figure.querySelector(".reading"), {
      hint: "Point at a slot, or focus the map and use the arrow keys, to read its alpha.",
      size: () => (alpha ? [alpha[0].length, alpha.length] : [0, 0]),
      find: (event) => {
        const box = canvas.getBoundingClientRect();
        const x = (event.clientX - box.left) / box.width, y = (event.clientY - box.top) / box.height;
        if (x < 0 || y < 0 || x >= 1 || y >= 1) return null;
        return [Math.floor(x * alpha[0].length), alpha.length - 1 - Math.floor(y * alpha.length)];
      },
      mark: (place) => {
        mark.hidden = !place;
        if (!place) return;
        const width = field.clientWidth / alpha[0].length;
        mark.style.left = `${place[0] * width}px`;
        mark.style.width = `${Math.max(3, width)}px`;
        mark.style.top = `${(alpha.length - 1 - place[1]) * ROW}px`;
      },
      say: ([slot, layer]) => `Layer ${layer + 1}, slot ${slot + 1} of ${alpha[0].length}, ` +
        `${lamemo.several(alpha[0].length - slot, "token")} before this segment: α ${alpha[layer][slot].toFixed(3)}, ` +
        `${lamemo.percent(1 - alpha[layer][slot])} changed`,
    });

    const tell = (memory) => {
      if (memory && memory.alpha) {
        const most = changed.indexOf(Math.max(...changed));
        return `The look-ahead changed ${lamemo.percent(lamemo.mean(changed))} of the memory at the start of this segment, ` +
          `most in layer ${most + 1} (${lamemo.percent(changed[most])}).`;
      }
      if (!memory) return "Nothing is remembered yet. When a segment ends, its tokens become slots; when the next one begins, the look-ahead refreshes them.";
      if (memory.slots === 0) return "This branch has no memory.";
      return memory.remembered === 0 ? `The memory is filled when the first segment of ${lamemo.several(memory.segment.length, "token")} ends.`
        : "This model keeps what it remembers as it is: there is no look-ahead.";
    };
    new ResizeObserver(paint).observe(field);
    return {
      paint,
      update: (memory) => {
        alpha = memory && memory.alpha && memory.alpha[0] && memory.alpha[0].length ? memory.alpha : null;
        changed = alpha ? alpha.map((row) => 1 - lamemo.mean(row)) : [];
        figure.classList.toggle("none", !alpha);
        finding.textContent = tell(memory);
        plot.setAttribute("aria-label", `Heat map of alpha by layer and slot. ${finding.textContent}`);
        if (alpha) {
          if (labels.childElementCount !== alpha.length)
            labels.replaceChildren(...alpha.map((_, i) => lamemo.element("span", {}, String(alpha.length - i))));
          right.update(changed);
          paint();
        }
        probe.again();
      },
    };
  };
})();
