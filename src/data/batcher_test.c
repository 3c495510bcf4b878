/* batcher_test.c -- the ordered iterator, row by row, and going on from where it was. */
#include "data/batcher.h"

#include "support/alloc.h"
#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 1037, MAX = 4096 };

static unsigned char bytes[2 * COUNT];
static lam_tokens tokens;
static int32_t in[MAX], target[MAX];

/* Token i is i itself, so that every value tells where it came from. */
static void make_tokens(void)
{
    for (int i = 0; i < COUNT; i++) {
        bytes[2 * i] = (unsigned char)i;
        bytes[2 * i + 1] = (unsigned char)(i >> 8);
    }
    tokens = (lam_tokens){
        .ids = bytes, .width = 2, .vocab_size = COUNT, .count = COUNT, .split = "train"};
}

static lam_batcher *create(int B, int N, bool roll, bool varlen)
{
    lam_batcher *b;
    const lam_batcher_options options = {B, N, roll, varlen, 42, 0, 0, 0, false};
    make_tokens();
    ck_assert_int_eq(lam_batcher_create(&b, &tokens, &options), LAM_OK);
    return b;
}

/* B (n_step - 1) tokens are predicted, each from the one before it; the rest is left out. */
START_TEST(an_epoch_covers_every_column_once)
{
    static const int Bs[] = {1, 3, 16, 518}, Ns[] = {1, 5, 64, 2000};
    const int B = Bs[_i / 4], N = Ns[_i % 4];
    const int n_step = COUNT / B;
    lam_batcher *b = create(B, N, false, false);
    ck_assert_int_eq(lam_batcher_rows(b), n_step);
    ck_assert_int_eq(lam_batcher_max_length(b), N);
    for (int epoch = 0; epoch < 2; epoch++) {
        int row = 0, n;
        while ((n = lam_batcher_next(b, in, target)) > 0) {
            ck_assert_int_eq(n, N < n_step - 1 - row ? N : n_step - 1 - row);
            for (int c = 0; c < B; c++)
                for (int t = 0; t < n; t++)
                    if (in[c * n + t] != c * n_step + row + t ||
                        target[c * n + t] != in[c * n + t] + 1)
                        ck_abort_msg("column %d, row %d: %d -> %d", c, row + t, in[c * n + t],
                                     target[c * n + t]);
            row += n;
        }
        ck_assert_int_eq(row, n_step - 1);
        ck_assert_int_eq(lam_batcher_where(b)->epoch, epoch + 1);
    }
    lam_batcher_free(b);
}
END_TEST

START_TEST(extra_rows_come_again_in_front)
{
    enum { B = 3, N = 10, E = 25 };
    lam_batcher *b;
    make_tokens();
    ck_assert_int_eq(
        lam_batcher_create(&b, &tokens,
                           &(lam_batcher_options){B, N, true, false, 42, E, 0, 0, false}),
        LAM_OK);
    const int n_step = COUNT / B;
    int row = 0, n;
    while ((n = lam_batcher_next(b, in, target)) > 0) {
        const int e = lam_batcher_extra(b), shown = e + n;
        ck_assert_int_eq(e, row < E ? row : E);
        for (int c = 0; c < B; c++)
            for (int t = 0; t < n; t++) {
                const int at = (int)((row + t + 1 + lam_batcher_shifts(b)[c]) % n_step);
                ck_assert_int_eq(target[c * n + t], c * n_step + at);
            }
        for (int c = 0; c < B; c++)
            for (int t = 0; t < shown; t++) {
                const int at = (int)((row - e + t + lam_batcher_shifts(b)[c]) % n_step);
                ck_assert_int_eq(in[c * shown + t], c * n_step + at);
            }
        row += n;
    }
    ck_assert_int_eq(row, n_step - 1);
    lam_batcher_free(b);
}
END_TEST

