/* prepare.c -- the order of the work; see prepare.h.  The stages are in prepare_passes.c. */
#include "data/prepare.h"

#include "core/file.h"
#include "core/log.h"
#include "core/own.h"
#include "data/instream.h"
#include "data/prepare_int.h"
#include "data/plaintext.h"

#include <math.h>
#include <md5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READ_BLOCK = 1 << 17 };

typedef struct job {
    const lam_prepare_options *o;
    lam_inputs inputs;
    lam_passes passes;
    lam_lack lack;
    lam_tokenizer *tokenizer;
    lam_bpe_job *pairs;             /* in its place, for byte pairs */
    lam_documents *documents;       /* before either of them; NULL: one running text */
    int64_t input_ends[LAM_SPLITS]; /* of the splits, where the inputs are these */
    int64_t ends[LAM_SPLITS];       /* of the splits */
    int64_t *counts;
    int32_t *remap;
    lam_vocab *made;
    const lam_vocab *vocab; /* that one, or the given one */
    lam_corpus_info *info;
    const char *dir; /* where the files go */
    unsigned char block[READ_BLOCK];
} job;

/* ---- reading ---- */

static lam_status spool_sink(void *user, const int32_t *ids, size_t n)
{
    job *j = user;
    lam_lack_note(&j->lack, ids, n, lam_spool_count(j->passes.spool));
    return lam_spool_put(j->passes.spool, ids, n);
}

/* Symbols read so far; bytes where they become byte pairs. */
static int64_t text_size(const job *j)
{
    return j->pairs != NULL ? lam_bpe_job_size(j->pairs) : lam_spool_count(j->passes.spool);
}

/* The text as it is tokenised. */
static lam_status put_text(void *user, const void *bytes, size_t n)
{
    job *j = user;
    j->info->sources[j->info->n_sources - 1].text += (int64_t)n;
    return j->pairs != NULL ? lam_bpe_job_put(j->pairs, bytes, n)
                            : lam_tokenizer_feed(j->tokenizer, bytes, n);
}

/* Of words the last line ends with <eos>. */
static lam_status end_text(job *j)
{
    return j->pairs != NULL ? lam_bpe_job_end(j->pairs)
                            : lam_tokenizer_finish(j->tokenizer, LAM_TEXT_COMPLETE);
}

static lam_status end_document(void *user)
{
    job *j = user;
    int32_t separator;
    LAM_TRY(end_text(j));
    if (j->passes.kind != LAM_BYTES && j->passes.kind != LAM_CHARS)
        return LAM_OK;
    LAM_TRY(lam_symbols_add(j->passes.symbols, LAM_DOCUMENT_END, 1, &separator));
    return spool_sink(j, &separator, 1);
}

/* A sink: the text of a file. */
static lam_status feed(void *user, const void *bytes, size_t n)
{
    job *j = user;
    return j->documents != NULL ? lam_documents_feed(j->documents, bytes, n)
                                : put_text(j, bytes, n);
}

static lam_status finish(job *j)
{
    return j->documents != NULL ? lam_documents_finish(j->documents) : end_text(j);
}

static lam_status read_stream(job *j, lam_instream *in, lam_plaintext *plain, lam_source *source)
{
    MD5_CTX md5;
    size_t got;
    MD5Init(&md5);
    for (;;) {
        LAM_TRY(lam_instream_read(in, j->block, sizeof j->block, &got));
        if (got == 0)
            break;
        MD5Update(&md5, j->block, got);
        source->bytes += (int64_t)got;
        LAM_TRY(lam_plaintext_feed(plain, j->block, got));
        LAM_TRY(lam_prepare_tell(j->o, "reading", lam_instream_offset(in), lam_instream_size(in)));
    }
    MD5End(&md5, source->md5);
    LAM_TRY(lam_plaintext_finish(plain));
    return finish(j);
}

