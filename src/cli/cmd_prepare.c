/* cmd_prepare.c -- `lamemo prepare`: text in, corpus folder out. */
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/prepare_summary.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "core/budget.h"
#include "core/parallel.h"
#include "data/bpe_train.h"
#include "data/plaintext.h"
#include "data/prepare.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct opts {
    int corpus;
    int documents;
    const char *out, *split, *split_tokens, *encoding, *name, *vocab_from, *pattern, *json_field;
    int64_t min_count;
    int max_vocab, threads;
    bool lower, blanks, keep_crlf, force, replace, json, join, recursive, separate, special;
} opts;

/* The first ones are kinds of symbols, in the order of lam_text_kind. */
static const char *const corpora[] = {"bytes", "chars", "words", "bpe", "enwik8",
                                      "text8", "wt103", "wt2",   "ptb", NULL};

static const lam_option options[] = {
    {.help = "Input and output"},
    {"corpus", 'c', "KIND", LAM_OPT_CHOICE, offsetof(opts, corpus), "bytes", .choices = corpora,
     .aliases = "dataset", .help = "Type of tokens, or which published corpus the text is."},
    {"out", 'o', "DIR", LAM_OPT_PATH, offsetof(opts, out), .help = "The corpus folder to make."},
    {"name", 0, "NAME", LAM_OPT_PATH, offsetof(opts, name), .shown = "that of the first file",
     .help = "Name of the corpus in results and tables."},
    {"replace", 0, NULL, LAM_OPT_FLAG, offsetof(opts, replace),
     .help = "Replace an older corpus in DIR."},
    {"force", 0, NULL, LAM_OPT_FLAG, offsetof(opts, force),
     .help = "Apply the rules of a published corpus to another text, which keeps its own name."},
    {"json", 0, NULL, LAM_OPT_FLAG, offsetof(opts, json), .help = "Print the summary as JSON."},
    {.help = "Files and splits"},
    {"recursive", 0, NULL, LAM_OPT_FLAG, offsetof(opts, recursive),
     .help = "Read the texts in subfolders, too. Folders may be splits: train/, valid/, test/."},
    {"join", 0, NULL, LAM_OPT_FLAG, offsetof(opts, join),
     .help = "Read all files as one text, even if their names say train, valid or test."},
    {"encoding", 0, "NAME", LAM_OPT_STRING, offsetof(opts, encoding), .shown = "UTF-8",
     .help = "Convert the texts to UTF-8 from this encoding: latin1, windows-1252, utf-16, "
             "shift_jis or any other that iconv -l lists; auto recognises UTF-8, UTF-16 and UTF-32 "
             "and reads anything else as windows-1252."},
    {"keep-crlf", 0, NULL, LAM_OPT_FLAG, offsetof(opts, keep_crlf),
     .help = "Keep CR LF at line ends; by default it becomes LF."},
    {"split", 0, "TRAIN/VALID/TEST", LAM_OPT_STRING, offsetof(opts, split), "90/5/5", .former = 's',
     .help = "Cut the text by percentages, fractions, or numbers of tokens with a unit, such as "
             "90M/5M/5M or 900k/50k/50k. Words are cut at the next line end; for bpe, numbers "
             "count bytes."},
    {"split-tokens", 0, "TRAIN/VALID/TEST", LAM_OPT_STRING, offsetof(opts, split_tokens),
     .shown = "by percentages", .help = "Cut the text by numbers of tokens; for bpe, of bytes."},
    {.help = "Counting"},
    {"min-count", 0, "N", LAM_OPT_INT64, offsetof(opts, min_count), .min = 1, .max = 1e12,
     .shown = "3 for words, 2 for bpe, else 1",
     .help = "Replace vocabulary entries that occur less than N times by <unk>; with bpe, do not "
             "merge rarer pairs."},
    {"max-vocab", 0, "N", LAM_OPT_INT, offsetof(opts, max_vocab), .min = 2, .max = 1 << 24,
     .aliases = "vocab-size", .shown = "8192 for bpe, else no limit",
     .help = "Keep the N most frequent vocabulary entries, <eos> and <unk> included; with bpe, "
             "learn merges until there are N tokens, the 256 bytes and <|endoftext|> included."},
    {"lower", 0, NULL, LAM_OPT_FLAG, offsetof(opts, lower),
     .help = "Convert words or characters to lower case."},
    {"blanks", 0, NULL, LAM_OPT_FLAG, offsetof(opts, blanks),
     .help = "Split words at blanks only, as in the published corpora, for text whose punctuation "
             "is already set apart. By default punctuation marks are words of their own."},
    {"vocab-from", 0, "MODEL|CORPUS|FILE", LAM_OPT_PATH, offsetof(opts, vocab_from),
     .shown = "made from the text", .aliases = "vocab-file tokenizer",
     .help = "Use the vocabulary and its rules (kind, lower case, token ids) of a model, run or "
             "corpus folder, a tokenizer.json of Hugging Face, ranks of tiktoken or another file "
             "that import --vocab takes; other entries become <unk>. The text can then fine-tune "
             "that model (train --init-from)."},
    {.help = "Documents"},
    {"documents", 0, "WHAT", LAM_OPT_CHOICE, offsetof(opts, documents), "off",
     .choices = lam_document_kind_names,
     .help =
         "Divide the text into documents that are independent of each other: every line, every "
         "input file, or a field of every line of JSON. A separator follows each document: "
         "<|endoftext|> or what the vocabulary has for it (bpe), <eos> (words, whose documents "
         "become one line) or the character U+001E (bytes, chars). Splits hold whole documents, "
         "and train and eval can begin each with an empty memory (--mem-reset document)."},
    {"json-field", 0, "NAME", LAM_OPT_STRING, offsetof(opts, json_field), .shown = "text",
     .help = "Read JSON lines (--documents json) and take the text from this field."},
    {"separate", 0, NULL, LAM_OPT_FLAG, offsetof(opts, separate),
     .help = "The same as --documents files."},
    {.help = "Byte pairs (bpe)"},
    {"pattern", 0, "NAME|REGEX", LAM_OPT_STRING, offsetof(opts, pattern), .shown = "gpt2",
     .help = "Pattern that cuts the text into pieces, within which tokens are merged: gpt2, cl100k "
             "(also Llama 3's), o200k, qwen2, or a regular expression (PCRE2). Ranks of tiktoken "
             "that are not OpenAI's need it, too."},
    {"special", 0, NULL, LAM_OPT_FLAG, offsetof(opts, special),
     .help = "Read special tokens such as <|endoftext|> where they occur in the text; by default "
             "they are ordinary text."},
    {"threads", 't', "N", LAM_OPT_INT, offsetof(opts, threads), .min = 1, .max = LAM_THREADS_MAX,
     .shown = "one for each CPU", .help = "Number of threads; the result does not depend on it."},
    {0},
};

