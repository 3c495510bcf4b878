/* cpu_levels_test.c -- which code of ops/cpu runs: the highest level, or the one that LAMEMO_ISA names. */
#include "ops/cpu_levels.h"
#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

START_TEST(the_highest_level_runs_unless_another_is_named)
{
    int n;
    const lam_cpu_level *const levels = lam_cpu_levels(&n);
    const lam_ops *chosen, *highest = NULL;
    unsetenv("LAMEMO_ISA");
    for (int i = 0; i < n; i++)
        if (lam_cpu_level_runs(levels[i].name))
            highest = levels[i].ops;
    ck_assert_int_eq(lam_cpu_choose(&chosen), LAM_OK);
    ck_assert_ptr_eq(chosen, highest);
    setenv("LAMEMO_ISA", "", 1); /* as if it were not set */
    ck_assert_int_eq(lam_ops_find(&chosen, "cpu"), LAM_OK);
    ck_assert_ptr_eq(chosen, highest);
    for (int i = 0; i < n; i++) {
        setenv("LAMEMO_ISA", levels[i].name, 1);
        const lam_status status = lam_ops_find(&chosen, "cpu");
        if (lam_cpu_level_runs(levels[i].name)) {
            ck_assert_int_eq(status, LAM_OK);
            ck_assert_ptr_eq(chosen, levels[i].ops);
            ck_assert_str_eq(chosen->name, "cpu");
            ck_assert_ptr_nonnull(strstr(chosen->summary, levels[i].name));
        } else {
            ck_assert_int_eq(status, LAM_ERR_ARG);
            ck_assert_ptr_nonnull(strstr(lam_error(), "this machine lacks"));
        }
    }
}
END_TEST

START_TEST(a_level_that_is_not_there_is_refused_by_name)
{
    const lam_ops *chosen;
    setenv("LAMEMO_ISA", "x86-64-v9", 1);
    ck_assert_int_eq(lam_ops_find(&chosen, "cpu"), LAM_ERR_ARG);
    ck_assert_ptr_null(chosen);
    ck_assert_ptr_nonnull(strstr(lam_error(), "LAMEMO_ISA=x86-64-v9: this build has "));
    ck_assert_int_eq(lam_ops_find(&chosen, "ref"), LAM_OK); /* is not asked */
}
END_TEST

/* A machine with everything, as Zen 5 and its Linux report it. */
static const lam_cpu_facts everything = {0xfffa3203, 0xf1bf97a9, 0x75c237ff, 0x2e7};

typedef struct lack {
    lam_cpu_facts without; /* bits that are not there */
    int v2, v3, v4;        /* what runs then */
} lack;

static const lack lacks[] = {
    {{0}, 1, 1, 1},
    {{.ecx1 = 1u << 20}, 0, 0, 0},    /* SSE4.2 */
    {{.ecx1 = 1u << 23}, 0, 0, 0},    /* POPCNT */
    {{.ecx1 = 1u << 12}, 1, 0, 0},    /* FMA */
    {{.ecx1 = 1u << 29}, 1, 0, 0},    /* F16C */
    {{.extended = 1u << 5}, 1, 0, 0}, /* LZCNT */
    {{.ebx7 = 1u << 5}, 1, 0, 0},     /* AVX2 */
    {{.ebx7 = 1u << 30}, 1, 1, 0},    /* AVX512BW */
    {{.ebx7 = 1u << 31}, 1, 1, 0},    /* AVX512VL */
    /* The processor has it all, the operating system does not save it. */
    {{.saved = 0xe0}, 1, 1, 0},
    {{.saved = 0x80}, 1, 1, 0}, /* the upper sixteen registers */
    {{.saved = 0x4}, 1, 0, 0},
    {{.saved = ~UINT64_C(0)}, 1, 0, 0},
    {{.ecx1 = 1u << 27, .saved = ~UINT64_C(0)}, 1, 0, 0}, /* no XSAVE, so no XCR0 */
};

START_TEST(a_level_needs_the_processor_and_the_operating_system)
{
    const lack *const l = &lacks[_i];
    const lam_cpu_facts f = {everything.ecx1 & ~l->without.ecx1, everything.ebx7 & ~l->without.ebx7,
                             everything.extended & ~l->without.extended,
                             everything.saved & ~l->without.saved};
    ck_assert_int_eq(lam_cpu_facts_allow(&f, "x86-64-v2"), l->v2);
    ck_assert_int_eq(lam_cpu_facts_allow(&f, "x86-64-v3"), l->v3);
    ck_assert_int_eq(lam_cpu_facts_allow(&f, "x86-64-v4"), l->v4);
    ck_assert_int_eq(lam_cpu_facts_allow(&f, "native"), 1);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, the_highest_level_runs_unless_another_is_named);
    tcase_add_test(tests, a_level_that_is_not_there_is_refused_by_name);
    tcase_add_loop_test(tests, a_level_needs_the_processor_and_the_operating_system, 0,
                        (int)(sizeof lacks / sizeof *lacks));
    return test_run("ops/cpu_levels", tests);
}
