/* shelves.c -- see shelves.h. */
#include "data/shelves.h"

#include "core/grow.h"

#include <stdbool.h>
#include <stdlib.h>

enum { BLOCK = 1 << 14 };

/* ---- finding documents ---- */

static lam_status add(lam_shelves *s, size_t *room, int64_t start, int64_t end)
{
    LAM_TRY(lam_grow(&s->list, room, (size_t)s->n + 1, sizeof *s->list, "documents"));
    s->list[s->n] = (lam_document){.start = start, .count = end - start, .rank = s->n};
    s->n++;
    return LAM_OK;
}

static lam_status find(lam_shelves *s, const lam_tokens *tokens)
{
    int32_t ids[BLOCK];
    int64_t start = 0;
    size_t room = 0;
    for (int64_t at = 0; at < tokens->count;) {
        const int64_t left = tokens->count - at, n = left < BLOCK ? left : BLOCK;
        lam_tokens_copy(tokens, ids, at, (size_t)n);
        for (int64_t i = 0; i < n; i++)
            if (ids[i] == tokens->separator) {
                LAM_TRY(add(s, &room, start, at + i + 1));
                start = at + i + 1;
            }
        at += n;
    }
    return start < tokens->count ? add(s, &room, start, tokens->count) : LAM_OK;
}

lam_status lam_shelves_create(lam_shelves *out, const lam_tokens *tokens, int streams)
{
    *out = (lam_shelves){.streams = streams};
    if (tokens->separator < 0)
        return lam_fail(LAM_ERR_ARG, "the corpus is one running text without documents: prepare it "
                                     "with --documents, or reset the memory otherwise");
    out->first = calloc((size_t)streams + 1, sizeof *out->first);
    out->load = calloc((size_t)streams, sizeof *out->load);
    out->heap = calloc((size_t)streams, sizeof *out->heap);
    lam_status status = out->first != NULL && out->load != NULL && out->heap != NULL
                            ? find(out, tokens)
                            : lam_fail(LAM_ERR_MEMORY, "no memory for %d streams", streams);
    if (status == LAM_OK && out->n == 0)
        status = lam_fail(LAM_ERR_ARG, "the %s split has no documents", tokens->split);
    if (status != LAM_OK)
        lam_shelves_free(out);
    return status;
}

void lam_shelves_free(lam_shelves *s)
{
    free(s->list);
    free(s->first);
    free(s->load);
    free(s->heap);
    *s = (lam_shelves){0};
}

/* ---- assigning documents to streams ---- */

static int by_start(const void *pa, const void *pb)
{
    const lam_document *a = pa, *b = pb;
    return a->start < b->start ? -1 : 1;
}

static int by_segments(const void *pa, const void *pb)
{
    const lam_document *a = pa, *b = pb;
    if (a->segments != b->segments)
        return a->segments > b->segments ? -1 : 1;
    return a->rank < b->rank ? -1 : 1;
}

static int by_stream(const void *pa, const void *pb)
{
    const lam_document *a = pa, *b = pb;
    if (a->stream != b->stream)
        return a->stream < b->stream ? -1 : 1;
    return a->rank < b->rank ? -1 : 1;
}

static void draw_ranks(lam_shelves *s, lam_rng *rng)
{
    qsort(s->list, (size_t)s->n, sizeof *s->list, by_start);
    for (int64_t i = 0; i < s->n; i++)
        s->list[i].rank = i;
    for (int64_t i = s->n - 1; rng != NULL && i > 0; i--) {
        const int64_t j = (int64_t)lam_rng_below(rng, (uint64_t)i + 1), rank = s->list[i].rank;
        s->list[i].rank = s->list[j].rank;
        s->list[j].rank = rank;
    }
}

/* The least loaded stream, of equal ones the first, is on top of the heap; this moves one whose load grew to its
 * place. */
static bool is_before(const lam_shelves *s, int a, int b)
{
    return s->load[a] != s->load[b] ? s->load[a] < s->load[b] : a < b;
}

static void sink_top(lam_shelves *s)
{
    for (int at = 0;;) {
        int least = at;
        for (int child = 2 * at + 1; child <= 2 * at + 2 && child < s->streams; child++)
            least = is_before(s, s->heap[child], s->heap[least]) ? child : least;
        if (least == at)
            return;
        const int moved = s->heap[at];
        s->heap[at] = s->heap[least];
        s->heap[least] = moved;
        at = least;
    }
}

void lam_shelves_deal(lam_shelves *s, int length, lam_rng *rng)
{
    draw_ranks(s, rng);
    for (int64_t i = 0; i < s->n; i++)
        s->list[i].segments = (s->list[i].count + length - 1) / length;
    qsort(s->list, (size_t)s->n, sizeof *s->list, by_segments);
    for (int b = 0; b < s->streams; b++) {
        s->heap[b] = b;
        s->load[b] = 0;
    }
    s->rows = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const int stream = s->list[i].stream = s->heap[0];
        s->load[stream] += s->list[i].segments;
        s->rows = s->load[stream] * length > s->rows ? s->load[stream] * length : s->rows;
        sink_top(s);
    }
    qsort(s->list, (size_t)s->n, sizeof *s->list, by_stream);
    for (int64_t i = 0, b = 0; b <= s->streams; b++) {
        while (i < s->n && s->list[i].stream < b)
            i++;
        s->first[b] = i;
    }
}
