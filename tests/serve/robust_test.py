"""robust_test.py -- whatever clients send, or do not, the server answers, stays within its limits, and goes on.

Usage: robust_test.py BUILD [TEST...].  Run in the root of the source tree; BUILD is finished.
"""
import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = os.path.abspath(sys.argv[1])
os.environ["LAMEMO"] = os.path.join(BUILD, "lamemo")
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("ASAN_OPTIONS", "quarantine_size_mb=8")  # the memory of a server is measured below
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from client import Server, main, until  # noqa: E402

WORK = tempfile.mkdtemp()
MODEL = os.path.join(WORK, "model")


def setUpModule():
    global server, hasty
    subprocess.run([os.path.join(BUILD, "tests", "make_model"), MODEL], check=True, stdout=subprocess.DEVNULL)
    server = Server("-m", MODEL, "--slots", "4", "--threads", "1")
    # Nothing that must succeed is asked of this one: a busy machine may need longer.
    hasty = Server("-m", MODEL, "--slots", "1", "--threads", "1", "--header-time", "1", "--body-time", "1.5")


def tearDownModule():
    assert server.stop() == 0 and hasty.stop() == 0
    shutil.rmtree(WORK)


def raw(where=None):
    s = socket.create_connection(("127.0.0.1", (where or server).port), timeout=300)
    return s


def exchange(data, where=None):
    """What comes back for these bytes; b"" if nothing does."""
    back = b""
    with raw(where) as s:
        with contextlib.suppress(OSError):  # the server may have closed before it has heard all
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while more := s.recv(65536):
                back += more
    return back


