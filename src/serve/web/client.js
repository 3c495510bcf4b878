/* client.js -- the server as the page uses it (docs/serve.md): requests, events, and what can go wrong. */
lamemo.client = (() => {
  /* status 0: nobody answered. */
  class Trouble extends Error {
    constructor(status, message, wait) {
      super(message);
      this.status = status;
      this.wait = wait;
    }
  }
  let askKey = async () => null;
  const wanted = (method, body, signal, keepalive) => {
    const headers = {}, key = lamemo.kept(lamemo.tab, "key");
    if (key) headers.Authorization = `Bearer ${key}`;
    if (body !== undefined && !(body instanceof Blob)) {
      headers["Content-Type"] = "application/json";
      body = JSON.stringify(body);
    } else if (body) headers["Content-Type"] = "application/octet-stream";
    return { method, headers, body, signal, keepalive, cache: "no-store" };
  };
  const failure = async (response) => {
    let message = "";
    try { message = (await response.json()).error.message; } catch (e) { /* not ours */ }
    return new Trouble(response.status, message || `the server answered ${response.status}`,
      Math.min(30, Math.max(1, +response.headers.get("Retry-After") || 2)));
  };

  /* A response with status 2xx, or Trouble. */
  const send = async (method, path, body, { signal, keepalive } = {}) => {
    for (;;) {
      let response;
      try {
        response = await fetch(path, wanted(method, body, signal, keepalive));
      } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Trouble(0, "the server does not answer");
      }
      if (response.ok) return response;
      if (response.status !== 401) throw await failure(response);
      const key = await askKey();
      if (!key) throw await failure(response);
      lamemo.keep(lamemo.tab, "key", key);
    }
  };
  const json = async (...args) => (await send(...args)).json();

  const pause = (seconds, signal) => new Promise((resolve, reject) => {
    const stop = () => { clearTimeout(timer); reject(new DOMException("stopped", "AbortError")); };
    const timer = setTimeout(() => { if (signal) signal.removeEventListener("abort", stop); resolve(); }, 1000 * seconds);
    if (signal && signal.aborted) stop();
    else if (signal) signal.addEventListener("abort", stop, { once: true });
  });
  /* Tries again while the server is busy (429, 409) or not ready (503); waiting(trouble) is told. */
  const patiently = async (work, waiting, signal, most = 20) => {
    for (let tries = 0; ; tries++)
      try {
        return await work();
      } catch (error) {
        if (![409, 429, 503].includes(error.status) || tries === most) throw error;
        waiting(error);
        await pause(error.status === 409 ? 0.3 : error.wait, signal);
      }
  };

  /* The events of a stream as [name, text]. */
  const events = async function* (response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "", name = "message", lines = [], rested = performance.now();
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        if (performance.now() - rested > 12) { /* a fast model must not keep the page from drawing and listening */
          await new Promise((resolve) => setTimeout(resolve));
          rested = performance.now();
        }
        const parts = (rest + value).split("\n");
        rest = parts.pop();
        for (const raw of parts) {
          const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
          if (line === "") {
            if (lines.length) yield [name, lines.join("\n")];
            name = "message";
            lines = [];
          } else if (line.startsWith("data:")) lines.push(line.slice(line[5] === " " ? 6 : 5));
          else if (line.startsWith("event:")) name = line.slice(6).trim();
        }
      }
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Trouble(0, "the connection to the server broke");
    } finally {
      reader.cancel().catch(() => {});
    }
  };

  const session = (id) => `v1/sessions/${id}`;
  return {
    Trouble, pause, patiently, events,
    onKey: (ask) => { askKey = ask; },
    healthy: async () => { try { return (await fetch("health", { cache: "no-store" })).ok; } catch (e) { return false; } },
    models: () => json("GET", "v1/models").then((list) => list.data),
    create: (options) => json("POST", "v1/sessions", options),
    get: (id) => json("GET", session(id)),
    feed: (id, what) => json("POST", session(id) + "/feed", what), /* {text or tokens, logprobs?} */
    fork: (id) => json("POST", session(id) + "/fork"),
    remove: (id) => send("DELETE", session(id), undefined, { keepalive: true }),
    memory: (id, signal) => json("GET", session(id) + "/memory", undefined, { signal }),
    complete: (request, signal) => send("POST", "v1/completions", { ...request, stream: true }, { signal }),
    /* The file of a session's memory; the server keeps no copy. */
    save: async (id) => {
      const snapshot = await json("POST", session(id) + "/snapshot");
      try {
        return await (await send("GET", `v1/snapshots/${snapshot.id}`)).blob();
      } finally {
        send("DELETE", `v1/snapshots/${snapshot.id}`).catch(() => {});
      }
    },
    load: async (file) => {
      const snapshot = await json("POST", "v1/snapshots", file);
      try {
        return await json("POST", "v1/sessions", { model: snapshot.model, snapshot: snapshot.id });
      } finally {
        send("DELETE", `v1/snapshots/${snapshot.id}`).catch(() => {});
      }
    },
  };
})();
