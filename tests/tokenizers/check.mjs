/* check.mjs -- the tokens of lamemo against those of OpenAI's tiktoken and Hugging Face's tokenizers.
 *     node check.mjs NODE_MODULES_PARENT LAMEMO WORK
 * WORK has a file `wiki`, which may be empty. */
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import assert from "node:assert/strict";
import { counter } from "../support/counter.mjs";

const [modules, lamemo, work] = process.argv.slice(2);
const require = createRequire(join(resolve(modules), "x.js"));
const { Tiktoken } = require("tiktoken"), { Tokenizer } = require("tokenizers");
const { test, verdict } = counter();
const at = (name) => join(work, name);
const run = (...args) => execFileSync(lamemo, args, { stdio: ["ignore", "pipe", "pipe"] });

/* ---- texts ---- */

/* Whole sentences of trouble. */
const nasty = [
  "", " ", "  ", "\n", "\r\n\r\n", "a", " a", "a ", "a  ", "a   b", "a \n b", "a\n\n\nb", "a\t\tb\t", "   \n  \n x",
  "It's, I'LL, we'Ve 'S 't'd'm ''s can't\u2019s '\u017f", "0 12 345 6789 1,234.56 \u0663\u0664\u0665 \u00bc \u2167 10\u00b2",
  "!!! ... ?! --- /// \\\\ a/b\n/c x=1;\n\n  y(z)\n", "CamelCase iPhone ALLCAPS McDonald \u01c5 \u02b0\u00aa",
  "na\u00efve \u00c9t\u00e9 stra\u00dfe \u0130stanbul e\u0301te\u0301", "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3002\u3000\u5168\u89d2 \uff11\uff12\uff13",
  "\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab", "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 \u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u0939\u093f\u0928\u094d\u0926\u0940 \u05e2\u05d1\u05e8\u05d9\u05ea",
  "\ud83d\ude42 \ud83d\udc69\u200d\ud83d\udc69\u200d\ud83d\udc67 \ud83c\udde9\ud83c\uddea \ud83d\udc4d\ud83c\udfff \ud835\udcb3 \ud840\udc00",
  "\u00a0\u2003\u3000\u1680 \u2028\u2029\u0085\u200b\u180e\ufeff x\u00ad", "\u0000\u0001\u001b[0m\u007f", "\ue000\uffff\u0378",
  "    def f(x):\n        return x  # ok\n\n\n", "http://example.org/a?b=c&d=%20e", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
  " ".repeat(300) + "x" + "\n".repeat(200) + "y" + "=".repeat(500), "ab".repeat(2000), "\u6c38".repeat(700),
];
/* And the same in random order without anything between them; the generator is Park and Miller's. */
let seed = 20261;
const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
const pieces = nasty.flatMap((t) => t.length < 60 ? t.split(/(?<= )/u) : []).concat([" ", "\n", "'s", "the", " and", "1"]);
let mixed = "";
for (let i = 0; i < 10000; i++) mixed += pieces[random(pieces.length)];
const plain = nasty.join("\u0001") + mixed + readFileSync(at("wiki"), "utf8").slice(1, -1);

/* ---- what lamemo makes of a text ---- */

const tokens = (text, ...options) => {
  writeFileSync(at("text"), text);
  run("prepare", "-q", "--replace", "--out", at("corpus"), "--split", "100/0/0", ...options, at("text"));
  const file = readFileSync(at("corpus/train.bin")), width = file.readUInt32LE(12), n = Number(file.readBigUInt64LE(16));
  return Array.from({ length: n }, (_, i) => file.readUIntLE(64 + i * width, width));
};

/* Where two lists differ, for people. */
const same = (ours, theirs, name) => {
  let i = 0;
  while (i < ours.length && i < theirs.length && ours[i] === theirs[i]) i++;
  if (i < ours.length || i < theirs.length)
    assert.fail(`${name}: token ${i} of ${ours.length}, ${theirs.length}: ${ours.slice(i, i + 5)} is not ${theirs.slice(i, i + 5)}`);
};
const theirs = async (file, text) =>
  Array.from((await Tokenizer.fromFile(file).encode(text, null, { addSpecialTokens: false })).getIds());

/* ---- OpenAI's vocabularies ---- */

