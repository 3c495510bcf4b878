/* prepare_passes.c -- what is done to the numbers once the text has been read: cut, count, write.
 *
 * Each stage reads the temporary file once from its front. */
#include "data/prepare_int.h"

#include "data/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 15 };

lam_status lam_prepare_tell(const lam_prepare_options *o, const char *stage, uint64_t done,
                            uint64_t total)
{
    const lam_prepare_progress p = {stage, done, total};
    if (o->progress != NULL && o->progress(o->user, &p) != 0)
        return lam_fail(LAM_ERR_INTERRUPTED, "stopped while %s", stage);
    return LAM_OK;
}

/* ---- reading the text ---- */

typedef lam_status visitor(void *user, lam_split split, const int32_t *ids, size_t n);

/* Gives every symbol that lies in a range to `visit`, in order, in blocks. */
static lam_status walk(lam_passes *p, const char *stage, visitor *visit, void *user)
{
    int32_t ids[BLOCK];
    int64_t at = 0; /* of ids[0] */
    LAM_TRY(lam_spool_rewind(p->spool));
    for (size_t n; (n = lam_spool_get(p->spool, ids, BLOCK)) > 0;) {
        for (int s = 0; s < LAM_SPLITS; s++) {
            const int64_t end = at + (int64_t)n;
            const int64_t from = p->range[s].from > at ? p->range[s].from : at;
            const int64_t to = p->range[s].to < end ? p->range[s].to : end;
            if (from < to)
                LAM_TRY(visit(user, (lam_split)s, ids + (from - at), (size_t)(to - from)));
        }
        at += (int64_t)n;
        LAM_TRY(
            lam_prepare_tell(p->options, stage, (uint64_t)at, (uint64_t)lam_spool_count(p->spool)));
    }
    return LAM_OK;
}

/* ---- splitting ---- */

/* Moves the ends forward to just after the next symbol `last`. */
static lam_status cut_after(lam_passes *p, int64_t ends[LAM_SPLITS], int32_t last)
{
    int32_t ids[BLOCK];
    int s = 0;
    int64_t at = 0;
    LAM_TRY(lam_spool_rewind(p->spool));
    for (size_t n; (n = lam_spool_get(p->spool, ids, BLOCK)) > 0;)
        for (size_t i = 0; i < n; i++) {
            at++;
            for (; ids[i] == last && s < LAM_SPLITS && ends[s] <= at; s++)
                ends[s] = ends[s] == 0 ? 0 : at;
        }
    for (; s < LAM_SPLITS; s++)
        ends[s] = at;
    return LAM_OK;
}

typedef struct trimming {
    const bool *is_space; /* per symbol */
    int64_t seen[LAM_SPLITS], first[LAM_SPLITS], last[LAM_SPLITS];
} trimming;

static lam_status note_text(void *user, lam_split split, const int32_t *ids, size_t n)
{
    trimming *t = user;
    for (size_t i = 0; i < n; i++, t->seen[split]++) {
        if (t->is_space[ids[i]])
            continue;
        if (t->last[split] == 0)
            t->first[split] = t->seen[split];
        t->last[split] = t->seen[split] + 1;
    }
    return LAM_OK;
}

