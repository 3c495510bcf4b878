/* curves.js -- attention over distance, a curve for each layer, and on the right how much of it falls on the memory. */
(() => {
  const HEIGHT = 170, LEFT = 40, BOTTOM = 22, TOP = 6, RIGHT = 4;

  lamemo.curvesView = (figure) => {
    const plot = figure.querySelector(".plot"), finding = figure.querySelector(".finding");
    const svg = lamemo.drawn("svg", { "aria-hidden": "true" });
    const field = lamemo.element("div", { class: "field" }, svg), right = lamemo.layerBars("on the memory", 1);
    let attention = null, place = null;
    plot.append(lamemo.element("div", { class: "curve-side" }, field, lamemo.element("div", { class: "ends", "aria-hidden": "true" },
      lamemo.element("span", {}, "tokens back"), lamemo.element("span", {}, "log scales"))), lamemo.element("div", { class: "side" }, "on the memory"), right.bars);

    const last = () => Math.max(0, ...attention.weight.map((row) => row.findLastIndex((v) => v !== null)));
    const distance = (i) => Math.round((i + 0.5) * attention.interval);
    /* Logarithmic both ways: weights fall by orders of magnitude, and most happens nearby. */
    const frame = () => {
      const width = Math.max(120, field.clientWidth), n = last() + 1;
      const values = attention.weight.flat().filter((v) => v > 0);
      const high = Math.log10(Math.max(1e-6, ...values)), low = Math.min(high - 0.5, Math.log10(Math.max(1e-6, Math.min(...values, 1))));
      const near = Math.log2(0.5), far = Math.max(near + 1, Math.log2(n - 0.5));
      return { width, n, high, low,
        x: (i) => LEFT + ((Math.log2(i + 0.5) - near) / (far - near)) * (width - LEFT - RIGHT),
        y: (v) => TOP + ((high - Math.log10(Math.max(1e-6, v))) / (high - low)) * (HEIGHT - TOP - BOTTOM) };
    };
    const axes = (f) => {
      const parts = [];
      const line = (x1, y1, x2, y2) => parts.push(lamemo.drawn("path", { class: "grid", d: `M${x1} ${y1}L${x2} ${y2}` }));
      const write = (x, y, text, anchor) => parts.push(lamemo.drawn("text", { x, y, "text-anchor": anchor }, text));
      for (let e = Math.ceil(f.low - 1e-9); e <= f.high; e++) {
        line(LEFT, f.y(10 ** e), f.width - RIGHT, f.y(10 ** e));
        write(LEFT - 6, f.y(10 ** e) + 4, e > -4 ? String(+(10 ** e).toFixed(4)) : `1e${e}`, "end");
      }
      for (let i = 0, used = -99; i < f.n; i = Math.max(i + 1, 2 * i)) {
        if (f.x(i) - used < 44) continue;
        used = f.x(i);
        line(used, HEIGHT - BOTTOM, used, HEIGHT - BOTTOM + 4);
        write(used, HEIGHT - 5, lamemo.count(distance(i)), i === 0 ? "start" : f.width - used < 20 ? "end" : "middle");
      }
      return parts;
    };
    const paint = () => {
      if (!attention || !field.clientWidth) return;
      const f = frame();
      svg.setAttribute("viewBox", `0 0 ${f.width} ${HEIGHT}`);
      svg.setAttribute("width", f.width);
      svg.setAttribute("height", HEIGHT);
      const curve = (row, layer) => {
        let d = "", pen = "M";
        row.forEach((v, i) => {
          if (v === null || v <= 0) { pen = "M"; return; }
          d += `${pen}${f.x(i).toFixed(1)} ${f.y(v).toFixed(1)}`;
          pen = "L";
        });
        return lamemo.drawn("path", { class: `curve l${lamemo.layerColour(layer, attention.weight.length)}${place && place[1] === layer ? " chosen" : ""}`, d });
      };
      svg.replaceChildren(...axes(f), ...attention.weight.map(curve));
      if (place) {
        const v = attention.weight[place[1]][place[0]];
        svg.append(lamemo.drawn("path", { class: "cursor", d: `M${f.x(place[0])} ${TOP}V${HEIGHT - BOTTOM}` }));
        if (v > 0) svg.append(lamemo.drawn("circle", { class: "cursor", cx: f.x(place[0]), cy: f.y(v), r: 4 }));
      }
    };

    const probe = lamemo.probe(plot, figure.querySelector(".reading"), {
      hint: "Point at a curve, or focus the chart and use the arrow keys, to read it.",
      size: () => (attention ? [last() + 1, attention.weight.length] : [0, 0]),
      find: (event) => {
        const box = svg.getBoundingClientRect(), f = frame(), x = event.clientX - box.left, y = event.clientY - box.top;
        if (x < LEFT - 4 || x > f.width || y < 0 || y > HEIGHT) return null;
        let i = 0;
        while (i + 1 < f.n && Math.abs(f.x(i + 1) - x) < Math.abs(f.x(i) - x)) i++;
        const near = attention.weight.map((row) => (row[i] > 0 ? Math.abs(f.y(row[i]) - y) : Infinity));
        return [i, near.indexOf(Math.min(...near))];
      },
      mark: (p) => { place = p; paint(); },
      say: ([i, layer]) => {
        const v = attention.weight[layer][i], from = i * attention.interval + 1;
        return `Layer ${layer + 1}, ${lamemo.count(from)} to ${lamemo.count(from + attention.interval - 1)} tokens back: ` +
          (v === null ? "nothing is so far back" : `largest weight ${v.toPrecision(2)}`);
      },
    });
    new ResizeObserver(paint).observe(field);
    return {
      paint,
      update: (memory) => {
        const a = memory && memory.attention;
        attention = a && a.weight && a.weight.length && a.weight.some((row) => row.some((v) => v !== null)) ? a : null;
        figure.classList.toggle("none", !attention);
        finding.textContent = !attention ? "Nothing was read yet. Here you will see how far back each layer looks." : attention.memory_share && memory.remembered
          ? `${lamemo.percent(lamemo.mean(attention.memory_share))} of the attention of this segment falls on the memory.`
          : `All attention falls on this segment: ${memory.slots ? "nothing is remembered yet" : "there is no memory"}.`;
        plot.setAttribute("aria-label", `Largest attention weight over distance in tokens, by layer. ${finding.textContent}`);
        if (attention) {
          right.update(attention.memory_share || attention.weight.map(() => 0));
          paint();
        }
        probe.again();
      },
    };
  };

  /* Layers are an order: they take the palette's eight ordered colours, 8 to 15. */
  lamemo.layerColour = (layer, layers) => 8 + (layers > 1 ? Math.round((7 * layer) / (layers - 1)) : 0);
})();
