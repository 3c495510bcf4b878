/* snapshot.c -- points in time: taken, restored, saved and loaded. */
#include "infer/session_int.h"

#include "io/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lam_snapshot_free(lam_snapshot *p)
{
    if (!p)
        return;
    for (int i = 0; p->slots && i < p->n_slots; i++)
        free(p->slots[i]);
    free(p->slots);
    free(p->bytes);
    free(p->rows);
    free(p->dtypes);
    free(p->now.calls);
    free(p->now.tokens);
    free(p);
}

static lam_status no_memory(void)
{
    return lam_fail(LAM_ERR_MEMORY, "snapshot: no memory");
}

/* Arrays for n_slots slots and the unfinished segment; sizes are set. */
static lam_status allocate(lam_snapshot *p)
{
    p->slots = calloc((size_t)p->n_slots + 1, sizeof *p->slots);
    p->bytes = calloc((size_t)p->n_slots + 1, sizeof *p->bytes);
    p->rows = calloc((size_t)p->n_slots + 1, sizeof *p->rows);
    p->dtypes = calloc((size_t)p->n_slots + 1, sizeof *p->dtypes);
    p->now.calls = calloc((size_t)p->longest, sizeof *p->now.calls);
    p->now.tokens = calloc((size_t)p->streams * (size_t)p->longest, sizeof *p->now.tokens);
    const int ok = p->slots && p->bytes && p->rows && p->dtypes && p->now.calls && p->now.tokens;
    return ok ? LAM_OK : no_memory();
}

static void copy_segment(lam_open_segment *to, const lam_open_segment *from, int streams,
                         int longest)
{
    to->length = from->length;
    to->done = from->done;
    to->n_calls = from->n_calls;
    memcpy(to->calls, from->calls, (size_t)longest * sizeof *to->calls);
    memcpy(to->tokens, from->tokens, (size_t)streams * (size_t)longest * sizeof *to->tokens);
}

static lam_status take(lam_session *s, lam_snapshot *p)
{
    const lam_mem *mem = lam_stack_mem(s->stack);
    *p = (lam_snapshot){.streams = s->streams,
                        .longest = s->longest,
                        .mem_len = s->mem_len,
                        .n_layer = s->model->cfg.n_layer,
                        .d_model = s->model->cfg.d_model,
                        .length = s->length,
                        .prev = mem->prev,
                        .seen = mem->seen,
                        .n_slots = mem->n_slots};
    LAM_TRY(allocate(p));
    copy_segment(&p->now, &s->now, s->streams, s->longest);
    for (int i = 0; i < p->n_slots; i++) {
        const lam_slot *slot = &mem->slots[i];
        p->bytes[i] = lam_slot_bytes(mem, slot);
        p->rows[i] = slot->n;
        p->dtypes[i] = slot->type == LAM_ACT ? mem->dev->act : mem->dev->wide;
        p->slots[i] = malloc(p->bytes[i] + 1);
        if (!p->slots[i])
            return no_memory();
        LAM_TRY(mem->dev->ops->download(mem->dev, p->slots[i], slot->rows, p->bytes[i]));
    }
    return LAM_OK;
}

lam_status lam_session_snapshot(lam_session *s, lam_snapshot **out)
{
    *out = NULL;
    lam_snapshot *p = calloc(1, sizeof *p);
    if (!p)
        return no_memory();
    const lam_status status = take(s, p);
    if (status != LAM_OK) {
        lam_snapshot_free(p);
        return status;
    }
    *out = p;
    return LAM_OK;
}

static lam_status fits(const lam_session *s, const lam_snapshot *p)
{
    const lam_mem *mem = lam_stack_mem(s->stack);
    const lam_config *cfg = &s->model->cfg;
    int same = p->streams == s->streams && p->mem_len == s->mem_len &&
               p->now.length <= s->longest && p->n_slots == mem->n_slots &&
               p->n_layer == cfg->n_layer && p->d_model == cfg->d_model;
    for (int i = 0; same && i < p->n_slots; i++)
        same = p->bytes[i] == lam_slot_bytes(mem, &mem->slots[i]) && p->rows[i] >= 0 &&
               p->rows[i] <= mem->slots[i].cap &&
               p->dtypes[i] == (mem->slots[i].type == LAM_ACT ? mem->dev->act : mem->dev->wide);
    return same ? LAM_OK
                : lam_fail(LAM_ERR_ARG,
                           "snapshot: taken from a session of another model, device, number of "
                           "streams or memory length");
}

