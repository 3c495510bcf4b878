/* page.js -- light and dark, reloading during a run, and the start of everything else. */
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
