/* background_test.c -- pieces are done in order, all of them, on another thread; a failure is the caller's. */
#include "core/background.h"

#include "support/suite.h"

#include <pthread.h>

typedef struct record {
    size_t sum, last, fail_at;
    int n, out_of_order;
    pthread_t caller;
    int same_thread;
} record;

static lam_status note(void *user, size_t from, size_t count)
{
    record *r = user;
    r->out_of_order += r->n > 0 && from != r->last + 1;
    r->last = from;
    r->sum += count;
    r->n++;
    r->same_thread |= pthread_equal(r->caller, pthread_self());
    return from == r->fail_at ? lam_fail(LAM_ERR_IO, "piece %zu is lost", from) : LAM_OK;
}

START_TEST(pieces_are_done_in_order)
{
    record r = {.fail_at = (size_t)-1, .caller = pthread_self()};
    lam_background *b;
    must(lam_background_start(&b, note, &r));
    for (size_t round = 0, next = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++, next++) /* more than wait at a time */
            lam_background_give(b, next, 2);
        must(lam_background_wait(b));
        ck_assert_int_eq(r.n, 100 * ((int)round + 1));
    }
    ck_assert_int_eq(r.out_of_order, 0);
    ck_assert_uint_eq(r.sum, 600);
    ck_assert_int_eq(r.same_thread, 0);
    ck_assert(lam_background_busy(b) >= 0.0);
    lam_background_stop(b);
}
END_TEST

START_TEST(what_comes_after_a_failure_is_dropped)
{
    record r = {.fail_at = 3, .caller = pthread_self()};
    lam_background *b;
    must(lam_background_start(&b, note, &r));
    for (size_t i = 0; i < 10; i++)
        lam_background_give(b, i, 1);
    ck_assert_int_eq(lam_background_wait(b), LAM_ERR_IO);
    ck_assert_str_eq(lam_error(), "piece 3 is lost");
    ck_assert_int_eq(r.n, 4);
    must(lam_background_wait(b)); /* reported once */
    lam_background_give(b, 4, 1);
    must(lam_background_wait(b));
    ck_assert_int_eq(r.n, 5);
    lam_background_stop(b);
}
END_TEST

START_TEST(a_thread_that_was_never_used_ends)
{
    lam_background *b;
    must(lam_background_start(&b, note, NULL));
    must(lam_background_wait(b));
    lam_background_stop(b);
    lam_background_stop(NULL);
    ck_assert(lam_background_busy(NULL) == 0.0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, pieces_are_done_in_order);
    tcase_add_test(tests, what_comes_after_a_failure_is_dropped);
    tcase_add_test(tests, a_thread_that_was_never_used_ends);
    return test_run("core/background", tests);
}
