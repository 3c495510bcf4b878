/* text.js -- the coloured text of a branch: each token on a ground that says how surprising it was. */
(() => {
  const STEPS = 8;
  const raw = /^bytes:((?:\\x[0-9a-fA-F]{2})+)$/;
  const encoder = new TextEncoder();
  const strict = new TextDecoder("utf-8", { fatal: true }), loose = new TextDecoder("utf-8");

  /* Tokens may be parts of a character: they are shown together as soon as it is whole.  add(token) returns the
   * cells {text, from, to} that are ready, of tokens from ... to - 1. */
  lamemo.joiner = () => {
    let held = [], from = 0, n = 0;
    const bytesOf = (token) => {
      const found = raw.exec(token);
      return found ? found[1].slice(2).split("\\x").map((h) => parseInt(h, 16)) : null;
    };
    const length = (byte) => (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1);
    return {
      add: (token) => {
        const bytes = bytesOf(token), cells = [], i = n++;
        if (!bytes && !held.length) return [{ text: token, from: i, to: n }];
        if (!held.length) from = i;
        held.push(...(bytes || encoder.encode(token)));
        const whole = (() => { try { return strict.decode(new Uint8Array(held)); } catch (e) { return null; } })();
        if (whole === null && held.length < 4 && bytes && held.length < length(held[0])) return cells;
        cells.push({ text: whole === null ? loose.decode(new Uint8Array(held)) : whole, from, to: n });
        held = [];
        return cells;
      },
    };
  };

  /* What cannot be seen gets a picture. */
  const visible = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/[\u007f-\u009f]/g, "\ufffd");
  const quoted = (text) => `“${visible(text).replace(/\n/g, "↵").replace(/\t/g, "⇥")}”`;

  /* The view of one branch in `card`.  other(): the branch beside it, or null. */
  lamemo.textView = (card, branch, other) => {
    const box = card.querySelector(".tokens"), output = card.querySelector(".reading");
    const scale = card.querySelector(".under .scale"), choice = card.querySelector(".colour");
    const hint = "Point at a token, or focus the text and use the arrow keys, to read how surprising it was.";
    const cells = [], joiner = lamemo.joiner();
    let at = -1, shown = 0, measure = "surprise";

    const bitsOf = (b, cell) => {
      let sum = 0;
      for (let i = cell.from; i < cell.to; i++) {
        if (!b.tokens[i] || b.tokens[i].nats === null) return null;
        sum += lamemo.bits(b.tokens[i].nats);
      }
      return sum;
    };
    /* Only where both have the same tokens up to here. */
    const difference = (cell) => {
      const b = other();
      if (!b || cell.to > branch.shared(b)) return null;
      const mine = bitsOf(branch, cell), theirs = bitsOf(b, cell);
      return mine === null || theirs === null ? null : mine - theirs;
    };
    const limit = () => (measure === "difference" ? 4 : branch.limit);
    const ground = (cell) => {
      const v = measure === "difference" ? difference(cell) : bitsOf(branch, cell);
      if (v === null) return "";
      const step = Math.min(STEPS, Math.round((Math.abs(v) / limit()) * STEPS));
      return step ? (v > 0 ? "t" : "u") + step : "";
    };
    const dress = (cell) => {
      cell.span.className = `${ground(cell)}${branch.tokens[cell.from].given ? " given" : ""}`;
    };
    const legend = () => {
      const two = measure === "difference";
      scale.querySelector(".steps").replaceChildren(...(two ? ["u8", "u6", "u4", "u2", "", "t2", "t4", "t6", "t8"]
        : ["", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"]).map((s) => lamemo.element("i", s ? { class: s } : {})));
      scale.querySelector(".least").textContent = two ? `${limit()} bits less than beside` : "0 bits";
      scale.querySelector(".most").textContent = two ? `${limit()} bits more` : `${limit()} bits and more`;
    };
    const about = (cell) => {
      const parts = [], sum = bitsOf(branch, cell), last = branch.tokens[cell.to - 1];
      parts.push(sum === null ? "nothing came before it" : `${sum.toFixed(2)} bits, probability ${lamemo.percent(2 ** -sum)}`);
      const apart = difference(cell);
      if (apart !== null) parts.push(`${Math.abs(apart).toFixed(2)} bits ${apart > 0 ? "more" : "less"} than beside`);
      if (cell.to - cell.from === 1 && last.top && last.top.length)
        parts.push("likeliest: " + last.top.map(([t, p]) => `${quoted(t)} ${lamemo.percent(Math.exp(p))}`).join(", "));
      return `${quoted(cell.text)} ${parts.join(" · ")}`;
    };
    const go = (i) => {
      if (cells[at]) cells[at].span.classList.remove("now");
      at = i;
      output.textContent = cells[i] ? about(cells[i]) : hint;
      if (!cells[i]) return;
      cells[i].span.classList.add("now");
      const seen = box.getBoundingClientRect(), span = cells[i].span.getBoundingClientRect();
      if (span.top < seen.top || span.bottom > seen.bottom) box.scrollTop += span.top - seen.top - seen.height / 2;
    };

    const update = () => {
      const low = box.scrollTop + box.clientHeight > box.scrollHeight - 40;
      const fresh = document.createDocumentFragment();
      for (; shown < branch.tokens.length; shown++)
        for (const cell of joiner.add(branch.tokens[shown].text)) {
          cell.span = lamemo.element("span", {}, visible(cell.text));
          cell.span.cell = cells.push(cell) - 1;
          dress(cell);
          fresh.append(cell.span);
        }
      box.append(fresh);
      box.classList.toggle("empty", !cells.length);
      box.classList.toggle("writing", branch.writing);
      if (low) box.scrollTop = box.scrollHeight;
    };
    const repaint = () => {
      choice.hidden = !other();
      if (!other()) measure = choice.querySelector("select").value = "surprise";
      legend();
      cells.forEach(dress);
      if (cells[at]) cells[at].span.classList.add("now");
    };

    choice.querySelector("select").addEventListener("change", (event) => { measure = event.target.value; repaint(); });
    box.addEventListener("pointerover", (event) => { if (event.target.cell !== undefined) go(event.target.cell); });
    box.addEventListener("pointerleave", () => { if (document.activeElement !== box) go(-1); });
    box.addEventListener("blur", () => go(-1));
    box.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -20, ArrowDown: 20, Home: -cells.length, End: cells.length }[event.key];
      if (!step || !cells.length || event.altKey || event.ctrlKey || event.metaKey) return;
      go(at < 0 ? (step < 0 ? cells.length - 1 : 0) : Math.max(0, Math.min(cells.length - 1, at + step)));
      event.preventDefault();
    });
    box.setAttribute("aria-label", `Text of ${branch.name}`);
    box.append(lamemo.element("p", { class: "before" }));
    const before = box.firstChild;
    before.textContent = branch.unseen ? `… ${lamemo.several(branch.unseen, "token")} before, which only the memory knows` : "";
    before.hidden = !branch.unseen;
    output.textContent = hint;
    repaint();
    update();
    return { update, repaint, toEnd: () => { box.scrollTop = box.scrollHeight; } };
  };
})();
