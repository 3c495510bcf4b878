/* data.js -- the numbers of a chart as a table, made when somebody wants to see it, and as CSV. */
(() => {
  const MOST = 1000;

  /* Header and rows of any chart. */
  const table = (data) => {
    if (data.kind === "heat") {
      const name = (axis, i, n) =>
        axis.min === undefined ? i : axis.min + (n > 1 ? i / (n - 1) : 0) * (axis.max - axis.min);
      const columns = Array.from({ length: data.cols }, (_, c) => name(data.x, c, data.cols));
      return [[[data.y.label || "row", data.x.label].filter(Boolean).join(" \\ "), ...columns],
        ...data.z.map((row, r) => [name(data.y, r, data.rows), ...row])];
    }
    const header = [data.x.label || "x"], rows = new Map();
    data.series.forEach((s, k) => {
      const fields = s.low ? [["", s.y], [" low", s.low], [" high", s.high]] : [["", s.y]];
      for (const [suffix, values] of fields) {
        const column = header.push(s.name + suffix) - 1;
        values.forEach((v, i) => {
          const x = s.x[i];
          if (!rows.has(x)) rows.set(x, [x]);
          rows.get(x)[column] = v;
        });
      }
    });
    const order = [...rows.keys()].sort((a, b) => a - b);
    return [header, ...order.map((x) => Array.from(header, (_, c) => rows.get(x)[c] ?? null))];
  };

  /* As lam_text_csv() writes a field: no text is a formula to a spreadsheet. */
  const field = (v) => {
    if (typeof v !== "string") return v ?? "";
    const safe = /^[=+\-@\t\n\r\uff1d\uff0b\uff0d\uff20]/.test(v) && isNaN(v) ? "'" + v : v;
    return /[",;\t\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  const csv = (rows) => rows.map((row) => row.map(field).join(",")).join("\n") + "\n";

  const html = (rows) => {
    const body = report.element("tbody"), head = report.element("tr");
    for (const text of rows[0]) head.append(report.element("th", { scope: "col" }, String(text)));
    for (const row of rows.slice(1, MOST + 1))
      body.append(report.element("tr", {}, ...row.map((v, c) => report.element(c ? "td" : "th",
        c ? { class: "number" } : { scope: "row" }, typeof v === "string" ? v : report.number(v)))));
    return report.element("table", {}, report.element("thead", {}, head), body);
  };

  report.details = (figure, data) => {
    const details = report.element("details", {}, report.element("summary", {}, "Data"));
    details.addEventListener("toggle", () => {
      if (!details.open || details.childElementCount > 1) return;
      const rows = table(data), save = report.element("button", { type: "button" }, "Save as CSV");
      save.addEventListener("click", () => {
        const url = URL.createObjectURL(new Blob([csv(rows)], { type: "text/csv" }));
        report.element("a", { href: url, download: figure.id + ".csv" }).click();
        URL.revokeObjectURL(url);
      });
      const cut = rows.length - 1 > MOST ? ` The first ${MOST} of ${rows.length - 1} rows.` : "";
      const thin = data.thinned ? " Of long series the points that can be seen; the CSV file of the figure has all." : "";
      details.append(report.element("p", { class: "hint" }, save, cut + thin),
        report.element("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Data of the chart" },
          html(rows)));
    });
    figure.append(details);
  };
})();
