"""serve_load.py -- loads a running `lamemo serve` and says what it did.

    python3 bench/serve_load.py --port 8080 --clients 64 --seconds 30 [--tokens 512] [--prompt 32] [--whole] [--drop 0.2]

Each client asks for a completion, reads it to its end (or leaves in the middle, --drop) and asks again.  One thread, non-blocking
sockets: the load generator takes little of the machine.  With --pid the server's processor time and resident memory
are reported, too.
"""
import argparse
import json
import os
import random
import re
import selectors
import socket
import time


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--port", type=int, required=True)
    p.add_argument("--pid", type=int)
    p.add_argument("--clients", type=int, default=64)
    p.add_argument("--seconds", type=float, default=30.0)
    p.add_argument("--warm", type=float, default=3.0, help="seconds before anything counts")
    p.add_argument("--tokens", type=int, default=512)
    p.add_argument("--prompt", type=int, default=32, help="bytes of the prompt")
    p.add_argument("--whole", action="store_true", help="no streams")
    p.add_argument("--drop", type=float, default=0.0, help="share of clients that leave in the middle")
    return p.parse_args()


class Client:
    def __init__(self, load, number):
        self.load, self.number, self.rng = load, number, random.Random(number)
        self.socket = None
        self.begin()

    def begin(self):
        o = self.load.o
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", o.port))
            self.socket.setblocking(False)
            self.load.selector.register(self.socket, selectors.EVENT_READ, self)
        letters = "".join(self.rng.choice("etaoin shrdlu") for _ in range(o.prompt))
        body = json.dumps({"prompt": letters, "max_tokens": o.tokens, "stream": not o.whole}).encode()
        self.tail = b""
        self.leaves = self.rng.random() < o.drop
        self.socket.setblocking(True)
        self.socket.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                            % len(body) + body)
        self.socket.setblocking(False)

    def read(self):
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return
        self.tail = (self.tail + data)[-64:]
        done = b"[DONE]" in self.tail or (self.load.o.whole and self.tail.endswith(b"}}}"))
        if done:
            self.load.requests += 1
            if not self.tail.endswith(b"0\r\n\r\n") and not self.load.o.whole:
                return  # the last chunk is still on its way
        if data and not done and not self.leaves:
            return
        if not done or not data:
            self.load.dropped += self.leaves
            self.load.selector.unregister(self.socket)
            self.socket.close()
            self.socket = None
        self.begin()


class Load:
    def __init__(self, o):
        self.o = o
        self.selector = selectors.DefaultSelector()
        self.requests = self.dropped = 0
        self.clients = [Client(self, i) for i in range(o.clients)]

    def run(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for key, _ in self.selector.select(0.1):
                key.data.read()

    def drawn(self):
        with socket.create_connection(("127.0.0.1", self.o.port)) as s:
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            text = b""
            while True:
                more = s.recv(1 << 16)
                if not more:
                    break
                text += more
        return sum(float(x) for x in re.findall(rb"^lamemo_generated_tokens_total.* (.*)$", text, re.M))


def processor(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main():
    o = options()
    load = Load(o)
    load.run(o.warm)
    begun, drawn, requests = time.monotonic(), load.drawn(), load.requests
    cpu, memory = (processor(o.pid), resident(o.pid)) if o.pid else (0.0, 0.0)
    load.run(o.seconds)
    seconds, tokens = time.monotonic() - begun, load.drawn() - drawn
    print(f"{tokens / seconds:.0f} tokens/s, {(load.requests - requests) / seconds:.1f} requests/s, "
          f"{load.dropped} left in the middle")
    if o.pid:
        used = processor(o.pid) - cpu
        print(f"server: {1e3 * used / tokens:.4f} ms of processor time a token, "
              f"resident {memory:.1f} MB before, {resident(o.pid):.1f} MB after")


if __name__ == "__main__":
    main()
