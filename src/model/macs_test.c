/* macs_test.c -- the paper's Table 1, and the count of a step against a count of its operations. */
#include "model/macs.h"

#include "model/configure.h"
#include "support/suite.h"

#include <math.h>
#include <string.h>

START_TEST(table_1_comes_out)
{
    const struct {
        const char *memory;
        double ours, paper;
    } rows[] = {{"none", 149.57, 148},
                {"xl", 157.90, 157},
                {"compressive", 168.92, 169},
                {"lamemo", 192.32, 191},
                {"infinite", 183.8, 0}};
    lam_config cfg;
    double last = 0.0;
    ck_assert(lam_config_preset(&cfg, "wt103-base", "xl") == LAM_OK);
    for (int i = 0; i < 5; i++) {
        const double millions = lam_macs_token(&cfg, rows[i].memory).total / 1e6;
        ck_assert_msg(fabs(millions - rows[i].ours) < (i < 4 ? 0.01 : 0.1), "%s: %.3f",
                      rows[i].memory, millions);
        if (i < 4) {
            ck_assert_double_lt(fabs(millions / rows[i].paper - 1.0), 0.015);
            ck_assert_double_gt(millions, last);
            last = millions;
        }
    }
}
END_TEST

START_TEST(parts_add_up)
{
    const char *const memories[] = {"none", "xl", "compressive", "infinite", "lamemo"};
    for (int i = 0; i < 5; i++) {
        lam_config cfg;
        ck_assert(lam_config_preset(&cfg, "small", memories[i]) == LAM_OK);
        const lam_macs m = lam_macs_token(&cfg, cfg.memory);
        ck_assert_double_eq_tol(m.total,
                                m.project + m.ffn + m.attention + m.memory + m.look_ahead +
                                    m.softmax + m.external,
                                1e-3);
        ck_assert_double_gt(lam_macs_step(&cfg, 8), 2.5 * lam_macs_segment(&cfg, 8));
        ck_assert_double_lt(lam_macs_step(&cfg, 8), 3.2 * lam_macs_segment(&cfg, 8));
    }
}
END_TEST

/* Every slot-key pair of the look-ahead attention, counted one by one. */
START_TEST(look_ahead_pairs_are_counted_right)
{
    for (int N = 1; N < 9; N++)
        for (int M = 1; M < 20; M++) {
            lam_config cfg;
            ck_assert(lam_config_preset(&cfg, "tiny", "lamemo") == LAM_OK);
            cfg.tgt_len = N;
            cfg.mem_len = M;
            long pairs = 0;
            for (int i = 0; i < M; i++)
                for (int j = M - N + 1 > 1 ? M - N + 1 : 1; j <= M; j++)
                    pairs += j > i;
            const double want = 3.0 * cfg.n_layer * cfg.n_head * cfg.d_head * (double)pairs / N;
            ck_assert_double_eq_tol(lam_macs_token(&cfg, "lamemo").look_ahead, want, 1e-6 * want);
        }
}
END_TEST

/* A segment with extra rows is a longer one whose first rows have no softmax. */
START_TEST(extra_rows_cost_all_but_the_softmax)
{
    for (int i = 0; i < 2; i++) {
        lam_config cfg, longer;
        ck_assert(lam_config_preset(&cfg, "tiny", i ? "xl" : "none") == LAM_OK);
        longer = cfg;
        cfg.ext_len = 20;
        longer.tgt_len += 20;
        const lam_macs a = lam_macs_token(&cfg, cfg.memory),
                       b = lam_macs_token(&longer, cfg.memory);
        ck_assert_double_eq_tol(a.total * cfg.tgt_len, b.total * longer.tgt_len - 20 * b.softmax,
                                1.0);
        ck_assert_double_eq_tol(lam_macs_step(&cfg, 3),
                                lam_macs_step(&longer, 3) - 3.0 * 3 * 20 * b.softmax, 1.0);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, table_1_comes_out);
    tcase_add_test(tests, parts_add_up);
    tcase_add_test(tests, look_ahead_pairs_are_counted_right);
    tcase_add_test(tests, extra_rows_cost_all_but_the_softmax);
    return test_run("model/macs", tests);
}
