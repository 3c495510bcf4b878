/* bench_test.c -- a bench of each kind has numbers, and none of a model that computes none. */
#include "measure/bench.h"

#include "model/configure.h"
#include "support/suite.h"

#include <math.h>
#include <string.h>

static lam_status bench(lam_bench_result *out, lam_bench_kind kind, double init_std)
{
    const lam_ops *ops;
    lam_dev *dev;
    lam_config cfg;
    must(lam_config_parse(&cfg,
                          "{\"n_token\":11,\"n_layer\":1,\"n_head\":2,\"d_model\":8,\"d_head\":4,"
                          "\"d_inner\":8,\"tgt_len\":6,\"mem_len\":4,\"memory\":\"lamemo\"}",
                          "config"));
    cfg.init_std = init_std;
    must(lam_ops_find(&ops, "cpu"));
    must(ops->open(&dev, &(lam_dev_options){.threads = 1}));
    const lam_status status =
        lam_bench_run(out, &cfg, dev, &(lam_bench_options){.kind = kind, .batch = 2});
    ops->close(dev);
    return status;
}

START_TEST(what_is_reported_is_finite)
{
    lam_bench_result r;
    must(bench(&r, (lam_bench_kind)_i, 0.02));
    ck_assert_int_ge(r.rounds, 5);
    ck_assert(isfinite(r.tokens_per_second) && r.tokens_per_second > 0.0);
    ck_assert(isfinite(r.gflops) && isfinite(r.share) && isfinite(r.gemm_gflops));
}
END_TEST

START_TEST(a_model_whose_numbers_overflow_has_no_speed)
{
    lam_bench_result r;
    ck_assert_int_eq(bench(&r, (lam_bench_kind)_i, 1e38), LAM_ERR_NUMERIC);
    ck_assert_msg(strstr(lam_error(), "not finite") != NULL, "%s", lam_error());
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, what_is_reported_is_finite, LAM_BENCH_TRAIN, LAM_BENCH_GENERATE + 1);
    tcase_add_loop_test(tests, a_model_whose_numbers_overflow_has_no_speed, LAM_BENCH_TRAIN,
                        LAM_BENCH_GENERATE + 1);
    return test_run("measure/bench", tests);
}
