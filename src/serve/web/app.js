/* app.js -- the page as a whole: which branches there are, which are shown, and what the controls do. */
(() => {
  const { client, element } = lamemo, $ = (id) => document.getElementById(id);
  const LENGTHS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
  const EXAMPLES = ["The history of Rome ", "In mathematics, a ", "The island is "];
  const SEGMENT = 64; /* tokens, unless another is chosen: short enough to see the memory at work soon */
  const MEMORIES = { lamemo: "LaMemo", xl: "Transformer-XL", compressive: "Compressive Transformer", infinite: "∞-former", none: "Transformer" };
  let models = [], branches = [], shown = [], made = 0;
  const views = new Map(); /* branch -> {text, memory, cards, watcher} */

  /* ---- what is told ---- */

  const state = (text, kind = "") => {
    $("state").textContent = text;
    $("state").className = kind;
  };
  const announce = (text) => { $("said").textContent = text; };
  const trouble = (text) => {
    $("trouble").hidden = !text;
    $("trouble").firstElementChild.textContent = text;
  };
  $("trouble").querySelector("button").addEventListener("click", () => { trouble(""); $("field").focus(); });

  /* Nobody answers: ask until somebody does. */
  let asking = false;
  const awaitServer = async (ready) => {
    if (asking) return;
    asking = true;
    state("server gone", "bad");
    while (!(await client.healthy())) await client.pause(2);
    asking = false;
    trouble("");
    state("ready");
    if (ready) ready();
  };
  const REMEDIES = { 409: "Something else is using this session.", 413: "That is too long for one request.",
    429: "The server is busy, or has as many sessions as it allows. Delete a branch or try again later." };
  const tell = (error) => {
    if (error.name === "AbortError") return;
    if (error.status === 0) {
      trouble("The server does not answer. The page goes on when it is back; your text is kept.");
      awaitServer();
      return;
    }
    const message = error.message ? error.message[0].toUpperCase() + error.message.slice(1) : "Something went wrong";
    trouble([message + (/[.!?]$/.test(message) ? "" : "."), REMEDIES[error.status]].filter(Boolean).join(" "));
    state("ready");
  };
  const waiting = (error) => state(error.status === 503 ? "server not ready, waiting" : "server busy, waiting", "busy");

  /* ---- branches and views ---- */

  const freeName = (base) => {
    const taken = new Set(branches.map((b) => b.name));
    for (let i = 2; ; i++) if (!taken.has(base)) return base; else if (!taken.has(`${base} ${i}`)) return `${base} ${i}`;
  };
  const enlist = (branch) => {
    branch.waiting = waiting;
    branches.push(branch);
    return branch;
  };
  const fresh = () => lamemo.branch(freeName(made ? "text" : "main"), made++ % 8, models.find((m) => m.id === $("model").value),
    { segment: +$("segment").value });
  const beside = (branch) => (shown.length === 2 ? shown[shown[0] === branch ? 1 : 0] : null);
  const busy = () => branches.some((b) => b.writing);

  const facts = (branch) => {
    const known = branch.tokens.filter((t) => t.nats !== null), other = beside(branch);
    const common = other ? branch.shared(other) : 0;
    const list = [lamemo.several(branch.tokens.length + branch.unseen, "token")];
    if (known.length) list.push(`${lamemo.bits(lamemo.mean(known.map((t) => t.nats))).toFixed(2)} bits per token`);
    if (other && common > 1 && common < branch.tokens.length) list.push(`first ${lamemo.count(common)} the same`);
    return list.join(" · ");
  };
  const describe = (branch) => branch.model.id + (branch.plain ? ", no memory" : "");

  const view = (branch) => {
    const cards = { text: lamemo.fromTemplate("text-template"), memory: lamemo.fromTemplate("memory-template") };
    for (const card of Object.values(cards)) card.classList.add(`of${branch.colour}`);
    cards.text.querySelector(".name").textContent = branch.name;
    cards.text.setAttribute("aria-label", `Branch ${branch.name}`);
    cards.memory.setAttribute("aria-label", `Memory of ${branch.name}`);
    const v = { cards, text: lamemo.textView(cards.text, branch, () => beside(branch)), memory: lamemo.memoryView(cards.memory, branch),
      watcher: new AbortController() };
    /* A fast model writes several tokens between two pictures. */
    let due = false;
    v.update = () => {
      due = false;
      v.text.update();
      cards.text.querySelector(".facts").textContent = facts(branch);
      examples();
    };
    branch.changed = () => {
      if (!due) requestAnimationFrame(() => { if (due) v.update(); });
      due = true;
    };
    branch.watch(v.memory.update, v.watcher.signal);
    return v;
  };

  const show = (...list) => {
    shown = list;
    for (const [branch, v] of views)
      if (!shown.includes(branch)) {
        v.watcher.abort();
        Object.values(v.cards).forEach((card) => card.remove());
        branch.changed = () => {};
        views.delete(branch);
      }
    const stage = $("stage");
    stage.classList.toggle("two", shown.length === 2);
    shown.forEach((branch, i) => {
      if (!views.has(branch)) views.set(branch, view(branch));
      const { cards } = views.get(branch);
      for (const card of Object.values(cards)) card.dataset.place = i;
      cards.memory.querySelector(".of").textContent = shown.length === 2 ? ` of ${branch.name}` : "";
      $("composer").before(cards.text);
      stage.append(cards.memory);
    });
    for (const branch of shown) {
      views.get(branch).text.repaint();
      views.get(branch).update();
      views.get(branch).text.toEnd();
    }
    controls();
  };

  const examples = () => {
    $("examples").hidden = shown.length > 1 || !isEmpty(shown[0]) || shown[0].writing;
  };

  const chip = (branch) => {
    const now = shown.includes(branch);
    const button = element("button", { type: "button", class: `of${branch.colour}`, "aria-pressed": String(now) },
      element("i", { class: "dot" }), branch.name, element("small", {}, describe(branch)));
    button.addEventListener("click", () => { if (!busy()) { show(branch); chips().find((c) => c.branch === branch).focus(); } });
    button.branch = branch;
    return button;
  };
  const chips = () => [...$("branches").querySelectorAll("button")];

  const option = (value, label) => element("option", { value }, label);
  const compareChoices = () => {
    const [first, second] = shown, list = [option("", "nothing")];
    for (const b of branches) if (b !== first) list.push(option(`branch ${branches.indexOf(b)}`, b.name));
    if (models.length && first.model.memory !== "none" && !first.plain) list.push(option("plain", "the same model without memory"));
    for (const m of models) if (m.id !== first.model.id) list.push(option(`model ${m.id}`, `model ${m.id}`));
    $("compare").replaceChildren(...list);
    $("compare").value = second ? `branch ${branches.indexOf(second)}` : "";
  };
  const controls = () => {
    $("branches").replaceChildren(...branches.map((b) => element("li", {}, chip(b))));
    compareChoices();
    $("target").hidden = shown.length < 2;
    shown.forEach((b, i) => { $("target").querySelectorAll("label span")[i].textContent = b.name; });
    const model = shown[0].model;
    $("about").textContent = [model.id, MEMORIES[model.memory] || model.memory, `${(model.parameters / 1e6).toFixed(1)} M parameters`,
      `${model.layers} layers`, `memory of ${lamemo.count(model.memory_length)}`].join(" · ");
    lock();
  };
  /* While a model writes, its session is taken. */
  const lock = () => {
    const on = busy();
    for (const id of ["fork", "compare", "model", "segment", "new", "save", "load", "remove"]) $(id).disabled = on;
    for (const button of chips()) button.disabled = on;
    $("write").textContent = on ? "Stop" : "Write";
    $("write").classList.toggle("stop", on);
  };

  /* Runs what a control asks for; one thing at a time. */
  let working = false;
  const doing = (name, work) => async (...args) => {
    if (working || busy()) return;
    working = true;
    trouble("");
    state(name, "busy");
    try {
      await work(...args);
      state("ready");
    } catch (error) {
      tell(error);
    } finally {
      working = false;
      controls();
    }
  };

  /* ---- writing ---- */

  const sampling = () => ({ temperature: +$("temperature").value, top_p: +$("top-p").value, max_tokens: LENGTHS[+$("length").value] });
  const chosen = () => {
    const target = document.querySelector("input[name=target]:checked").value;
    return shown.length === 2 && target !== "both" ? [shown[+target]] : shown;
  };
  /* The same seed on both sides, unless that would write the same text twice. */
  const seedOf = (branch, i, all) => {
    const twin = i > 0 && all[0].model === branch.model && all[0].plain === branch.plain &&
      all[0].tokens.length === branch.tokens.length && all[0].shared(branch) === branch.tokens.length;
    return (+$("seed").value + (twin ? 1 : 0)) % 4294967296;
  };
  const write = async () => {
    if (busy()) { branches.forEach((b) => b.stop()); return; }
    if (working) return;
    if ($("random").getAttribute("aria-pressed") === "true") $("seed").value = crypto.getRandomValues(new Uint32Array(1))[0] % 100000;
    const text = $("field").value, targets = chosen(), began = performance.now();
    const before = targets.map((b) => b.tokens.length);
    $("field").value = "";
    grow();
    const jobs = targets.map((branch, i) => branch.write(text, { ...sampling(), seed: seedOf(branch, i, targets) }));
    trouble("");
    state("writing", "busy");
    announce("Writing.");
    lock();
    const ends = await Promise.allSettled(jobs);
    const tokens = ends.reduce((n, end) => n + (end.value || 0), 0), failed = ends.find((end) => end.status === "rejected");
    for (const branch of shown) views.get(branch).update();
    controls();
    if (failed) {
      tell(failed.reason);
      if (!$("field").value && targets.every((b, i) => b.tokens.length === before[i])) $("field").value = text; /* it was not read */
      grow();
    } else {
      const speed = Math.round((1000 * tokens) / (performance.now() - began));
      state(`${lamemo.several(tokens, "token")}, ${speed} per second`);
      announce(targets.map((b) => `${b.name}: ${b.text().slice(-400)}`).join(" "));
    }
  };
  $("composer").addEventListener("submit", (event) => { event.preventDefault(); write(); });
  $("field").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !busy()) { event.preventDefault(); write(); }
  });
  addEventListener("keydown", (event) => { if (event.key === "Escape" && busy()) branches.forEach((b) => b.stop()); });
  const grow = () => { $("field").rows = Math.max(2, Math.min(8, $("field").value.split("\n").length)); };
  $("field").addEventListener("input", grow);
  for (const text of EXAMPLES) {
    const button = element("button", { type: "button" }, text.trim() + " …");
    button.addEventListener("click", () => { $("field").value = text; write(); $("field").focus(); });
    $("examples").append(button);
  }

  for (const id of ["temperature", "top-p", "length"]) {
    const input = $(id), output = document.querySelector(`output[for=${id}]`);
    const tellValue = () => {
      output.textContent = id === "length" ? lamemo.count(LENGTHS[+input.value]) : (+input.value).toFixed(2);
      input.setAttribute("aria-valuetext", output.textContent + (id === "length" ? " tokens" : ""));
    };
    input.addEventListener("input", tellValue);
    tellValue();
  }
  $("random").addEventListener("click", () => {
    $("random").setAttribute("aria-pressed", String($("random").getAttribute("aria-pressed") !== "true"));
  });
  $("seed").addEventListener("input", () => $("random").setAttribute("aria-pressed", "false"));

  /* ---- branches ---- */

  const aim = (target) => { document.querySelector(`input[name=target][value="${target}"]`).checked = true; };
  $("fork").addEventListener("click", doing("forking", async () => {
    const copy = enlist(await shown[0].fork(freeName("fork"), made++ % 8));
    show(shown[0], copy);
    aim("both");
    announce(`Forked ${shown[0].name}: ${copy.name} is beside it.`);
  }));
  /* One that has read this very text: keys that walk through the choices must not make it twice. */
  const alike = (first, model, plain) => branches.find((b) => b !== first && b.model === model && b.plain === plain &&
    b.tokens.length === first.tokens.length && b.shared(first) === first.tokens.length);
  $("compare").addEventListener("change", (event) => {
    const [kind, ...rest] = event.target.value.split(" "), first = shown[0], id = rest.join(" ");
    doing("reading the text again", async () => {
      if (!kind) { show(first); return; }
      if (kind === "branch") { show(first, branches[+id]); return; }
      const model = kind === "model" ? models.find((m) => m.id === id) : first.model, plain = kind === "plain";
      show(first, alike(first, model, plain) || enlist(await first.reread(freeName(plain ? "no memory" : model.id), made++ % 8, model,
        { plain, segment: Math.min(first.segment || model.segment, model.segment) })));
      aim("both");
    })();
  });
  const isEmpty = (branch) => !branch.tokens.length && !branch.unseen;
  const begin = () => {
    if (shown.length && isEmpty(shown[0])) {
      forget(shown[0]);
      made--;
    }
    show(enlist(fresh()));
  };
  $("new").addEventListener("click", doing("ready", async () => { begin(); $("field").focus(); }));
  /* A text that has not begun follows the choice at once. */
  const segments = () => {
    const most = models.find((m) => m.id === $("model").value).segment, list = [16, 32, 64, 128, 256, 512].filter((n) => n < most);
    $("segment").replaceChildren(...[...list, most].map((n) => option(n, lamemo.several(n, "token"))));
    $("segment").value = Math.min(SEGMENT, most);
  };
  $("model").addEventListener("change", segments);
  for (const id of ["model", "segment"]) $(id).addEventListener("change", doing("ready", async () => { if (isEmpty(shown[0])) begin(); }));
  const forget = (branch) => {
    branches = branches.filter((b) => b !== branch);
    if (branch.session) client.remove(branch.session).catch(() => {});
  };
  $("remove").addEventListener("click", doing("ready", async () => {
    const [first, second] = shown;
    forget(first);
    const next = second || branches[branches.length - 1];
    if (next) show(next); else show(enlist(fresh()));
    announce(`Deleted ${first.name}.`);
  }));
  $("save").addEventListener("click", doing("saving", async () => {
    const branch = shown[0], blob = await branch.use((id) => client.save(id));
    const link = element("a", { href: URL.createObjectURL(blob), download: `${branch.model.id}-${branch.name}-${branch.tokens.length + branch.unseen}.safetensors` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    announce(`Saved the memory of ${branch.name}.`);
  }));
  $("load").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", doing("loading", async () => {
    const file = $("file").files[0];
    if (!file) return;
    const branch = lamemo.branch(freeName(file.name.replace(/\.safetensors$/, "").slice(0, 24)), made % 8, shown[0].model);
    try {
      await branch.load(file, models);
    } finally {
      $("file").value = "";
    }
    made++;
    show(enlist(branch));
  }));

  /* ---- the page ---- */

  const root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)");
  const shine = () => {
    const chosenTheme = lamemo.kept(lamemo.browser, "theme"), dark = chosenTheme ? chosenTheme === "dark" : system.matches;
    root.classList.toggle("dark", dark);
    root.classList.toggle("light", !dark);
    $("theme").textContent = dark ? "Light" : "Dark";
    $("theme").setAttribute("aria-label", `Switch to ${dark ? "light" : "dark"} colours`);
    for (const v of views.values()) v.memory.repaint();
  };
  $("theme").addEventListener("click", () => {
    lamemo.keep(lamemo.browser, "theme", root.classList.contains("dark") ? "light" : "dark");
    shine();
  });
  system.addEventListener("change", shine);
  shine();
  /* Sessions take memory on the server: a page that is closed gives them back, one that returns makes them again. */
  addEventListener("pagehide", () => {
    for (const b of branches)
      if (b.session) {
        client.remove(b.session).catch(() => {});
        b.session = null;
      }
  });

  let asked = null;
  client.onKey(() => {
    asked = asked || new Promise((resolve) => {
      const dialog = $("ask-key");
      $("key").value = "";
      dialog.addEventListener("close", () => { asked = null; resolve($("key").value.trim() || null); }, { once: true });
      dialog.showModal();
    });
    return asked;
  });

  const start = async () => {
    try {
      models = await client.patiently(client.models, waiting);
      if (!models.length) throw new client.Trouble(503, "the server has no model");
      $("model").replaceChildren(...models.map((m) => option(m.id, m.id)));
      $("model-label").hidden = models.length < 2;
      segments();
      show(enlist(fresh()));
      state("ready");
    } catch (error) {
      if (error.status === 0) {
        trouble("The server does not answer. The page starts when it does.");
        awaitServer(start);
      } else tell(error);
    }
  };
  start();
})();
