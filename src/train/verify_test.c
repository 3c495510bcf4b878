/* verify_test.c -- do the traces pass, and does every changed number make one fail? */
#include "train/verify.h"

#include "core/file.h"
#include "core/machine.h"
#include "io/safetensors.h"
#include "support/naive16.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The traces of the mechanisms that exist, relative to the source tree. */
static const char *const traces[] = {"rpe",
                                     "xl",
                                     "xl_adaptive_demb",
                                     "xl_heads",
                                     "xl_learned",
                                     "xl_longmem",
                                     "xl_prenorm",
                                     "xl_samelength",
                                     "xl_train",
                                     "none_learned",
                                     "none_absolute",
                                     "compressive",
                                     "compressive_remainder",
                                     "infinite",
                                     "infinite_block",
                                     "lamemo",
                                     "lamemo_adaptive",
                                     "lamemo_adaptive_div2",
                                     "lamemo_clamp",
                                     "lamemo_full",
                                     "lamemo_heads",
                                     "lamemo_longmem",
                                     "lamemo_full_longmem",
                                     "lamemo_onebyone",
                                     "lamemo_prenorm",
                                     "lamemo_rpe2",
                                     "lamemo_shortmem",
                                     "lamemo_train",
                                     "lamemo_xlrpe",
                                     "lamemo_heads_xlrpe"};
enum { TRACES = sizeof traces / sizeof *traces };

static lam_dev *open_padded(const char *name, int pad)
{
    const lam_ops *ops = NULL;
    lam_dev *dev = NULL;
    ck_assert(lam_ops_find(&ops, name) == LAM_OK);
    ck_assert_msg(ops->open(&dev, &(lam_dev_options){.threads = 2, .pad = pad}) == LAM_OK, "%s",
                  lam_error());
    return dev;
}

static lam_dev *open_device(const char *name)
{
    return open_padded(name, 0);
}

static lam_verdict verify(const char *path, const char *device, lam_status *status)
{
    lam_dev *dev = open_device(device);
    lam_verdict v = {0};
    lam_verify_limits(&v, dev);
    *status = lam_verify_file(&v, path, dev);
    dev->ops->close(dev);
    return v;
}

static void golden(char *path, size_t size, const char *name)
{
    snprintf(path, size, "tests/golden/%s.safetensors", name);
}

static void passes(const char *name, const char *device)
{
    char path[512];
    lam_status status;
    golden(path, sizeof path, name);
    const lam_verdict v = verify(path, device, &status);
    ck_assert_msg(status == LAM_OK, "%s", lam_error());
    for (int q = 0; q < LAM_QUANTITIES; q++)
        ck_assert_msg(v.worst[q] <= v.limit[q], "%s on %s: %s of %s is off by %g", name, device,
                      lam_quantity_name((lam_quantity)q), v.where[q], v.worst[q]);
    ck_assert(!v.failed);
    ck_assert_int_gt(v.tensors[LAM_VERIFY_NLL], 0);
    ck_assert_int_gt(v.tensors[LAM_VERIFY_GRAD], 10);
}

START_TEST(ref_computes_the_trace)
{
    passes(traces[_i], "ref");
}
END_TEST

START_TEST(cpu_computes_the_trace)
{
    passes(traces[_i], "cpu");
}
END_TEST

static lam_verdict verify_on(lam_dev *dev, const char *name)
{
    char path[512];
    lam_verdict v = {0};
    golden(path, sizeof path, name);
    lam_verify_limits(&v, dev);
    ck_assert_msg(lam_verify_file(&v, path, dev) == LAM_OK, "%s", lam_error());
    dev->ops->close(dev);
    return v;
}

START_TEST(padded_widths_change_nothing)
{
    const lam_verdict v = verify_on(open_padded("ref", 16), traces[_i]);
    ck_assert_msg(!v.failed, "%s", traces[_i]);
}
END_TEST

