"""client.py -- what the tests of the server share: a server of their own, and requests to it."""
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time


def run(*arguments):
    done = subprocess.run([os.environ["LAMEMO"], *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{arguments}: {done.stderr.decode()}")
    return done.stdout.decode()


class Server:
    """lamemo serve with these options, on a free port."""

    def __init__(self, *arguments, wait=True):
        self.asked = False
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [os.environ["LAMEMO"], "serve", "--port", "0", *arguments], stdout=subprocess.PIPE,
            stderr=self.log)
        line = self.process.stdout.readline().decode()
        found = re.search(r"port (\d+)", line)
        if not found:
            self.process.wait()
            raise RuntimeError(self.errors())
        self.port = int(found.group(1))
        while wait and self.get("/health")[0] == 503:
            if self.process.poll() is not None:
                raise RuntimeError(self.errors())
            time.sleep(0.02)

    def errors(self):
        self.log.seek(0)
        return self.log.read().decode()

    def terminate(self):
        """Asks it to stop; a second time would be the last."""
        if self.process.poll() is None and not self.asked:
            self.process.terminate()
        self.asked = True

    def stop(self):
        self.terminate()
        self.process.wait(60)
        self.process.stdout.close()
        self.log.close()
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # ---- requests ----

    def connect(self, timeout=600):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None):
        """(status, headers, bytes)"""
        c = self.connect()
        try:
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return r.status, dict(r.getheaders()), r.read()
        finally:
            c.close()

    def get(self, path, **headers):
        status, _, body = self.ask("GET", path, None, headers)
        return status, json.loads(body)

    def post(self, path, body=None, **headers):
        status, _, body = self.ask("POST", path, {} if body is None else body, headers)
        return status, json.loads(body)

    def complete(self, **request):
        status, body = self.post("/v1/completions", request)
        if status != 200:
            raise RuntimeError(f"{status}: {body}")
        return body

    def events(self, path, body=None, slow=False):
        """The events of a stream, as (event, data).  Of a slow one, what is not read after the first event
        soon waits at the server."""
        c = self.connect()
        try:
            if slow:
                c.connect()
                c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            c.request("GET" if body is None else "POST", path,
                      None if body is None else json.dumps(body))
            r = c.getresponse()
            if r.status != 200:
                raise RuntimeError(f"{r.status}: {r.read()}")
            for event in read_events(r):
                yield event
                if slow:
                    slow = False
                    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
                    c.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, 1 << 20)
        finally:
            c.close()

    def metric(self, name):
        text = self.ask("GET", "/metrics")[2].decode()
        return sum(float(value) for value in re.findall(rf"^lamemo_{name}(?:{{.*}})? (.*)$", text, re.M))

    def memory(self):
        """Resident bytes."""
        with open(f"/proc/{self.process.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def read_events(response):
    event, data = None, []
    for line in response:
        line = line.decode().rstrip("\n")
        if line.startswith("event: "):
            event = line[7:]
        elif line.startswith("data: "):
            data.append(line[6:])
        elif line == "" and data:
            yield event, "\n".join(data)
            event, data = None, []


def until(claim, seconds=60):
    """Waits for it; fails after that long."""
    end = time.monotonic() + seconds
    while not claim():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s")
        time.sleep(0.005)


def main(unittest, module):
    sys.exit(not unittest.main(module=module, argv=sys.argv[:1] + sys.argv[2:], exit=False).result.wasSuccessful())
