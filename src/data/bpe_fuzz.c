/* bpe_fuzz.c -- any bytes become byte pairs and come back; however many chunks and threads share a text, it has the same
 * tokens. */
#include "data/bpe_train.h"
#include "data/chunks.h"
#include "data/detok.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

enum { SLOTS = 2 };

typedef struct job {
    lam_bpe_text t;
    lam_bpe_coder *coder[SLOTS];
    lam_ids part[SLOTS], all;
} job;

static lam_status work(void *user, int slot, size_t *at, size_t goal)
{
    job *j = user;
    j->part[slot].n = 0;
    return lam_bpe_encode(j->coder[slot], &j->part[slot], &j->t, *at, goal, at);
}

static lam_status take(void *user, int slot, size_t end)
{
    job *j = user;
    (void)end;
    require(lam_ids_reserve(&j->all, j->part[slot].n + 1) == LAM_OK);
    for (size_t i = 0; i < j->part[slot].n; i++)
        j->all.v[j->all.n++] = j->part[slot].v[i];
    return LAM_OK;
}

/* Learned from the text itself, which counts as one piece. */
static lam_vocab *learn(const char *text, size_t size, const char *pattern)
{
    lam_symbols *pieces;
    lam_vocab *v;
    int32_t id;
    const int64_t count = 2;
    const lam_bpe_training o = {.pattern = pattern, .size = 300, .min_count = 2};
    require(lam_symbols_create(&pieces) == LAM_OK);
    require(lam_symbols_add(pieces, text, size < 200 ? size : 200, &id) == LAM_OK);
    require(lam_bpe_train(&v, pieces, &count, &o) == LAM_OK);
    lam_symbols_free(pieces);
    return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    const char *text = (const char *)data + 2;
    size -= 2;
    lam_vocab *v = learn(text, size, lam_pattern_named(lam_pattern_names[data[0] % 4]));
    job j = {.t = {text, size, data[0] & 4 ? LAM_SPECIAL_READ : LAM_SPECIAL_TEXT}};
    int32_t *ids;
    char *back;
    size_t n, back_size;
    require(lam_vocab_encode_special(v, &ids, &n, text, size, j.t.special) == LAM_OK);
    require(lam_detok_all(v, &back, &back_size, ids, n) == LAM_OK);
    require(back_size == size && memcmp(back, text, size) == 0);
    for (int i = 0; i < SLOTS; i++)
        require(lam_bpe_coder_create(&j.coder[i], lam_vocab_bpe(v)) == LAM_OK);
    require(lam_chunks_run(&(lam_chunks){text, size, 1 + data[1] % 64, SLOTS, work, take, &j}) ==
            LAM_OK);
    require(j.all.n == n && memcmp(j.all.v, ids, n * sizeof *ids) == 0);
    for (int i = 0; i < SLOTS; i++) {
        lam_bpe_coder_free(j.coder[i]);
        free(j.part[i].v);
    }
    free(j.all.v);
    free(back);
    free(ids);
    lam_vocab_free(v);
    return 0;
}