/* ref16 errs, and by as much as roundings to eight bits can add up to. */
START_TEST(rounding_to_bf16_makes_moderate_errors)
{
    const lam_verdict v = verify_on(open_device("ref16"), traces[_i]);
    const lam_quantity exact[] = {LAM_VERIFY_NLL, LAM_VERIFY_STATE};
    for (int i = 0; i < 2; i++)
        if (v.numbers[exact[i]] > 0.0) {
            const double part = sqrt(v.squares[exact[i]] / v.sizes[exact[i]]);
            ck_assert_msg(part > 1e-4 && part < 1e-2, "%s: %s %g", traces[_i],
                          lam_quantity_name(exact[i]), part);
        }
    const double part = sqrt(v.squares[LAM_VERIFY_GRAD] / v.sizes[LAM_VERIFY_GRAD]);
    ck_assert_msg(part > 1e-4 && part < 0.2, "%s: gradients %g", traces[_i], part);
}
END_TEST

/* A device whose memory is bf16 and whose arithmetic is float is as good as ref16 ... */
START_TEST(a_bf16_device_is_as_good_as_ref16)
{
    lam_dev *dev = NULL;
    ck_assert(lam_ops_naive16.open(&dev, &(lam_dev_options){0}) == LAM_OK);
    const lam_verdict like = verify_on(open_device("ref16"), traces[_i]);
    lam_verdict v = verify_on(dev, traces[_i]);
    lam_verify_compare(&v, &like);
    for (int q = 0; q < LAM_QUANTITIES; q++)
        ck_assert_msg(lam_verify_rms(&v, (lam_quantity)q) <=
                          lam_verify_rms_limit(&like, (lam_quantity)q),
                      "%s: %s %g, ref16 %g", traces[_i], lam_quantity_name((lam_quantity)q),
                      lam_verify_rms(&v, (lam_quantity)q), lam_verify_rms(&like, (lam_quantity)q));
    ck_assert(!v.failed);
}
END_TEST

/* ... and a mistake is not. */
START_TEST(an_error_beyond_ref16_fails)
{
    const lam_verdict like = verify_on(open_device("ref16"), "lamemo");
    for (int q = 0; q < LAM_QUANTITIES; q++) {
        lam_verdict v = like;
        if (like.numbers[q] == 0.0)
            continue;
        lam_verify_compare(&v, &like);
        ck_assert(!v.failed);
        const double whole = q == LAM_VERIFY_GRAD_NORM ? like.squares[LAM_VERIFY_GRAD] : 0.0;
        v.squares[q] = 100.0 * like.squares[q] + 1e-4 * like.sizes[q] + whole;
        lam_verify_compare(&v, &like);
        ck_assert_msg(v.failed, "%s", lam_quantity_name((lam_quantity)q));
        v.squares[q] = NAN;
        lam_verify_compare(&v, &like);
        ck_assert(v.failed);
    }
}
END_TEST

/* A copy of a golden file with the largest element of one tensor changed by `relative` of itself. */
static void tamper(const char *path, const char *copy, const char *tensor, double relative)
{
    char *bytes = NULL;
    size_t size = 0;
    lam_safetensors *st = NULL;
    ck_assert(lam_file_load(&bytes, &size, path, 1 << 24) == LAM_OK);
    ck_assert(lam_st_parse(&st, path, bytes, size) == LAM_OK);
    const lam_st_tensor *t = lam_st_find(st, tensor);
    ck_assert_msg(t && t->dtype == LAM_F64, "%s is no F64 tensor", tensor);
    const size_t n = t->bytes / sizeof(double), at = (size_t)((const char *)t->data - bytes);
    double *values = malloc(t->bytes);
    memcpy(values, t->data, t->bytes);
    size_t top = 0;
    for (size_t i = 0; i < n; i++)
        if (fabs(values[i]) > fabs(values[top]))
            top = i;
    values[top] += relative * fmax(fabs(values[top]), 1e-6);
    memcpy(bytes + at, values, t->bytes);
    ck_assert(lam_file_save(copy, bytes, size) == LAM_OK);
    free(values);
    lam_st_close(st);
    free(bytes);
}

static void temporary(char *path, size_t size)
{
    snprintf(path, size, "%s/verify_test.%ld.safetensors", P_tmpdir, (long)getpid());
}

