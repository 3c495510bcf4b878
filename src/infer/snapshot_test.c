/* snapshot_test.c -- the file of a session: no damage goes unnoticed, and older ones are still read. */
#include "infer/session.h"

#include "core/file.h"
#include "core/log.h"
#include "io/safetensors.h"
#include "support/alloc.h"
#include "support/suite.h"
#include "support/toy.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { V = 13, FED = 9 };

/* A session in the middle of a segment, and its file. */
typedef struct saved {
    toy t;
    lam_session *s;
    char path[4096], *bytes;
    size_t size;
} saved;

static saved save(void)
{
    const lam_config cfg = toy_config("lamemo", 3, 4, 5);
    saved it = {.t = toy_open("cpu", &cfg, &(lam_stack_options){.B = 1, .N = 4, .M = 5}, 1)};
    int32_t tokens[FED];
    lam_snapshot *p;
    toy_tokens(tokens, FED, V, 3);
    snprintf(it.path, sizeof it.path, "%s", test_temp_path("session"));
    must(lam_session_create(&it.s, it.t.model, &(lam_session_options){.mem_len = 5}));
    must(lam_session_feed(it.s, tokens, FED));
    must(lam_session_snapshot(it.s, &p));
    must(lam_snapshot_save(p, it.path));
    must(lam_file_load(&it.bytes, &it.size, it.path, 1 << 20));
    lam_snapshot_free(p);
    return it;
}

static void drop(saved *it)
{
    free(it->bytes);
    lam_session_free(it->s);
    toy_close(&it->t);
}

/* Loads a file of these bytes and lets the session go on from it. */
static lam_status load(saved *it, const char *bytes, size_t size)
{
    lam_snapshot *p;
    FILE *f = fopen(it->path, "wb"); /* without the fsync of lam_file_save */
    ck_assert(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0);
    LAM_TRY(lam_snapshot_load(&p, it->path));
    const lam_status status = lam_session_restore(it->s, p);
    lam_snapshot_free(p);
    return status;
}

static void check_refused(saved *it, const char *bytes, size_t size)
{
    ck_assert_int_eq(load(it, bytes, size), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), it->path));
    ck_assert_int_eq(lam_session_length(it->s), FED);
}

START_TEST(a_changed_byte_or_a_cut_is_noticed_wherever_it_is)
{
    saved it = save();
    must(load(&it, it.bytes, it.size));
    for (size_t i = 0; i < it.size; i++) {
        it.bytes[i] = (char)(it.bytes[i] ^ 1 << i % 8);
        check_refused(&it, it.bytes, it.size);
        it.bytes[i] = (char)(it.bytes[i] ^ 1 << i % 8);
        check_refused(&it, it.bytes, i);
    }
    drop(&it);
}
END_TEST

/* What the file says, with the first number of tensor `name` replaced; sealed or as version 2 wrote it. */
static void rewrite(const saved *it, const char *format, const char *name, double value)
{
    lam_safetensors *st;
    lam_st_writer *w;
    must(lam_st_parse(&st, "saved", it->bytes, it->size));
    must(lam_st_writer_create(&w, it->path));
    must(lam_st_writer_meta(w, "format", format));
    const int n = lam_st_count(st) - 1;
    for (int i = 0; i < n; i++)
        must(lam_st_writer_add(w, lam_st_at(st, i)->name, lam_st_at(st, i)->dtype,
                               &lam_st_at(st, i)->shape));
    if (strcmp(format, "lamemo snapshot 2") != 0)
        must(lam_st_writer_seal(w));
    must(lam_st_writer_begin(w));
    for (int i = 0; i < n; i++) {
        const lam_st_tensor *t = lam_st_at(st, i);
        const size_t size = strcmp(t->name, name) == 0 ? lam_dtype_size(t->dtype) : 0;
        char first[8];
        lam_convert(first, t->dtype, &value, LAM_F64, 1);
        must(lam_st_writer_data(w, first, size));
        must(lam_st_writer_data(w, (const char *)t->data + size, t->bytes - size));
    }
    must(lam_st_writer_finish(w));
    lam_st_close(st);
}

static void count_warnings(lam_log_level level, const char *line, void *user)
{
    if (level == LAM_LOG_WARN && strstr(line, "without a checksum"))
        ++*(int *)user;
}

