/* snapshot_file.c -- saves and loads snapshots as safetensors files.
 *
 * Damage to the numbers of a memory cannot be detected from the numbers, so the file ends with a checksum.  Version 2
 * had none. */
#include "infer/session_int.h"

#include "core/log.h"
#include "io/safetensors.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char FORMAT[] = "lamemo snapshot 3", UNSEALED[] = "lamemo snapshot 2";

/* ---- the tensor "numbers" ---- */

/* clang-format off */
#define NUMBER(field, most) {offsetof(lam_snapshot, field), sizeof(((lam_snapshot *)NULL)->field), most}
/* The numbers of a snapshot, in file order. */
static const struct {
    size_t offset, size; /* an int or an int64_t of lam_snapshot */
    int64_t most;
} numbers[] = {
    NUMBER(streams, 1 << 20),
    NUMBER(longest, LAM_MAX_LEN),
    NUMBER(mem_len, LAM_MAX_LEN),
    NUMBER(n_layer, LAM_MAX_LAYERS),
    NUMBER(d_model, LAM_MAX_WIDTH),
    NUMBER(length, LAM_MOST_SEEN),
    NUMBER(prev, LAM_MAX_LEN),
    NUMBER(seen, LAM_MOST_SEEN),
    NUMBER(now.length, LAM_MAX_LEN),
    NUMBER(now.n_calls, LAM_MAX_LEN),
};
/* clang-format on */
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static void to_numbers(const lam_snapshot *p, int64_t v[NUMBERS])
{
    for (int i = 0; i < NUMBERS; i++) {
        const void *field = (const char *)p + numbers[i].offset;
        v[i] = numbers[i].size == sizeof(int) ? *(const int *)field : *(const int64_t *)field;
    }
}

/* Every number from a file may be wrong. */
static lam_status from_numbers(lam_snapshot *p, const int64_t v[NUMBERS], const char *path)
{
    for (int i = 0; i < NUMBERS; i++) {
        void *field = (char *)p + numbers[i].offset;
        if (v[i] < 0 || v[i] > numbers[i].most)
            return lam_fail(LAM_ERR_FORMAT, "%s: number %d of the snapshot is out of range", path,
                            i);
        if (numbers[i].size == sizeof(int))
            *(int *)field = (int)v[i];
        else
            *(int64_t *)field = v[i];
    }
    if (p->streams < 1 || p->now.length < 1 || p->now.length > p->longest ||
        p->now.n_calls > p->longest)
        return lam_fail(LAM_ERR_FORMAT, "%s: the snapshot's sizes contradict each other", path);
    return LAM_OK;
}

/* ---- saving ---- */

static lam_status write_all(lam_st_writer *w, const lam_snapshot *p)
{
    const lam_shape list = {1, {NUMBERS}}, calls = {1, {p->longest}};
    const lam_shape tokens = {2, {p->streams, p->longest}}, rows = {1, {p->n_slots}};
    int64_t v[NUMBERS];
    char name[32];
    to_numbers(p, v);
    LAM_TRY(lam_st_writer_meta(w, "format", FORMAT));
    if (p->model[0] != '\0')
        LAM_TRY(lam_st_writer_meta(w, "model", p->model));
    LAM_TRY(lam_st_writer_add(w, "numbers", LAM_I64, &list));
    LAM_TRY(lam_st_writer_add(w, "calls", LAM_I32, &calls));
    LAM_TRY(lam_st_writer_add(w, "tokens", LAM_I32, &tokens));
    LAM_TRY(lam_st_writer_add(w, "rows", LAM_I32, &rows));
    for (int i = 0; i < p->n_slots; i++) {
        const int64_t n = (int64_t)(p->bytes[i] / lam_dtype_size(p->dtypes[i]));
        snprintf(name, sizeof name, "slot.%d", i);
        LAM_TRY(lam_st_writer_add(w, name, p->dtypes[i], &(lam_shape){1, {n}}));
    }
    LAM_TRY(lam_st_writer_seal(w));
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
    return lam_st_writer_end(w, write_all(w, p));
}

lam_status lam_snapshot_write(const lam_snapshot *p, char **bytes, size_t *size)
{
    lam_st_writer *w = NULL;
    *bytes = NULL;
    *size = 0;
    LAM_TRY(lam_st_writer_create_memory(&w, "snapshot"));
    const lam_status status = write_all(w, p);
    if (status == LAM_OK)
        return lam_st_writer_take(w, bytes, size);
    lam_st_writer_abort(w);
    return status;
}

