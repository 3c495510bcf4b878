/* prepare_bpe.c -- a text that becomes byte pairs.
 *
 * Its bytes wait in a temporary file until the text is complete.  Splits are cut by bytes, so that they hold the same
 * text whatever the vocabulary is.  Merges are learned from the train split alone.  Then each split is encoded as a text
 * of its own, each document too where they are separated. */
#include "data/prepare_int.h"

#include "core/cpus.h"
#include "core/grow.h"
#include "core/log.h"
#include "core/parallel.h"
#include "data/bpe_train.h"
#include "data/chunks.h"
#include "data/nfc.h"
#include "data/piece_counts.h"
#include "data/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 20 };

typedef struct slot {
    lam_bpe_coder *coder;
    lam_ids ids; /* of one chunk */
} slot;

struct lam_bpe_job {
    const lam_prepare_options *o;
    lam_scratch *scratch;
    lam_nfc *nfc; /* NULL: the text stays as it is */
    size_t *ends; /* of the documents */
    size_t n_ends, room;
    const char *text; /* all of it, once it is there */
    lam_vocab *made;
    const lam_vocab *vocab; /* that one, or the given one */
    int threads;
    slot *slots;
    lam_piece_counts *pieces; /* while they are counted */
    int32_t *sizes;           /* of the tokens, in bytes of text */
    int64_t *counts;          /* of each token in the train split */
    const char *stage;        /* what is being done, and how far it is: */
    size_t done, total;
    lam_split split; /* that is being written */
    const lam_bpe_text *part;
    lam_tokens_writer *writer;
    lam_corpus_info *info;
};

/* ---- the text ---- */

static lam_status keep(void *user, const char *bytes, size_t n)
{
    lam_bpe_job *j = user;
    return lam_scratch_put(j->scratch, bytes, n);
}

