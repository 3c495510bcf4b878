/* cells.js -- heat maps: the SVG stays, its values can be read. */
(() => {
  const place = (axis, i, n) => {
    if (axis.min === undefined) return report.number(i);
    return report.number(axis.min + (n > 1 ? i / (n - 1) : 0) * (axis.max - axis.min));
  };
  const named = (axis, text) => (axis.label ? `${axis.label} ${text}` : text);
  const under = (p, columns, rows) =>
    p && [Math.min(columns - 1, Math.floor(p[0] * columns)), Math.min(rows - 1, Math.floor(p[1] * rows))];

  report.kinds.heat = (figure, data) => {
    if (!data.rows || !data.cols) return;
    const svg = figure.querySelector(".plot svg"), frame = report.frame(svg), mark = report.marker(svg);
    const w = frame.width / data.cols, h = frame.height / data.rows;
    report.probe(figure, {
      size: () => ({ columns: data.cols, rows: data.rows }),
      find: (event) => under(frame.point(event), data.cols, data.rows),
      mark: (p) => mark(p && { x: frame.x + p[0] * w, y: frame.y + p[1] * h, width: w, height: h }),
      say: (p) => `${named(data.y, place(data.y, p[1], data.rows))}, ` +
        `${named(data.x, place(data.x, p[0], data.cols))}: ` +
        `${data.z_label || "value"} ${report.number(data.z[p[1]][p[0]])}`,
    });
  };
})();
