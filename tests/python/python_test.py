"""python_test.py -- the Python package: what it returns is what the program says, and its edges hold.

Usage: python_test.py BUILD [TEST...].  Run in the root of the source tree; BUILD is finished.
"""
import ast
import ctypes
import doctest
import gc
import importlib.util
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BUILD = os.path.abspath(sys.argv[1])
TREE = os.getcwd()
os.environ["LAMEMO"] = os.path.join(BUILD, "lamemo")
os.environ["LAMEMO_LIBRARY"] = os.path.join(BUILD, "liblamemo.so")
os.environ["LAMEMO_MODELS"] = os.path.join(TREE, "models")
os.environ["PYTHONPATH"] = os.path.join(TREE, "python")
sys.path.insert(0, os.environ["PYTHONPATH"])
sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

import numpy as np  # noqa: E402

import lamemo  # noqa: E402
from lamemo import _library  # noqa: E402

WORK = tempfile.mkdtemp()
MODEL = os.path.join(WORK, "model")


def lamemo_says(*arguments):
    return subprocess.run([os.environ["LAMEMO"], *arguments], capture_output=True, check=True).stdout


def python(code, *, code_expected=0, **environment):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300,
                          env={**os.environ, **environment})
    assert done.returncode == code_expected, (done.returncode, done.stdout, done.stderr)
    return done


def _closed_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def setUpModule():
    subprocess.run([os.path.join(BUILD, "tests", "make_model"), MODEL], check=True, capture_output=True)


def tearDownModule():
    shutil.rmtree(WORK)


def load_tests(loader, tests, pattern):
    for name in ("lamemo", "lamemo._library", "lamemo._model", "lamemo._runs", "lamemo._session"):
        tests.addTests(doctest.DocTestSuite(importlib.import_module(name)))
    return tests


class ModelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = lamemo.Model(MODEL, threads=1)

    def test_text_comes_back(self):
        for text in (b"", b"Rome", bytes(range(256))):
            self.assertEqual(self.model.detokenize(self.model.tokenize(text)), text)
        self.assertEqual(self.model.tokenize("é"), self.model.tokenize("é".encode()))
        self.assertEqual(self.model.detokenize(np.array([82, 111], np.int64)), b"Ro")

    def test_generates_what_the_program_generates(self):
        said = lamemo_says("generate", "--model", MODEL, "--prompt", "Once", "-n", "60", "--seed", "3", "--temp", "0.7",
                           "--json", "--logprobs")
        got = self.model("Once", max_tokens=60, seed=3, temperature=0.7)
        self.assertEqual(got.tokens, json.loads(said)["tokens"])
        self.assertEqual(len(got.tokens), 60)
        self.assertEqual(got.finish_reason, "length")
        self.assertEqual(got, self.model("Once", max_tokens=60, seed=3, temperature=0.7))
        self.assertNotEqual(got.tokens, self.model("Once", max_tokens=60, seed=4, temperature=0.7).tokens)

    def test_a_stream_is_the_whole_in_pieces(self):
        whole = self.model("Once", max_tokens=50, echo=True, logprobs=3)
        pieces = list(self.model("Once", max_tokens=50, echo=True, logprobs=3, stream=True))
        self.assertEqual("".join(map(str, pieces)), whole.text)
        self.assertTrue(whole.text.startswith("Once"))
        self.assertEqual([p.token for p in pieces if p.token is not None], whole.tokens)
        self.assertEqual(pieces[-1].finish_reason, "length")
        for token, logprob, top in zip(whole.tokens, whole.logprobs, whole.top_logprobs):
            self.assertEqual(len(top), 3)
            self.assertEqual(sorted(top.values(), reverse=True), list(top.values()))
            self.assertAlmostEqual(top.get(token, logprob), logprob, places=12)

    def test_log_probabilities_are_those_of_score(self):
        prompt = self.model.tokenize("Once upon")
        got = self.model(prompt, max_tokens=30)
        scores = self.model.score(prompt + got.tokens)
        # The prompt of a generation has no start token before it, a scored text has: score the same way.
        with self.model.session() as s:
            s.feed(prompt)
            for token, logprob in zip(got.tokens, got.logprobs):
                row = s.logits().astype(np.float64)
                self.assertAlmostEqual(row[token] - row.max() - math.log(np.exp(row - row.max()).sum()), logprob, places=4)
                s.feed([token])
        self.assertEqual(scores.shape, (len(prompt) + 30,))
        self.assertEqual(scores.dtype, np.float64)
        self.assertTrue((scores < 0).all())

    def test_samples_and_stops(self):
        three = self.model("Once", max_tokens=20, samples=3)
        self.assertEqual(len({c.text for c in three}), 3)
        self.assertEqual(three[0].tokens, self.model("Once", max_tokens=20).tokens)
        text = three[0].text
        cut = self.model("Once", max_tokens=20, stop=[text[5]])
        self.assertEqual((cut.text, cut.finish_reason), (text[:text.index(text[5])], "stop"))
        self.assertEqual(self.model("Once", max_tokens=20, stop=text[5]), cut)
        self.assertEqual(self.model("Once", max_tokens=0).text, "")
        self.assertEqual(self.model("Once", max_tokens=0, echo=True).text, "Once")

    def test_greedy(self):
        with self.model.session() as s:
            s.feed(self.model.tokenize("Once"))
            best = int(s.logits().argmax())
        self.assertEqual(self.model("Once", max_tokens=1, temperature=0).tokens, [best])

    def test_bits_per_byte(self):
        text = "Once upon a time there was a king."
        bits = self.model.bits_per_byte(text)
        self.assertAlmostEqual(bits, -self.model.score(text).sum() / math.log(2) / len(text), places=9)
        said = lamemo_says("score", "--model", MODEL, "--json", text).decode()
        self.assertAlmostEqual(self.model.score(text).sum(), float(said.split('"logprob":')[1].split(",")[0]), places=2)

    def test_wrong_arguments_are_refused_by_name(self):
        model = self.model
        for call, kind, text in (
                (lambda: lamemo.Model("/nowhere"), lamemo.FileError, "/nowhere"),
                (lambda: lamemo.Model("/nowhere"), OSError, "/nowhere"),
                (lambda: lamemo.Model(MODEL + "\0.old"), ValueError, "zero byte"),
                (lambda: lamemo.Model(MODEL, device="cpu\0"), ValueError, "device"),
                (lambda: model("x", stop=["\n", "e\0x"]), ValueError, "stop"),
                (lambda: lamemo.Model(MODEL, device="tpu"), ValueError, "tpu"),
                (lambda: lamemo.Model(MODEL, weights="int3"), lamemo.ArgumentError, "int3"),
                (lambda: lamemo.Model(MODEL, threads=-1), ValueError, "threads"),
                (lambda: lamemo.Model("wiki11m", max_memory=1000), MemoryError, ""),
                (lambda: model("x", temperature=-1), ValueError, "temperature"),
                (lambda: model("x", top_p=0), ValueError, "top_p"),
                (lambda: model("x", seed=0), ValueError, "seed"),
                (lambda: model("x", max_tokens=-1), ValueError, "max_tokens"),
                (lambda: model("x", stop=[""]), ValueError, ""),
                (lambda: model("x", logprobs=1000), ValueError, "logprobs is 1000"),
                (lambda: model("x", max_tokens=2**32 + 5), ValueError, "max_tokens is 4294967301"),
                (lambda: model("x", max_tokens=None), TypeError, "max_tokens is None"),
                (lambda: model("x", threads=2**32), ValueError, "threads is 4294967296"),
                (lambda: model("x", top_k=2**40), ValueError, "top_k"),
                (lambda: model("x", temperature="hot"), TypeError, "temperature is 'hot'"),
                (lambda: model("x", stop=5), TypeError, "stop is 5"),
                (lambda: model("x", stop=[5]), TypeError, "stop is [5]"),
                (lambda: model.score("x", segment=-1), ValueError, "segment is -1"),
                (lambda: model.session(streams=2**33), ValueError, "streams is 8589934592"),
                (lambda: model.session().feed("Rome"), TypeError, "Model.tokenize"),
                (lambda: model.session().feed(b"Rome"), TypeError, "Model.tokenize"),
                (lambda: model.session().restore(None), TypeError, "snapshot"),
                (lambda: lamemo.Model(MODEL, device=None), TypeError, "device is None"),
                (lambda: lamemo.Model(MODEL, max_memory="1G"), TypeError, "max_memory is '1G'"),
                (lambda: model.tokenize(5), TypeError, "not int"),
                (lambda: model.tokenize([82]), TypeError, "not list"),
                (lambda: model("x", samples=-1), ValueError, "samples"),
                (lambda: model([999]), ValueError, "999"),
                (lambda: model([2**40]), ValueError, "32 bits"),
                (lambda: model(np.array([2**40])), ValueError, "32 bits"),
                (lambda: model([1.5]), TypeError, "integers"),
                (lambda: model(np.array([1.5])), TypeError, "integers"),
                (lambda: model.detokenize([-1]), ValueError, "-1"),
                (lambda: model.bits_per_byte(""), ValueError, "empty"),
                (lambda: lamemo.log_level("loud"), ValueError, "loud")):
            with self.subTest(kind=kind, text=text):
                with self.assertRaises(kind) as caught:
                    call()
                self.assertIn(text, str(caught.exception))

    def test_numbers_of_numpy_and_all_kinds_of_bytes_are_taken(self):
        want = self.model("Once", max_tokens=5, top_k=3, seed=4, temperature=0.5)
        self.assertEqual(self.model(bytearray(b"Once"), max_tokens=np.int64(5), top_k=np.int32(3), seed=np.uint64(4),
                                    temperature=np.float32(0.5)), want)
        self.assertEqual(self.model.tokenize(memoryview(b"Rome")), self.model.tokenize("Rome"))
        self.assertEqual(self.model("Once", max_tokens=20, stop=b"q"), self.model("Once", max_tokens=20, stop=["q"]))

    def test_progress_is_told_and_may_end_it(self):
        parts = []
        lamemo.Model(MODEL, progress=parts.append)
        self.assertTrue(parts and all(0 <= part <= 1 for part in parts))
        with self.assertRaises(lamemo.Interrupted):
            lamemo.Model(MODEL, progress=lambda part: True)
        with self.assertRaises(ZeroDivisionError):
            self.model.score(b"x" * 20000, progress=lambda part: 1 / 0)

    def test_threads_share_a_model(self):
        want, got = self.model("Once", max_tokens=30), []
        threads = [threading.Thread(target=lambda: got.append(self.model("Once", max_tokens=30))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(got, [want] * 4)

    def test_what_is_closed_while_it_computes_lives_until_then(self):
        code = ("import lamemo, threading, time\n"
                f"model, begun, got = lamemo.Model({MODEL!r}), threading.Event(), []\n"
                "text, session = b'abcd' * 5000, model.session()\n"
                "def score():\n    got.append(len(model.score(text, progress=lambda part: begun.set())))\n"
                "def feed():\n    session.feed(list(text)); got.append(0)\n"
                "for work, used, computes in (feed, session, session._lock.locked), (score, model, begun.is_set):\n"
                "    thread = threading.Thread(target=work)\n    thread.start()\n"
                "    while thread.is_alive() and not computes(): time.sleep(0.001)\n"
                "    time.sleep(0.02)\n    used.close()\n    thread.join()\n"
                "assert got == [0, 20000], got\n")
        self.assertEqual(python(code).stderr, "")

    def test_a_call_releases_the_interpreter(self):
        ticks, done = [], threading.Event()
        thread = threading.Thread(target=lambda: (self.model.score(b"abcd" * 2000), done.set()))
        thread.start()
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)
        thread.join()
        self.assertGreater(len(ticks), 3)


class SessionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = lamemo.Model(MODEL, threads=1)

    def test_cutting_changes_nothing(self):
        tokens = self.model.tokenize("Once upon a time there was a king. " * 5)
        with self.model.session() as a, self.model.session() as b:
            a.feed(np.array(tokens, np.int32))
            for token in tokens:
                b.feed([token])
            self.assertEqual((len(a), len(b)), (len(tokens), len(tokens)))
            np.testing.assert_allclose(a.logits(), b.logits(), atol=1e-3)

    def test_feeding_and_drawing_is_generating(self):
        with self.model.session() as s:
            s.sampling(seed=5, temperature=0.9)
            s.feed(self.model.tokenize("Once"))
            drawn = []
            for _ in range(30):
                token, logprob = s.sample_logprob()
                self.assertLess(logprob, 0)
                drawn.append(token)
                s.feed([token])
        self.assertEqual(drawn, self.model("Once", max_tokens=30, seed=5, temperature=0.9).tokens)

    def test_snapshots_forks_and_files(self):
        path = os.path.join(WORK, "session")
        s = self.model.session()
        s.sampling(seed=9)
        s.feed(self.model.tokenize("Once upon"))
        want, here = s.logits(), s.snapshot()
        fork = s.fork()
        s.save(path)
        s.feed(self.model.tokenize(" a time"))
        self.assertFalse(np.array_equal(s.logits(), want))
        np.testing.assert_array_equal(fork.logits(), want)
        s.restore(here)
        np.testing.assert_array_equal(s.logits(), want)
        other = self.model.session()
        other.load(path)
        np.testing.assert_array_equal(other.logits(), want)
        s.sampling(seed=9)
        self.assertEqual(s.sample(), fork.sample())
        with self.assertRaises(OSError):
            s.load(os.path.join(WORK, "nothing"))
        with open(path, "r+b") as file:
            file.truncate(100)
        with self.assertRaises(lamemo.FormatError):
            s.load(path)
        np.testing.assert_array_equal(s.logits(), want)

    def test_streams(self):
        one, two = self.model.tokenize("Once"), self.model.tokenize("Rome")
        with self.model.session(streams=2) as s, self.model.session() as alone:
            s.feed(np.array([one, two]))
            alone.feed(two)
            self.assertEqual(s.logits().shape, (2, self.model.vocab_size))
            np.testing.assert_allclose(s.logits()[1], alone.logits(), atol=1e-4)
            self.assertEqual(len(s.sample()), 2)
            with self.assertRaises(ValueError):
                s.feed([1, 2, 3])

    def test_edges(self):
        s = self.model.session()
        with self.assertRaises(lamemo.ArgumentError):
            s.logits()
        s.feed([])
        self.assertEqual(len(s), 0)
        self.assertTrue(s)
        with self.assertRaises(lamemo.ArgumentError):
            s.segment(10**6)
        s.feed([1])
        s.reset()
        self.assertEqual(len(s), 0)
        s.close()
        s.close()
        with self.assertRaises(ValueError):
            s.feed([1])

    def test_one_thread_at_a_time(self):
        session, refused = self.model.session(), []

        def use():
            for _ in range(2000):
                try:
                    session.feed([1, 2, 3])
                    session.sample()
                except ValueError as why:
                    refused.append(str(why))

        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertLessEqual(set(refused), {"another thread is using the session"})
        self.assertGreater(len(session), 0)

    def test_a_session_keeps_its_model(self):
        model = lamemo.Model(MODEL)
        s, generation = model.session(), model("Once", max_tokens=5, stream=True)
        model.close()
        with self.assertRaises(ValueError):
            model("x")
        del model
        gc.collect()
        s.feed([1, 2])
        self.assertEqual(len(s.logits()), 256)
        self.assertEqual(len([p for p in generation if p.token is not None]), 5)

    def test_cycles_and_exit_free_in_order(self):
        code = ("import lamemo, sys, gc\n"
                f"for i in range(20):\n    m = lamemo.Model({MODEL!r}, threads=1); s = m.session(); s.feed([1]); m.s = s; "
                "s.m = m; g = m('x', max_tokens=9, stream=True); next(g); m.g = g; del m, s, g\n"
                "gc.collect()\n"
                f"m = lamemo.Model({MODEL!r}); s = m.session(); snap = s.snapshot(); g = m('a', stream=True); next(g)\n")
        self.assertEqual(python(code).stderr, "")


class LibraryTest(unittest.TestCase):
    def test_the_package_runs_the_program(self):
        done = subprocess.run([sys.executable, "-m", "lamemo", "--version"], capture_output=True, check=True)
        self.assertEqual(done.stdout, lamemo_says("--version"))
        # A closed pipe ends it quietly, as it does the program itself.
        done = subprocess.run([sys.executable, "-m", "lamemo", "help", "--completion", "bash"], stdout=_closed_pipe(),
                              stderr=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, b""))

    def test_what_type_checkers_see_is_what_there_is(self):
        """The overloads of Model.__call__ repeat its parameters; none may be missing."""
        with open(os.path.join(TREE, "python", "lamemo", "_model.py"), encoding="utf-8") as file:
            tree = ast.parse(file.read())
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "__call__"]
        names = [{a.arg: ast.dump(a.annotation) for a in call.args.args[1:] + call.args.kwonlyargs
                  if a.arg not in ("stream", "samples")} for call in calls]
        self.assertEqual(names, names[-1:] * 4)

    def test_structs_are_those_of_the_library(self):
        _library.check_abi()
        with self.assertRaises(lamemo.Unsupported) as caught:
            _library.check_abi(sampling=ctypes.sizeof(_library.Sampling) - 8)
        self.assertIn("lamemo_sampling has", str(caught.exception))

    def test_a_library_that_is_none_is_refused(self):
        done = python("import lamemo", code_expected=1, LAMEMO_LIBRARY="/nowhere/liblamemo.so")
        self.assertIn("cannot load the library", done.stderr)
        done = python("import lamemo", code_expected=1, LAMEMO_LIBRARY="libm.so.6")
        self.assertIn("has no lamemo_version", done.stderr)

    def test_without_numpy(self):
        code = ("import sys; sys.modules['numpy'] = None\n"
                f"import lamemo; m = lamemo.Model({MODEL!r}); s = m.session(); s.feed(m.tokenize('Rome'))\n"
                "print(type(m.score('Rome')).__name__, len(m.score('Rome')), len(s.logits()), m('a', max_tokens=3).tokens)")
        with_numpy = lamemo.Model(MODEL)("a", max_tokens=3).tokens
        self.assertEqual(python(code).stdout, f"array 4 256 {with_numpy}\n")

    def interrupted(self, call):
        code = ("import lamemo, os, signal, threading, time\n"
                f"m = lamemo.Model({MODEL!r}, threads=1)\n"
                "def later(): time.sleep(0.3); os.kill(os.getpid(), signal.SIGINT)\n"
                "begin = time.time()\n"
                f"try:\n    threading.Thread(target=later).start(); {call}\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
                "assert time.time() - begin < 60; print(len(m('x', max_tokens=3).tokens))")
        done = python(code)
        self.assertEqual((done.stdout, done.stderr), ("interrupted\n3\n", ""))

    def test_ctrl_c_ends_a_generation(self):
        self.interrupted("m('x', max_tokens=10**8)")

    def test_ctrl_c_ends_reading_and_scoring(self):
        self.interrupted("m(bytes(10**6))")
        self.interrupted("m.score(bytes(10**6))")


class RunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = os.path.join(WORK, "text.txt")
        cls.corpus = os.path.join(WORK, "corpus")
        with open(cls.text, "w", encoding="utf-8") as file:
            file.writelines(f"line {i} of {i * 7919 % 1000}\n" for i in range(4000))
        summary = lamemo.prepare(cls.text, out=cls.corpus)
        assert summary, summary
        cls.small = {"data": cls.corpus, "n_layer": 1, "d_model": 16, "n_head": 1, "d_head": 16, "d_inner": 16,
                     "tgt_len": 16, "mem_len": 16, "batch_size": 4, "log_interval": 5, "eval_interval": 10}

    def test_rows_come_and_a_resumed_run_goes_on(self):
        out = os.path.join(WORK, "run")
        rows = list(lamemo.train(out=out, max_step=20, **self.small))
        run = lamemo.read_run(out)
        self.assertEqual(rows, run.rows)
        self.assertEqual(run.curve("loss")[0], [5, 10, 15, 20])
        self.assertEqual(run.curve("valid_loss")[0], [10, 20])
        self.assertIn("test_loss", rows[-1])
        self.assertIn("loss", run.names())
        with self.assertRaises(KeyError):
            run.curve("nothing")
        more = list(lamemo.train(out=out, max_step=40, resume=True, **self.small))
        self.assertEqual([row["step"] for row in more if "loss" in row], [25, 30, 35, 40])
        self.assertEqual(lamemo.Model(out)("line", max_tokens=5).finish_reason, "length")

    def test_leaving_early_saves(self):
        out = os.path.join(WORK, "early")
        for row in lamemo.train(out=out, max_step=10**7, **self.small):
            break
        self.assertEqual(row["step"], 5)
        self.assertTrue(os.path.exists(os.path.join(out, "last")))

    def test_what_fails_is_told(self):
        with self.assertRaises(lamemo.Error) as caught:
            list(lamemo.train(out=os.path.join(WORK, "no"), data=os.path.join(WORK, "no corpus")))
        self.assertIn("no corpus", str(caught.exception))
        with self.assertRaises(lamemo.Error) as caught:
            list(lamemo.train(out=os.path.join(WORK, "no"), max_stp=5))
        self.assertIn("did you mean '--max-step'", str(caught.exception))
        with self.assertRaises(lamemo.Error) as caught:
            lamemo.prepare(os.path.join(WORK, "no text"), out=os.path.join(WORK, "no"))
        self.assertIn("no text", str(caught.exception))
        with self.assertRaises(FileNotFoundError):
            lamemo.read_run(WORK)
        with open(os.path.join(WORK, "metrics.jsonl"), "w", encoding="utf-8") as file:
            file.write('{"step":1}\n[1]\n')
        with self.assertRaises(lamemo.Error) as caught:
            lamemo.read_run(WORK)
        self.assertIn("line 2", str(caught.exception))


