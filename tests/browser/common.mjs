/* common.mjs -- what the tests in a browser share: playwright-core and axe-core from the build folder, and a count of what
 * passed. */
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { counter } from "../support/counter.mjs";

export const prepare = (modules, chromium) => {
  const require = createRequire(join(resolve(modules), "x.js"));
  const playwright = require("playwright-core");
  const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  const { test, verdict } = counter();
  const violations = async (page) => {
    await page.evaluate(axe);
    const result = await page.evaluate(() => window.axe.run());
    return result.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
  };
  return { launch: () => playwright.chromium.launch({ executablePath: chromium, args: flags }), test, violations, results: verdict };
};
