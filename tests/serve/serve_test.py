"""serve_test.py -- the server does what docs/serve.md says: completions, tokens, sessions, snapshots, the memory.

Usage: serve_test.py BUILD [TEST...].  Run in the root of the source tree; BUILD is finished.
"""
import json
import os
import shutil
import sys
import tempfile
import threading
import time
import unittest

BUILD = os.path.abspath(sys.argv[1])
os.environ["LAMEMO"] = os.path.join(BUILD, "lamemo")
os.environ["OMP_NUM_THREADS"] = "1"
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from client import Server, main, run, until  # noqa: E402

WORK = tempfile.mkdtemp()
TEXT = "".join(f"The {a} {b} saw {c} of them, \"{d}\" it said.\n"
               for a in ("old", "green", "last") for b in ("fox", "man", "été")
               for c in ("one", "seven") for d in ("come", "never", "what"))


def model(kind):
    """A small model of bytes, characters, words or byte pairs, trained for a moment."""
    folder = os.path.join(WORK, kind)
    if not os.path.exists(folder):
        text, corpus = os.path.join(WORK, "text"), os.path.join(WORK, kind + ".corpus")
        with open(text, "w", encoding="utf-8") as f:
            f.write(TEXT * 4)
        more = ("--vocab-size", "300") if kind == "bpe" else ()
        run("prepare", "-q", "--corpus", kind, *more, "--out", corpus, text)
        run("train", "-q", "--data", corpus, "--out", folder, "--n_layer", "2", "--d_model", "16", "--n_head",
            "2", "--d_head", "8", "--d_inner", "24", "--tgt_len", "12", "--mem_len", "10", "--batch_size", "4",
            "--max_step", "8", "--device", "cpu", "--threads", "1")
    return folder


def setUpModule():
    global server
    server = Server("-m", model("bytes"), "--slots", "4", "--threads", "1")


def tearDownModule():
    server.stop()
    shutil.rmtree(WORK)


class Harness:
    """What lm-evaluation-harness does with a server of OpenAI's kind (local-completions with a remote tokenizer)."""

    def __init__(self, where):
        self.server = where
        self.info = where.get("/tokenizer_info")[1]
        assert "eos_token" in self.info
        prefix = self.info["bos_token"] or self.info["eos_token"]
        self.prefix = self.encode(prefix)[0]

    def encode(self, text):
        return self.server.post("/tokenize", {"prompt": text, "add_special_tokens": False})[1]["tokens"]

    def decode(self, tokens):
        return self.server.post("/detokenize", {"tokens": tokens})[1]["prompt"]

    def loglikelihood(self, pairs):
        """[(sum, greedy)] of (context, continuation), both tokens."""
        body = self.server.complete(model=self.server.get("/v1/models")[1]["data"][0]["id"],
                                    prompt=[a + b for a, b in pairs], temperature=0, max_tokens=1, logprobs=1,
                                    seed=1234, echo=True)
        found = []
        for choice, (context, rest) in zip(sorted(body["choices"], key=lambda c: c["index"]), pairs):
            lists = choice["logprobs"]
            assert len(lists["token_logprobs"]) == len(context) + len(rest) + 1
            assert lists["token_logprobs"][0] is None
            part = lists["token_logprobs"][len(context):-1]
            tops = lists["top_logprobs"][len(context):-1]
            found.append((sum(part), all(p == max(t.values()) for p, t in zip(part, tops))))
        return found

    def generate(self, prompts, stop):
        body = self.server.complete(prompt=prompts, max_tokens=20, temperature=0, stop=stop, seed=1234,
                                    do_sample=False, whatever=[1, {"x": None}])
        texts = [None] * len(body["choices"])
        for choice in body["choices"]:
            texts[choice["index"]] = choice["text"]
        return texts


