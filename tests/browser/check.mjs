/* check.mjs -- looks at report pages as readers do: light, dark, on a phone, on paper, with the keyboard, and
 * through axe-core.  The first page is tried in every way, others are looked at.
 *     node check.mjs NODE_MODULES_PARENT CHROMIUM SCREENSHOTS|"" PAGE.html... */
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import assert from "node:assert/strict";
import { prepare } from "./common.mjs";

const [modules, chromium, shots, ...pages] = process.argv.slice(2);
const { launch, test, violations, results } = prepare(modules, chromium);

/* A page of its own, whose every complaint and every request outside is collected. */
const open = async (browser, file, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 800 }, ...options });
  const page = await context.newPage(), troubles = [];
  page.setDefaultTimeout(120000); /* the machine may be busy */
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) troubles.push(m.text()); });
  page.on("pageerror", (e) => troubles.push(String(e)));
  page.on("request", (r) => { if (!/^(file|data|blob):/.test(r.url())) troubles.push("asks for " + r.url()); });
  page.on("dialog", (d) => { troubles.push("dialog " + d.message()); d.dismiss(); });
  await page.goto(pathToFileURL(resolve(file)).href);
  page.troubles = troubles;
  page.shot = async (name) => {
    if (shots) await page.screenshot({ path: join(shots, `${called(file)}-${name}.png`), fullPage: true });
  };
  return page;
};

const called = (file) => basename(dirname(file));

const looks = [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["phone", { colorScheme: "light", viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true }],
];

const appearance = async (browser, file, which) => {
  for (const [name, options] of which)
    await test(`${called(file)} ${name}`, async () => {
      const page = await open(browser, file, options);
      await page.shot(name);
      assert.ok(await page.locator("figure").count() > 0, "no figures");
      const wide = await page.evaluate((width) => document.documentElement.scrollWidth - width,
        page.viewportSize().width);
      assert.ok(wide <= 0, `${wide} pixels too wide`);
      const dark = await page.evaluate(() => document.documentElement.classList.contains("dark"));
      assert.equal(dark, name === "dark");
      const tables = page.locator("#distance, #change, #lr, #loss-position"); /* axe takes long over large ones */
      for (const summary of await tables.locator("summary").all()) await summary.click();
      await page.locator("details table").first().waitFor({ state: "attached" }); /* written once opened */
      assert.deepEqual(await violations(page), []);
      assert.deepEqual(page.troubles, []);
      await page.context().close();
    });
};

/* Each chart says something under the pointer and for the arrow keys, and the same for both. */
const reading = async (browser, file, options) => {
  const page = await open(browser, file, options);
  for (const figure of await page.locator("figure.chart").all()) {
    const id = await figure.getAttribute("id");
    if (!(await figure.locator(".reading").count())) continue; /* nothing to read */
    await test(`${called(file)} values of ${id}`, async () => {
      const plot = figure.locator(".plot"), output = figure.locator(".reading");
      const hint = await output.textContent();
      await plot.scrollIntoViewIfNeeded();
      const box = await plot.boundingBox();
      await page.mouse.move(box.x + box.width * 0.45, box.y + box.height * 0.5);
      const hovered = await output.textContent();
      assert.match(hovered, /: .*[0-9]/);
      await page.mouse.move(1, 1);
      await plot.focus();
      await page.keyboard.press("ArrowRight");
      const first = await output.textContent();
      assert.match(first, /: .*[0-9]/);
      await page.keyboard.press("End");
      const last = await output.textContent();
      assert.notEqual(first, last);
      await page.keyboard.press("Escape");
      assert.equal(await output.textContent(), hint);
    });
  }
  return page;
};

const interaction = async (browser, file) => {
  const page = await reading(browser, file);
  const has = (selector) => page.locator(selector).count();
  if (await has(".canvas canvas"))
    await test(`${called(file)} log axis, smoothing, hiding, zoom`, async () => {
      const figure = page.locator("figure.chart", { has: page.locator("input[type=range]") }).first();
      const picture = async () => (await figure.locator("canvas").screenshot()).toString("base64");
      let before = await picture();
      const changes = async (what, act) => {
        await act();
        await page.mouse.move(1, 1);
        const now = await picture();
        assert.notEqual(now, before, what);
        before = now;
      };
      await changes("log x", () => figure.getByRole("button", { name: "log x" }).click());
      await changes("smoothing", () => figure.getByLabel("smoothing").fill("0.95"));
      if (await figure.locator(".key button").count())
        await changes("hiding", () => figure.locator(".key button").first().click());
      const box = await figure.locator(".u-over").boundingBox();
      await changes("zoom", async () => {
        await page.mouse.move(box.x + box.width * 0.6, box.y + 50);
        await page.mouse.down();
        await page.mouse.move(box.x + box.width * 0.8, box.y + 60, { steps: 4 });
        await page.mouse.up();
      });
      await page.reload();
      assert.equal(await figure.getByLabel("smoothing").inputValue(), "0.95", "kept over a reload");
    });
  if (await has(".tokens"))
    await test(`${called(file)} coloured text`, async () => {
      const figure = page.locator("figure.coloured"), output = figure.locator(".reading");
      await figure.locator(".tokens").focus();
      await page.keyboard.press("ArrowRight");
      assert.match(await output.textContent(), /“.*” .*: [0-9]/);
      const colours = () => figure.locator(".tokens span").evaluateAll((all) => all.map((s) => s.className).join());
      const before = await colours();
      await figure.getByLabel("Colour:").selectOption({ index: 2 });
      assert.notEqual(await colours(), before);
      assert.ok((await colours()).includes("u"), "two colours for a difference");
    });
  if (await has(".tokens"))
    await test(`${called(file)} attention of a token`, async () => {
      const figure = page.locator("figure.coloured"), output = figure.locator(".reading");
      const spans = figure.locator(".tokens span");
      await spans.nth(40).click();
      assert.match(await output.textContent(), /^To predict “.”, LaMemo attends to “.+” 60 %, “.+” 25 %/);
      assert.equal(await spans.nth(39).getAttribute("class"), "u8", "the token before is the strongest");
      await figure.getByLabel("Attention of:").selectOption({ index: 1 });
      assert.match(await output.textContent(), /Transformer-XL attends to/);
      await spans.nth(40).click(); /* back */
      assert.doesNotMatch(await output.textContent(), /attends/);
      await figure.locator(".tokens").focus();
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("Enter");
      assert.match(await output.textContent(), /attends to/);
      await page.keyboard.press("Escape");
      assert.doesNotMatch(await output.textContent(), /attends/);
    });
  await test(`${called(file)} theme`, async () => {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const before = await ground();
    await page.locator("#theme").click();
    assert.notEqual(await ground(), before);
    assert.deepEqual(page.troubles, []);
  });
  await page.context().close();
};