START_TEST(a_changed_number_of_any_kind_fails)
{
    const struct {
        const char *file, *tensor;
        lam_quantity q;
    } rows[] = {
        {"lamemo", "seg3.nll", LAM_VERIFY_NLL},
        {"lamemo", "seg1.grad.r_r_bias_future", LAM_VERIFY_GRAD},
        {"lamemo", "seg2.grad.layers.2.pos_ff.CoreNet.0.bias", LAM_VERIFY_GRAD},
        {"lamemo", "seg0.grad_norm", LAM_VERIFY_GRAD_NORM},
        {"lamemo", "seg3.mem0", LAM_VERIFY_STATE},
        {"lamemo", "seg3.mem5", LAM_VERIFY_STATE},
        {"lamemo", "seg2.mem6", LAM_VERIFY_STATE},
        {"xl", "seg1.mem3", LAM_VERIFY_STATE},
        {"compressive", "seg4.state.cm.1", LAM_VERIFY_STATE},
        {"compressive", "seg2.state.m.0", LAM_VERIFY_STATE},
        {"compressive", "seg2.aux_loss", LAM_VERIFY_AUX},
        {"compressive", "seg2.grad.layers.1.compress.weight", LAM_VERIFY_GRAD},
        {"infinite", "seg5.state.B.1", LAM_VERIFY_STATE},
        {"infinite_block", "seg4.state.pend.0", LAM_VERIFY_STATE},
        {"infinite", "seg3.aux_loss", LAM_VERIFY_AUX},
        {"infinite", "seg4.grad.layers.0.ltm.sigma.weight", LAM_VERIFY_GRAD},
        {"lamemo_train", "train.loss", LAM_VERIFY_TRAIN_LOSS},
        {"lamemo_train", "train.grad_norm", LAM_VERIFY_TRAIN_NORM},
        {"xl_train", "train.param.layers.1.dec_attn.r_net.weight", LAM_VERIFY_TRAIN_PARAM},
    };
    const char *const devices[] = {"ref", "cpu"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int d = 0; d < 2; d++) {
            char path[512], copy[64];
            lam_status status;
            golden(path, sizeof path, rows[i].file);
            temporary(copy, sizeof copy);
            const double limit = verify(path, devices[d], &status).limit[rows[i].q];
            tamper(path, copy, rows[i].tensor, 10.0 * limit);
            const lam_verdict v = verify(copy, devices[d], &status);
            unlink(copy);
            ck_assert_msg(status == LAM_OK, "%s", lam_error());
            ck_assert_msg(v.failed && v.worst[rows[i].q] > limit, "%s on %s passed", rows[i].tensor,
                          devices[d]);
            ck_assert_str_eq(v.where[rows[i].q], rows[i].tensor);
        }
}
END_TEST

START_TEST(a_nan_on_their_side_fails)
{
    char path[512], copy[64];
    lam_status status;
    golden(path, sizeof path, "lamemo");
    temporary(copy, sizeof copy);
    tamper(path, copy, "seg0.nll", NAN);
    const lam_verdict v = verify(copy, "ref", &status);
    unlink(copy);
    ck_assert(status == LAM_OK && v.failed && isinf(v.worst[LAM_VERIFY_NLL]));
}
END_TEST

/* A copy of a golden file in whose configuration `from` became `to`. */
static void claim(const char *path, const char *copy, const char *from, const char *to)
{
    char *bytes = NULL;
    size_t size = 0;
    must(lam_file_load(&bytes, &size, path, 1 << 24));
    uint64_t header;
    memcpy(&header, bytes, 8);
    const char *const at = memmem(bytes, size, from, strlen(from));
    ck_assert_ptr_nonnull(at);
    const size_t before = (size_t)(at - bytes), more = strlen(to) - strlen(from);
    char *changed = malloc(size + more);
    memcpy(changed, bytes, before);
    memcpy(changed + before, to, strlen(to));
    memcpy(changed + before + strlen(to), at + strlen(from), size - before - strlen(from));
    header += more;
    memcpy(changed, &header, 8);
    must(lam_file_save(copy, changed, size + more));
    free(changed);
    free(bytes);
}

