/* page.js -- what a report page does beyond showing itself. */
(() => {
  "use strict";
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const say = () => { theme.textContent = root.classList.contains("dark") ? "Light" : "Dark"; };
  root.classList.toggle("dark", matchMedia("(prefers-color-scheme: dark)").matches);
  theme.hidden = false;
  theme.addEventListener("click", () => { root.classList.toggle("dark"); say(); });
  say();
})();
