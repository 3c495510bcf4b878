/* common.js -- what the parts of the page share.  cmake/web.cmake says in which order the parts are joined; `lamemo`
 * is their only global name. */
"use strict";
const lamemo = (() => {
  /* element("button", {type: "button"}, "text", child...) */
  const element = (tag, attributes, ...children) => {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) e.setAttribute(name, value);
    e.append(...children);
    return e;
  };
  const drawn = (tag, attributes, ...children) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes || {})) e.setAttribute(name, value);
    e.append(...children);
    return e;
  };
  const fromTemplate = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  const count = (n) => n.toLocaleString("en-US");
  const several = (n, one) => `${count(n)} ${one}${n === 1 ? "" : "s"}`;
  const percent = (share) => `${share > 0 && share < 0.1 ? (100 * share).toFixed(1) : Math.round(100 * share)} %`;
  const bits = (nats) => nats / Math.LN2;
  const mean = (list) => (list.length ? list.reduce((a, b) => a + b, 0) / list.length : 0);

  /* Kept in this browser or this tab, where that is allowed. */
  const keep = (store, name, value) => { try { store().setItem("lamemo " + name, value); } catch (e) { /* none */ } };
  const kept = (store, name) => { try { return store().getItem("lamemo " + name); } catch (e) { return null; } };
  const browser = () => localStorage, tab = () => sessionStorage;

  /* A plot that has the focus or the pointer under it has a place, and says what is there.  find(event) and say(place)
   * are the plot's; a place is [column, row]. */
  const probe = (plot, output, { size, find, mark, say, hint }) => {
    let at = null;
    const go = (place) => {
      at = place;
      mark(place);
      output.textContent = place ? say(place) : hint;
    };
    plot.addEventListener("pointermove", (event) => { if (size()[0]) go(find(event)); });
    plot.addEventListener("pointerleave", () => go(null));
    plot.addEventListener("blur", () => go(null));
    plot.addEventListener("keydown", (event) => {
      const [columns, rows] = size(), big = Math.max(1, Math.round(columns / 16));
      if (!columns || event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "Escape" && at) { go(null); event.stopPropagation(); return; }
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1], PageUp: [-big, 0],
        PageDown: [big, 0], Home: [-columns, 0], End: [columns, 0] }[event.key];
      if (!step) return;
      const within = (v, n) => Math.max(0, Math.min(n - 1, v));
      const [x, y] = at || [event.key === "ArrowLeft" || event.key === "PageUp" ? columns : event.key === "ArrowRight" ? -1 : 0, event.key === "ArrowUp" ? -1 : 0];
      go([within(x + step[0], columns), within(y + step[1], rows)]);
      event.preventDefault();
    });
    output.textContent = hint;
    return { again: () => { if (at && at[0] < size()[0] && at[1] < size()[1]) go(at); else go(null); } };
  };

  return { element, drawn, fromTemplate, colour, count, several, percent, bits, mean, keep, kept, browser, tab, probe };
})();