class ExampleTest(unittest.TestCase):
    def example(self, name, *arguments, code=0):
        done = subprocess.run([sys.executable, os.path.join(TREE, "examples", "python", name), *arguments],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def test_generate(self):
        said = self.example("generate.py", "wiki11m", "The history of Rome")
        self.assertTrue(said.startswith("The history of Rome"))
        self.assertGreater(len(said), 150)

    def test_score(self):
        said = self.example("score.py")
        self.assertEqual(len(said.splitlines()), len("Rome is the capital of Italy.") + 1)
        self.assertTrue(said.endswith("bits per byte\n"))

    def test_finetune(self):
        text, folder = os.path.join(WORK, "kings.txt"), os.path.join(WORK, "kings")
        with open(text, "w", encoding="utf-8") as file:
            file.writelines(f"King number {i} followed king number {i - 1}.\n" for i in range(1500))
        said = self.example("finetune.py", text, folder, "20", MODEL)
        self.assertRegex(said, r"step 20  loss ")
        before, after = map(float, said.split(": ")[1].replace(" before", "").replace(" after", "").split("\n")[0].split(","))
        self.assertLess(after, before)
        run, picture = os.path.join(folder, "run"), os.path.join(WORK, "kings.svg")
        if importlib.util.find_spec("matplotlib"):
            said = self.example("plot.py", picture, run, run)
            with open(picture, encoding="utf-8") as file:
                self.assertIn("loss (nats per token)", file.read())
        else:
            print("plot.py: matplotlib is not installed; the picture is skipped", file=sys.stderr)
            said = self.example("plot.py", picture, run, run, code=1)
        self.assertEqual(len(re.findall(r"run loss [0-9.]+ valid_loss [0-9.]+", said)), 2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
