/* tokens_test.c -- corpus files: every width, every cut, every flipped bit. */
#include "data/tokens.h"

#include "support/alloc.h"
#include "support/fault.h"
#include "support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 100003 };
static int32_t in[N], out[N];

static void fill(int vocab)
{
    lam_rng rng = test_rng((uint64_t)vocab);
    for (int i = 0; i < N; i++)
        in[i] = (int32_t)lam_rng_below(&rng, (uint64_t)vocab);
    in[0] = 0;
    in[N - 1] = vocab - 1;
}

static lam_status write_file(const char *path, size_t n, int vocab)
{
    lam_tokens_writer *w;
    LAM_TRY(lam_tokens_writer_open(&w, path, "valid", vocab));
    for (size_t at = 0; at < n; at += 70001) {
        const lam_status status =
            lam_tokens_writer_put(w, in + at, n - at < 70001 ? n - at : 70001);
        if (status != LAM_OK) {
            lam_tokens_writer_abort(w);
            return status;
        }
    }
    return lam_tokens_writer_finish(w);
}

START_TEST(tokens_come_back_in_every_width)
{
    static const int vocabs[] = {1, 27, 256, 257, 65536, 65537, 267735, INT32_MAX};
    static const int widths[] = {1, 1, 1, 2, 2, 4, 4, 4};
    const char *path = test_temp_path("t.bin");
    lam_tokens t;
    fill(vocabs[_i]);
    ck_assert_int_eq(write_file(path, N, vocabs[_i]), LAM_OK);
    ck_assert_int_eq(lam_tokens_open(&t, path), LAM_OK);
    ck_assert_int_eq(t.width, widths[_i]);
    ck_assert_int_eq(t.vocab_size, vocabs[_i]);
    ck_assert_int_eq(t.count, N);
    ck_assert_str_eq(t.split, "valid");
    lam_tokens_copy(&t, out, 0, N);
    ck_assert_mem_eq(in, out, sizeof in);
    lam_tokens_copy(&t, out, 12345, 678);
    ck_assert_mem_eq(in + 12345, out, 678 * sizeof *in);
    ck_assert_int_eq(lam_tokens_verify(&t, path), LAM_OK);
    ck_assert_uint_eq(t.map.size, LAM_TOKENS_HEADER + (size_t)N * (size_t)t.width);
    lam_tokens_close(&t);
}
END_TEST

START_TEST(an_empty_split_is_a_file_too)
{
    const char *path = test_temp_path("empty.bin");
    lam_tokens t;
    ck_assert_int_eq(write_file(path, 0, 300), LAM_OK);
    ck_assert_int_eq(lam_tokens_open(&t, path), LAM_OK);
    ck_assert_int_eq(t.count, 0);
    ck_assert_int_eq(lam_tokens_verify(&t, path), LAM_OK);
    lam_tokens_close(&t);
}
END_TEST

static void save(const char *path, const void *data, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT, 0600); /* O_TRUNC would wait for the disk */
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || ftruncate(fd, (off_t)size) != 0 ||
        close(fd) != 0)
        ck_abort_msg("%s: cannot write", path);
}

START_TEST(cut_or_longer_files_are_refused)
{
    const char *path = test_temp_path("t.bin"), *bad = test_temp_path("bad.bin");
    char *whole;
    size_t size;
    lam_tokens t;
    fill(300);
    ck_assert_int_eq(write_file(path, 40, 300), LAM_OK);
    ck_assert_int_eq(lam_file_load(&whole, &size, path, 1 << 20), LAM_OK);
    ck_assert_uint_eq(size, 64 + 80);
    whole[size] = 'x'; /* the NUL that load() adds: one byte too many */
    for (size_t n = 0; n <= size + 1; n++) {
        save(bad, whole, n);
        ck_assert_int_eq(lam_tokens_open(&t, bad), n == size ? LAM_OK : LAM_ERR_FORMAT);
        ck_assert(n == size || strstr(lam_error(), "bad.bin") != NULL);
        ck_assert(n <= 64 || n >= size || strstr(lam_error(), "truncated") != NULL);
        lam_tokens_close(&t);
    }
    free(whole);
    ck_assert_int_eq(lam_tokens_open(&t, "no/such.bin"), LAM_ERR_IO);
}
END_TEST

/* A flipped bit in the header is found at once, one in the tokens when they are verified. */
START_TEST(every_flipped_bit_is_found)
{
    const char *path = test_temp_path("t.bin"), *bad = test_temp_path("bad.bin");
    char *whole;
    size_t size;
    fill(300);
    ck_assert_int_eq(write_file(path, 40, 300), LAM_OK);
    ck_assert_int_eq(lam_file_load(&whole, &size, path, 1 << 20), LAM_OK);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        lam_tokens t;
        whole[bit / 8] = (char)(whole[bit / 8] ^ 1 << bit % 8);
        save(bad, whole, size);
        lam_status status = lam_tokens_open(&t, bad);
        if (bit < 8 * 64 && status != LAM_ERR_FORMAT)
            ck_abort_msg("bit %zu of the header went unnoticed", bit);
        if (status == LAM_OK)
            status = lam_tokens_verify(&t, bad);
        if (status != LAM_ERR_FORMAT)
            ck_abort_msg("bit %zu went unnoticed", bit);
        lam_tokens_close(&t);
        whole[bit / 8] = (char)(whole[bit / 8] ^ 1 << bit % 8);
    }
    free(whole);
}
END_TEST

/* The checksum may be right and the number still not in the vocabulary: verify looks at both. */
START_TEST(numbers_outside_the_vocabulary_are_found)
{
    const char *path = test_temp_path("t.bin");
    lam_tokens t;
    fill(300);
    in[17] = 299;
    ck_assert_int_eq(write_file(path, 40, 300), LAM_OK);
    ck_assert_int_eq(lam_tokens_open(&t, path), LAM_OK);
    t.vocab_size = 299;
    ck_assert_int_eq(lam_tokens_verify(&t, path), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "is 299 in a vocabulary of 299"));
    lam_tokens_close(&t);
}
END_TEST

START_TEST(a_failed_write_leaves_nothing)
{
    const char *path = test_temp_path("never.bin");
    fill(300);
    for (int n = 1; test_fault_at(n, ENOSPC); n++) {
        const lam_status status = write_file(path, N, 300);
        if (!test_fault_happened())
            ck_assert_int_eq(status, LAM_OK);
        else
            ck_assert(status == LAM_ERR_IO && strstr(lam_error(), "never.bin") != NULL);
    }
    ck_assert(lam_path_exists(path));
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = write_file(path, 10, 300);
        test_alloc_end(status);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_loop_test(tests, tokens_come_back_in_every_width, 0, 8);
    tcase_add_test(tests, an_empty_split_is_a_file_too);
    tcase_add_test(tests, cut_or_longer_files_are_refused);
    tcase_add_test(tests, every_flipped_bit_is_found);
    tcase_add_test(tests, numbers_outside_the_vocabulary_are_found);
    tcase_add_test(tests, a_failed_write_leaves_nothing);
    return test_run("data/tokens", tests);
}
