"""serve_soak.py -- an hour of everything that clients do to `lamemo serve`, and whether its memory stays bounded.

    python3 bench/serve_soak.py --lamemo build/release/lamemo --model MODEL [--seconds 3600] [--clients 24]

Starts a server of its own.  Each client draws what it does next: completions (whole, streamed, with echo and log-probabilities),
sessions that are fed, forked, watched, saved and deleted, requests that are wrong, and connections that end in the middle, also
while a long prompt is read.  Every ten seconds resident memory, threads and descriptors are noted; at the end, two lines say how they went.
Fails if a response is not what it must be, if the server ends, or if memory grows after the first quarter.
"""
import argparse
import collections
import http.client
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

TEXT = "the memory of a text is fed and watched and forked and saved and sent "


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--lamemo", required=True)
    p.add_argument("--model", required=True)
    p.add_argument("--seconds", type=float, default=3600.0)
    p.add_argument("--clients", type=int, default=24)
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


class Client(threading.Thread):
    """One connection at a time, kept alive where the server lets it."""

    def __init__(self, soak, number):
        super().__init__(daemon=True)
        self.soak, self.rng = soak, random.Random(f"{soak.o.seed} {number}")
        self.connection = None
        self.sessions = []

    def run(self):
        actions = [(self.whole, 6), (self.stream, 6), (self.leave, 4), (self.leave_prefill, 2), (self.session, 4),
                   (self.watch, 1), (self.snapshot, 1), (self.wrong, 3), (self.small, 3)]
        doing = [a for a, weight in actions for _ in range(weight)]
        while time.monotonic() < self.soak.end:
            action = self.rng.choice(doing)
            begun = time.monotonic()
            try:
                action()
                self.soak.count(action.__name__)
            except (OSError, http.client.HTTPException) as error:
                self.connection = None
                # A machine that stood still lets time limits pass: that says nothing of the server.
                if not self.soak.stood_still(begun):
                    self.soak.fail(f"{action.__name__}: {type(error).__name__} {error}")

    def text(self, most):
        return (TEXT * (most // len(TEXT) + 1))[self.rng.randrange(40):][:self.rng.randrange(1, most)]

    def ask(self, method, path, body=None, allowed=(200, 201)):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.soak.port, timeout=600)
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body)
        try:
            self.connection.request(method, path, data)
            reply = self.connection.getresponse()
            content = reply.read()
        except (ConnectionError, http.client.RemoteDisconnected, http.client.CannotSendRequest):
            # Kept alive for too long: once more on a new connection.
            self.connection = http.client.HTTPConnection("127.0.0.1", self.soak.port, timeout=600)
            self.connection.request(method, path, data)
            reply = self.connection.getresponse()
            content = reply.read()
        if reply.getheader("Connection") == "close":
            self.connection = None
        if reply.status == 429:
            self.soak.count("refused (429)")
            time.sleep(0.05)
            return None
        if reply.status not in allowed:
            self.soak.fail(f"{method} {path}: status {reply.status}: {content[:300]!r}")
        return content

    def completion(self, **more):
        return {"prompt": self.text(300), "max_tokens": self.rng.randrange(0, 60), **more}

    def whole(self):
        more = self.rng.choice([{}, {"logprobs": 3, "echo": True}, {"n": 3, "temperature": 0.7}, {"stop": [" ", "e"]},
                                {"prompt": [[116, 104], [32, 101, 102]], "logprobs": 0}, {"keep": True}])
        got = self.ask("POST", "/v1/completions", self.completion(**more))
        if got is not None and "session" in json.loads(got):
            self.ask("DELETE", "/v1/sessions/" + json.loads(got)["session"], allowed=(200, 404))

    def stream(self):
        got = self.ask("POST", "/v1/completions", self.completion(stream=True, **self.rng.choice(
            [{}, {"logprobs": 2}, {"echo": True, "n": 2}, {"stream_options": {"include_usage": True}}])))
        if got is not None and not got.endswith(b"data: [DONE]\n\n"):
            self.soak.fail(f"a stream ended with {got[-80:]!r}")

    def raw(self, path, body, most):
        """Sends a request and leaves after `most` bytes of what comes back."""
        data = json.dumps(body).encode() if body is not None else b""
        with socket.create_connection(("127.0.0.1", self.soak.port), timeout=600) as s:
            s.sendall(b"%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                      % (b"POST" if body is not None else b"GET", path.encode(), len(data)) + data)
            while most > 0:
                more = s.recv(min(most, 4096))
                if not more:
                    break
                most -= len(more)

    def leave(self):
        self.raw("/v1/completions", {"prompt": "x", "max_tokens": 100000, "stream": True}, self.rng.randrange(5000))

    def leave_prefill(self):
        self.raw("/v1/completions", {"prompt": self.text(50000), "max_tokens": 5, "stream": self.rng.random() < 0.5}, 0)

    def session(self):
        if not self.sessions or (len(self.sessions) < 3 and self.rng.random() < 0.3):
            got = self.ask("POST", "/v1/sessions", self.rng.choice([{}, {"segment": 8}, {"memory": 0}]))
            if got is not None:
                self.sessions.append(json.loads(got)["id"])
            return
        path = "/v1/sessions/" + self.rng.choice(self.sessions)
        step = self.rng.randrange(6)
        gone = (200, 201, 404)
        if step < 2:
            self.ask("POST", path + "/feed", {"text": self.text(500), "logprobs": 1}, gone)
        elif step == 2:
            self.ask("POST", "/v1/completions", self.completion(session=path[-32:], keep=self.rng.random() < 0.5), gone)
        elif step == 3:
            got = self.ask("POST", path + "/fork", {}, gone)
            if got is not None and b'"id"' in got:
                self.sessions.append(json.loads(got)["id"])
        elif step == 4:
            self.ask("GET", path + "/memory", None, gone)
        else:
            self.ask("DELETE", path, None, gone)
            self.sessions.remove(path[-32:])

    def watch(self):
        if self.sessions:
            self.raw(f"/v1/sessions/{self.rng.choice(self.sessions)}/memory?watch=1", None, 200)

    def snapshot(self):
        if not self.sessions:
            return
        got = self.ask("POST", f"/v1/sessions/{self.rng.choice(self.sessions)}/snapshot", {}, (201, 400, 404))
        if got is None or b'"snapshot"' not in got:
            return
        path = "/v1/snapshots/" + json.loads(got)["id"]
        file = self.ask("GET", path, None, (200, 404))
        if file is not None and b'"error"' not in file[:20]:
            again = self.ask("POST", "/v1/snapshots", file)
            if again is not None:
                self.ask("DELETE", "/v1/snapshots/" + json.loads(again)["id"], None, (200, 404))
        self.ask("DELETE", path, None, (200, 404))

    def wrong(self):
        body, path, status = self.rng.choice([
            (b"{", "/v1/completions", 400), (b'{"max_tokens":-1}', "/v1/completions", 400),
            (b'{"prompt":[999999999]}', "/v1/completions", 400), (b"{}", "/v1/nothing", 404),
            (b'{"model":"other"}', "/v1/completions", 404), (b"x" * 100000, "/v1/completions", 400),
            (b'{"tokens":["a"]}', "/detokenize", 400), (b"not a snapshot", "/v1/snapshots", 400)])
        self.ask("POST", path, body, (status,))

    def small(self):
        self.ask(*self.rng.choice([("GET", "/health"), ("GET", "/metrics"), ("GET", "/v1/models"), ("GET", "/"),
                                   ("GET", "/v1/sessions"), ("POST", "/tokenize", {"prompt": "some text"})]))


class Soak:
    def __init__(self, o):
        self.o = o
        self.lock = threading.Lock()
        self.counts, self.failures, self.samples = collections.Counter(), [], []
        self.server = subprocess.Popen([o.lamemo, "serve", "-m", o.model, "--port", "0", "--slots", "8", "--sessions", "48",
                                        "--session-memory", "64M", "--prefix-cache", "8M"], stdout=subprocess.PIPE)
        self.port = int(re.search(rb"port (\d+)", self.server.stdout.readline()).group(1))
        self.end = time.monotonic() + o.seconds
        self.still = []  # when the machine stood still

    def count(self, name):
        with self.lock:
            self.counts[name] += 1

    def fail(self, text):
        with self.lock:
            self.counts["FAILED"] += 1
            if len(self.failures) < 20:
                self.failures.append(text)
                print("failed:", text, flush=True)

    def stood_still(self, since):
        return any(at >= since for at in self.still)

    def tick(self):
        """A second that takes much longer was none of ours."""
        before = time.monotonic()
        time.sleep(0.5)
        if time.monotonic() - before > 5.0:
            self.still.append(time.monotonic())
            self.end += time.monotonic() - before if self.end else 0.0

    def sample(self):
        proc = f"/proc/{self.server.pid}"
        with open(proc + "/status", encoding="ascii") as f:
            status = f.read()
        self.samples.append((int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024,
                             int(re.search(r"Threads:\s+(\d+)", status).group(1)), len(os.listdir(proc + "/fd"))))

    def run(self):
        while True:
            with socket.create_connection(("127.0.0.1", self.port)) as s:
                s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                if b" 200 " in s.recv(100):
                    break
            time.sleep(0.1)
        clients = [Client(self, i) for i in range(self.o.clients)]
        for c in clients:
            c.start()
        sampled = said = 0.0
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "end", 0.0))  # ends it early, with a report
        while time.monotonic() < self.end and self.server.poll() is None:
            self.tick()
            if time.monotonic() - sampled >= 10.0:
                self.sample()
                sampled = time.monotonic()
            if time.monotonic() - said >= 300.0:
                print(sum(self.counts.values()), "requests, MB threads descriptors:", self.samples[-1], flush=True)
                said = time.monotonic()
        for c in clients:
            c.join(600)
        self.sample()
        return self.report()

    def report(self):
        ended = self.server.poll()
        self.server.terminate()
        code = self.server.wait(60)
        quarter = max(1, len(self.samples) // 4)
        parts = [[s[0] for s in self.samples[i * quarter:(i + 1) * quarter]] or [0] for i in range(4)]
        print(", ".join(f"{n} {k}" for k, n in sorted(self.counts.items())))
        print("resident MB by quarter (median, highest):",
              ", ".join(f"{statistics.median(p):.1f} {max(p):.1f}" for p in parts),
              "; threads", f"{min(s[1] for s in self.samples)}-{max(s[1] for s in self.samples)}",
              "; descriptors at most", max(s[2] for s in self.samples), "at the end", self.samples[-1][2])
        grown = statistics.median(parts[3]) - statistics.median(parts[1])
        if ended is not None or code != 0 or self.failures or grown > 0.1 * statistics.median(parts[1]) + 4:
            print(f"FAILED: server's exit {code}, {len(self.failures)} wrong responses, {grown:.1f} MB more")
            return 1
        return 0


if __name__ == "__main__":
    sys.exit(Soak(options()).run())