class Wrong(unittest.TestCase):
    def tearDown(self):
        self.assertEqual(server.get("/health"), (200, {"status": "ok"}))

    def refused(self, status, body, param=None, path="/v1/completions"):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        got, _, reply = server.ask("POST", path, body)
        error = json.loads(reply)["error"]
        self.assertEqual(got, status, reply)
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertTrue(error["message"])
        if param:
            self.assertEqual(error["param"], param)

    def test_json(self):
        for body in (b"{", b"[]", b"null", b'"x"', b"{\"prompt\": \"\xff\"}", b"\0", b"{}{}", b"{\"a\":1,\"a\":2}",
                     b"[" * 100000, b'{"prompt":' + b"[" * 33 + b"]" * 33 + b"}", b'{"x":' * 5000,
                     b'{"max_tokens": 1e999}'):
            self.refused(400, body)

    def test_fields(self):
        for name, values in {
                "max_tokens": (-1, 1.5, "3", 10 ** 15, 1000001), "n": (0, 129, True), "temperature": (-1, "1", [1]),
                "top_p": (1.5, -0.1), "logprobs": (21, -1, "x"), "stream": (1, "true"), "echo": (0,),
                "stop": (5, ["a"] * 17, [None], {}), "seed": ("1", 1.5), "keep": ("no",),
                "prompt": (5, [True], [[1], "x", 3], [1, "x"], [-1], [[256]], [256], {}, [10 ** 12], [None],
                           ["x"] * 129)}.items():
            for value in values:
                with self.subTest(name=name, value=str(value)[:40]):
                    if value == [1, "x"] or name == "prompt":
                        self.refused(400, {name: value})
                    else:
                        self.refused(400, {name: value}, name)
        self.refused(400, {"prompt": ["a", "b"], "n": 65}, "n")
        self.refused(400, {"prompt": ["a", "b"], "keep": True}, "keep")
        for several in ({"n": 2}, {"prompt": ["a", "b"]}):  # a session keeps what it reads unless told otherwise
            self.refused(400, {"session": "0" * 32, **several}, "keep")
        self.refused(404, {"model": "nobody"}, "model")
        self.refused(404, {"session": "0" * 32}, "session")
        self.refused(400, {"session": "0" * 33}, "session")
        self.refused(404, {"session": "../../../etc/passwd"}, "session")
        self.refused(400, {"prompt": "x" * 300000, "echo": True, "logprobs": 20})
        for path, body in (("/tokenize", {}), ("/tokenize", {"prompt": 3}), ("/detokenize", {"tokens": "x"}),
                           ("/detokenize", {"tokens": [256]}), ("/v1/sessions", {"segment": 0}),
                           ("/v1/sessions", {"memory": -1})):
            self.refused(400, body, path=path)
        for name, value, status in (("segment", 1 << 20, 400), ("memory", 5, 400), ("model", "nobody", 404),
                                    ("snapshot", "0" * 32, 404)):
            self.refused(status, {name: value}, name, "/v1/sessions")
        session = server.post("/v1/sessions", {})[1]["id"]
        self.refused(400, {"tokens": [256]}, "tokens", f"/v1/sessions/{session}/feed")
        self.assertEqual(server.ask("DELETE", f"/v1/sessions/{session}")[0], 200)

    def test_leaving_before_a_refusal(self):
        """The worker frees the jobs of a wrong request while the client's end cancels them."""
        for _ in range(40):
            body = json.dumps({"prompt": "x", "n": 100, "session": "0" * 32, "keep": False}).encode()
            with raw() as s:
                s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                          % len(body) + body)

    def test_paths_and_methods(self):
        self.assertEqual(server.ask("GET", "/nothing")[0], 404)
        self.assertEqual(server.ask("GET", "/v1/sessions/..%2f..%2fetc%2fpasswd")[0], 404)
        self.assertEqual(server.ask("GET", "/v1/snapshots/" + "A" * 32)[0], 404)
        self.assertEqual(server.ask("GET", "/v1/snapshots/" + "0" * 32)[0], 404)
        status, headers, _ = server.ask("GET", "/v1/completions")
        self.assertEqual((status, headers["Allow"]), (405, "POST"))
        status, headers, _ = server.ask("POST", "/v1/snapshots/" + "0" * 32)
        self.assertEqual((status, headers["Allow"]), (405, "GET, PUT, DELETE"))
        self.assertEqual(server.ask("BREW", "/health")[0], 405)
        self.assertEqual(server.ask("HEAD", "/health")[0], 200)

    def test_foreign_places(self):
        for headers in ({"Host": "evil.example"}, {"Host": "127.0.0.1.evil.example:80"}, {"Host": ""},
                        {"Host": "localhost", "Origin": "http://evil.example"},
                        {"Host": "localhost", "Origin": "null"}, {"Host": "localhost:1", "Origin": "http://localhost:2"}):
            self.assertEqual(server.ask("GET", "/v1/models", None, headers)[0], 403, headers)
        for headers in ({"Host": "localhost"}, {"Host": "[::1]:80"}, {"Host": "LOCALHOST:5", "Origin": "http://localhost:5"}):
            self.assertEqual(server.ask("GET", "/v1/models", None, headers)[0], 200, headers)
        headers = server.ask("OPTIONS", "/v1/completions", None, {"Origin": "http://evil.example"})[1]
        self.assertFalse([h for h in headers if h.lower().startswith("access-control")])

    def test_headers_and_bodies_that_are_too_large(self):
        status = int(exchange(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 17000 + b"\r\n\r\n")[9:12])
        self.assertIn(status, (400, 413, 431, 494))
        status = int(exchange(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 5000 + b"\r\n")[9:12])
        self.assertIn(status, (400, 413, 431, 494))
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
        self.assertEqual(exchange(head + b"Content-Length: 33554433\r\n\r\n")[9:12], b"413")
        s = raw()  # in chunks, nobody says how much it will be
        s.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(40):
                s.sendall(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
            s.sendall(b"0\r\n\r\n")
            self.assertEqual(s.recv(100)[9:12], b"413")
        except ConnectionError:
            pass
        s.close()

    def test_what_is_no_http(self):
        rng = random.Random(5)
        good = (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 31\r\n\r\n{\"prompt\":\"ab\",\"max_tokens\":2}\n")
        self.assertEqual(server.ask("POST", "/v1/completions", good[-31:])[0], 200)
        for data in (b"", b"\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00" * 100, b"\0" * 1000,
                     b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                     b"GET / HTTP/1.1\r\n\r\n", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
                     b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                     b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50):
            exchange(data, hasty)
        for _ in range(150):
            data = bytearray(good)
            for _ in range(rng.randrange(1, 6)):
                at = rng.randrange(len(data))
                kind = rng.randrange(3)
                if kind == 0:
                    data[at] = rng.randrange(256)
                elif kind == 1:
                    del data[at:at + rng.randrange(8)]
                else:
                    data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(8)))
            exchange(bytes(data), hasty)
        self.assertIsNone(hasty.process.poll())