/* ---- checking what was asked ---- */

static lam_status refuse_given(const lam_args *args, const char *const *names, const char *why)
{
    for (; *names != NULL; names++)
        if (lam_option_given(args, *names))
            return lam_fail(LAM_ERR_ARG, "--%s: %s", *names, why);
    return LAM_OK;
}

/* What a given vocabulary leaves to be asked for. */
static lam_status check_given(const lam_args *args, const lam_vocab *vocab)
{
    static const char *const counted[] = {"min-count", "max-vocab", "lower", "blanks", NULL};
    const opts *o = args->options;
    const char *kind = lam_text_kind_name(lam_vocab_kind(vocab));
    if (lam_published_find(corpora[o->corpus]) != NULL)
        return lam_fail(LAM_ERR_ARG,
                        "--corpus %s and --vocab-from contradict each other: the vocabulary of a "
                        "published corpus is its own",
                        corpora[o->corpus]);
    if (lam_option_given(args, "corpus") && strcmp(corpora[o->corpus], kind) != 0)
        return lam_fail(LAM_ERR_ARG, "--corpus %s: the vocabulary of %s is one of %s",
                        corpora[o->corpus], o->vocab_from, kind);
    return refuse_given(args, counted, "the vocabulary of --vocab-from is taken as it is");
}

/* What only some kinds of symbols have a use for. */
static lam_status check_kind(const lam_args *args, lam_text_kind kind)
{
    static const char *const lowered[] = {"lower", NULL};
    static const char *const pairs[] = {"pattern", "special", "threads", NULL};
    static const char *const words[] = {"blanks", NULL};
    const opts *o = args->options;
    if (kind != LAM_WORDS)
        LAM_TRY(refuse_given(args, words, "only words (--corpus words) have a use for it"));
    if (kind != LAM_BPE)
        return refuse_given(args, pairs, "only byte pairs (--corpus bpe) have a use for it");
    LAM_TRY(refuse_given(args, lowered, "byte pairs keep the text as it is"));
    if (lam_option_given(args, "max-vocab") &&
        (o->max_vocab < LAM_BPE_SMALLEST || o->max_vocab > LAM_BPE_LARGEST))
        return lam_fail(
            LAM_ERR_ARG,
            "--max-vocab %d: the 256 bytes and <|endoftext|> are tokens, so %d to %d are possible",
            o->max_vocab, LAM_BPE_SMALLEST, LAM_BPE_LARGEST);
    return LAM_OK;
}