static lam_status known_tokens(const lam_session *s, const lam_snapshot *p)
{
    for (int b = 0; b < p->streams; b++)
        for (int i = 0; i < p->now.done; i++) {
            const int32_t id = p->now.tokens[(size_t)b * (size_t)p->longest + (size_t)i];
            if (id < 0 || id >= s->model->cfg.n_token)
                return lam_fail(LAM_ERR_FORMAT, "snapshot: token %d, the vocabulary has %d types",
                                id, s->model->cfg.n_token);
        }
    return LAM_OK;
}

/* Do the numbers of rows agree with each other?  Asked of a copy: the session must stay as it is. */
static lam_status agrees(const lam_session *s, const lam_snapshot *p)
{
    lam_mem trial = *lam_stack_mem(s->stack);
    const size_t bytes = (size_t)trial.n_slots * sizeof *trial.slots;
    lam_slot *slots = malloc(bytes + 1);
    if (!slots)
        return no_memory();
    memcpy(slots, trial.slots, bytes);
    for (int i = 0; i < p->n_slots; i++)
        slots[i].n = p->rows[i];
    trial.slots = slots;
    trial.prev = p->prev;
    trial.seen = p->seen;
    const lam_status status = lam_mem_settle(&trial, "snapshot");
    free(slots);
    return status;
}

lam_status lam_session_restore(lam_session *s, const lam_snapshot *p)
{
    lam_mem *mem = lam_stack_mem(s->stack);
    LAM_TRY(fits(s, p));
    LAM_TRY(known_tokens(s, p));
    LAM_TRY(agrees(s, p));
    for (int i = 0; i < p->n_slots; i++) {
        mem->dev->ops->upload(mem->dev, mem->slots[i].rows, p->slots[i], p->bytes[i]);
        mem->slots[i].n = p->rows[i];
    }
    LAM_TRY(mem->dev->ops->sync(mem->dev));
    mem->prev = p->prev;
    mem->seen = p->seen;
    LAM_TRY(lam_mem_settle(mem, "snapshot"));
    s->length = p->length;
    s->now.length = p->now.length;
    s->now.done = s->now.n_calls = 0;
    for (int call = 0, at = 0; call < p->now.n_calls; call++) {
        const int n = p->now.calls[call];
        for (int b = 0; b < s->streams; b++)
            memcpy(s->packed + (size_t)b * (size_t)n,
                   p->now.tokens + (size_t)b * (size_t)p->longest + at,
                   (size_t)n * sizeof *s->packed);
        lam_session_piece(s, s->packed, n);
        at += n;
    }
    return LAM_OK;
}

static const char FORMAT[] = "lamemo snapshot 2";

/* The numbers of a snapshot, in file order. */
enum { NUMBERS = 10 };

static void to_numbers(const lam_snapshot *p, int64_t v[NUMBERS])
{
    const int64_t numbers[NUMBERS] = {p->streams,    p->longest,    p->mem_len, p->n_layer,
                                      p->d_model,    p->length,     p->prev,    p->seen,
                                      p->now.length, p->now.n_calls};
    memcpy(v, numbers, sizeof numbers);
}

static lam_status write_all(lam_st_writer *w, const lam_snapshot *p)
{
    const lam_shape numbers = {1, {NUMBERS}}, calls = {1, {p->longest}};
    const lam_shape tokens = {2, {p->streams, p->longest}}, rows = {1, {p->n_slots}};
    int64_t v[NUMBERS];
    char name[32];
    to_numbers(p, v);
    LAM_TRY(lam_st_writer_meta(w, "format", FORMAT));
    LAM_TRY(lam_st_writer_add(w, "numbers", LAM_I64, &numbers));
    LAM_TRY(lam_st_writer_add(w, "calls", LAM_I32, &calls));
    LAM_TRY(lam_st_writer_add(w, "tokens", LAM_I32, &tokens));
    LAM_TRY(lam_st_writer_add(w, "rows", LAM_I32, &rows));
    for (int i = 0; i < p->n_slots; i++) {
        const int64_t n = (int64_t)(p->bytes[i] / lam_dtype_size(p->dtypes[i]));
        snprintf(name, sizeof name, "slot.%d", i);
        LAM_TRY(lam_st_writer_add(w, name, p->dtypes[i], &(lam_shape){1, {n}}));
    }
    LAM_TRY(lam_st_writer_begin(w));
    LAM_TRY(lam_st_writer_data(w, v, sizeof v));
    LAM_TRY(lam_st_writer_data(w, p->now.calls, (size_t)p->longest * sizeof *p->now.calls));
    LAM_TRY(lam_st_writer_data(w, p->now.tokens,
                               (size_t)p->streams * (size_t)p->longest * sizeof(int32_t)));
    LAM_TRY(lam_st_writer_data(w, p->rows, (size_t)p->n_slots * sizeof *p->rows));
    for (int i = 0; i < p->n_slots; i++)
        LAM_TRY(lam_st_writer_data(w, p->slots[i], p->bytes[i]));
    return LAM_OK;
}