class Slow(unittest.TestCase):
    def test_time_limits_are_absolute(self):
        """A byte now and then does not stretch them."""
        head = raw(hasty)
        head.sendall(b"GET /hea")
        body = raw(hasty)
        body.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
        ended = set()
        end = time.monotonic() + 60
        while len(ended) < 2 and time.monotonic() < end:
            for s in (head, body):
                if s not in ended:
                    try:
                        s.sendall(b"x")
                        s.settimeout(0.05)
                        if s.recv(100) == b"":
                            ended.add(s)
                    except (BrokenPipeError, ConnectionResetError):
                        ended.add(s)
                    except socket.timeout:
                        pass
            time.sleep(0.05)
        self.assertEqual(len(ended), 2)
        until(lambda: hasty.metric("http_timeouts_total") >= 2)
        for s in (head, body):
            s.close()

    def test_a_reader_that_does_not_read_is_waited_for(self):
        before = server.memory()
        s = raw()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        body = json.dumps({"stream": True, "max_tokens": 300000, "logprobs": 5}).encode()
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        drawn = [-1, 0]

        def stands():
            drawn.append(server.metric("generated_tokens_total"))
            time.sleep(0.3)
            return drawn[-1] == drawn[-2] > 0
        until(stands, 60)
        self.assertEqual(server.metric("jobs_running"), 1)
        self.assertEqual(len(server.complete(prompt="x", max_tokens=3)["choices"]), 1)  # others go on
        self.assertLess(server.memory() - before, 64 << 20)
        s.close()
        until(lambda: server.metric("jobs_running") == 0)

    def test_who_is_gone_frees_the_slot(self):
        for stream in (True, False):
            for _ in range(3):
                s = raw()
                body = json.dumps({"stream": stream, "max_tokens": 1000000}).encode()
                s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
                          + body)
                until(lambda: server.metric("jobs_running") == 1)
                s.close()
                begun = time.monotonic()
                until(lambda: server.metric("jobs_running") == 0)
                print(f"the slot was free after {1000 * (time.monotonic() - begun):.0f} ms", file=sys.stderr)
        until(lambda: server.metric("http_disconnects_total") >= 6)  # counted when HTTP has noticed it, too

    def test_a_thousand_idle_streams(self):
        session = server.post("/v1/sessions")[1]["id"]
        request = b"GET /v1/sessions/%s/memory?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n" % session.encode()
        idle = []
        for _ in range(1000):
            s = raw()
            s.sendall(request)
            idle.append(s)
        for s in idle:
            self.assertIn(b"200", s.recv(100))
        with open(f"/proc/{server.process.pid}/status") as f:
            threads = int([line for line in f if line.startswith("Threads:")][0].split()[1])
        self.assertLess(threads, 20)
        self.assertEqual(server.post(f"/v1/sessions/{session}/feed", {"text": "abc"})[1]["length"], 3)
        for s in idle:
            s.close()
        until(lambda: server.ask("DELETE", f"/v1/sessions/{session}")[0] == 200)

    def test_a_full_queue_says_so(self):
        with Server("-m", MODEL, "--slots", "1", "--queue", "1", "--threads", "1") as where:
            streams = [where.events("/v1/completions", {"stream": True, "max_tokens": 1000000}) for _ in range(1)]
            next(streams[0])
            waiting = raw(where)
            body = b'{"max_tokens": 1}'
            waiting.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
                            + body)
            until(lambda: where.metric("jobs_waiting") == 1)
            status, headers, reply = where.ask("POST", "/v1/completions", {})
            self.assertEqual(status, 429)
            self.assertEqual(headers["Retry-After"], "1")
            self.assertEqual(json.loads(reply)["error"]["type"], "rate_limit_error")
            self.assertEqual(where.post("/v1/completions", {"n": 3})[0], 429)
            streams[0].close()
            self.assertIn(b"200 OK", waiting.recv(1000))
            waiting.close()


class Keys(unittest.TestCase):
    def test_keys(self):
        path = os.path.join(WORK, "keys")
        with open(path, "w", encoding="ascii") as f:
            f.write("# ours\nfirst-key-0123456789\n\nsecond-key-0123456789\r\n")
        os.chmod(path, 0o600)
        with Server("-m", MODEL, "--slots", "1", "--threads", "1", "--api-key-file", path, "--host", "0.0.0.0") as where:
            for key in ("", "Bearer", "Bearer ", "Bearer first-key-012345678", "Bearer first-key-01234567890",
                        "Basic first-key-0123456789", "Bearer second-key-012345678x"):
                status, headers, _ = where.ask("GET", "/v1/models", None, {"Authorization": key})
                self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"))
            self.assertEqual(where.ask("GET", "/v1/models")[0], 401)
            self.assertEqual(where.ask("GET", "/metrics")[0], 401)
            self.assertEqual(where.ask("GET", "/not/there")[0], 401)
            self.assertEqual(where.ask("GET", "/health")[0], 200)
            for key in ("first-key-0123456789", "second-key-0123456789"):
                self.assertEqual(where.ask("GET", "/v1/models", None, {"Authorization": "Bearer " + key})[0], 200)

    def test_no_key_no_other_address(self):
        for options, words in ((("--host", "0.0.0.0"), "--api-key-file"), (("--host", "name"), "must be an IPv4"),
                               (("--api-key-file", os.path.join(WORK, "none")), "none"),
                               (("--port", str(server.port)), "cannot listen")):
            done = subprocess.run([os.environ["LAMEMO"], "serve", "-m", MODEL, "--port", "0", *options],
                                  stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, timeout=60, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr.decode())
        short = os.path.join(WORK, "short")
        with open(short, "w", encoding="ascii") as f:
            f.write("abc\n")
        done = subprocess.run([os.environ["LAMEMO"], "serve", "-m", MODEL, "--api-key-file", short],
                              stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, timeout=60, check=False)
        self.assertIn("must be 16 to 256", done.stderr.decode())

    def test_a_model_that_is_not_there(self):
        done = subprocess.run([os.environ["LAMEMO"], "serve", "-m", os.path.join(WORK, "nothing"), "--port", "0"],
                              stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nothing", done.stderr.decode())


if __name__ == "__main__":
    main(unittest, sys.modules["__main__"])