static lam_status divide(lam_prepare_options *out, const lam_args *args)
{
    const opts *o = args->options;
    const bool sizes = o->split_tokens != NULL;
    if (sizes && lam_option_given(args, "split"))
        return lam_fail(LAM_ERR_ARG, "--split and --split-tokens: pass one of them");
    if (lam_division_parse(&out->division, sizes ? o->split_tokens : o->split,
                           sizes ? LAM_DIVISION_SIZES : LAM_DIVISION_ANY) != LAM_OK)
        return lam_fail(LAM_ERR_ARG, "--split%s: %s", sizes ? "-tokens" : "", lam_error());
    return LAM_OK;
}

/* --separate and --json-field say what --documents would. */
static lam_status choose_documents(lam_prepare_options *out, const lam_args *args)
{
    const opts *o = args->options;
    const bool json = o->json_field != NULL;
    const lam_document_kind said = json          ? LAM_DOCUMENTS_JSON
                                   : o->separate ? LAM_DOCUMENTS_FILES
                                                 : (lam_document_kind)o->documents;
    out->json_field = json ? o->json_field : "text";
    out->documents = said;
    if (json && o->separate)
        return lam_fail(LAM_ERR_ARG, "--json-field and --separate contradict each other");
    if (lam_option_given(args, "documents") && said != (lam_document_kind)o->documents)
        return lam_fail(LAM_ERR_ARG, "--%s and --documents %s contradict each other",
                        json ? "json-field" : "separate", lam_document_kind_names[o->documents]);
    if (said != LAM_DOCUMENTS_NONE && out->published != NULL)
        return lam_fail(LAM_ERR_ARG, "--%s: published corpora have their own rules",
                        json          ? "json-field"
                        : o->separate ? "separate"
                                      : "documents");
    return LAM_OK;
}

static lam_status translate(lam_prepare_options *out, const lam_args *args, const lam_vocab *vocab)
{
    static const char *const fixed[] = {
        "split",     "split-tokens", "join",  "encoding", "keep-crlf",
        "min-count", "max-vocab",    "lower", "blanks",   NULL};
    const opts *o = args->options;
    if (o->out == NULL)
        return lam_fail(LAM_ERR_ARG, "--out DIR is missing");
    *out = (lam_prepare_options){.published = lam_published_find(corpora[o->corpus]),
                                 .vocab = vocab,
                                 .vocab_name = o->vocab_from,
                                 .kind = o->corpus < LAM_KINDS ? (lam_text_kind)o->corpus : 0,
                                 .min_count = o->min_count,
                                 .max_vocab = o->max_vocab,
                                 .pattern = o->pattern != NULL && lam_pattern_named(o->pattern)
                                                ? lam_pattern_named(o->pattern)
                                                : o->pattern,
                                 .special = o->special ? LAM_SPECIAL_READ : LAM_SPECIAL_TEXT,
                                 .threads = o->threads,
                                 .cut = lam_option_given(args, "split") || o->split_tokens != NULL,
                                 .join = o->join,
                                 .recursive = o->recursive,
                                 .lower = o->lower,
                                 .blanks = o->blanks,
                                 .encoding = o->encoding,
                                 .keep_crlf = o->keep_crlf,
                                 .force = o->force,
                                 .replace = o->replace,
                                 .name = o->name,
                                 .out = o->out,
                                 .n_inputs = args->n_operands,
                                 .inputs = (const char *const *)args->operands};
    LAM_TRY(choose_documents(out, args));
    if (vocab != NULL)
        LAM_TRY(check_given(args, vocab));
    else if (out->published != NULL)
        LAM_TRY(refuse_given(args, fixed, "published corpora have their own rules"));
    else if (out->kind == LAM_BYTES)
        LAM_TRY(refuse_given(args, fixed + 5, "bytes are all kept, as they are"));
    LAM_TRY(check_kind(args, vocab != NULL ? lam_vocab_kind(vocab) : out->kind));
    if (o->force && out->published == NULL)
        return lam_fail(LAM_ERR_ARG, "--force: only published corpora are checked");
    if (lam_encoding_check(o->encoding) != LAM_OK)
        return lam_fail(LAM_ERR_ARG, "--encoding: %s", lam_error());
    if (out->min_count == 0)
        out->min_count = out->kind == LAM_WORDS ? 3 : out->kind == LAM_BPE ? 2 : 1;
    return divide(out, args);
}