static lam_status read_plain(job *j, lam_instream *in, const lam_input *input, lam_source *source)
{
    const bool has_path = input->entry == NULL && strcmp(input->path, "-") != 0;
    const char *name = has_path ? input->path : source->name;
    lam_plaintext *plain;
    if (j->tokenizer != NULL)
        lam_tokenizer_start(j->tokenizer, name);
    if (j->documents != NULL)
        lam_documents_start(j->documents, name);
    LAM_TRY(lam_plaintext_create(&plain, &(lam_plaintext_options){.name = name,
                                                                  .encoding = j->o->encoding,
                                                                  .kind = j->passes.kind,
                                                                  .keep_crlf = j->o->keep_crlf,
                                                                  .exact = j->o->published != NULL,
                                                                  .sink = feed,
                                                                  .user = j}));
    const lam_status status = read_stream(j, in, plain, source);
    lam_plaintext_free(plain);
    return status;
}

static lam_status read_input(job *j, const lam_input *input)
{
    lam_source *source = &j->info->sources[j->info->n_sources];
    lam_instream *in;
    source->split = j->inputs.is_split ? input->split : LAM_SPLITS;
    source->name = strdup(input->label);
    if (source->name == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for a file name");
    j->info->n_sources++;
    lam_lack_source(&j->lack, source->name);
    LAM_TRY(lam_instream_open(&in, input->path, input->entry));
    const lam_status status = read_plain(j, in, input, source);
    lam_instream_close(in);
    return status;
}

static lam_status open_tokenizer(job *j)
{
    if (j->o->documents != LAM_DOCUMENTS_NONE)
        LAM_TRY(
            lam_documents_create(&j->documents, &(lam_documents_options){.kind = j->o->documents,
                                                                         .text = j->passes.kind,
                                                                         .field = j->o->json_field,
                                                                         .put = put_text,
                                                                         .end = end_document,
                                                                         .user = j}));
    if (j->passes.kind == LAM_BPE)
        return lam_bpe_job_create(&j->pairs, j->o, j->dir);
    LAM_TRY(lam_spool_create(&j->passes.spool, j->dir));
    LAM_TRY(lam_symbols_create(&j->passes.symbols));
    lam_lack_start(&j->lack, j->o->vocab, j->passes.symbols);
    return lam_tokenizer_create(&j->tokenizer,
                                &(lam_tokenizer_options){.kind = j->passes.kind,
                                                         .lower = j->o->lower,
                                                         .blanks = j->o->blanks,
                                                         .symbols = j->passes.symbols,
                                                         .sink = spool_sink,
                                                         .user = j});
}

static lam_status read_all(job *j)
{
    LAM_TRY(open_tokenizer(j));
    for (int i = 0; i < j->inputs.n; i++) {
        LAM_TRY(read_input(j, &j->inputs.list[i]));
        for (int s = (int)j->inputs.list[i].split; j->inputs.is_split && s < LAM_SPLITS; s++)
            j->input_ends[s] = text_size(j);
    }
    if (text_size(j) == 0)
        return lam_fail(LAM_ERR_FORMAT, "%s%s: the text is empty", j->info->sources[0].name,
                        j->inputs.n > 1 ? ", ..." : "");
    return LAM_OK;
}

/* One token must be there to predict another. */
static lam_status check_train(const job *j)
{
    if (j->info->tokens[LAM_TRAIN] >= 2)
        return LAM_OK;
    if (j->inputs.is_split && j->input_ends[LAM_TRAIN] == 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: the train split is empty", j->info->sources[0].name);
    return lam_fail(LAM_ERR_FORMAT,
                    "%s%s: %lld of its %lld %s are for training, at least 2%s are needed",
                    j->info->sources[0].name, j->inputs.n > 1 ? ", ..." : "",
                    (long long)(j->pairs != NULL ? j->ends[LAM_TRAIN] : j->info->tokens[LAM_TRAIN]),
                    (long long)text_size(j), j->pairs != NULL ? "bytes" : "tokens",
                    j->pairs != NULL ? " tokens" : "");
}

/* ---- preparing a corpus ---- */

/* Where the splits end, in what text_size() counts. */
static lam_status divide(job *j)
{
    const lam_published *pub = j->o->published;
    lam_division division = j->o->division;
    if (pub != NULL && pub->split != NULL) { /* a stand-in of another size: the same proportions */
        const bool same = text_size(j) == pub->bytes;
        LAM_TRY(lam_division_parse(&division, same ? pub->split : "90/5/5", LAM_DIVISION_ANY));
    }
    if (j->inputs.is_split) {
        memcpy(j->ends, j->input_ends, sizeof j->ends);
        return LAM_OK;
    }
    return lam_division_cut(&division, text_size(j), j->ends);
}

/* What of a text that was cut is in no split, and which splits have nothing of it. */
static void tell_rest(const job *j)
{
    if (j->inputs.is_split || j->o->published != NULL)
        return;
    if (j->ends[LAM_TEST] < text_size(j))
        lam_log(LAM_LOG_INFO, "the last %lld of %lld %s are in no split",
                (long long)(text_size(j) - j->ends[LAM_TEST]), (long long)text_size(j),
                j->pairs != NULL ? "bytes" : "tokens");
    for (int s = LAM_VALID; s < LAM_SPLITS; s++)
        if (j->o->division.part[s] > 0 && j->info->tokens[s] == 0)
            lam_log(LAM_LOG_WARN, "the %s split is empty: %s left for it (see --split)",
                    lam_split_name((lam_split)s),
                    j->documents != NULL ? "no whole document is"
                                         : "of so short a text nothing is");
}

static void number_symbols(job *j, const lam_vocab *vocab)
{
    for (int32_t i = 0; i < lam_symbols_count(j->passes.symbols); i++) {
        size_t size;
        const char *text = lam_symbols_text(j->passes.symbols, i, &size);
        j->remap[i] = lam_vocab_number(vocab, text, size);
    }
}

/* Characters are few, so all splits count, as for text8; words are counted where one trains. */
static lam_status make_vocab(job *j)
{
    const lam_published *pub = j->o->published;
    const lam_symbols *symbols = j->passes.symbols;
    const bool rare = j->o->min_count > 1 || j->o->max_vocab > 0;
    lam_vocab_rules rules = {.kind = j->passes.kind,
                             .lower = j->o->lower,
                             .blanks = j->o->blanks,
                             .unk = j->passes.kind == LAM_WORDS || rare,
                             .min_count = j->o->min_count,
                             .max_size = j->o->max_vocab};
    if (pub != NULL)
        rules = (lam_vocab_rules){.kind = pub->kind,
                                  .lower = pub->lower,
                                  .blanks = true,
                                  .drop_newlines = pub->drop_newlines};
    if (pub == NULL && rules.kind == LAM_BYTES) {
        LAM_TRY(lam_vocab_create_bytes(&j->made));
        number_symbols(j, j->made);
        return LAM_OK;
    }
    LAM_TRY(lam_passes_count(&j->passes, j->counts,
                             pub != NULL ? pub->count_all : rules.kind == LAM_CHARS));
    return lam_vocab_create(&j->made, j->remap, symbols, j->counts, &rules);
}

/* The vocabulary, and what each symbol of the text is in it. */
static lam_status resolve_vocab(job *j)
{
    const int32_t n = lam_symbols_count(j->passes.symbols);
    j->counts = malloc(((size_t)n + 1) * sizeof *j->counts);
    j->remap = malloc(((size_t)n + 1) * sizeof *j->remap);
    if (j->counts == NULL || j->remap == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d symbols", n);
    if (j->o->vocab != NULL)
        number_symbols(j, j->o->vocab);
    else
        LAM_TRY(make_vocab(j));
    j->vocab = j->o->vocab != NULL ? j->o->vocab : j->made;
    return LAM_OK;
}

/* White space of words is not in the tokens: the files that are splits know how much text they are; of a text that was
 * cut, every split has its part. */
static void weigh_words(const job *j)
{
    lam_corpus_info *info = j->info;
    double text = 0, words = 0;
    for (int i = 0; i < info->n_sources; i++)
        text += (double)info->sources[i].text;
    for (int s = 0; s < LAM_SPLITS; s++)
        words += (double)info->bytes[s];
    for (int s = 0; s < LAM_SPLITS; s++) {
        if (!j->inputs.is_split) {
            /* what is in no split is no part of either */
            const double share = (double)(j->passes.range[LAM_TEST].to) / (double)text_size(j);
            info->bytes[s] = words > 0 ? llround((double)info->bytes[s] * text * share / words) : 0;
            continue;
        }
        info->bytes[s] = 0;
        for (int i = 0; i < info->n_sources; i++)
            info->bytes[s] += info->sources[i].split == (lam_split)s ? info->sources[i].text : 0;
    }
}

/* What the tokenizer read. */
static lam_status write_symbols(job *j)
{
    const lam_published *pub = j->o->published;
    LAM_TRY(lam_passes_cut(&j->passes, j->ends, pub != NULL && pub->strip));
    for (int s = 0; s < LAM_SPLITS; s++)
        j->ends[s] = j->passes.range[s].to;
    LAM_TRY(lam_lack_check(&j->lack, j->passes.range[LAM_TEST].to, j->o->vocab_name));
    LAM_TRY(resolve_vocab(j));
    if (j->documents != NULL)
        LAM_TRY(lam_document_separator(&j->info->separator, j->vocab, j->o->vocab_name));
    LAM_TRY(lam_passes_write(&j->passes, j->dir, j->remap, j->vocab, j->info));
    if (j->passes.kind == LAM_WORDS)
        weigh_words(j);
    return LAM_OK;
}

static lam_status write_pairs(job *j)
{
    LAM_TRY(lam_bpe_job_run(j->pairs, j->ends, j->dir, j->info, &j->made));
    j->vocab = j->made != NULL ? j->made : j->o->vocab;
    return LAM_OK;
}

static lam_status fill(void *user, const char *dir)
{
    job *j = user;
    const lam_published *pub = j->o->published;
    j->dir = dir;
    LAM_TRY(read_all(j));
    if (pub != NULL && !j->o->force) /* a wrong file is better named before it is worked on */
        LAM_TRY(lam_published_check_source(pub, &j->info->sources[0]));
    LAM_TRY(divide(j));
    LAM_TRY(j->pairs != NULL ? write_pairs(j) : write_symbols(j));
    LAM_TRY(check_train(j));
    tell_rest(j);
    LAM_TRY(lam_prepare_describe(j->info, j->o, j->vocab));
    if (pub == NULL || !j->info->original)
        LAM_TRY(lam_prepare_compare(j->o, j->info, j->vocab, dir));
    return lam_prepare_save(dir, j->info, j->vocab);
}

static lam_status work(job *j)
{
    static const char *const names[] = {"corpus.json", "vocab.json", "train.bin",
                                        "valid.bin",   "test.bin",   NULL};
    static const lam_mark marks[] = {{"corpus.json", "\"lamemo-corpus\""},
                                     {"vocab.json", "\"lamemo-vocab\""},
                                     {"train.bin", "LAMEMOTK"},
                                     {0}};
    static const lam_kind corpus = {"corpus", names, marks};
    LAM_TRY(lam_inputs_find(&j->inputs, j->o));
    LAM_TRY(lam_own_target(j->o->out, &corpus, j->o->replace));
    j->info->sources = calloc((size_t)j->inputs.n, sizeof *j->info->sources);
    if (j->info->sources == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d file names", j->inputs.n);
    return lam_own_write(j->o->out, &corpus, j->o->replace, fill, j);
}

lam_status lam_prepare(lam_corpus_info *info, const lam_prepare_options *options)
{
    lam_prepare_options o = *options;
    *info = (lam_corpus_info){0};
    LAM_TRY(lam_prepare_check_name(options));
    job *j = calloc(1, sizeof *j);
    if (j == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory to prepare a corpus");
    if (o.published != NULL) {
        o.kind = o.published->kind;
        o.lower = o.published->lower;
        o.blanks = true;
    } else if (o.vocab != NULL) {
        o.kind = lam_vocab_kind(o.vocab);
        o.lower = lam_vocab_lower(o.vocab);
        o.blanks = lam_vocab_blanks(o.vocab);
    }
    j->o = &o;
    j->info = info;
    j->passes.options = &o;
    j->passes.kind = o.kind;
    const lam_status status = work(j);

    lam_vocab_free(j->made);
    free(j->counts);
    free(j->remap);
    lam_tokenizer_free(j->tokenizer);
    lam_documents_free(j->documents);
    lam_bpe_job_free(j->pairs);
    lam_symbols_free(j->passes.symbols);
    lam_spool_free(j->passes.spool);
    lam_inputs_free(&j->inputs);
    free(j);
    return status;
}
