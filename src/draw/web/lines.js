/* lines.js -- curves: drawn by uPlot where it is in the page, with smoothing, log axes and zoom; else the
 * SVG stays and can still be read. */
(() => {
  const usable = (axis, v) => v !== null && (axis.scale !== "log" || v > 0);

  /* Each series as points that can be shown, and all x that occur. */
  const points = (data) => {
    for (const s of data.series) {
      s.at = [];
      s.x.forEach((x, i) => { if (usable(data.x, x) && usable(data.y, s.y[i])) s.at.push(i); });
    }
    if (data.x.at_points) data.x.points = data.series[0].x;
    data.x.whole = data.series.every((s) => s.x.every(Number.isInteger));
    const all = new Set();
    for (const s of data.series) if (!s.hidden) for (const i of s.at) all.add(s.x[i]);
    return [...all].sort((a, b) => a - b);
  };

  /* Index in a rising list of the value nearest to v. */
  const nearest = (list, v) => {
    let low = 0, high = list.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (list[middle] < v) low = middle; else high = middle;
    }
    return high >= 0 && Math.abs(list[high] - v) < Math.abs(list[low] - v) ? high : low;
  };

  /* "step 4,000: LaMemo 1.23, Transformer-XL 1.25": of each series the value nearest to x, if it reaches so
   * far. */
  const say = (data, x) => {
    const parts = data.series.filter((s) => !s.hidden && s.at.length).map((s) => {
      const xs = s.at.map((i) => s.x[i]);
      if (x < xs[0] || x > xs[xs.length - 1]) return null;
      const i = s.at[nearest(xs, x)];
      const smooth = s.smooth ? ` (smoothed ${report.number(s.smooth[i])})` : "";
      const band = s.low ? ` (${report.number(s.low[i])} to ${report.number(s.high[i])})` : "";
      return `${s.name} ${report.number(s.y[i])}${smooth}${band}`;
    });
    return `${data.x.label || "x"} ${report.number(x)}: ${parts.filter(Boolean).join(", ")}`;
  };

  const inSvg = (figure, data) => {
    const svg = figure.querySelector(".plot svg"), frame = report.frame(svg);
    const [low, high] = svg.querySelector(".frame").dataset.x.split(" ").map(Number);
    const mark = report.marker(svg), xs = points(data), log = data.x.scale === "log";
    const position = (x) => (log ? Math.log(x / low) / Math.log(high / low) : (x - low) / (high - low));
    report.probe(figure, {
      long: data.series.length > 2,
      size: () => ({ columns: xs.length, rows: 1 }),
      find: (event) => {
        const p = frame.point(event);
        if (!p || !xs.length) return null;
        return [nearest(xs, log ? low * (high / low) ** p[0] : low + p[0] * (high - low)), 0];
      },
      mark: (place) => mark(place && { x: frame.x + position(xs[place[0]]) * frame.width, y: frame.y,
        width: 1, height: frame.height }),
      say: (place) => say(data, xs[place[0]]),
    });
  };

  /* Exponential moving average that starts without a bias. */
  const smoothed = (values, weight) => {
    let sum = 0, total = 0;
    return values.map((v) => {
      if (v === null) return null;
      sum = sum * weight + v * (1 - weight);
      total = total * weight + (1 - weight);
      return sum / total;
    });
  };

  /* uPlot's columns: for each series low, high (where it has them), the raw values (faint, where smoothed) and
   * the line itself. */
  const columns = (data, weight) => {
    const tables = [], series = [{}], bands = [];
    for (const s of [...data.series].reverse()) { /* the first on top */
      const stroke = report.colour("s" + s.colour);
      const clean = (v) => v.map((y) => (usable(data.y, y) ? y : null));
      const table = [s.x], show = !s.hidden, add = (values, options) => {
        table.push(clean(values));
        series.push({ show, points: { show: false }, ...options });
      };
      if (s.low) {
        add(s.high, { stroke: "transparent" });
        add(s.low, { stroke: "transparent" });
        bands.push({ series: [series.length - 2, series.length - 1], fill: stroke + "29" });
      }
      s.smooth = weight > 0 && s.x.length > 20 ? smoothed(s.y, weight) : null;
      if (s.smooth) add(s.y, { stroke: stroke + "40", width: 1 });
      add(s.smooth || s.y, {
        stroke, width: s.smooth || !s.rough ? 2 : 1.1, dash: s.dashed ? [6, 4] : undefined,
        points: { show: s.x.length <= 40 && (!s.dashed || s.x.length < 2), size: 6, fill: stroke }, label: s.name });
      s.column = series.length - 1;
      tables.push(table);
    }
    return { values: tables.length > 1 ? uPlot.join(tables) : tables[0], series, bands };
  };

  /* How wide a name is, and as much of it as there is room for: its end often tells it from others. */
  const pen = document.createElement("canvas").getContext("2d"), NAME = 175, LINE = 17;
  pen.font = "600 14px system-ui, sans-serif";
  const wide = (name) => pen.measureText(name).width;
  const cut = (name) => {
    if (wide(name) <= NAME) return name;
    const letters = [...name], shown = (keep) =>
      letters.slice(0, Math.ceil(0.6 * keep)).join("") + "…" + letters.slice(letters.length - Math.floor(0.4 * keep)).join("");
    let keep = letters.length - 1;
    while (keep > 0 && wide(shown(keep)) > NAME) keep--;
    return shown(keep);
  };

  /* Moves overlapping neighbours apart, each by half, then all into the frame; as draw/svg_lines.c. */
  const pushApart = (ends, line, top, bottom) => {
    for (let round = 0; round < 60; round++)
      for (let i = 1; i < ends.length; i++) {
        const missing = Math.max(0, line - (ends[i].y - ends[i - 1].y)) / 2;
        ends[i - 1].y -= missing;
        ends[i].y += missing;
      }
    const n = ends.length;
    ends.forEach((_, k) => { const e = ends[n - 1 - k]; e.y = Math.min(e.y, k ? ends[n - k].y - line : bottom); });
    ends.forEach((e, i) => { e.y = Math.max(e.y, i ? ends[i - 1].y + line : top); });
  };

  /* Names at the ends of the curves, with dots to those that end early; an order keeps it, from the top down. */
  const names = (u, data) => {
    const ratio = u.ctx.canvas.width / u.width, right = u.bbox.left + u.bbox.width;
    const ends = data.series.filter((s) => !s.hidden && s.at.length).map((s) => {
      const values = u.data[s.column];
      let i = values.length - 1;
      while (i >= 0 && (values[i] === null || values[i] === undefined || u.data[0][i] > u.scales.x.max)) i--;
      if (i < 0) return null;
      const y = u.valToPos(values[i], "y", true);
      return { s, y: data.ordered ? u.bbox.top : y, end: y, x: u.valToPos(u.data[0][i], "x", true) };
    }).filter((e) => e && isFinite(e.y));
    if (!data.ordered) ends.sort((a, b) => a.y - b.y);
    const line = Math.min(LINE * ratio, u.bbox.height / ends.length);
    pushApart(ends, line, u.bbox.top, u.bbox.top + u.bbox.height);
    u.ctx.save();
    u.ctx.font = `600 ${14 * ratio}px system-ui, sans-serif`;
    u.ctx.textBaseline = "middle";
    u.ctx.textAlign = "left";
    for (const e of ends) {
      u.ctx.fillStyle = u.ctx.strokeStyle = report.colour("s" + e.s.colour);
      u.ctx.fillText(cut(e.s.name), right + 8 * ratio, e.y);
      if (data.ordered || right - e.x <= 8 * ratio) continue;
      u.ctx.lineWidth = ratio;
      u.ctx.setLineDash([ratio, 3 * ratio]);
      u.ctx.beginPath();
      u.ctx.moveTo(e.x + 6 * ratio, e.end);
      u.ctx.lineTo(Math.max(right - 8 * ratio, e.x + 6 * ratio), e.end);
      u.ctx.lineTo(right + 6 * ratio, e.y);
      u.ctx.stroke();
    }
    u.ctx.restore();
  };

  /* An axis: its scale for uPlot, and what uPlot needs to write round numbers beside it. */
  const scale = (axis, other) => ({
    distr: axis.scale === "log" ? 3 : 1,
    range: (u, low, high) => {
      if (axis.cut) { /* unless the reader looks at what lies above */
        const above = low > axis.min + 0.3 * (axis.max - axis.min);
        if (!above && high > axis.max && axis.scale !== "log" && other.scale !== "log") high = axis.max;
      } else if (axis.min !== undefined && low !== null && low >= axis.min && high <= axis.max) {
        return [axis.min, axis.max];
      }
      if (low === null) return axis.scale === "log" ? [0.1, 1] : [0, 1];
      if (axis.scale === "log") return low === high ? [low / 2, high * 2] : [low, high];
      return low === high ? [low - 1, high + 1] : [low, high];
    },
  });
  const margin = (range) => (u, low, high) => {
    const [a, b] = range(u, low, high), log = u.scales.y.distr === 3;
    const more = log ? (b / a) ** 0.04 : 0.04 * (b - a);
    return log ? [a / more, b * more] : [a === 0 ? 0 : a - more, b + more];
  };
  /* Round numbers, as draw/ruler.c finds and writes them. */
  const steps = (low, high, wanted) => {
    const least = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(least)), f = least / power;
    const step = power * (f <= 1 ? 1 : f <= 2 ? 2 : f <= 5 ? 5 : 10), all = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); i++) all.push(i * step);
    return all;
  };
  const logSteps = (low, high) => {
    const all = [], decades = Math.log10(high / low);
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++)
      for (const f of decades > 4 ? [1] : [1, 2, 5]) {
        const v = f * 10 ** e;
        if (v >= low && v <= high) all.push(+v.toPrecision(3));
      }
    return all;
  };
  /* Numbers beside an axis, one for every `room` pixels. */
  const splits = (axis, room) => (u, index, low, high) => {
    const wanted = Math.max(3, Math.min(8, Math.floor((index ? u.bbox.height : u.bbox.width) / devicePixelRatio / room)));
    if (axis.scale === "log" && high / low >= 5) return logSteps(low, high);
    if (axis.points && axis.points.length <= 12 && u.bbox.width / devicePixelRatio >= 38 * axis.points.length)
      return axis.points.filter((v) => v >= low && v <= high);
    return steps(low, high, axis.whole && high - low >= 1 ? Math.min(wanted, high - low) : wanted);
  };
  const texts = (u, all) => {
    const size = Math.max(...all.map(Math.abs)), step = all.length > 1 ? all[1] - all[0] : size;
    const even = all.every((v, i) => i === 0 || Math.abs(v - all[i - 1] - step) < 1e-6 * step);
    if (!even || size >= 1e4 || size < 1e-4) return all.map((v) => report.tick(v, even ? size : Math.abs(v)));
    const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
    return all.map((v) => (v === 0 ? "0" : v.toFixed(decimals).replace("-", "\u2212")));
  };
  const writing = (axis, room) => ({ splits: splits(axis, room), values: texts, filter: (u, v) => v });

  const options = (data, width, made) => {
    const soft = report.colour("soft"), grid = report.colour("grid"), line = report.colour("line");
    const font = "14px system-ui, sans-serif";
    const room = width >= 440 ? 14 + Math.max(...data.series.map((s) => wide(cut(s.name)))) : 18;
    const y = scale(data.y, data.x);
    return {
      width, height: width >= 440 ? 360 : 300, padding: [10, room, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false }, points: { size: 7 } },
      scales: { x: { time: false, ...scale(data.x) }, y: { ...y, range: margin(y.range) } },
      axes: [
        { font, stroke: soft, label: data.x.label, labelFont: font, labelSize: 24, size: 34, gap: 6,
          grid: { show: false }, ticks: { stroke: line, width: 1, size: 5 }, border: { show: true, stroke: line, width: 1 },
          ...writing(data.x, 60) },
        { font, stroke: soft, gap: 4, size: (u, values) => 12 + 7.5 * Math.max(3, ...(values || []).map((v) => v.length)),
          grid: { stroke: grid, width: 1 }, ticks: { show: false },
          ...writing(data.y, 42) },
      ],
      series: made.series, bands: made.bands,
      hooks: { draw: [(u) => { if (width >= 440) names(u, data); }] },
    };
  };

  /* Names with a switch each, for narrow screens and many curves. */
  const key = (data, change) => {
    const list = report.element("div", { class: "key", role: "group", "aria-label": "Curves shown" });
    for (const s of data.series) {
      const button = report.toggle(s.name, true, (on) => { s.hidden = !on; change(); });
      button.prepend(report.element("i", { style: `--of:var(--s${s.colour})`, class: s.dashed ? "dash" : "" }));
      list.append(button);
    }
    return list;
  };

  const controls = (figure, data, state, change) => {
    const bar = report.element("div", { class: "controls" });
    const set = (name, value) => {
      state[name] = value;
      report.keep(figure.id, state);
      change();
    };
    const signed = (axis) => data.series.some((s) => s[axis].some((v) => v !== null && v < 0));
    for (const [axis, name] of [["x", "log x"], ["y", "log y"]].filter(([axis]) => !signed(axis)))
      bar.append(report.toggle(name, state[axis] === "log", (on) => set(axis, on ? "log" : "linear")));
    if (data.series.some((s) => s.x.length > 50)) {
      const slider = report.element("input", { type: "range", min: 0, max: 0.99, step: 0.01 });
      slider.value = state.smooth;
      slider.addEventListener("input", () => set("smooth", +slider.value));
      bar.append(report.element("label", {}, "smoothing ", slider));
    }
    if (data.series.length > 1) bar.prepend(key(data, change));
    return bar;
  };

  const inCanvas = (figure, data) => {
    const plot = figure.querySelector(".plot"), canvas = report.element("div", { class: "canvas" });
    const state = report.kept(figure.id, { x: data.x.scale, y: data.y.scale, smooth: 0 });
    let u = null, xs = [];
    const draw = () => {
      data.x.scale = state.x;
      data.y.scale = state.y;
      xs = points(data);
      if (u) u.destroy();
      const made = columns(data, state.smooth);
      u = new uPlot(options(data, plot.clientWidth, made), made.values, canvas);
    };
    plot.append(canvas);
    plot.classList.add("live");
    plot.before(controls(figure, data, state, draw));
    if (data.y.label) plot.before(report.element("div", { class: "ylabel", "aria-hidden": "true" }, data.y.label));
    draw();
    report.probe(figure, {
      long: data.series.length > 2,
      size: () => ({ columns: xs.length, rows: 1 }),
      find: (event) => {
        const box = u.over.getBoundingClientRect(), left = event.clientX - box.left;
        if (!xs.length || left < 0 || left > box.width || event.clientY < box.top || event.clientY > box.bottom)
          return null;
        return [nearest(xs, u.posToVal(left, "x")), 0];
      },
      mark: (place) => u.setCursor(place
        ? { left: u.valToPos(xs[place[0]], "x"), top: 1 } : { left: -10, top: -10 }),
      say: (place) => say(data, xs[place[0]]),
    });
    new ResizeObserver(() => {
      if (Math.abs(plot.clientWidth - u.width) > 1) draw();
    }).observe(plot);
    document.addEventListener("themechange", draw);
  };

  report.kinds.lines = (figure, data) => {
    if (!data.series.some((s) => s.x.length)) return;
    if (typeof uPlot === "function") inCanvas(figure, data); else inSvg(figure, data);
  };
})();