/* ---- the work ---- */

static int show_progress(void *user, const lam_prepare_progress *p)
{
    lam_progress *line = user;
    if (lam_progress_due(line)) {
        char size[32];
        lam_format_size(size, sizeof size, (double)p->done);
        if (p->total > 0)
            lam_progress_show(line, "%s %3.0f %%", p->stage,
                              100.0 * (double)p->done / (double)p->total);
        else
            lam_progress_show(line, "%s %s", p->stage, size);
    }
    return lam_stop_signal();
}

static lam_status prepare(const lam_args *args, const lam_vocab *vocab)
{
    const opts *o = args->options;
    lam_prepare_options job;
    lam_corpus_info info;
    lam_progress line;

    LAM_TRY(translate(&job, args, vocab));
    lam_progress_open(&line, args->quiet);
    job.progress = show_progress;
    job.user = &line;
    lam_status status = lam_prepare(&info, &job);
    lam_progress_close(&line);
    if (status == LAM_OK && o->json) {
        char *text;
        status = lam_corpus_info_text(&info, &text);
        if (status == LAM_OK)
            lam_print("%s\n", text);
        free(text);
    } else if (status == LAM_OK && !args->quiet) {
        lam_prepare_summary(&info, o->out, o->vocab_from, lam_progress_seconds(&line));
    }
    if (status == LAM_OK)
        status = lam_prepare_warn(&info, o->out);
    lam_corpus_info_free(&info);
    return status;
}

static lam_status run(const lam_args *args)
{
    const opts *o = args->options;
    lam_vocab *vocab = NULL;
    lam_status status = LAM_OK;
    if (o->vocab_from != NULL)
        status = lam_vocab_option(&vocab, o->vocab_from, o->pattern);
    if (status == LAM_OK)
        status = prepare(args, vocab);
    lam_vocab_free(vocab);
    return status;
}

const lam_command lam_command_prepare = {
    .name = "prepare",
    .summary = "turn text into a corpus folder",
    .operands = "FILE|DIR...",
    .operands_min = 1,
    .operands_max = -1,
    .description =
        "Reads text (plain, .gz, .zip, .xz, .zst, or - for standard input), turns it into tokens "
        "and writes a corpus folder for train and eval. Several files are joined into one text, "
        "and so are all texts (.txt, .tokens, .raw, compressed or not) of a folder or zip archive, "
        "in the order of their names. Files named train, valid (val, validation, dev) or test are "
        "these splits; a file that looks like a split but cannot be one is refused. A warning "
        "reports text that occurs in two splits. bytes and bpe (byte-level BPE, learned from the "
        "text) take any file; chars and words need UTF-8. The published corpora are prepared "
        "exactly as in the papers and checked: a file that is not the published one is refused.",
    .options = options,
    .options_size = sizeof(opts),
    .examples =
        "# any text, byte by byte\n"
        "lamemo prepare --out data/book book.txt\n"
        "# every .txt of a folder, as characters\n"
        "lamemo prepare --corpus chars --out data/books books/\n"
        "# words, the rare ones as <unk>\n"
        "zcat *.gz | lamemo prepare --corpus words --min-count 5 --out data/news -\n"
        "# byte pairs: 8,192 tokens learned from the text; every file is a document\n"
        "lamemo prepare --corpus bpe --vocab-size 8192 --documents files --out data/tales tales/\n"
        "# JSON lines, each with a document in its field \"text\"\n"
        "lamemo prepare --json-field text --out data/posts posts.jsonl.gz\n"
        "# with the vocabulary of a model, to fine-tune it\n"
        "lamemo prepare --vocab-from runs/wt103 --out data/mine book.txt\n"
        "# the published corpora\n"
        "lamemo prepare --corpus enwik8 --out data/enwik8 enwik8.zip\n"
        "lamemo prepare --corpus wt103 --out data/wt103 wikitext-103-v1.zip",
    .run = run,
};
