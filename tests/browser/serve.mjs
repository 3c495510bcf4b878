/* serve.mjs -- the page of `lamemo serve` as people use it: writing, watching the memory, forking, comparing, saving; by
 * keyboard, through axe-core, light, dark, on a phone, and when the server fails.
 *     node serve.mjs NODE_MODULES_PARENT CHROMIUM SCREENSHOTS|"" URL REPORT.html SOURCE
 * The server has two models, the first of them LaMemo with segments of more than 16 tokens; REPORT.html is a report page, whose colours
 * the page must have. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import assert from "node:assert/strict";
import { prepare } from "./common.mjs";

const [modules, chromium, shots, url, report] = process.argv.slice(2);
const { launch, test, violations, results } = prepare(modules, chromium);
const PHONE = { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };
const browser = await launch();

/* A page whose every complaint and every request to another server is collected. */
const open = async (options = {}, prepareContext = async () => {}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage(), troubles = [];
  page.setDefaultTimeout(60000); /* the machine may be busy */
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) troubles.push(m.text()); });
  page.on("pageerror", (e) => troubles.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(url) && !/^(data|blob):/.test(r.url())) troubles.push("asks for " + r.url()); });
  page.on("dialog", (d) => { troubles.push("dialog " + d.message()); d.dismiss(); });
  page.troubles = troubles;
  /* All that the page says of its state, however short: a busy machine shows some of it for no picture at all. */
  await page.addInitScript(() => {
    window.states = [];
    document.addEventListener("DOMContentLoaded", () => {
      const box = document.getElementById("state"), note = () => window.states.push(box.textContent);
      new MutationObserver(note).observe(box, { childList: true, characterData: true, subtree: true });
      note();
    });
  });
  await prepareContext(page);
  page.response = await page.goto(url);
  await page.locator(".card.text").waitFor();
  return page;
};
const close = async (page) => {
  assert.deepEqual(page.troubles, []);
  await page.close({ runBeforeUnload: false });
  await page.context().close();
};
const state = (page, wanted) => page.waitForFunction((text) => new RegExp(text).test(document.getElementById("state").textContent), wanted);
/* It has said so since the last call of said() or forget(). */
const forget = (page) => page.evaluate(() => { window.states = []; });
const said = async (page, wanted) => {
  await page.waitForFunction((text) => window.states.some((s) => new RegExp(text).test(s)), wanted);
  await forget(page);
};
const done = (page) => page.waitForFunction(() => document.getElementById("write").textContent === "Write");
const length = async (page, index) => page.locator("#length").fill(String(index)); /* 16 << index tokens */
const tokens = async (page, card = 0) =>
  +(await page.locator(".card.text .facts").nth(card).textContent()).replace(/,/g, "").match(/^([0-9]+) token/)[1];
const text = (page, card = 0) => page.locator(".card.text").nth(card).locator(".tokens").evaluate((box) => [...box.querySelectorAll("span")].map((s) => s.textContent).join(""));
const write = async (page, prompt, index) => {
  await page.locator("#field").fill(prompt);
  await length(page, index);
  await forget(page);
  await page.locator("#write").click();
  await said(page, "per second");
};
/* The view of the memory, which the page asks for now and then, is that of all that is written: segments of 16. */
const settled = async (page) => {
  const last = (await tokens(page)) % 16 || 16;
  await page.waitForFunction((n) => !document.querySelector("figure.alpha.none") &&
    document.querySelector(".segment-label").textContent === `Segment: ${n} of 16 tokens`, last);
};
const segment = (page, n) => page.locator("#segment").selectOption(String(n));
const sessions = async () => (await (await fetch(url + "v1/sessions")).json()).data;

await test("the page is strict", async () => {
  const page = await open();
  const policy = page.response.headers()["content-security-policy"];
  assert.match(policy, /default-src 'none'/);
  assert.doesNotMatch(policy, /unsafe/);
  const blocked = await page.evaluate(async () => { try { await fetch("http://127.0.0.2:1/"); return "sent"; } catch (e) { return "blocked"; } });
  assert.equal(blocked, "blocked");
  assert.equal(page.troubles.filter((t) => /Content Security Policy/.test(t)).length > 0, true, "by the policy");
  await page.context().close();
});

