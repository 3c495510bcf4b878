/* common.mjs -- what the tests in a browser share: playwright-core and axe-core from the build folder, and a count of what
 * passed. */
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export const prepare = (modules, chromium) => {
  const require = createRequire(join(resolve(modules), "x.js"));
  const playwright = require("playwright-core");
  const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  let passed = 0, failed = 0;

  const test = async (name, body) => {
    const began = Date.now();
    try {
      await body();
      passed++;
      console.log(`ok: ${name}, ${Math.round((Date.now() - began) / 100) / 10} s`);
    } catch (error) {
      failed++;
      console.log(`FAILED: ${name}: ${error.message}`);
    }
  };
  const violations = async (page) => {
    await page.evaluate(axe);
    const result = await page.evaluate(() => window.axe.run());
    return result.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
  };
  const results = () => {
    console.log(`${passed} passed, ${failed} failed`);
    return failed ? 1 : 0;
  };
  return { launch: () => playwright.chromium.launch({ executablePath: chromium, args: flags }), test, violations, results };
};
