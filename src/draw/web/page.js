/* page.js -- light and dark, what scrolls, where the reader is, reloading during a run, and the start of everything
 * else. */
(() => {
  const root = document.documentElement, theme = document.getElementById("theme");

  const shine = (name) => {
    root.classList.remove("light", "dark");
    root.classList.add(name);
    theme.textContent = name === "dark" ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to ${name === "dark" ? "light" : "dark"} colours`);
    document.dispatchEvent(new Event("themechange"));
  };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => report.kept("theme", system.matches ? "dark" : "light");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const name = root.classList.contains("dark") ? "light" : "dark";
    report.keep("theme", name);
    shine(name);
  });
  system.addEventListener("change", () => shine(chosen()));
  shine(chosen());

  for (const figure of document.querySelectorAll("figure.chart, figure.coloured")) {
    const data = report.data(figure);
    report.kinds[data.kind](figure, data);
    if (data.kind !== "tokens") report.details(figure, data);
  }

  /* Where something is wider than the screen, its edge fades and a line says so. */
  const watchWidth = (box) => {
    const hint = report.element("p", { class: "sideways", "aria-hidden": "true" }, "↔ Scroll sideways to see the rest.");
    const look = () => {
      const more = box.scrollWidth - box.clientWidth > 4;
      box.classList.toggle("more-right", more && box.scrollLeft + box.clientWidth < box.scrollWidth - 4);
      box.classList.toggle("more-left", more && box.scrollLeft > 4);
      hint.hidden = !more;
    };
    box.before(hint);
    box.addEventListener("scroll", look, { passive: true });
    new ResizeObserver(look).observe(box);
    look();
  };
  document.querySelectorAll("main > figure > .scroll, .plot").forEach(watchWidth);

  /* The contents mark the section that is being read. */
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const heads = [...document.querySelectorAll("main > h2")];
  const mark = () => {
    const now = heads.filter((h) => h.getBoundingClientRect().top < innerHeight / 3).pop() || heads[0];
    for (const [id, a] of links)
      if (now && id === now.id) a.setAttribute("aria-current", "true"); else a.removeAttribute("aria-current");
  };
  addEventListener("scroll", mark, { passive: true });
  mark();

  const seconds = +document.body.dataset.refresh;
  if (seconds > 0) {
    let on = report.kept("refresh", true);
    const later = () => setTimeout(() => { if (on) location.reload(); else later(); }, 1000 * seconds);
    document.querySelector("header").append(report.toggle(`Reload every ${seconds} s`, on, (now) => {
      on = now;
      report.keep("refresh", now);
    }));
    later();
  }
})();