await test("colours are the palette's", async () => {
  const css = await (await fetch(new URL("style.css", url))).text(), style = readFileSync(report, "utf8");
  const blocks = (s) => [...s.matchAll(/:root[^{]*\{([^}]*)\}/g)].map((m) => new Map([...m[1].matchAll(/(--\w+):(#\w+)/g)].map((p) => [p[1], p[2]])));
  const mine = blocks(css), theirs = blocks(style.slice(0, style.indexOf("</style>")));
  const same = (a, b) => { assert.ok(a.size > 50); for (const [name, value] of a) assert.equal(value, b.get(name), name); };
  same(mine[0], theirs[0]);
  same(mine[1], theirs[1]);
  same(mine[2], theirs[2]);
});

/* The small models write faster than anybody can stop them: this network takes some 75 tokens a second. */
const slowly = async (page, work) => {
  const devtools = await page.context().newCDPSession(page);
  const speed = (bytes) => devtools.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: bytes, uploadThroughput: -1 });
  await speed(30000);
  await work();
  await speed(-1);
};
const spans = (page) => page.locator(".tokens span").count();

await test("a continuation streams and is coloured", async () => {
  const page = await open();
  await write(page, "The history of Rome begins with ", 4);
  assert.equal(await page.locator(".tokens .given").count(), 32);
  assert.match(await page.locator(".card.text .facts").textContent(), /^288 tokens · [0-9.]+ bits per token$/);
  assert.ok(await page.locator(".tokens span[class^=t]").count() > 20, "no colours");
  assert.ok((await text(page)).startsWith("The history of Rome begins with "));
  assert.equal(await page.locator("#field").inputValue(), "");
  await page.locator(".tokens span").nth(40).hover();
  assert.match(await page.locator(".card.text .reading").textContent(), /^“.+” [0-9.]+ bits, probability .+ · likeliest: “/);
  await length(page, 8);
  await slowly(page, async () => {
    await page.locator("#write").click();
    for (let i = 0, before = await spans(page); i < 3; i++) { /* text appears while the model writes */
      await page.waitForFunction((n) => document.querySelectorAll(".tokens span").length > n, before);
      assert.equal(await page.locator("#write").textContent(), "Stop");
      before = await spans(page);
    }
    await page.locator("#write").click();
    await done(page);
  });
  await close(page);
});

await test("the heat map and the curves follow the text", async () => {
  const page = await open();
  await segment(page, 16);
  assert.ok(await page.locator("figure.alpha.none").count(), "a map of nothing");
  await write(page, "abcdefgh", 1);
  const picture = () => page.evaluate(() => document.querySelector(".alpha canvas").toDataURL());
  await settled(page);
  const first = await picture(), finding = await page.locator(".alpha .finding").textContent();
  assert.match(finding, /The look-ahead changed [0-9.]+ % of the memory at the start of this segment, most in layer [0-9]+/);
  const curve = () => page.locator(".distance .curve").first().getAttribute("d");
  const curves = await curve();
  await write(page, "and so on", 2);
  await settled(page);
  assert.notEqual(await picture(), first);
  assert.notEqual(await curve(), curves);
  await page.locator("summary").click();
  await page.locator("details tbody tr").first().waitFor(); /* the table is written after the click */
  assert.ok(await page.locator("details tbody tr").count() >= await page.locator(".alpha .labels span").count());
  assert.match(await page.locator("details tbody tr").first().textContent(), /^1[01]\.[0-9]{3}[0-9.]+ %/);
  await close(page);
});

await test("everything by keyboard", async () => {
  const page = await open();
  await segment(page, 16);
  await page.keyboard.press("Tab");
  const reach = async (selector) => {
    for (let i = 0; i < 60; i++) {
      if (await page.evaluate((s) => document.activeElement.matches(s), selector)) return;
      await page.keyboard.press("Tab");
    }
    assert.fail(`${selector} is not reached`);
  };
  await reach("#field");
  await page.keyboard.type("abc");
  await page.locator("#length").focus();
  await page.keyboard.press("Home");
  for (let i = 0; i < 2; i++) await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("#length").getAttribute("aria-valuetext"), "64 tokens");
  await page.locator("#field").focus();
  await forget(page);
  await page.keyboard.press("Control+Enter");
  await said(page, "per second");
  await settled(page);
  for (const [selector, reading] of [[".tokens", ".card.text .reading"], [".alpha .plot", ".alpha .reading"], [".distance .plot", ".distance .reading"]]) {
    await page.evaluate(() => document.activeElement.blur());
    await reach(selector);
    const hint = await page.locator(reading).textContent();
    await page.keyboard.press("ArrowRight");
    const one = await page.locator(reading).textContent();
    assert.match(one, selector === ".tokens" ? /^“/ : /^Layer 1, .*[0-9]/);
    await page.keyboard.press("End");
    const last = await page.locator(reading).textContent();
    assert.notEqual(one, last);
    await page.keyboard.press("Tab");
    assert.equal(await page.locator(reading).textContent(), hint);
  }
  /* Esc stops, and page and server agree on how far the text has come. */
  await length(page, 8);
  await page.locator("#field").focus();
  await slowly(page, async () => {
    await page.locator("#field").press("Control+Enter");
    await page.waitForFunction(() => document.querySelectorAll(".tokens span").length > 100);
    await page.keyboard.press("Escape");
    await done(page);
  });
  const count = await tokens(page);
  assert.ok(count < 4000, "it was not stopped");
  assert.ok((await sessions()).some((s) => s.length === count), `${count} tokens, but the server has ${(await sessions()).map((s) => s.length)}`);
  await write(page, "", 0);
  assert.equal(await tokens(page), count + 16);
  await close(page);
});

await test("a fork is compared with its origin", async () => {
  const page = await open();
  await write(page, "one two three ", 1);
  const before = await text(page);
  await page.locator("#fork").click();
  await page.locator(".card.text").nth(1).waitFor();
  assert.equal(await text(page, 1), before);
  assert.equal(await page.locator("#branches button[aria-pressed=true]").count(), 2);
  await write(page, "", 2);
  const [left, right] = [await text(page), await text(page, 1)];
  assert.ok(left.startsWith(before) && right.startsWith(before), "the past is not shared");
  assert.notEqual(left, right, "both drew the same");
  await page.getByRole("radio", { name: "fork" }).check();
  await write(page, "four", 0);
  assert.equal(await text(page), left, "the other one was written to");
  assert.ok((await text(page, 1)).startsWith(right + "four"));
  await page.locator("#compare").selectOption("");
  assert.equal(await page.locator(".card.text").count(), 1);
  await page.locator("#branches button").nth(1).click();
  assert.ok((await text(page)).startsWith(right + "four"));
  await page.locator("#remove").click();
  assert.equal(await text(page), left);
  assert.equal(await page.locator("#branches button").count(), 1);
  await close(page);
});

await test("two models, and a memory and none, read one text", async () => {
  const page = await open();
  await segment(page, 16);
  await write(page, "The same text for all of them.", 2);
  const models = await page.locator("#model option").allTextContents();
  await page.locator("#compare").selectOption("plain");
  await page.locator(".card.text").nth(1).waitFor();
  assert.equal(await text(page, 1), await text(page));
  await page.locator(".card.text .colour select").first().selectOption("difference");
  assert.ok(await page.locator(".card.text").first().locator(".tokens :is([class^=u],[class^=t])").count() > 0, "no difference");
  await page.waitForFunction(() => /no memory/.test(document.querySelectorAll(".alpha .finding")[1].textContent));
  await page.locator("#compare").selectOption(`model ${models[1]}`);
  await page.waitForFunction((name) => document.querySelectorAll(".card.text")[1]?.querySelector(".name").textContent === name, models[1]);
  assert.equal(await text(page, 1), await text(page));
  await write(page, "Both go on: ", 1);
  assert.ok((await text(page)).includes("Both go on: ") && (await text(page, 1)).includes("Both go on: "));
  await close(page);
});

await test("a memory is saved and loaded", async () => {
  const page = await open();
  await segment(page, 16);
  await write(page, "remember this ", 1);
  await forget(page);
  const before = await text(page), [download] = await Promise.all([page.waitForEvent("download"), page.locator("#save").click()]);
  assert.match(download.suggestedFilename(), /-main-46\.safetensors$/);
  await said(page, "ready");
  await page.locator("#file").setInputFiles(await download.path());
  await page.waitForFunction(() => document.querySelectorAll("#branches button").length === 2);
  const rest = await text(page);
  assert.ok(rest.length > 0 && before.endsWith(rest), "another end");
  assert.match(await page.locator(".tokens .before").textContent(), /^… 32 tokens before/); /* 46 are two segments of 16, and 14 */
  await write(page, "", 0);
  assert.equal(await tokens(page), 62);
  assert.deepEqual(page.troubles, []);
  await page.locator("#file").setInputFiles({ name: "x.safetensors", mimeType: "application/octet-stream", buffer: Buffer.from("nonsense") });
  await page.locator("#trouble").waitFor();
  assert.ok((await page.locator("#trouble p").textContent()).length > 10);
  await page.context().close();
});

/* axe takes long: what is made of the same parts is not shown to it twice. */
for (const [name, options, asked] of [["light", {}, ["begin", "one", "two"]], ["dark", { colorScheme: "dark" }, ["two"]], ["phone", PHONE, ["two"]],
  ["phone in the dark", { ...PHONE, colorScheme: "dark" }, ["begin"]]])
  await test(`${name}: nothing for axe to say, nothing too wide`, async () => {
    const page = await open(options);
    const shot = async (when) => { if (shots) await page.screenshot({ path: join(shots, `${name.replace(/ /g, "-")}-${when}.png`), fullPage: true }); };
    const look = async (when) => {
      await shot(when);
      const wide = await page.evaluate((width) => document.documentElement.scrollWidth - width, page.viewportSize().width);
      assert.ok(wide <= 0, `${wide} pixels too wide`);
      if (asked.includes(when)) assert.deepEqual(await violations(page), [], when);
    };
    await segment(page, 16);
    await look("begin");
    await write(page, "The history of Rome begins with ", shots ? 5 : 1); /* axe takes long over many tokens */
    await page.locator("summary").first().click();
    await page.waitForFunction(() => !document.querySelector("figure.alpha.none"));
    await look("one");
    await page.locator("#compare").selectOption("plain");
    await page.locator(".card.text").nth(1).waitFor();
    await look("two");
    const dark = await page.evaluate(() => matchMedia("(prefers-color-scheme: dark)").matches);
    const ground = () => page.evaluate(() => getComputedStyle(document.querySelector(".card")).backgroundColor);
    const before = await ground();
    assert.equal(before === "rgb(255, 255, 255)", !dark);
    await page.locator("#theme").click();
    assert.notEqual(await ground(), before);
    await close(page);
  });

await test("busy, not ready, gone: told, and gone on", async () => {
  const page = await open();
  let left = 1;
  const error = (status, headers = {}) => ({ status, headers, contentType: "application/json", body: JSON.stringify({ error: { message: "no" } }) });
  await page.route("**/v1/completions", (route) => (left-- > 0 ? route.fulfill(error(429, { "Retry-After": "1" })) : route.continue()));
  await page.locator("#field").fill("abc");
  await length(page, 0);
  await forget(page);
  await page.locator("#write").click();
  await said(page, "busy, waiting");
  await state(page, "per second");
  assert.equal(await tokens(page), 19);
  left = 1;
  await page.unroute("**/v1/completions");
  await page.route("**/v1/completions", (route) => (left-- > 0 ? route.fulfill(error(503, { "Retry-After": "1" })) : route.continue()));
  await forget(page);
  await page.locator("#write").click();
  await said(page, "not ready, waiting");
  await state(page, "per second");
  assert.equal(await tokens(page), 35);
  await page.unroute("**/v1/completions");
  await page.route("**/v1/completions", (route) => route.fulfill(error(400)));
  await page.locator("#write").click();
  await page.locator("#trouble").waitFor();
  await page.unroute("**/v1/completions");
  await page.getByRole("button", { name: "Dismiss" }).click();
  /* gone, and back without what it knew */
  await page.route(/\/(v1|health)/, (route) => route.abort());
  await page.locator("#write").click();
  await page.locator("#trouble").waitFor();
  assert.match(await page.locator("#trouble p").textContent(), /does not answer/);
  await said(page, "server gone");
  for (const s of await sessions()) await fetch(`${url}v1/sessions/${s.id}`, { method: "DELETE" });
  await page.unroute(/\/(v1|health)/);
  await state(page, "ready");
  assert.equal(await page.locator("#trouble").isVisible(), false);
  await write(page, "", 0);
  assert.equal(await tokens(page), 51);
  assert.ok((await sessions()).some((s) => s.length === 51), "the text was not read again");
  await page.context().close();
});

await test("a key is asked for and sent", async () => {
  const page = await open({}, (p) => p.route("**/v1/models", (route) => (route.request().headers().authorization === "Bearer secret" ? route.continue()
    : route.fulfill({ status: 401, contentType: "application/json", body: "{}" }))).then(() => {
    p.locator("#key").waitFor().then(async () => { await p.locator("#key").fill("secret"); await p.locator("#key").press("Enter"); });
  }));
  await state(page, "ready");
  await page.context().close();
});

await test("a page that is closed gives its sessions back", async () => {
  const names = async () => (await sessions()).map((s) => s.id); /* of earlier tests, too: some may go any time */
  const before = await names(), page = await open();
  await write(page, "abc", 0);
  const mine = (await names()).filter((id) => !before.includes(id));
  assert.equal(mine.length, 1);
  await page.goto("about:blank");
  for (let tries = 0; (await names()).includes(mine[0]) && tries < 600; tries++) await new Promise((r) => setTimeout(r, 100));
  assert.ok(!(await names()).includes(mine[0]));
  await page.context().close();
});

await browser.close();
process.exit(results());