const all = ["gpt2", "p50k_base", "cl100k_base", "o200k_base"];
const special = ["gpt2", "p50k_base"], exported = ["gpt2", "cl100k_base"]; /* the larger ones take long */
for (const name of all) {
  const encoding = require(`tiktoken/encoders/${name}`);
  const tiktoken = new Tiktoken(encoding.bpe_ranks, encoding.special_tokens, encoding.pat_str);
  const ranks = at(`${name}.tiktoken`), json = at(`${name}.json`), again = at(`${name}.again.json`);
  let lines = "";
  for (const line of encoding.bpe_ranks.split("\n")) {
    const [, first, ...list] = line.split(" ");
    list.forEach((token, i) => { lines += `${token} ${Number(first) + i}\n`; });
  }
  writeFileSync(ranks, lines);
  const ours = tokens(plain, "--tokenizer", ranks);

  await test(`${name}: the tokens of tiktoken`, () => same(ours, Array.from(tiktoken.encode(plain, [], [])), "ranks"));
  if (special.includes(name)) await test(`${name}: special tokens when they are read`, () => {
    const text = "one<|endoftext|>two <|endoftext|>\n<|endoftext";
    same(tokens(text, "--special", "--tokenizer", ranks), Array.from(tiktoken.encode(text, "all")), "read");
    same(tokens(text, "--tokenizer", ranks), Array.from(tiktoken.encode(text, [], [])), "not read");
  });
  if (exported.includes(name)) await test(`${name}: exported, tokenizers finds the same`, async () => {
    run("export", "-q", "-m", ranks, "--tokenizer", json);
    same(ours, await theirs(json, plain), "tokenizer.json");
  });
  if (exported.includes(name)) await test(`${name}: read again from a tokenizer.json that tokenizers wrote`, async () => {
    Tokenizer.fromFile(json).save(again);
    same(tokens(plain, "--tokenizer", again), ours, "again");
  });
  tiktoken.free();
}

/* ---- vocabularies of our own ---- */

for (const pattern of ["gpt2", "cl100k", "o200k", "qwen2", "\\p{L}+|\\s|."]) {
  await test(`learned with ${pattern}: exported, tokenizers finds the same`, async () => {
    const ours = tokens(plain, "--corpus", "bpe", "--vocab-size", "1000", "--pattern", pattern);
    const json = at("own.json");
    run("export", "-q", "-m", at("corpus"), "--tokenizer", json, "--replace");
    same(ours, await theirs(json, plain), pattern);
    const text = await Tokenizer.fromFile(json).decode(ours, false);
    assert.equal(text.length, plain.length, "decoded");
    assert.ok(text === plain, "decoded");
    same(tokens(plain, "--tokenizer", json), ours, "again");
  });
}

/* Qwen's family: NFC first, numbers digit by digit; Llama 3's: whole pieces, several ways to a token (above). */
await test("with NFC", async () => {
  tokens(plain, "--corpus", "bpe", "--vocab-size", "1000", "--pattern", "qwen2");
  const json = at("nfc.json");
  run("export", "-q", "-m", at("corpus"), "--tokenizer", json);
  writeFileSync(json, JSON.stringify({ ...JSON.parse(readFileSync(json)), normalizer: { type: "NFC" } }));
  same(tokens(plain, "--tokenizer", json), await theirs(json, plain), "NFC");
});

/* The files of Llama 3 and Qwen 2 have this structure; tokens and merges are learned here. */
const nothing = { dropout: null, unk_token: null, fuse_unk: false, byte_fallback: false };
const level = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false };
const added = (names, first, special) => names.map((content, i) =>
  ({ id: first + i, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special }));
const structured = (pattern, change) => {
  tokens(plain, "--corpus", "bpe", "--vocab-size", "1000", "--pattern", pattern);
  run("export", "-q", "-m", at("corpus"), "--tokenizer", at("made.json"), "--replace");
  const json = JSON.parse(readFileSync(at("made.json"))), { vocab, merges } = json.model;
  delete vocab["<|endoftext|>"];
  const regex = json.pre_tokenizer.pretokenizers[0].pattern.Regex;
  writeFileSync(at("family.json"), JSON.stringify(change(vocab, merges, regex, Object.keys(vocab).length)));
};
const chat = "<|im_start|>user\nIt's <|eot_id|> 12345 caf\u0065\u0301<|im_end|><|endoftext|>\n<tool_call>x</tool_call> <|im_start";
const equal = async (name) => {
  same(tokens(plain, "--tokenizer", at("family.json")), await theirs(at("family.json"), plain), name);
  same(tokens(chat, "--special", "--tokenizer", at("family.json")), await theirs(at("family.json"), chat), `${name}, special`);
};