class Conformity(unittest.TestCase):
    """Sums of the harness are those of `lamemo score`."""

    def check(self, kind):
        with Server("-m", model(kind), "--slots", "3", "--threads", "1") as where:
            harness = Harness(where)
            texts = [TEXT[:150], TEXT[40:41], TEXT[500:900], "The fox"]
            pairs, wanted = [], []
            for text in texts:
                said = json.loads(run("score", "-m", model(kind), "--json", "--per-token", "--threads", "1", text))
                tokens = harness.encode(text)
                self.assertEqual(tokens, said["tokens"])
                pairs.append(([harness.prefix], tokens))
                wanted.append(said["logprob"])
                half = len(tokens) // 2
                pairs.append(([harness.prefix] + tokens[:half], tokens[half:]))
                wanted.append(sum(said["token_logprobs"][half:]))
            for (got, _), want in zip(harness.loglikelihood(pairs), wanted):
                self.assertLessEqual(abs(got - want), 1e-6 * max(1.0, abs(want)))
                self.assertLessEqual(abs(got - want), 1e-6)
            # What the model itself would say is greedy, anything else is not.
            start = harness.encode(TEXT[:30])
            body = where.complete(prompt=start, max_tokens=6, temperature=0, logprobs=1)
            greedy = body["choices"][0]["logprobs"]["token_ids"]
            other = greedy[:-1] + [(greedy[-1] + 1) % harness.info["vocab_size"]]
            self.assertEqual([g for _, g in harness.loglikelihood([(start, greedy), (start, other)])],
                             [True, False])
            texts = harness.generate([start, start[:5]], ["\n\n", ""])
            self.assertEqual(texts[0], harness.generate([start], [])[0])
            self.assertEqual(harness.decode(harness.encode("The fox"))[:7], "The fox")

    def test_bytes(self):
        self.check("bytes")

    def test_characters(self):
        self.check("chars")

    def test_words(self):
        self.check("words")

    def test_byte_pairs(self):
        self.check("bpe")

    def test_the_bundled_model(self):
        """Low-precision weights; longer than a segment."""
        text = TEXT[:700]
        with Server("-m", "models/wiki11m", "--slots", "2") as where:
            harness = Harness(where)
            said = json.loads(run("score", "-m", "models/wiki11m", "--json", text))
            got = harness.loglikelihood([([harness.prefix], harness.encode(text))])[0][0]
            self.assertLessEqual(abs(got - said["logprob"]), 1e-6)