static lam_status strip_ends(lam_passes *p)
{
    const int32_t n = lam_symbols_count(p->symbols);
    trimming t = {0};
    bool *is_space = calloc((size_t)n + 1, sizeof *is_space);
    if (is_space == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d symbols", n);
    for (int32_t i = 0; i < n; i++) {
        int32_t code = 0;
        size_t size;
        const char *text = lam_symbols_text(p->symbols, i, &size);
        is_space[i] = lam_utf8_decode((const unsigned char *)text, size, &code) == (int)size &&
                      lam_utf8_is_space(code);
    }
    t.is_space = is_space;
    const lam_status status = walk(p, "cutting", note_text, &t);
    for (int s = 0; s < LAM_SPLITS; s++) {
        p->range[s].to = p->range[s].from + t.last[s];
        p->range[s].from += t.first[s];
    }
    free(is_space);
    return status;
}

lam_status lam_passes_cut(lam_passes *p, const int64_t wanted[LAM_SPLITS], bool strip)
{
    int64_t ends[LAM_SPLITS];
    memcpy(ends, wanted, sizeof ends);
    if (p->kind == LAM_WORDS) /* <eos> is symbol 0 */
        LAM_TRY(cut_after(p, ends, 0));
    else if (p->options->documents != LAM_DOCUMENTS_NONE)
        LAM_TRY(cut_after(p, ends, lam_symbols_find(p->symbols, LAM_DOCUMENT_END, 1)));
    for (int s = 0; s < LAM_SPLITS; s++)
        p->range[s] = (lam_range){s > 0 ? ends[s - 1] : 0, ends[s]};
    return strip ? strip_ends(p) : LAM_OK;
}

/* ---- counting ---- */

typedef struct counting {
    int64_t *counts;
    bool all;
} counting;

static lam_status count_some(void *user, lam_split split, const int32_t *ids, size_t n)
{
    const counting *c = user;
    if (split != LAM_TRAIN && !c->all)
        return LAM_OK;
    for (size_t i = 0; i < n; i++)
        c->counts[ids[i]]++;
    return LAM_OK;
}

lam_status lam_passes_count(lam_passes *p, int64_t *counts, bool all)
{
    counting c = {counts, all};
    memset(counts, 0, (size_t)lam_symbols_count(p->symbols) * sizeof *counts);
    return walk(p, "counting", count_some, &c);
}

/* ---- writing ---- */

typedef struct writing {
    const lam_symbols *symbols;
    const int32_t *remap;
    int32_t separator;       /* that ends documents; INT32_MIN: there are none */
    int32_t unk, unk_symbol; /* <unk> as a number, and as a word of the text itself; -1: none */
    bool words;
    lam_corpus_info *info;
    lam_tokens_writer *writer[LAM_SPLITS];
} writing;

/* Of words with a blank, which for the last of a line is its end. */
static int64_t symbol_bytes(const writing *w, int32_t id)
{
    size_t size;
    lam_symbols_text(w->symbols, id, &size);
    return !w->words ? (int64_t)size : id == 0 ? 0 : (int64_t)size + 1;
}

static lam_status write_some(void *user, lam_split split, const int32_t *ids, size_t n)
{
    writing *w = user;
    int32_t out[BLOCK];
    size_t kept = 0, size;
    for (size_t i = 0; i < n; i++) {
        out[kept] = w->remap[ids[i]];
        if (out[kept] == LAM_SYMBOL_LACKING)
            return lam_fail(LAM_ERR_FORMAT, "%s has '%.40s', which train lacks; there is no <unk>",
                            lam_split_name(split), lam_symbols_text(w->symbols, ids[i], &size));
        w->info->unknown[split] += out[kept] == w->unk && ids[i] != w->unk_symbol;
        if (out[kept] >= 0)
            w->info->bytes[split] += symbol_bytes(w, ids[i]);
        w->info->documents[split] += out[kept] == w->separator;
        kept += out[kept] >= 0;
    }
    w->info->tokens[split] += (int64_t)kept;
    return lam_tokens_writer_put(w->writer[split], out, kept);
}

static lam_status open_writers(writing *w, const char *dir, int vocab_size)
{
    for (int s = 0; s < LAM_SPLITS; s++) {
        char path[PATH_MAX];
        LAM_TRY(lam_split_path(path, dir, (lam_split)s));
        LAM_TRY(
            lam_tokens_writer_open(&w->writer[s], path, lam_split_name((lam_split)s), vocab_size));
    }
    return LAM_OK;
}

static lam_status close_writers(writing *w, lam_status status)
{
    for (int s = 0; s < LAM_SPLITS; s++) {
        if (status == LAM_OK)
            status = lam_tokens_writer_finish(w->writer[s]);
        else
            lam_tokens_writer_abort(w->writer[s]);
    }
    return status;
}

lam_status lam_passes_write(lam_passes *p, const char *dir, const int32_t *remap,
                            const lam_vocab *vocab, lam_corpus_info *info)
{
    writing w = {.symbols = p->symbols,
                 .remap = remap,
                 .unk = lam_vocab_unk(vocab) >= 0 ? lam_vocab_unk(vocab) : INT32_MIN,
                 .separator =
                     p->options->documents == LAM_DOCUMENTS_NONE ? INT32_MIN : info->separator,
                 .unk_symbol = lam_symbols_find(p->symbols, "<unk>", 5),
                 .words = p->kind == LAM_WORDS,
                 .info = info};
    lam_status status = open_writers(&w, dir, lam_vocab_size(vocab));
    if (status == LAM_OK)
        status = walk(p, "writing", write_some, &w);
    return close_writers(&w, status);
}
