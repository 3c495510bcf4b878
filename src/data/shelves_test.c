/* shelves_test.c -- documents over streams: every token once, evenly, from a segment's start, and again after a pause. */
#include "data/shelves.h"

#include "data/batcher.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

enum { V = 9, SEPARATOR = 2, MOST = 700, SEED = 5, ROOM = 4096 };

static unsigned char ids[MOST];
static lam_tokens tokens;

/* Documents of 1 to 40 tokens; the last one has no separator. */
static void make_tokens(void)
{
    lam_rng rng = {.key = SEED};
    int n = 0;
    while (n < MOST - 50) {
        for (uint64_t left = lam_rng_below(&rng, 40); left > 0; left--)
            ids[n++] = (unsigned char)((SEPARATOR + 1 + lam_rng_below(&rng, V - 1)) % V);
        ids[n++] = SEPARATOR;
    }
    ids[n++] = 0;
    tokens = (lam_tokens){.ids = ids,
                          .width = 1,
                          .vocab_size = V,
                          .count = n,
                          .separator = SEPARATOR,
                          .split = "train"};
}

START_TEST(every_token_is_in_one_document_of_one_stream)
{
    make_tokens();
    for (int streams = 1; streams < 60; streams += 7)
        for (int shuffled = 0; shuffled < 2; shuffled++) {
            lam_shelves s;
            lam_rng rng = {.key = SEED};
            char seen[MOST] = {0};
            int64_t total = 0, longest = 0, most = 0;
            must(lam_shelves_create(&s, &tokens, streams));
            lam_shelves_deal(&s, 4, shuffled ? &rng : NULL);
            ck_assert_int_eq(s.first[0], 0);
            ck_assert_int_eq(s.first[streams], s.n);
            for (int b = 0; b < streams; b++) {
                int64_t segments = 0;
                for (int64_t d = s.first[b]; d < s.first[b + 1]; d++) {
                    for (int64_t i = 0; i < s.list[d].count; i++)
                        ck_assert_int_eq(seen[s.list[d].start + i]++, 0);
                    if (!shuffled && d > s.first[b])
                        ck_assert(s.list[d].start > s.list[d - 1].start);
                    segments += (s.list[d].count + 3) / 4;
                    longest = s.list[d].segments > longest ? s.list[d].segments : longest;
                }
                total += segments;
                most = segments > most ? segments : most;
            }
            ck_assert_ptr_null(memchr(seen, 0, (size_t)tokens.count));
            ck_assert_int_eq(s.rows, 4 * most);
            /* no stream has more than its share and one document */
            ck_assert_int_le(most, total / streams + longest);
            lam_shelves_free(&s);
        }
}
END_TEST

static lam_batcher *open_batcher(int B, int N, bool roll, bool varlen)
{
    lam_batcher *b;
    make_tokens();
    must(lam_batcher_create(&b, &tokens,
                            &(lam_batcher_options){.streams = B,
                                                   .length = N,
                                                   .roll = roll,
                                                   .varlen = varlen,
                                                   .seed = SEED,
                                                   .documents = true}));
    return b;
}

/* Inputs run one behind the targets and begin with the separator; all that counts is counted. */
static int64_t check_batch(const lam_batcher *b, int B, int n, const int32_t *in,
                           const int32_t *want, int32_t *last)
{
    const lam_stream_rows *streams = lam_batcher_streams(b);
    int64_t count = 0;
    for (int c = 0; c < B; c++) {
        const int rows = streams[c].rows;
        ck_assert_int_le(rows, n);
        for (int i = 0; i < n; i++) {
            const int32_t x = in[c * n + i], y = want[c * n + i];
            const int32_t before = i > 0              ? want[c * n + i - 1]
                                   : streams[c].fresh ? SEPARATOR
                                                      : last[c];
            ck_assert_int_eq(x, i < rows ? before : SEPARATOR);
            ck_assert(i < rows ? y >= 0 && y < V : y == LAM_NO_TARGET);
            ck_assert(i + 1 >= rows || y != SEPARATOR); /* a document ends with its batch's rows */
        }
        last[c] = rows > 0 ? want[c * n + rows - 1] : SEPARATOR;
        count += rows;
    }
    ck_assert_int_eq(count, lam_batcher_targets(b, 0));
    return count;
}