lam_status lam_snapshot_save(const lam_snapshot *p, const char *path)
{
    lam_st_writer *w = NULL;
    LAM_TRY(lam_st_writer_create(&w, path));
    const lam_status status = write_all(w, p);
    if (status == LAM_OK)
        return lam_st_writer_finish(w);
    lam_st_writer_abort(w);
    return status;
}

static const int64_t LONGEST = (int64_t)1 << 60; /* tokens of a text: sums do not overflow */

/* Every number from a file may be wrong. */
static lam_status from_numbers(lam_snapshot *p, const int64_t v[NUMBERS], const char *path)
{
    const int64_t most[NUMBERS] = {1 << 20, LAM_MAX_LEN, LAM_MAX_LEN, LAM_MAX_LAYERS, LAM_MAX_WIDTH,
                                   LONGEST, LAM_MAX_LEN, LONGEST,     LAM_MAX_LEN,    LAM_MAX_LEN};
    for (int i = 0; i < NUMBERS; i++)
        if (v[i] < 0 || v[i] > most[i])
            return lam_fail(LAM_ERR_FORMAT, "%s: number %d of the snapshot is out of range", path,
                            i);
    p->streams = (int)v[0];
    p->longest = (int)v[1];
    p->mem_len = (int)v[2];
    p->n_layer = (int)v[3];
    p->d_model = (int)v[4];
    p->length = v[5];
    p->prev = (int)v[6];
    p->seen = v[7];
    p->now.length = (int)v[8];
    p->now.n_calls = (int)v[9];
    if (p->streams < 1 || p->now.length < 1 || p->now.length > p->longest ||
        p->now.n_calls > p->longest)
        return lam_fail(LAM_ERR_FORMAT, "%s: the snapshot's sizes contradict each other", path);
    return LAM_OK;
}

static lam_status read_all(lam_snapshot *p, const lam_safetensors *st, const char *path)
{
    int64_t v[NUMBERS];
    const char *format = lam_st_meta(st, "format");
    if (!format || strcmp(format, FORMAT) != 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: not a lamemo snapshot", path);
    LAM_TRY(lam_st_read(st, "numbers", v, LAM_I64, NUMBERS));
    LAM_TRY(from_numbers(p, v, path));
    const lam_st_tensor *tokens = lam_st_find(st, "tokens");
    if (!tokens || lam_shape_count(&tokens->shape) != (size_t)p->streams * (size_t)p->longest)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor tokens is not %d x %d", path, p->streams,
                        p->longest);
    p->n_slots = lam_st_count(st) - 4; /* the rest are slots */
    if (p->n_slots < 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensors of the snapshot are missing", path);
    LAM_TRY(allocate(p));
    LAM_TRY(lam_st_read(st, "calls", p->now.calls, LAM_I32, (size_t)p->longest));
    LAM_TRY(
        lam_st_read(st, "tokens", p->now.tokens, LAM_I32, (size_t)p->streams * (size_t)p->longest));
    LAM_TRY(lam_st_read(st, "rows", p->rows, LAM_I32, (size_t)p->n_slots));
    for (int i = 0; i < p->now.n_calls; i++) {
        if (p->now.calls[i] < 1 || p->now.calls[i] > p->now.length - p->now.done)
            return lam_fail(LAM_ERR_FORMAT, "%s: piece %d of the segment does not fit", path, i);
        p->now.done += p->now.calls[i];
    }
    for (int i = 0; i < p->n_slots; i++) {
        char name[32];
        snprintf(name, sizeof name, "slot.%d", i);
        const lam_st_tensor *t = lam_st_find(st, name);
        if (!t)
            return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is missing", path, name);
        p->bytes[i] = t->bytes;
        p->dtypes[i] = t->dtype;
        p->slots[i] = malloc(t->bytes + 1);
        if (!p->slots[i])
            return no_memory();
        memcpy(p->slots[i], t->data, t->bytes);
    }
    return LAM_OK;
}

lam_status lam_snapshot_load(lam_snapshot **out, const char *path)
{
    *out = NULL;
    lam_safetensors *st = NULL;
    LAM_TRY(lam_st_open(&st, path));
    lam_snapshot *p = calloc(1, sizeof *p);
    const lam_status status = p ? read_all(p, st, path) : no_memory();
    lam_st_close(st);
    if (status != LAM_OK) {
        lam_snapshot_free(p);
        return status;
    }
    *out = p;
    return LAM_OK;
}
