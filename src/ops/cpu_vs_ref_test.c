/* cpu_vs_ref_test.c -- ops/cpu computes what ops/ref specifies, to twice the error of a plain loop.
 *
 * The cases, and what they compare, are in tests/support/opcases.h.  Each family is a test of its
 * own; the seed is in the report. */
#include "support/opcases.h"
#include "support/suite.h"

extern const lam_ops lam_ops_cpu;

static const char *const families[] = {
    "device",      "gemm",      "norm_fwd", "norm_bwd",    "relu_bwd",    "dropout",
    "copy",        "colsum",    "attn_fwd", "attn_bwd",    "interp_fwd",  "interp_bwd",
    "embed_fwd",   "embed_bwd", "xent",     "gather",      "scatter",     "gnorm",
    "update",      "pool",      "distance", "gate_fwd",    "gate_bwd",    "density_fwd",
    "density_bwd", "sticky",    "profile",  "gemm_narrow", "attn_narrow", "embed_narrow",
};
enum { FAMILIES = sizeof families / sizeof *families };

/* Three threads, so that chunks are shared out unevenly; the cases repeat everything with one. */
START_TEST(cpu_agrees_with_ref)
{
    const lam_dev_options three = {.threads = 3};
    ck_assert_int_eq(lam_opcases_run_on(&lam_ops_cpu, &three, families[_i], stdout), 0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, cpu_agrees_with_ref, 0, FAMILIES);
    return test_run("ops/cpu against ops/ref", tests);
}