for (const lists of [false, true]) await test(`Llama 3's structure, merges as ${lists ? "lists" : "strings"}`, async () => {
  structured("cl100k", (vocab, merges, regex, next) => ({
    version: "1.0", truncation: null, padding: null, normalizer: null,
    added_tokens: added(["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"], next, true),
    pre_tokenizer: { type: "Sequence", pretokenizers: [
      { type: "Split", pattern: { Regex: regex }, behavior: "Isolated", invert: false }, level] },
    post_processor: { type: "Sequence", processors: [{ ...level, use_regex: true }, { type: "TemplateProcessing",
      single: [{ SpecialToken: { id: "<|begin_of_text|>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
      pair: [{ Sequence: { id: "A", type_id: 0 } }, { Sequence: { id: "B", type_id: 1 } }],
      special_tokens: { "<|begin_of_text|>": { id: "<|begin_of_text|>", ids: [next], tokens: ["<|begin_of_text|>"] } } }] },
    decoder: { ...level, use_regex: true },
    /* without every ninth merge, some tokens are found as whole pieces alone: that is what ignore_merges is for */
    model: { type: "BPE", ...nothing, continuing_subword_prefix: null, end_of_word_suffix: null, ignore_merges: true, vocab,
      merges: merges.filter((_, i) => i % 9 !== 8).map((m) => {
        const pair = Array.isArray(m) ? m : m.split(" ");
        return lists ? pair : pair.join(" ");
      }) },
  }));
  await equal("Llama 3");
});
await test("Qwen 2's structure", async () => {
  structured("qwen2", (vocab, merges, regex, next) => ({
    version: "1.0", truncation: null, padding: null, normalizer: { type: "NFC" },
    added_tokens: [...added(["<|endoftext|>", "<|im_start|>", "<|im_end|>"], next, true),
      ...added(["<tool_call>", "</tool_call>"], next + 3, false)],
    pre_tokenizer: { type: "Sequence", pretokenizers: [
      { type: "Split", pattern: { Regex: regex }, behavior: "Isolated", invert: false }, { ...level, trim_offsets: false }] },
    post_processor: { ...level, trim_offsets: false }, decoder: { ...level, trim_offsets: false },
    model: { type: "BPE", ...nothing, continuing_subword_prefix: "", end_of_word_suffix: "", ignore_merges: false, vocab,
      merges: merges.map((m) => Array.isArray(m) ? m.join(" ") : m) },
  }));
  await equal("Qwen 2");
});

/* ---- what is not supported is named ---- */

const refused = async (name, change, words) => test(`refused: ${name}`, () => {
  const json = JSON.parse(readFileSync(at("own.json")));
  change(json);
  writeFileSync(at("odd.json"), JSON.stringify(json));
  try {
    tokens("text", "--tokenizer", at("odd.json"));
  } catch (error) {
    assert.ok(String(error.stderr).includes(words), String(error.stderr));
    return;
  }
  assert.fail("accepted");
});
await refused("another model", (t) => { t.model.type = "Unigram"; }, "model 'Unigram' is not supported");
await refused("byte_fallback", (t) => { t.model.byte_fallback = true; }, "'byte_fallback' is not supported");
await refused("another normalizer", (t) => { t.normalizer = { type: "Lowercase" }; }, "normalizer 'Lowercase' is not supported");
await refused("another pre_tokenizer", (t) => { t.pre_tokenizer.pretokenizers.unshift({ type: "Digits", individual_digits: true }); },
  "pre_tokenizer 'Digits' is not supported");
await refused("a prefix", (t) => { t.pre_tokenizer.pretokenizers[1].add_prefix_space = true; }, "'add_prefix_space' is not supported");
await refused("text as added token", (t) => { t.added_tokens.push({ id: 1000, content: "   ", special: false }); }, "which is not special");
await refused("a byte too few", (t) => { delete t.model.vocab["\u0120"]; t.model.merges = []; }, "byte 0x20 has no token");

process.exit(verdict());