START_TEST(an_older_file_without_checksum_loads_with_a_warning)
{
    saved it = save();
    double before[V], after[V];
    int warnings = 0;
    lam_snapshot *p;
    must(lam_session_logits(it.s, before));
    lam_session_reset(it.s);
    rewrite(&it, "lamemo snapshot 2", "", 0.0);
    lam_log_set_sink(count_warnings, &warnings);
    must(lam_snapshot_load(&p, it.path));
    lam_log_set_sink(NULL, NULL);
    ck_assert_int_eq(warnings, 1);
    must(lam_session_restore(it.s, p));
    must(lam_session_logits(it.s, after));
    ck_assert_mem_eq(before, after, sizeof before);
    lam_snapshot_free(p);
    rewrite(&it, "lamemo snapshot 4", "", 0.0);
    ck_assert_int_eq(lam_snapshot_load(&p, it.path), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "not a lamemo snapshot of version 2 or 3"));
    drop(&it);
}
END_TEST

/* Weights that are finite, and what they compute is not. */
static void overflow(lam_model *model)
{
    double host[4096];
    for (int i = 0; i < 4096; i++)
        host[i] = 1e38;
    for (int i = 0; i < model->params.n; i++) {
        ck_assert_uint_le(lam_param_count(&model->params.list[i]), 4096);
        must(lam_params_set(&model->params, model->params.master, i, host));
    }
}

/* With a right checksum, as nothing but a program could make it. */
START_TEST(numbers_that_are_not_finite_are_refused_on_both_ways)
{
    saved it = save();
    lam_snapshot *p;
    double scores[V];
    rewrite(&it, "lamemo snapshot 3", "slot.0", _i ? NAN : INFINITY);
    must(lam_snapshot_load(&p, it.path));
    ck_assert_int_eq(lam_session_restore(it.s, p), LAM_ERR_NUMERIC);
    ck_assert_ptr_nonnull(strstr(lam_error(), "of layer 0"));
    must(lam_session_logits(it.s, scores)); /* as it was */
    lam_snapshot_free(p);

    overflow(it.t.model);
    lam_session_reset(it.s);
    must(lam_session_feed(it.s, (const int32_t[FED]){0}, FED));
    ck_assert_int_eq(lam_session_snapshot(it.s, &p), LAM_ERR_NUMERIC);
    ck_assert_ptr_null(p);
    drop(&it);
}
END_TEST

/* The file is whole and its checksum right, but its sizes are others. */
START_TEST(sizes_that_a_small_file_claims_take_no_memory)
{
    static const int64_t claims[] = {100, 1 << 16, 1 << 20, (int64_t)1 << 40, INT64_MAX};
    saved it = save();
    lam_safetensors *st;
    must(lam_st_parse(&st, "saved", it.bytes, it.size));
    const lam_st_tensor *const numbers = lam_st_find(st, "numbers");
    char *const at = it.bytes + ((const char *)numbers->data - it.bytes);
    const int n = (int)numbers->shape.dim[0];
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof claims / sizeof *claims; k++) {
            lam_snapshot *p = NULL;
            int64_t before;
            memcpy(&before, at + 8 * i, sizeof before);
            memcpy(at + 8 * i, &claims[k], sizeof before);
            rewrite(&it, "lamemo snapshot 3", "none", 0.0);
            memcpy(at + 8 * i, &before, sizeof before);
            test_alloc_measure();
            lam_status status = lam_snapshot_load(&p, it.path);
            if (status == LAM_OK)
                status = lam_session_restore(it.s, p);
            const size_t peak = test_alloc_peak();
            lam_snapshot_free(p);
            ck_assert_msg(peak < 16 << 20, "number %d: %zu bytes", i, peak);
            ck_assert(status == LAM_OK || status == LAM_ERR_FORMAT || status == LAM_ERR_ARG);
        }
    lam_st_close(st);
    drop(&it);
}
END_TEST

int main(void)
{
    test_temp_in_memory();
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, a_changed_byte_or_a_cut_is_noticed_wherever_it_is);
    tcase_add_test(tests, an_older_file_without_checksum_loads_with_a_warning);
    tcase_add_loop_test(tests, numbers_that_are_not_finite_are_refused_on_both_ways, 0, 2);
    tcase_add_test(tests, sizes_that_a_small_file_claims_take_no_memory);
    return test_run("infer/snapshot", tests);
}
