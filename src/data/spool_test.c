/* spool_test.c -- what goes in comes out, as often as asked, in blocks of any size. */
#include "data/spool.h"

#include "support/alloc.h"
#include "support/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { N = 300000 };
static int32_t in[N], out[N + 1];

static void fill(void)
{
    lam_rng rng = test_rng(5);
    for (int i = 0; i < N; i++) /* all lengths, the edges of each too */
        in[i] = i % 5 == 0 ? (1 << 7 * (i % 4 + 1)) - (i % 3)
                           : (int32_t)(lam_rng_u32(&rng) >> (1 + lam_rng_below(&rng, 31)));
    in[0] = 0;
    in[1] = INT32_MAX;
}

START_TEST(numbers_come_back_every_time)
{
    lam_spool *spool;
    size_t n;
    fill();
    ck_assert_int_eq(lam_spool_create(&spool, test_temp_path("")), LAM_OK);
    for (size_t at = 0; at < N; at += 9973)
        ck_assert_int_eq(lam_spool_put(spool, in + at, N - at < 9973 ? N - at : 9973), LAM_OK);
    ck_assert_int_eq(lam_spool_count(spool), N);
    for (size_t block = 1; block <= 100000; block = block * 7 + 3) {
        size_t got = 0;
        memset(out, 0xff, sizeof out);
        ck_assert_int_eq(lam_spool_rewind(spool), LAM_OK);
        do {
            const size_t room = N + 1 - got < block ? N + 1 - got : block;
            n = lam_spool_get(spool, out + got, room);
            got += n;
        } while (n > 0);
        ck_assert_uint_eq(got, N);
        ck_assert_mem_eq(in, out, sizeof in);
    }
    ck_assert_int_eq(lam_spool_rewind(spool), LAM_OK); /* leaving off half way is fine too */
    ck_assert_uint_eq(lam_spool_get(spool, out, 1000), 1000);
    ck_assert_int_eq(lam_spool_rewind(spool), LAM_OK);
    ck_assert_uint_eq(lam_spool_get(spool, out, 2000), 2000);
    ck_assert_mem_eq(in, out, 2000 * sizeof *in);
    lam_spool_free(spool);
}
END_TEST

START_TEST(an_empty_spool_ends_at_once)
{
    lam_spool *spool;
    ck_assert_int_eq(lam_spool_create(&spool, test_temp_path("")), LAM_OK);
    ck_assert_int_eq(lam_spool_rewind(spool), LAM_OK);
    ck_assert_uint_eq(lam_spool_get(spool, out, 10), 0);
    lam_spool_free(spool);
}
END_TEST

START_TEST(a_missing_folder_and_a_full_disk_are_named)
{
    lam_spool *spool;
    lam_status status = LAM_OK;
    fill();
    ck_assert_int_eq(lam_spool_create(&spool, "no/such/folder"), LAM_ERR_IO);
    ck_assert_ptr_null(spool);
    ck_assert_ptr_nonnull(strstr(lam_error(), "no/such/folder"));

    const struct rlimit small = {1 << 16, 1 << 16};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ck_assert_int_eq(lam_spool_create(&spool, test_temp_path("")), LAM_OK);
    for (int i = 0; i < 4 && status == LAM_OK; i++)
        status = lam_spool_put(spool, in, N);
    ck_assert_int_eq(status, LAM_ERR_IO);
    lam_spool_free(spool);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, numbers_come_back_every_time);
    tcase_add_test(tests, an_empty_spool_ends_at_once);
    tcase_add_test(tests, a_missing_folder_and_a_full_disk_are_named);
    return test_run("data/spool", tests);
}
