/* base.js -- what the parts of a report page share.  The parts are concatenated in the order of
 * cmake/web.cmake; `report` is their only global name. */
"use strict";
const report = (() => {
  const data = (figure) => JSON.parse(document.getElementById(figure.id + "-data").textContent);

  /* element("button", {type: "button"}, "text", child...) */
  const element = (tag, attributes, ...children) => {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) e.setAttribute(name, value);
    e.append(...children);
    return e;
  };

  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  /* A value as people write it: five significant digits, thousands apart. */
  const number = (v) => {
    if (v === null || v === undefined || !isFinite(v)) return "–";
    if (v !== 0 && (Math.abs(v) < 1e-4 || Math.abs(v) >= 1e12)) return v.toExponential(3);
    if (Number.isInteger(v)) return v.toLocaleString("en-US");
    return Number(v.toPrecision(5)).toLocaleString("en-US", { maximumFractionDigits: 9 });
  };

  /* A number beside an axis: 20k, 1.5M, 0.25. */
  const tick = (v, largest = Math.abs(v)) => {
    const size = Math.abs(v), sign = v < 0 ? "\u2212" : "";
    if (v !== 0 && (largest < 1e-4 || largest >= 1e15)) return sign + size.toExponential().replace("e+", "e");
    for (const [unit, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (size >= unit && largest >= 1e4) return sign + +(size / unit).toPrecision(12) + letter;
    return sign + +size.toPrecision(12);
  };

  /* What the reader chose, kept while the page reloads itself; other pages in this tab have their own. */
  const key = (name) => `lamemo ${location.pathname} ${name}`;
  const keep = (name, value) => {
    try { sessionStorage.setItem(key(name), JSON.stringify(value)); } catch (e) { /* none */ }
  };
  const kept = (name, otherwise) => {
    try {
      const text = sessionStorage.getItem(key(name));
      return text === null ? otherwise : JSON.parse(text);
    } catch (e) { return otherwise; }
  };

  /* A button that is on or off. */
  const toggle = (label, on, change) => {
    const button = element("button", { type: "button", "aria-pressed": String(on) }, label);
    button.addEventListener("click", () => {
      on = !on;
      button.setAttribute("aria-pressed", String(on));
      change(on);
    });
    return button;
  };

  /* How to read a chart, said under the first one only. */
  let said = false;
  const hint = (zoom) => {
    const text = said ? "" : "Point at a chart, or focus it and use the arrow keys, to read values." +
      (zoom ? " Drag to zoom, double-click to go back." : "");
    said = true;
    return text;
  };

  return { data, element, colour, number, tick, keep, kept, toggle, hint, kinds: {} };
})();
