/* limits_test.c -- shapes that are too large are refused with a message, the largest are not. */
#include "ops/cuda/limits.h"

#include "support/suite.h"

static const lam_work largest = {
    .B = LAM_CUDA_STREAMS, .H = LAM_CUDA_HEADS, .K = LAM_CUDA_HEAD, .queries = 1, .keys = 1};

START_TEST(the_largest_shapes_are_taken)
{
    must(lam_cuda_check(&largest));
}
END_TEST

START_TEST(larger_ones_are_named_with_their_limit)
{
    lam_work batch = largest, heads = largest, wide = largest;
    batch.B++;
    heads.H++;
    wide.K++;
    ck_assert_int_eq(lam_cuda_check(&batch), LAM_ERR_UNSUPPORTED);
    ck_assert_str_eq(lam_error(), "device cuda: 65536 streams (batch size), at most 65535");
    ck_assert_int_eq(lam_cuda_check(&heads), LAM_ERR_UNSUPPORTED);
    ck_assert_str_eq(lam_error(), "device cuda: 65536 heads, at most 65535");
    ck_assert_int_eq(lam_cuda_check(&wide), LAM_ERR_UNSUPPORTED);
    ck_assert_str_eq(lam_error(), "device cuda: heads (d_head) of 2049 columns, at most 2048");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, the_largest_shapes_are_taken);
    tcase_add_test(tests, larger_ones_are_named_with_their_limit);
    return test_run("ops/cuda/limits", tests);
}
