/* branch.js -- a text and the session on the server that remembers it.
 *
 * A session is made when it is first needed; when the server has lost it (404), it is made again and reads the text once
 * more.  The tokens that were seen are kept here, since a memory cannot say what it read. */
lamemo.branch = (name, colour, model, options = {}) => {
  const { client } = lamemo;
  const most = (of) => Math.min(16, Math.max(4, Math.round(Math.log2(of.vocabulary_size || 256))));
  const branch = {
    name, colour, model,
    tokens: [],  /* {text, id if known, nats or null, given, top: [[token, logprob]...]} */
    unseen: 0,   /* further tokens that the memory has read: before a file was saved, or lost on their way */
    lead: 0,     /* 1: the session began with the model's start token, which is no text */
    session: null, memory: null, writing: false,
    limit: most(model),
    plain: Boolean(options.plain), /* without a memory */
    segment: options.segment || 0, /* tokens; 0: the model's */
    changed: () => {}, waiting: () => {},
  };
  let stopper = null, awake = () => {}, unsure = false; /* unsure: the server may know more, or less, of the text than we do */

  branch.text = () => branch.tokens.map((t) => t.text).join("");

  /* How many tokens from the start are the same in both. */
  const same = new WeakMap();
  branch.shared = (other) => {
    let n = same.get(other) || 0;
    while (n < branch.tokens.length && n < other.tokens.length && branch.tokens[n].text === other.tokens[n].text) n++;
    same.set(other, n);
    return n;
  };

  /* The text of each token: of words, the blanks before it too. */
  const pieces = (text, lists) => {
    const offsets = lists.text_offset;
    if (branch.model.vocabulary !== "words" || !offsets || !text) return lists.tokens;
    const letters = [...text];
    return lists.tokens.map((t, i) => letters.slice(offsets[i] - offsets[0], i + 1 < offsets.length ? offsets[i + 1] - offsets[0] : undefined).join("") || t);
  };
  const add = (text, lists, given) => {
    pieces(text, lists).forEach((piece, i) => {
      const nats = lists.token_logprobs[i], top = lists.top_logprobs && lists.top_logprobs[i];
      branch.tokens.push({ text: piece, id: lists.token_ids ? lists.token_ids[i] : undefined, nats: nats === null || nats === undefined ? null : -nats, given,
        top: top ? Object.entries(top).sort((a, b) => b[1] - a[1]).slice(0, 3) : null });
    });
  };

  /* Text that the joined bytes of tokens make; what is no character is left out. */
  const written = (tokens) => {
    const joiner = lamemo.joiner();
    return tokens.flatMap((t) => joiner.add(t.text)).map((cell) => cell.text).join("");
  };
  /* Lets the session read tokens that we have seen before. */
  const again = (id, tokens) => (tokens.every((t) => t.id !== undefined) ? client.feed(id, { tokens: tokens.map((t) => t.id) })
    : client.feed(id, { text: written(tokens) }));
  const make = async () => {
    if (branch.unseen) throw new client.Trouble(404, "the server has lost this memory, and the page does not have the whole text: load a saved one or begin a new text");
    const wanted = { model: branch.model.id };
    if (branch.plain) wanted.memory = 0;
    if (branch.segment) wanted.segment = branch.segment;
    branch.session = (await client.create(wanted)).id;
    branch.lead = 0;
    unsure = false;
    if (branch.tokens.length) await again(branch.session, branch.tokens);
  };
  /* Does `work` with a session that exists. */
  branch.use = (work, signal, most) => client.patiently(async () => {
    if (!branch.session) await make();
    try {
      return await work(branch.session);
    } catch (error) {
      if (error.status !== 404) throw error;
      branch.memory = null;
      await make();
      return work(branch.session);
    }
  }, branch.waiting, signal, most);

  branch.read = async (text, signal) => {
    const answer = await branch.use((id) => client.feed(id, { text, logprobs: 0 }), signal);
    if (answer.logprobs) add(text, answer.logprobs, true);
    branch.changed();
  };

  const stream = async (response) => {
    for await (const [, data] of client.events(response)) {
      if (data === "[DONE]") return;
      const event = JSON.parse(data);
      if (event.error) throw new client.Trouble(500, event.error.message);
      const choice = event.choices && event.choices[0];
      if (!choice || !choice.logprobs) continue;
      add(choice.text, choice.logprobs, false);
      branch.changed();
    }
    throw new client.Trouble(0, "the connection to the server broke");
  };
  /* When we hang up, the server drops what it was writing and its session stays as it was before: it reads what we have
   * seen.  If it had come to the end already, it knows more than we do: another session reads what we have seen, or, where
   * we do not have the whole text, we take the rest from the unfinished segment. */
  const catchUp = async () => {
    if (!branch.session || !unsure) return;
    let session = await branch.use((id) => client.get(id), undefined, 9);
    for (; session.busy; session = await client.get(branch.session)) await client.pause(0.1);
    if (session.length === 0) branch.lead = 0;
    const more = session.length - branch.lead - branch.unseen - branch.tokens.length;
    if (more < 0) await branch.use((id) => again(id, branch.tokens.slice(more)), undefined, 9);
    else if (more > 0 && !branch.unseen) {
      const old = branch.session;
      branch.session = null; /* watch() must not ask for one that is gone */
      client.remove(old).catch(() => {});
      await client.patiently(make, branch.waiting, undefined, 9);
    } else if (more > 0) {
      const memory = await client.memory(branch.session), last = Math.max(0, memory.tokens.length - more);
      branch.unseen += Math.max(0, more - memory.tokens.length);
      memory.tokens.slice(last).forEach((text, i) => branch.tokens.push({ text, nats: memory.surprise[last + i], given: false, top: null }));
    }
    unsure = false;
  };

  /* Reads `text`, then lets the model write.  Resolves to how many tokens it wrote. */
  branch.write = async (text, sampling) => {
    stopper = new AbortController();
    branch.writing = true;
    branch.changed();
    let from = branch.tokens.length;
    try {
      await catchUp();
      if (text) await branch.read(text, stopper.signal);
      from = branch.tokens.length;
      const response = await branch.use((id) => client.complete({ model: branch.model.id, session: id, keep: true, prompt: "",
        logprobs: 3, ...sampling }, stopper.signal), stopper.signal);
      if (!from && !branch.unseen) branch.lead = 1;
      await stream(response);
    } catch (error) {
      unsure = Boolean(branch.session);
      if (error.name !== "AbortError") throw error;
      await catchUp();
    } finally {
      branch.writing = false;
      stopper = null;
      branch.changed();
      awake();
    }
    return branch.tokens.length - from;
  };
  branch.stop = () => { if (stopper) stopper.abort(); };

  /* A copy that goes on by itself. */
  branch.fork = async (copyName, copyColour) => {
    const copy = lamemo.branch(copyName, copyColour, branch.model, { plain: branch.plain, segment: branch.segment });
    if (branch.tokens.length || branch.unseen) copy.session = (await branch.use((id) => client.fork(id))).id;
    Object.assign(copy, { tokens: [...branch.tokens], unseen: branch.unseen, lead: branch.lead, memory: branch.memory });
    return copy;
  };
  /* The text so far, read by another model or with another memory. */
  branch.reread = async (copyName, copyColour, otherModel, otherOptions) => {
    const copy = lamemo.branch(copyName, copyColour, otherModel, otherOptions), text = written(branch.tokens);
    if (text) await copy.read(text);
    const given = branch.tokens.map((t) => t.given);
    if (copy.tokens.length === given.length) copy.tokens.forEach((t, i) => { t.given = given[i]; });
    return copy;
  };
  /* The model is the file's, whichever that is. */
  branch.load = async (file, models) => {
    const session = await client.load(file);
    branch.session = session.id;
    branch.model = models.find((m) => m.id === session.model) || model;
    branch.limit = most(branch.model);
    const memory = branch.memory = await client.memory(session.id);
    memory.tokens.forEach((text, i) => branch.tokens.push({ text, nats: memory.surprise[i], given: true, top: null }));
    branch.unseen = memory.length - memory.tokens.length;
  };

  /* Follows the memory until the signal says stop; look() is called when there is news.  Looking costs the server as
   * much as reading the segment and refreshing the memory, so we look for a third of the time at most, but every 1.5
   * seconds and when a text ends.  (The server's own stream of views, ?watch=1, comes four times a second whatever that costs.) */
  branch.watch = async (look, signal) => {
    let seen = "";
    const rest = (seconds) => Promise.race([client.pause(seconds, signal), new Promise((wake) => { awake = wake; })]);
    while (!signal.aborted)
      try {
        const now = `${branch.session} ${branch.tokens.length + branch.unseen}`, began = performance.now();
        if (branch.session && now !== seen) {
          const memory = await client.memory(branch.session, signal);
          seen = now;
          branch.memory = memory;
          look();
        }
        await rest(Math.min(1.5, Math.max(0.25, (2 * (performance.now() - began)) / 1000)));
      } catch (error) {
        if (error.name === "AbortError") return;
        await rest(2).catch(() => {});
      }
  };
  return branch;
};