/* What is not refused by its tensors is computed, with memory for the tokens that are there. */
START_TEST(a_trace_takes_no_memory_for_what_it_does_not_hold)
{
    static const struct {
        const char *file, *from, *to, *message;
    } rows[] = {
        {"xl", "mem_len\\\": 5", "mem_len\\\": 1000000", "tensor seg1.mem0 is"},
        {"lamemo", "mem_len\\\": 5", "mem_len\\\": 1000000", "tensor seg1.mem0 is"},
        {"compressive", "cmem_len\\\": 4", "cmem_len\\\": 1000000", "tensor seg2.state.cm.0 is"},
        {"infinite", "ltm_block\\\": 6", "ltm_block\\\": 1000000", "tensor seg2.state.pend.0 is"},
        {"xl", "tgt_len\\\": 5", "tgt_len\\\": 1000000", "tensor tokens has"},
        {"xl", "n_token\\\": 19", "n_token\\\": 10000000", "emb_layers.0.weight is"},
        {"xl", "segments\": \"4", "segments\": \"0", "must be at least 1"},
        {"xl", "segments\": \"4", "segments\": \"900000", "tensor tokens has"},
        {"xl", "\"B\": \"2", "\"B\": \"1000000", "tensor tokens has"}};
    lam_dev *const dev = open_device("ref");
    dev->max_memory = lam_machine_used() + ((size_t)100 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[512], copy[64];
        lam_verdict v = {0};
        golden(path, sizeof path, rows[i].file);
        temporary(copy, sizeof copy);
        claim(path, copy, rows[i].from, rows[i].to);
        lam_verify_limits(&v, dev);
        const lam_status status = lam_verify_file(&v, copy, dev);
        unlink(copy);
        ck_assert_msg(rows[i].message
                          ? status == LAM_ERR_FORMAT && strstr(lam_error(), rows[i].message) != NULL
                          : status == LAM_OK && v.failed,
                      "%s, %s: %s", rows[i].file, rows[i].to, lam_error());
    }
    dev->ops->close(dev);
}
END_TEST

/* Every prefix of the header and many flipped bytes: an error or a verdict, never a crash. */
START_TEST(broken_traces_are_refused)
{
    char path[512], copy[64];
    char *bytes = NULL;
    size_t size = 0;
    lam_status status;
    golden(path, sizeof path, "xl_heads");
    temporary(copy, sizeof copy);
    ck_assert(lam_file_load(&bytes, &size, path, 1 << 24) == LAM_OK);
    for (int i = 0; i < 40; i++) {
        const size_t cut = size * (size_t)i / 40;
        ck_assert(lam_file_save(copy, bytes, cut) == LAM_OK);
        verify(copy, "ref", &status);
        ck_assert_int_eq(status, LAM_ERR_FORMAT);
        ck_assert_msg(strstr(lam_error(), copy) != NULL, "'%s' does not name the file",
                      lam_error());
    }
    unsigned long long header = 0;
    memcpy(&header, bytes, 8);
    for (size_t i = 8; i < 8 + (size_t)header; i += 97) {
        const char was = bytes[i];
        bytes[i] = (char)(was ^ 1);
        ck_assert(lam_file_save(copy, bytes, size) == LAM_OK);
        verify(copy, "ref", &status);
        if (status != LAM_OK)
            ck_assert_uint_gt(strlen(lam_error()), 0);
        bytes[i] = was;
    }
    unlink(copy);
    free(bytes);
    verify("no/such/file", "ref", &status);
    ck_assert_int_eq(status, LAM_ERR_IO);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, ref_computes_the_trace, 0, TRACES);
    tcase_add_loop_test(tests, cpu_computes_the_trace, 0, TRACES);
    tcase_add_loop_test(tests, padded_widths_change_nothing, 0, TRACES);
    tcase_add_loop_test(tests, rounding_to_bf16_makes_moderate_errors, 0, TRACES);
    tcase_add_loop_test(tests, a_bf16_device_is_as_good_as_ref16, 0, TRACES);
    tcase_add_test(tests, an_error_beyond_ref16_fails);
    tcase_add_test(tests, a_changed_number_of_any_kind_fails);
    tcase_add_test(tests, a_nan_on_their_side_fails);
    tcase_add_test(tests, a_trace_takes_no_memory_for_what_it_does_not_hold);
    tcase_add_test(tests, broken_traces_are_refused);
    return test_run("train/verify", tests);
}