/* The published sizes: 32 columns of wt103 at 150, 20 of enwik8 at 512. */
START_TEST(epochs_have_the_published_number_of_batches)
{
    static const struct {
        int64_t count;
        int B, N, batches, last;
    } cases[] = {{103227021, 32, 150, 21506, 93}, {88982818, 20, 512, 8690, 371}};
    for (int i = 0; i < 2; i++) {
        const int64_t n_step = cases[i].count / cases[i].B;
        const lam_batcher_options options = {cases[i].B, cases[i].N, false, false, 0,
                                             0,          0,          0,     false};
        lam_batcher *b;
        const lam_tokens t = {.ids = calloc((size_t)cases[i].count, 1),
                              .width = 1,
                              .vocab_size = 2,
                              .count = cases[i].count,
                              .split = "train"};
        ck_assert_ptr_nonnull(t.ids);
        int32_t *buffer = malloc((size_t)(cases[i].B * cases[i].N) * sizeof *buffer);
        ck_assert_int_eq(lam_batcher_create(&b, &t, &options), LAM_OK);
        ck_assert_int_eq(lam_batcher_rows(b), n_step);
        int batches = 0, last = 0, n;
        /* jump near the end: only the last batches are read */
        lam_batcher_position p = *lam_batcher_where(b);
        p.row = (int64_t)(cases[i].batches - 2) * cases[i].N;
        ck_assert_int_eq(lam_batcher_restore(b, &p, lam_batcher_shifts(b), cases[i].B), LAM_OK);
        for (; (n = lam_batcher_next(b, buffer, buffer)) > 0; batches++)
            last = n;
        ck_assert_int_eq(batches, 2);
        ck_assert_int_eq(last, cases[i].last);
        free(buffer);
        lam_batcher_free(b);
        free((void *)t.ids);
    }
}
END_TEST

START_TEST(rolling_turns_each_column_by_itself_and_further)
{
    enum { B = 4 };
    const int n_step = COUNT / B;
    lam_batcher *b = create(B, 50, true, false);
    int64_t before[B] = {0};
    int turned = 0, apart = 0;
    for (int epoch = 0; epoch < 5; epoch++) {
        const int64_t *shifts = lam_batcher_shifts(b);
        for (int c = 0; c < B; c++) {
            ck_assert(shifts[c] >= 0 && shifts[c] < n_step);
            turned += shifts[c] != before[c];
            apart += c > 0 && shifts[c] != shifts[0];
            before[c] = shifts[c];
        }
        int row = 0, n;
        while ((n = lam_batcher_next(b, in, target)) > 0) {
            for (int c = 0; c < B; c++)
                for (int t = 0; t < n; t++) {
                    const int want = c * n_step + (int)((row + t + before[c]) % n_step);
                    const int next = c * n_step + (int)((row + t + 1 + before[c]) % n_step);
                    if (in[c * n + t] != want || target[c * n + t] != next)
                        ck_abort_msg("epoch %d, column %d, row %d", epoch, c, row + t);
                }
            row += n;
        }
    }
    ck_assert_int_gt(turned, 15);
    ck_assert_int_gt(apart, 10);
    lam_batcher_free(b);
}
END_TEST

START_TEST(varying_lengths_stay_in_their_bounds)
{
    enum { B = 1, N = 40 };
    lam_batcher *b = create(B, N, false, true);
    ck_assert_int_eq(lam_batcher_max_length(b), N + 15);
    int seen[N + 16] = {0}, n, half = 0, total = 0;
    for (int epoch = 0; epoch < 400; epoch++) {
        int row = 0;
        while ((n = lam_batcher_next(b, in, target)) > 0) {
            ck_assert_int_le(n, N + 15);
            if (in[0] != row || target[n - 1] != row + n)
                ck_abort_msg("a batch at row %d does not follow the last one", row);
            row += n;
            if (row < COUNT - 2) { /* not the shortened last one */
                if (n < 5)
                    ck_abort_msg("a batch of %d rows", n);
                seen[n]++;
                half += n < 30;
                total++;
            }
        }
        ck_assert_int_ge(row, COUNT - 2);
    }
    ck_assert_int_gt(seen[N], total / 20); /* the middle of the bell */
    ck_assert_int_gt(half, total / 40);    /* 5 % are about half as long */
    ck_assert_int_lt(half, total / 10);
    lam_batcher_free(b);
}
END_TEST