class Completions(unittest.TestCase):
    def test_prompts_of_every_form(self):
        a = server.complete(prompt="The fox", max_tokens=5, temperature=0)["choices"][0]["text"]
        tokens = list(b"The fox")
        for prompt in (["The fox"], tokens, [tokens]):
            self.assertEqual(server.complete(prompt=prompt, max_tokens=5, temperature=0)["choices"][0]["text"], a)
        several = server.complete(prompt=["The fox", "The man"], n=2, max_tokens=3, temperature=0)
        self.assertEqual([c["index"] for c in several["choices"]], [0, 1, 2, 3])
        self.assertEqual(several["choices"][0]["text"], several["choices"][1]["text"])
        self.assertEqual(several["usage"]["prompt_tokens"], 14)
        self.assertEqual(several["usage"]["completion_tokens"], 12)
        self.assertEqual(len(server.complete(max_tokens=3)["choices"][0]["text"].encode()) > 0, True)

    def test_max_tokens_0_and_echo(self):
        body = server.complete(prompt="The fox", max_tokens=0, echo=True, logprobs=2)
        choice = body["choices"][0]
        self.assertEqual(choice["text"], "The fox")
        self.assertEqual(choice["logprobs"]["tokens"], list("The fox"))
        self.assertEqual(choice["logprobs"]["text_offset"], list(range(7)))
        self.assertEqual(len(choice["logprobs"]["token_logprobs"]), 7)
        self.assertEqual(server.complete(prompt="The fox", max_tokens=0)["choices"][0]["text"], "")

    def test_bytes_that_are_no_characters(self):
        tokens = list("é".encode()) + [0xff]
        choice = server.complete(prompt=tokens, max_tokens=0, echo=True, logprobs=0)["choices"][0]
        self.assertEqual(choice["text"], "é\ufffd")
        self.assertEqual(choice["logprobs"]["tokens"], ["bytes:\\xc3", "bytes:\\xa9", "bytes:\\xff"])
        self.assertEqual(choice["logprobs"]["token_ids"], tokens)

    def test_seeds_and_sampling(self):
        ask = dict(prompt="The", max_tokens=30, temperature=1.3)
        a = server.complete(seed=7, **ask)["choices"][0]["text"]
        self.assertEqual(server.complete(seed=7, **ask)["choices"][0]["text"], a)
        self.assertNotEqual(server.complete(seed=8, **ask)["choices"][0]["text"], a)
        self.assertNotEqual(server.complete(**ask)["choices"][0]["text"],
                            server.complete(**ask)["choices"][0]["text"])
        two = server.complete(seed=7, n=2, **ask)["choices"]
        self.assertEqual(two[0]["text"], a)
        self.assertNotEqual(two[1]["text"], a)
        greedy = server.complete(prompt="The", max_tokens=30, temperature=0)["choices"][0]["text"]
        self.assertEqual(server.complete(prompt="The", max_tokens=30, top_k=1)["choices"][0]["text"], greedy)
        self.assertEqual(server.complete(prompt="The", max_tokens=30, top_p=0)["choices"][0]["text"], greedy)

    def test_a_stop_string_ends_it(self):
        text = server.complete(prompt="The", max_tokens=60, temperature=0)["choices"][0]["text"]
        stop = text[10:13]
        choice = server.complete(prompt="The", max_tokens=60, temperature=0, stop=[stop, ""])["choices"][0]
        self.assertEqual(choice["text"], text[:text.index(stop)])
        self.assertEqual(choice["finish_reason"], "stop")

    def test_a_stream_says_the_same(self):
        ask = dict(prompt=["The fox", "A man"], n=2, max_tokens=40, temperature=0, logprobs=3, echo=True)
        whole = server.complete(**ask)
        texts, lists, reasons, last = [""] * 4, [[] for _ in range(4)], [None] * 4, None
        for _, data in server.events("/v1/completions",
                                     dict(ask, stream=True, stream_options={"include_usage": True})):
            last = data
            if data == "[DONE]":
                continue
            chunk = json.loads(data)
            if not chunk["choices"]:
                self.assertEqual(chunk["usage"]["completion_tokens"], 160)
                continue
            choice = chunk["choices"][0]
            i = choice["index"]
            self.assertIsNone(reasons[i])
            texts[i] += choice["text"]
            lists[i] += choice["logprobs"]["token_logprobs"]
            reasons[i] = choice["finish_reason"]
        self.assertEqual(last, "[DONE]")
        for choice, text, numbers, reason in zip(whole["choices"], texts, lists, reasons):
            self.assertEqual(choice["text"], text)
            self.assertEqual(choice["finish_reason"], reason)
            self.assertEqual(len(numbers), len(choice["logprobs"]["token_logprobs"]))
            for a, b in zip(numbers, choice["logprobs"]["token_logprobs"]):
                self.assertTrue(a is b is None or abs(a - b) < 1e-4)

    def test_a_known_beginning_is_not_read_again(self):
        prompt = TEXT[:200]
        first = server.complete(prompt=prompt, max_tokens=4, temperature=0)
        second = server.complete(prompt=prompt, max_tokens=4, temperature=0)
        self.assertEqual(second["usage"]["prompt_tokens_details"]["cached_tokens"] % 12, 0)
        self.assertGreater(second["usage"]["prompt_tokens_details"]["cached_tokens"], 150)
        self.assertEqual(first["choices"][0]["text"], second["choices"][0]["text"])

    def test_many_at_once(self):
        alone = [server.complete(prompt=TEXT[i:i + 20 + 7 * i], max_tokens=30, temperature=0)["choices"][0]["text"]
                 for i in range(20)]
        together = [None] * 20

        def ask(i):
            together[i] = server.complete(prompt=TEXT[i:i + 20 + 7 * i], max_tokens=30,
                                          temperature=0)["choices"][0]["text"]
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(20)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(alone, together)

    def test_two_models(self):
        with Server("-m", "a=" + model("bytes"), "-m", "b=" + model("words"), "--slots", "2") as where:
            self.assertEqual([m["id"] for m in where.get("/v1/models")[1]["data"]], ["a", "b"])
            self.assertEqual(where.get("/v1/models/b")[1], where.get("/v1/models")[1]["data"][1])
            self.assertEqual(where.ask("GET", "/v1/models/c")[0], 404)
            self.assertEqual(where.ask("GET", "/v1/models/")[0], 404)
            self.assertEqual(where.complete(model="b", prompt="The fox", max_tokens=2)["model"], "b")
            self.assertEqual(where.post("/v1/completions", {"model": "c"})[0], 404)
            session = where.post("/v1/sessions", {"model": "b"})[1]["id"]
            snapshot = where.post(f"/v1/sessions/{session}/snapshot")[1]["id"]
            for path, body in (("/v1/completions", {"session": session}), ("/v1/sessions", {"snapshot": snapshot})):
                for other in ("a", "c"):  # a session has its model
                    status, answer = where.post(path, {"model": other, **body})
                    self.assertEqual((status, answer["error"]["param"]), (400, "model"))
                self.assertEqual(where.post(path, {"model": "b", **body})[1]["model"], "b")
            self.assertNotEqual(where.post("/tokenize", {"prompt": "The fox", "model": "a"})[1]["tokens"],
                                where.post("/tokenize", {"prompt": "The fox", "model": "b"})[1]["tokens"])