lam_status lam_snapshot_set_model(lam_snapshot *p, const char *model)
{
    if (strlen(model) >= sizeof p->model)
        return lam_fail(LAM_ERR_ARG, "snapshot: the model's name has more than %zu bytes",
                        sizeof p->model - 1);
    snprintf(p->model, sizeof p->model, "%s", model);
    return LAM_OK;
}

const char *lam_snapshot_model(const lam_snapshot *p)
{
    return p->model;
}

/* ---- loading ---- */

static lam_status no_memory(const char *path)
{
    return lam_fail(LAM_ERR_MEMORY, "%s: no memory for the snapshot", path);
}

/* The tokens that the pieces of the unfinished segment have together. */
static lam_status count_done(lam_snapshot *p, const char *path)
{
    for (int i = 0; i < p->now.n_calls; i++) {
        if (p->now.calls[i] < 1 || p->now.calls[i] > p->now.length - p->now.done)
            return lam_fail(LAM_ERR_FORMAT, "%s: piece %d of the segment does not fit", path, i);
        p->now.done += p->now.calls[i];
    }
    return LAM_OK;
}

static lam_status read_slot(lam_snapshot *p, int i, const lam_safetensors *st, const char *path)
{
    char name[32];
    snprintf(name, sizeof name, "slot.%d", i);
    const lam_st_tensor *t = lam_st_find(st, name);
    if (!t)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is missing", path, name);
    p->bytes[i] = t->bytes;
    p->dtypes[i] = t->dtype;
    p->slots[i] = malloc(t->bytes + 1);
    if (!p->slots[i])
        return no_memory(path);
    memcpy(p->slots[i], t->data, t->bytes);
    return LAM_OK;
}

/* Is it a snapshot, and whole?  *others are the tensors that are no slots. */
static lam_status check_format(int *others, const lam_safetensors *st, const char *path)
{
    const char *format = lam_st_meta(st, "format");
    *others = 4;
    if (format && strcmp(format, UNSEALED) == 0) {
        lam_log(LAM_LOG_WARN, "%s: an older snapshot, without a checksum: damage may go unnoticed",
                path);
        return LAM_OK;
    }
    if (!format || strcmp(format, FORMAT) != 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: not a lamemo snapshot of version 2 or 3", path);
    *others += 1; /* the checksum */
    return lam_st_check_seal(st);
}

static lam_status read_all(lam_snapshot *p, const lam_safetensors *st, const char *path)
{
    int64_t v[NUMBERS];
    int others;
    LAM_TRY(check_format(&others, st, path));
    const char *model = lam_st_meta(st, "model");
    if (model)
        LAM_TRY(lam_snapshot_set_model(p, model));
    LAM_TRY(lam_st_read(st, "numbers", v, LAM_I64, NUMBERS));
    LAM_TRY(from_numbers(p, v, path));
    const lam_st_tensor *tokens = lam_st_find(st, "tokens");
    if (!tokens || lam_shape_count(&tokens->shape) != (size_t)p->streams * (size_t)p->longest)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor tokens is not %d x %d", path, p->streams,
                        p->longest);
    p->n_slots = lam_st_count(st) - others;
    if (p->n_slots < 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensors of the snapshot are missing", path);
    LAM_TRY(lam_snapshot_allocate(p));
    LAM_TRY(lam_st_read(st, "calls", p->now.calls, LAM_I32, (size_t)p->longest));
    LAM_TRY(
        lam_st_read(st, "tokens", p->now.tokens, LAM_I32, (size_t)p->streams * (size_t)p->longest));
    LAM_TRY(lam_st_read(st, "rows", p->rows, LAM_I32, (size_t)p->n_slots));
    LAM_TRY(count_done(p, path));
    for (int i = 0; i < p->n_slots; i++)
        LAM_TRY(read_slot(p, i, st, path));
    return LAM_OK;
}

/* Closes st. */
static lam_status read_from(lam_snapshot **out, lam_safetensors *st, const char *path)
{
    lam_snapshot *p = calloc(1, sizeof *p);
    const lam_status status = p ? read_all(p, st, path) : no_memory(path);
    lam_st_close(st);
    if (status != LAM_OK) {
        lam_snapshot_free(p);
        return status;
    }
    *out = p;
    return LAM_OK;
}

lam_status lam_snapshot_load(lam_snapshot **out, const char *path)
{
    lam_safetensors *st = NULL;
    *out = NULL;
    LAM_TRY(lam_st_open(&st, path));
    return read_from(out, st, path);
}

lam_status lam_snapshot_read(lam_snapshot **out, const char *label, const char *bytes, size_t size)
{
    lam_safetensors *st = NULL;
    *out = NULL;
    LAM_TRY(lam_st_parse(&st, label, bytes, size));
    return read_from(out, st, label);
}