/* Saved and restored at any batch, the rest is the same to the last token. */
START_TEST(a_restored_batcher_goes_on_exactly)
{
    enum { B = 3, N = 37, SHOWN = 60 };
    const bool varlen = _i % 2 != 0;
    lam_batcher *a = create(B, N, true, varlen), *b = create(B, N, true, varlen);
    static int32_t first[MAX], second[MAX];
    for (int i = 0; i < _i * 3; i++)
        lam_batcher_next(a, in, target);
    int64_t shifts[B];
    const lam_batcher_position p = *lam_batcher_where(a);
    memcpy(shifts, lam_batcher_shifts(a), sizeof shifts);
    ck_assert_int_eq(lam_batcher_restore(b, &p, shifts, B), LAM_OK);
    for (int i = 0; i < SHOWN; i++) {
        const int n = lam_batcher_next(a, in, target);
        ck_assert_int_eq(lam_batcher_next(b, first, second), n);
        ck_assert_mem_eq(in, first, (size_t)(B * n) * sizeof *in);
        ck_assert_mem_eq(target, second, (size_t)(B * n) * sizeof *in);
    }
    lam_batcher_free(a);
    lam_batcher_free(b);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    lam_batcher *b = create(4, 10, true, false), *none;
    const lam_batcher_options wide = {COUNT / 2 + 1, 10, false, false, 0, 0, 0, 0, false};
    ck_assert_int_eq(lam_batcher_create(&none, &tokens, &wide), LAM_ERR_ARG);
    ck_assert_ptr_null(none);
    ck_assert_ptr_nonnull(strstr(lam_error(), "too few for 519 streams"));

    const lam_batcher_position good = *lam_batcher_where(b);
    int64_t shifts[4];
    memcpy(shifts, lam_batcher_shifts(b), sizeof shifts);
    lam_batcher_position p = good;
    ck_assert_int_eq(lam_batcher_restore(b, &p, shifts, 3), LAM_ERR_FORMAT);
    p.row = COUNT / 4;
    ck_assert_int_eq(lam_batcher_restore(b, &p, shifts, 4), LAM_ERR_FORMAT);
    p.row = -1;
    ck_assert_int_eq(lam_batcher_restore(b, &p, shifts, 4), LAM_ERR_FORMAT);
    shifts[2] = COUNT / 4;
    ck_assert_int_eq(lam_batcher_restore(b, &good, shifts, 4), LAM_ERR_FORMAT);
    ck_assert_mem_eq(lam_batcher_where(b), &good, sizeof good); /* nothing was taken over */
    lam_batcher_free(b);
}
END_TEST

/* Whoever reads some of the streams sees in them what a reader of all does, epoch after epoch. */
START_TEST(some_of_the_streams_are_those_of_all)
{
    enum { B = 6, N = 7, FIRST = 2, ONLY = 3, E = 3 };
    int32_t in_some[ONLY * (N + E)], target_some[ONLY * N];
    lam_batcher *all, *some;
    make_tokens();
    const lam_batcher_options options = {B, N, true, false, 42, E, 0, 0, false};
    lam_batcher_options part = options;
    part.first = FIRST;
    part.only = ONLY;
    ck_assert_int_eq(lam_batcher_create(&all, &tokens, &options), LAM_OK);
    ck_assert_int_eq(lam_batcher_create(&some, &tokens, &part), LAM_OK);
    for (int batch = 0; batch < 60; batch++) {
        const int n = lam_batcher_next(all, in, target);
        ck_assert_int_eq(lam_batcher_next(some, in_some, target_some), n);
        const int shown = lam_batcher_extra(all) + n;
        if (n == 0)
            continue;
        ck_assert_mem_eq(in_some, in + FIRST * shown, sizeof *in * (size_t)(ONLY * shown));
        ck_assert_mem_eq(target_some, target + FIRST * n, sizeof *target * (size_t)(ONLY * n));
    }
    ck_assert_int_gt(lam_batcher_where(all)->epoch, 0);
    ck_assert_mem_eq(lam_batcher_shifts(all), lam_batcher_shifts(some), B * sizeof(int64_t));
    lam_batcher_free(all);
    lam_batcher_free(some);
}
END_TEST

START_TEST(without_memory_it_fails_cleanly)
{
    const lam_batcher_options options = {4, 10, true, false, 0, 0, 0, 0, false};
    make_tokens();
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_batcher *b;
        const lam_status status = lam_batcher_create(&b, &tokens, &options);
        const int failed = test_alloc_end(status);
        ck_assert((b == NULL) == failed);
        lam_batcher_free(b);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, an_epoch_covers_every_column_once, 0, 12);
    tcase_add_test(tests, epochs_have_the_published_number_of_batches);
    tcase_add_test(tests, rolling_turns_each_column_by_itself_and_further);
    tcase_add_test(tests, varying_lengths_stay_in_their_bounds);
    tcase_add_loop_test(tests, a_restored_batcher_goes_on_exactly, 0, 8);
    tcase_add_test(tests, extra_rows_come_again_in_front);
    tcase_add_test(tests, what_does_not_fit_is_refused);
    tcase_add_test(tests, some_of_the_streams_are_those_of_all);
    tcase_add_test(tests, without_memory_it_fails_cleanly);
    return test_run("data/batcher", tests);
}