/* Wide: charts stand side by side and the contents stay in view.  Narrow: what is cut off says so.  Dark: so are heat maps. */
const layout = async (browser, file) => {
  await test(`${called(file)} on a wide screen`, async () => {
    const page = await open(browser, file, { viewport: { width: 1500, height: 900 } });
    const boxes = await Promise.all((await page.locator("figure.chart").all()).map((f) => f.boundingBox()));
    assert.ok(new Set(boxes.map((b) => Math.round(b.x))).size > 1, "two columns");
    await page.locator("figure").last().scrollIntoViewIfNeeded();
    assert.ok(await page.locator("nav a").first().evaluate((a) => a.getBoundingClientRect().top >= 0), "contents in view");
    assert.equal(await page.locator("nav a[aria-current]").count(), 1);
    await page.context().close();
  });
  await test(`${called(file)} sideways on a phone`, async () => {
    const page = await open(browser, file, looks[2][1]);
    const heat = page.locator("figure.chart:has(g[shape-rendering]) .plot").first();
    assert.ok(await heat.evaluate((p) => p.classList.contains("more-right")), "the edge fades");
    assert.ok(await heat.evaluate((p) => p.previousElementSibling.textContent.includes("sideways")));
    await heat.evaluate((p) => { p.scrollLeft = p.scrollWidth; });
    await page.waitForFunction(() => document.querySelectorAll(".plot.more-left").length > 0);
    assert.ok(!(await heat.evaluate((p) => p.classList.contains("more-right"))), "nothing more on the right");
    await page.locator("nav a").last().click();
    assert.ok(await page.locator("nav a").last().evaluate((a) => a.getBoundingClientRect().top >= 0), "contents in view");
    await page.context().close();
  });
  await test(`${called(file)} heat maps in the dark`, async () => {
    const fills = {};
    for (const colorScheme of ["light", "dark"]) {
      const page = await open(browser, file, { colorScheme });
      fills[colorScheme] = await page.locator("g[shape-rendering] path").first().evaluate((p) => getComputedStyle(p).fill);
      await page.context().close();
    }
    assert.notEqual(fills.light, fills.dark);
  });
};

/* Without scripts the drawings are there; on paper they are too, and nothing else moves. */
const still = async (browser, file) => {
  await test(`${called(file)} without scripts`, async () => {
    const page = await open(browser, file, { javaScriptEnabled: false, colorScheme: "dark" });
    for (const svg of await page.locator(".plot svg").all()) assert.ok(await svg.isVisible());
    await page.context().close();
  });
  await test(`${called(file)} printed`, async () => {
    const page = await open(browser, file);
    await page.emulateMedia({ media: "print" });
    for (const svg of await page.locator(".plot svg").all()) assert.ok(await svg.isVisible());
    for (const canvas of await page.locator(".canvas").all()) assert.ok(!(await canvas.isVisible()));
    if (shots) await page.pdf({ path: join(shots, called(file) + ".pdf"), format: "A4" });
    await page.shot("print");
    await page.context().close();
  });
  await test(`${called(file)} without uPlot`, async () => {
    const plain = await browser.newContext();
    await plain.addInitScript(() => { Object.defineProperty(window, "uPlot", { value: undefined, writable: false }); });
    const bare = await plain.newPage();
    await bare.goto(pathToFileURL(resolve(file)).href);
    assert.equal(await bare.locator("canvas").count(), 0);
    const figure = bare.locator("figure.chart").first();
    await figure.locator(".plot").focus();
    await bare.keyboard.press("ArrowRight");
    assert.match(await figure.locator(".reading").textContent(), /: .*[0-9]/);
    await plain.close();
  });
};

const browser = await launch();
await appearance(browser, pages[0], looks);
await interaction(browser, pages[0]);
await layout(browser, pages[0]);
await still(browser, pages[0]);
for (const file of pages.slice(1)) await appearance(browser, file, looks.slice(2)); /* made of the same parts */
await browser.close();
process.exit(results());