START_TEST(an_epoch_predicts_every_token_once)
{
    const int B = 1 + _i % 4 * 3, N = 2 + 5 * (_i % 3);
    const bool roll = _i % 2, varlen = _i / 2 % 2;
    int32_t in[ROOM], want[ROOM], last[16] = {0};
    lam_batcher *b = open_batcher(B, N, roll, varlen);
    for (int epoch = 0; epoch < 3; epoch++) {
        int64_t count = 0, seen[V] = {0};
        int n;
        while ((n = lam_batcher_next(b, in, want)) > 0) {
            count += check_batch(b, B, n, in, want, last);
            for (int i = 0; i < B * n; i++)
                if (want[i] >= 0)
                    seen[want[i]]++;
        }
        ck_assert_int_eq(count, tokens.count);
        for (int64_t i = 0; i < tokens.count; i++)
            seen[ids[i]]--;
        for (int v = 0; v < V; v++)
            ck_assert_int_eq(seen[v], 0);
    }
    lam_batcher_free(b);
}
END_TEST

START_TEST(it_goes_on_from_where_it_was)
{
    const int B = 3, N = 5;
    int32_t in[2][ROOM], want[2][ROOM];
    lam_batcher *a = open_batcher(B, N, _i % 2, _i / 2), *b = open_batcher(B, N, _i % 2, _i / 2);
    for (int step = 0; step < 150; step++) {
        const lam_batcher_position at = *lam_batcher_where(a);
        must(lam_batcher_restore(b, &at, lam_batcher_shifts(a), B));
        const int n = lam_batcher_next(a, in[0], want[0]);
        ck_assert_int_eq(n, lam_batcher_next(b, in[1], want[1]));
        ck_assert_mem_eq(in[0], in[1], (size_t)(B * n) * sizeof(int32_t));
        ck_assert_mem_eq(want[0], want[1], (size_t)(B * n) * sizeof(int32_t));
    }
    ck_assert_int_gt(lam_batcher_where(a)->epoch, 0);
    const int64_t far[] = {0, 0, MOST};
    ck_assert_int_eq(lam_batcher_restore(b, lam_batcher_where(a), far, B), LAM_ERR_FORMAT);
    lam_batcher_free(a);
    lam_batcher_free(b);
}
END_TEST

START_TEST(what_has_no_documents_is_refused)
{
    lam_batcher *b;
    const lam_batcher_options options = {.streams = 2, .length = 4, .documents = true};
    lam_batcher_options extended = options;
    make_tokens();
    extended.extra = 3;
    ck_assert_int_eq(lam_batcher_create(&b, &tokens, &extended), LAM_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lam_error(), "ext_len 3"));
    tokens.separator = -1;
    ck_assert_int_eq(lam_batcher_create(&b, &tokens, &options), LAM_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lam_error(), "--documents"));
    ck_assert_ptr_null(b);
    tokens.separator = SEPARATOR;
    tokens.count = 0;
    ck_assert_int_eq(lam_batcher_create(&b, &tokens, &options), LAM_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lam_error(), "train split has no documents"));
}
END_TEST

START_TEST(without_memory_it_fails_cleanly)
{
    make_tokens();
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_batcher *b;
        const lam_batcher_options options = {.streams = 2, .length = 4, .documents = true};
        const lam_status status = lam_batcher_create(&b, &tokens, &options);
        test_alloc_end(status);
        lam_batcher_free(b);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, every_token_is_in_one_document_of_one_stream);
    tcase_add_loop_test(tests, an_epoch_predicts_every_token_once, 0, 12);
    tcase_add_loop_test(tests, it_goes_on_from_where_it_was, 0, 4);
    tcase_add_test(tests, what_has_no_documents_is_refused);
    tcase_add_test(tests, without_memory_it_fails_cleanly);
    return test_run("data/shelves", tests);
}