lam_status lam_bpe_job_create(lam_bpe_job **out, const lam_prepare_options *o, const char *dir)
{
    *out = NULL;
    lam_bpe_job *j = calloc(1, sizeof *j);
    if (j == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory to prepare a corpus");
    j->o = o;
    j->vocab = o->vocab;
    j->threads = o->threads > 0 ? o->threads : lam_cpus();
    j->threads = j->threads < LAM_THREADS_MAX ? j->threads : LAM_THREADS_MAX;
    lam_status status = lam_scratch_create(&j->scratch, dir);
    if (status == LAM_OK && o->vocab != NULL && lam_bpe_rules_of(lam_vocab_bpe(o->vocab))->nfc)
        status = lam_nfc_create(&j->nfc, keep, j);
    if (status != LAM_OK)
        lam_bpe_job_free(j);
    else
        *out = j;
    return status;
}

void lam_bpe_job_free(lam_bpe_job *j)
{
    if (j == NULL)
        return;
    for (int i = 0; j->slots != NULL && i < j->threads; i++) {
        lam_bpe_coder_free(j->slots[i].coder);
        free(j->slots[i].ids.v);
    }
    free(j->slots);
    free(j->counts);
    free(j->sizes);
    free(j->ends);
    lam_vocab_free(j->made);
    lam_nfc_free(j->nfc);
    lam_scratch_free(j->scratch);
    free(j);
}

lam_status lam_bpe_job_put(lam_bpe_job *j, const void *bytes, size_t n)
{
    return j->nfc != NULL ? lam_nfc_feed(j->nfc, bytes, n) : lam_scratch_put(j->scratch, bytes, n);
}

lam_status lam_bpe_job_end(lam_bpe_job *j)
{
    if (j->nfc != NULL)
        LAM_TRY(lam_nfc_finish(j->nfc));
    LAM_TRY(lam_grow(&j->ends, &j->room, j->n_ends + 1, sizeof *j->ends, "documents"));
    j->ends[j->n_ends++] = lam_scratch_size(j->scratch);
    return LAM_OK;
}

int64_t lam_bpe_job_size(const lam_bpe_job *j)
{
    return (int64_t)lam_scratch_size(j->scratch);
}

/* ---- documents ---- */

static bool is_divided(const lam_bpe_job *j)
{
    return j->o->documents != LAM_DOCUMENTS_NONE;
}

/* Moves the ends of splits forward to the next end of a document. */
static void cut_at_documents(const lam_bpe_job *j, int64_t ends[LAM_SPLITS])
{
    size_t i = 0;
    for (int s = 0; s < LAM_SPLITS; s++) {
        while (i < j->n_ends && (int64_t)j->ends[i] < ends[s])
            i++;
        if (ends[s] > 0 && i < j->n_ends)
            ends[s] = (int64_t)j->ends[i];
    }
}

/* Calls `use` for every part of text[from, to) that is a text of its own; `ended`: a document ends there. */
typedef lam_status part_user(lam_bpe_job *j, const lam_bpe_text *t, bool ended);

static lam_status for_each_part(lam_bpe_job *j, size_t from, size_t to, part_user *use)
{
    for (size_t i = 0; i < j->n_ends && from < to && is_divided(j); i++) {
        const size_t end = j->ends[i] < to ? j->ends[i] : to;
        if (j->ends[i] <= from)
            continue;
        LAM_TRY(
            use(j, &(lam_bpe_text){j->text + from, end - from, j->o->special}, end == j->ends[i]));
        from = end;
    }
    if (from < to)
        LAM_TRY(use(j, &(lam_bpe_text){j->text + from, to - from, j->o->special}, false));
    return LAM_OK;
}

static lam_status tell(void *user, size_t done)
{
    const lam_bpe_job *j = user;
    return lam_prepare_tell(j->o, j->stage, j->done + done, j->total);
}

/* ---- learning ---- */

static lam_status count_part(lam_bpe_job *j, const lam_bpe_text *t, bool ended)
{
    (void)ended;
    LAM_TRY(lam_piece_counts_add(j->pieces, t, tell, j));
    j->done += t->size;
    return LAM_OK;
}

static lam_status count_pieces(lam_bpe_job *j, const lam_vocab *bytes, size_t to)
{
    j->stage = "counting";
    j->done = 0;
    j->total = to;
    LAM_TRY(lam_piece_counts_create(&j->pieces, lam_vocab_bpe(bytes), LAM_PIECES_MOST, j->threads));
    LAM_TRY(for_each_part(j, 0, to, count_part));
    if (lam_piece_counts_forgot(j->pieces) > 0)
        lam_log(LAM_LOG_INFO,
                "more than %d different pieces of text: the rarest were forgotten %d times",
                LAM_PIECES_MOST, lam_piece_counts_forgot(j->pieces));
    return LAM_OK;
}

/* The vocabulary of the train split, text[0, to). */
static lam_status learn(lam_bpe_job *j, size_t to)
{
    const lam_prepare_options *o = j->o;
    const lam_bpe_training training = {.pattern = o->pattern != NULL ? o->pattern
                                                                     : lam_pattern_named("gpt2"),
                                       .size = o->max_vocab > 0 ? o->max_vocab : LAM_BPE_SIZE,
                                       .min_count = o->min_count > 0 ? o->min_count : 1,
                                       .tell = tell,
                                       .user = j};
    lam_vocab *bytes;
    LAM_TRY(lam_bpe_untrained(&bytes, training.pattern));
    lam_status status = count_pieces(j, bytes, to);
    j->stage = "merging";
    j->done = 0;
    j->total = (size_t)training.size;
    if (status == LAM_OK)
        status = lam_bpe_train(&j->made, lam_piece_counts_pieces(j->pieces),
                               lam_piece_counts_of(j->pieces), &training);
    lam_piece_counts_free(j->pieces);
    j->pieces = NULL;
    lam_vocab_free(bytes);
    LAM_TRY(status);
    j->vocab = j->made;
    if (lam_vocab_size(j->made) < training.size)
        lam_log(LAM_LOG_WARN, "%d tokens were learned, not %d: no other pair occurs %lld times",
                lam_vocab_size(j->made), training.size, (long long)training.min_count);
    return LAM_OK;
}

/* ---- encoding ---- */

static lam_status open_slots(lam_bpe_job *j)
{
    j->slots = calloc((size_t)j->threads, sizeof *j->slots);
    j->counts = calloc((size_t)lam_vocab_size(j->vocab), sizeof *j->counts);
    if (j->slots == NULL || j->counts == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d threads", j->threads);
    LAM_TRY(lam_vocab_sizes(j->vocab, &j->sizes));
    for (int i = 0; i < j->threads; i++)
        LAM_TRY(lam_bpe_coder_create(&j->slots[i].coder, lam_vocab_bpe(j->vocab)));
    return LAM_OK;
}

static lam_status put_tokens(lam_bpe_job *j, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n && j->split == LAM_TRAIN; i++)
        j->counts[ids[i]]++;
    j->info->tokens[j->split] += (int64_t)n;
    for (size_t i = 0; i < n; i++)
        j->info->bytes[j->split] += j->sizes[ids[i]];
    return lam_tokens_writer_put(j->writer, ids, n);
}

static lam_status encode_chunk(void *user, int i, size_t *at, size_t goal)
{
    lam_bpe_job *j = user;
    j->slots[i].ids.n = 0;
    return lam_bpe_encode(j->slots[i].coder, &j->slots[i].ids, j->part, *at, goal, at);
}

static lam_status take_chunk(void *user, int i, size_t end)
{
    lam_bpe_job *j = user;
    LAM_TRY(put_tokens(j, j->slots[i].ids.v, j->slots[i].ids.n));
    return tell(j, end);
}

static lam_status encode_part(lam_bpe_job *j, const lam_bpe_text *t, bool ended)
{
    const int32_t separator = lam_vocab_eos(j->vocab);
    j->part = t;
    LAM_TRY(lam_chunks_run(&(lam_chunks){.text = t->text,
                                         .size = t->size,
                                         .chunk = CHUNK,
                                         .threads = j->threads,
                                         .work = encode_chunk,
                                         .take = take_chunk,
                                         .user = j}));
    j->done += t->size;
    j->info->documents[j->split] += ended;
    return ended ? put_tokens(j, &separator, 1) : LAM_OK;
}

static lam_status write_split(lam_bpe_job *j, lam_split split, lam_range range, const char *dir)
{
    char path[PATH_MAX];
    LAM_TRY(lam_split_path(path, dir, split));
    LAM_TRY(
        lam_tokens_writer_open(&j->writer, path, lam_split_name(split), lam_vocab_size(j->vocab)));
    j->split = split;
    const lam_status status = for_each_part(j, (size_t)range.from, (size_t)range.to, encode_part);
    if (status == LAM_OK)
        return lam_tokens_writer_finish(j->writer);
    lam_tokens_writer_abort(j->writer);
    return status;
}

/* A vocabulary that was never counted, learned just now or made elsewhere, has the counts of this text. */
static lam_status resolve_counts(const lam_bpe_job *j, lam_vocab **out)
{
    for (int32_t i = 0; i < lam_vocab_size(j->vocab); i++)
        if (lam_vocab_count(j->vocab, i) > 0)
            return LAM_OK;
    return lam_vocab_counted(out, j->vocab, j->counts);
}

lam_status lam_bpe_job_run(lam_bpe_job *j, int64_t ends[LAM_SPLITS], const char *dir,
                           lam_corpus_info *info, lam_vocab **vocab)
{
    *vocab = NULL;
    j->info = info;
    if (is_divided(j))
        cut_at_documents(j, ends);
    LAM_TRY(lam_scratch_map(j->scratch, &j->text));
    if (j->vocab == NULL)
        LAM_TRY(learn(j, (size_t)ends[LAM_TRAIN]));
    if (is_divided(j))
        LAM_TRY(lam_document_separator(&info->separator, j->vocab, j->o->vocab_name));
    LAM_TRY(open_slots(j));
    j->stage = "writing";
    j->done = 0;
    j->total = (size_t)ends[LAM_TEST];
    for (int s = 0; s < LAM_SPLITS; s++)
        LAM_TRY(write_split(j, (lam_split)s, (lam_range){s > 0 ? ends[s - 1] : 0, ends[s]}, dir));
    return resolve_counts(j, vocab);
}
