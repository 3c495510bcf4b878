/* table_test.c -- the reference device: memory, scratch, and failure. */
#include "core/arena.h"
#include "ops/ref/ref.h"
#include "support/alloc.h"
#include "support/gradient.h"
#include "support/suite.h"

#include <stdint.h>
#include <string.h>

START_TEST(every_slot_of_the_table_is_filled)
{
    /* The table is nothing but two strings and function pointers. */
    const size_t slots = sizeof(lam_ops) / sizeof(void (*)(void));
    void (*slot[sizeof(lam_ops) / sizeof(void (*)(void))])(void);
    memcpy(slot, &lam_ops_ref, sizeof slot);
    for (size_t i = 0; i < slots; i++)
        ck_assert_msg(slot[i] != NULL, "slot %zu is empty", i);
}
END_TEST

START_TEST(memory_is_aligned_and_zero)
{
    for (size_t bytes = 0; bytes < 300; bytes += 37) {
        unsigned char *p;
        ck_assert_int_eq(lam_ops_ref.alloc(test_ref, (void **)&p, bytes), LAM_OK);
        ck_assert_uint_eq((uintptr_t)p % LAM_ALIGN, 0);
        for (size_t i = 0; i < bytes; i++)
            ck_assert_uint_eq(p[i], 0);
        lam_ops_ref.release(test_ref, p);
    }
}
END_TEST

START_TEST(too_much_memory_is_refused_by_name)
{
    void *p = &p;
    ck_assert_int_eq(lam_ops_ref.alloc(test_ref, &p, SIZE_MAX), LAM_ERR_MEMORY);
    ck_assert_ptr_null(p);
    ck_assert_ptr_nonnull(strstr(lam_error(), "needs 18446744 TB of memory"));
}
END_TEST

START_TEST(failing_allocations_leave_nothing_behind)
{
    const lam_work work = {.keys = 1000};
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_dev *dev = NULL;
        void *p = NULL;
        lam_status st = lam_ops_ref.open(&dev, &(lam_dev_options){0});
        if (st == LAM_OK)
            st = lam_ops_ref.reserve(dev, &work);
        if (st == LAM_OK)
            st = lam_ops_ref.alloc(dev, &p, 100);
        test_alloc_end(st);
        lam_ops_ref.release(dev, p);
        lam_ops_ref.close(dev);
    }
}
END_TEST

START_TEST(a_smaller_plan_takes_nothing_away)
{
    const lam_work small = {.keys = 10}, large = {.keys = 1000};
    lam_dev *dev;
    ck_assert_int_eq(lam_ops_ref.open(&dev, &(lam_dev_options){0}), LAM_OK);
    ck_assert_int_eq(lam_ops_ref.reserve(dev, &large), LAM_OK);
    ck_assert_int_eq(lam_ops_ref.reserve(dev, &small), LAM_OK);
    ck_assert_uint_ge(((lam_ref_dev *)dev)->n_scores, 1000);
    ck_assert_uint_eq(lam_ops_ref.reserve_bytes(dev, &large), 1000 * sizeof(double));
    lam_ops_ref.close(dev);
    lam_ops_ref.close(NULL);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_test(tests, every_slot_of_the_table_is_filled);
    tcase_add_test(tests, memory_is_aligned_and_zero);
    tcase_add_test(tests, too_much_memory_is_refused_by_name);
    tcase_add_test(tests, failing_allocations_leave_nothing_behind);
    tcase_add_test(tests, a_smaller_plan_takes_nothing_away);
    return test_run("ops/ref/table", tests);
}