class Sessions(unittest.TestCase):
    def new(self, **options):
        status, body = server.post("/v1/sessions", options)
        self.assertEqual(status, 201, body)
        return body["id"]

    def drop(self, *ids):
        for i in ids:
            self.assertEqual(server.ask("DELETE", f"/v1/sessions/{i}")[0], 200)

    def test_feeding_is_reading(self):
        s = self.new()
        first = server.post(f"/v1/sessions/{s}/feed", {"text": TEXT[:50], "logprobs": 1})[1]
        second = server.post(f"/v1/sessions/{s}/feed", {"tokens": list(TEXT[50:80].encode()), "logprobs": 0})[1]
        self.assertEqual((first["length"], second["length"]), (50, 80))
        self.assertEqual(first["logprobs"]["text_offset"], list(range(50)))
        whole = server.complete(prompt=TEXT[:80], echo=True, logprobs=1, max_tokens=0)["choices"][0]["logprobs"]
        parts = first["logprobs"]["token_logprobs"] + second["logprobs"]["token_logprobs"]
        for a, b in zip(parts, whole["token_logprobs"]):
            self.assertTrue(a is b is None or abs(a - b) < 1e-4)
        self.drop(s)
        self.assertEqual(server.get(f"/v1/sessions/{s}")[0], 404)

    def test_completions_go_on_where_the_session_is(self):
        s = self.new()
        server.post(f"/v1/sessions/{s}/feed", {"text": TEXT[:60]})
        want = server.complete(prompt=TEXT[:70], max_tokens=20, temperature=0)["choices"][0]["text"]
        ask = dict(session=s, prompt=TEXT[60:70], max_tokens=20, temperature=0)
        body = server.complete(keep=False, **ask)
        self.assertEqual(body["session"], s)
        self.assertEqual(body["choices"][0]["text"], want)
        self.assertEqual(server.get(f"/v1/sessions/{s}")[1]["length"], 60)
        self.assertEqual(server.complete(**ask)["choices"][0]["text"], want)
        self.assertEqual(server.get(f"/v1/sessions/{s}")[1]["length"], 90)
        more = server.complete(session=s, max_tokens=10, temperature=0)["choices"][0]["text"]
        self.assertEqual(more, server.complete(prompt=TEXT[:70] + want, max_tokens=10,
                                               temperature=0)["choices"][0]["text"])
        self.drop(s)

    def test_keep_makes_a_session_and_forks_part(self):
        a = server.complete(prompt=TEXT[:40], max_tokens=8, temperature=0, keep=True)["session"]
        status, fork = server.post(f"/v1/sessions/{a}/fork")
        self.assertEqual((status, fork["length"]), (201, 48))
        b = fork["id"]
        one = server.complete(session=a, prompt="x", max_tokens=8, temperature=0)["choices"][0]["text"]
        two = server.complete(session=b, prompt="x", max_tokens=8, temperature=0)["choices"][0]["text"]
        self.assertEqual(one, two)
        server.post(f"/v1/sessions/{b}/feed", {"text": "y"})
        ids = {s["id"]: s["length"] for s in server.get("/v1/sessions")[1]["data"]}
        self.assertEqual((ids[a], ids[b]), (57, 58))
        self.drop(a, b)

    def test_a_snapshot_travels(self):
        s = self.new()
        server.post(f"/v1/sessions/{s}/feed", {"text": TEXT[:90]})
        status, snapshot = server.post(f"/v1/sessions/{s}/snapshot")
        self.assertEqual((status, snapshot["object"], snapshot["length"]), (201, "snapshot", 90))
        status, headers, file = server.ask("GET", f"/v1/snapshots/{snapshot['id']}")
        self.assertEqual((status, headers["Content-Type"]), (200, "application/octet-stream"))
        with Server("-m", model("bytes"), "--slots", "2", "--threads", "1") as other:
            name = "0123456789abcdef" * 2
            self.assertEqual(other.ask("PUT", f"/v1/snapshots/{name}", file)[0], 201)
            self.assertEqual(other.ask("PUT", f"/v1/snapshots/{name}", file)[0], 409)
            self.assertEqual(other.ask("POST", "/v1/snapshots", file)[0], 201)
            status, there = other.post("/v1/sessions", {"snapshot": name})
            self.assertEqual((status, there["length"]), (201, 90))
            ask = dict(max_tokens=15, temperature=0)
            self.assertEqual(other.complete(session=there["id"], **ask)["choices"][0]["text"],
                             server.complete(session=s, **ask)["choices"][0]["text"])
            self.assertEqual(other.ask("DELETE", f"/v1/snapshots/{name}")[0], 200)
            self.assertEqual(other.ask("GET", f"/v1/snapshots/{name}")[0], 404)
            # Damage anywhere is refused.
            for i in range(0, len(file), max(1, len(file) // 60)):
                bad = file[:i] + bytes([file[i] ^ 1]) + file[i + 1:]
                self.assertEqual(other.ask("POST", "/v1/snapshots", bad)[0], 400, i)
                self.assertEqual(other.ask("POST", "/v1/snapshots", file[:i])[0], 400, i)
        with Server("-m", model("words"), "--slots", "2", "--threads", "1") as other:
            status, _, body = other.ask("POST", "/v1/snapshots", file)
            self.assertEqual(status, 400)
            self.assertIn(b"not of a model of this server", body)
        self.drop(s)

    def test_a_session_without_memory(self):
        s, t = self.new(memory=0), self.new()
        for i in (s, t):
            server.post(f"/v1/sessions/{i}/feed", {"text": TEXT[:60]})
        a = server.post(f"/v1/sessions/{s}/feed", {"text": TEXT[60:84], "logprobs": 0})[1]["logprobs"]
        b = server.post(f"/v1/sessions/{t}/feed", {"text": TEXT[60:84], "logprobs": 0})[1]["logprobs"]
        self.assertNotEqual(a["token_logprobs"], b["token_logprobs"])
        self.assertEqual(server.get(f"/v1/sessions/{s}")[1]["memory"], 0)
        self.assertEqual(server.get(f"/v1/sessions/{s}/memory")[1]["remembered"], 0)
        self.assertEqual(server.post("/v1/sessions", {"memory": 5})[0], 400)
        self.assertEqual(server.post("/v1/sessions", {"segment": 13})[0], 400)
        self.drop(s, t)

    def test_the_memory_can_be_seen(self):
        s = self.new()
        server.post(f"/v1/sessions/{s}/feed", {"text": TEXT[:65]})
        status, seen = server.get(f"/v1/sessions/{s}/memory")
        self.assertEqual(status, 200)
        self.assertEqual((seen["length"], seen["remembered"], seen["segment"]), (65, 10, {"length": 12, "done": 5}))
        self.assertEqual((len(seen["alpha"]), len(seen["alpha"][0])), (1, 10))
        self.assertTrue(all(0.0 <= a <= 1.0 for row in seen["alpha"] for a in row))
        self.assertEqual(len(seen["attention"]["weight"]), 2)
        self.assertTrue(all(0.0 < x < 1.0 for x in seen["attention"]["memory_share"]))
        self.assertEqual("".join(seen["tokens"]), TEXT[60:65])
        self.assertIsNone(seen["surprise"][0])
        self.assertTrue(all(x > 0.0 for x in seen["surprise"][1:]))
        self.drop(s)

    def test_the_memory_can_be_watched(self):
        s = self.new()
        seen = []

        def watch():
            for event, data in server.events(f"/v1/sessions/{s}/memory?watch=1"):
                seen.append((event, json.loads(data)))
        watcher = threading.Thread(target=watch)
        watcher.start()
        until(lambda: len(seen) == 1)
        for i in range(4):
            server.post(f"/v1/sessions/{s}/feed", {"text": TEXT[20 * i:20 * i + 20]})
            until(lambda: seen[-1][1]["length"] == 20 * i + 20)
        self.drop(s)
        watcher.join(60)
        self.assertEqual(seen[-1], ("end", {"reason": "deleted"}))
        self.assertEqual({event for event, _ in seen[:-1]}, {"memory"})

    def test_one_request_at_a_time(self):
        s = self.new()
        events = server.events("/v1/completions", dict(session=s, max_tokens=300000, logprobs=5, stream=True), slow=True)
        next(events)
        self.assertEqual(server.post(f"/v1/sessions/{s}/feed", {"text": "x"})[0], 409)
        self.assertEqual(server.ask("DELETE", f"/v1/sessions/{s}")[0], 409)
        self.assertEqual(server.get(f"/v1/sessions/{s}")[1]["busy"], True)
        events.close()
        until(lambda: not server.get(f"/v1/sessions/{s}")[1]["busy"])
        self.assertEqual(server.get(f"/v1/sessions/{s}")[1]["length"], 0)  # as it was
        self.drop(s)

    def test_sessions_outlive_the_server(self):
        state = os.path.join(WORK, "state")
        options = ("-m", model("bytes"), "--slots", "2", "--state", state, "--threads", "1")
        with Server(*options) as first:
            s = first.complete(prompt=TEXT[:77], max_tokens=5, temperature=0, keep=True)["session"]
            gone = first.post("/v1/sessions")[1]["id"]
            want = first.complete(session=s, max_tokens=20, temperature=0, keep=False)["choices"][0]["text"]
            self.assertEqual(first.stop(), 0)
        with Server(*options) as second:
            self.assertEqual(second.get(f"/v1/sessions/{s}")[1]["length"], 82)
            self.assertEqual(second.complete(session=s, max_tokens=20, temperature=0)["choices"][0]["text"], want)
            self.assertEqual(second.ask("DELETE", f"/v1/sessions/{gone}")[0], 200)
        self.assertEqual(sorted(os.listdir(state)), [s + ".safetensors"])

    def test_a_session_that_is_left_out_is_not_deleted(self):
        state = os.path.join(WORK, "left")
        options = ("-m", model("bytes"), "--slots", "2", "--state", state, "--threads", "1")
        with Server(*options) as first:
            kept = [first.post("/v1/sessions")[1]["id"] + ".safetensors" for _ in range(2)]
        for fewer in (("--sessions", "1"), ("--mem-len", "5")):
            with Server(*options, *fewer) as second:
                self.assertEqual(second.stop(), 0)
            self.assertEqual(sorted(os.listdir(state)), sorted(kept))

    def test_there_are_only_so_many(self):
        with Server("-m", model("bytes"), "--slots", "2", "--sessions", "3", "--threads", "1") as where:
            for i in range(3):
                self.assertEqual(where.post("/v1/sessions")[0], 201)
            status, headers, _ = where.ask("POST", "/v1/sessions", {})
            self.assertEqual(status, 429)
            self.assertIn("Retry-After", headers)


class Stopping(unittest.TestCase):
    def test_sigterm_drains(self):
        where = Server("-m", model("bytes"), "--slots", "2", "--threads", "1", "--drain", "300")
        events = where.events("/v1/completions", dict(max_tokens=40000, logprobs=5, stream=True), slow=True)
        next(events)
        where.terminate()
        until(lambda: where.get("/health") == (503, {"status": "draining"}))
        self.assertEqual(where.post("/v1/completions", {})[0], 503)
        self.assertEqual([data for _, data in events][-1], "[DONE]")
        self.assertEqual(where.stop(), 0)

    def test_the_time_for_that_is_limited(self):
        where = Server("-m", model("bytes"), "--slots", "2", "--threads", "1", "--drain", "0.3")
        events = where.events("/v1/completions", dict(max_tokens=1000000, stream=True))
        watch = where.events("/v1/sessions/%s/memory?watch=1" % where.post("/v1/sessions")[1]["id"])
        next(events)
        next(watch)
        begun = time.monotonic()
        self.assertEqual(where.stop(), 0)
        self.assertLess(time.monotonic() - begun, 30)  # the default of --drain


if __name__ == "__main__":
    main(unittest, sys.modules["__main__"])
