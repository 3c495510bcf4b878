/* bpe_train_test.c -- merges by hand, counts that do not depend on threads, bounds, and text that spells <|endoftext|>. */
#include "data/bpe_train.h"

#include "data/piece_counts.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct counted {
    const char *piece;
    int64_t count;
} counted;

static lam_vocab *train(const counted *list, int n, int size, int64_t min_count)
{
    lam_symbols *pieces;
    int64_t counts[64];
    int32_t id;
    lam_vocab *v;
    must(lam_symbols_create(&pieces));
    for (int i = 0; i < n; i++) {
        must(lam_symbols_add(pieces, list[i].piece, strlen(list[i].piece), &id));
        counts[id] = list[i].count;
    }
    const lam_bpe_training o = {.pattern = "\\S+|\\s", .size = size, .min_count = min_count};
    must(lam_bpe_train(&v, pieces, counts, &o));
    lam_symbols_free(pieces);
    return v;
}

/* "l+o lo+w ..." */
static const char *merges_of(const lam_vocab *v)
{
    static char out[1024];
    const lam_bpe_rules *r = lam_bpe_rules_of(lam_vocab_bpe(v));
    size_t n = 0, size;
    out[0] = '\0';
    for (size_t i = 0; i < r->n_merges; i++) {
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", i > 0 ? " " : "",
                              lam_vocab_symbol(v, r->merges[i].left, &size));
        n += (size_t)snprintf(out + n, sizeof out - n, "+%s",
                              lam_vocab_symbol(v, r->merges[i].right, &size));
    }
    return out;
}

/* e+s and s+t occur 9 times, e comes before s; l+o and o+w 7 times; e+w, n+e and w+est 6 times; ... */
START_TEST(the_classic_example)
{
    static const counted words[] = {{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}};
    lam_vocab *v = train(words, 4, 257 + 7, 1);
    ck_assert_str_eq(merges_of(v), "e+s es+t l+o lo+w e+w n+ew new+est");
    ck_assert_int_eq(lam_vocab_size(v), 264);
    size_t size;
    ck_assert_str_eq(lam_vocab_symbol(v, 256, &size), "es");
    ck_assert_str_eq(lam_vocab_symbol(v, 262, &size), "newest");
    ck_assert_str_eq(lam_vocab_symbol(v, 263, &size), LAM_END_OF_TEXT);
    ck_assert_int_eq(lam_vocab_eos(v), 263);
    lam_vocab_free(v);
}
END_TEST

START_TEST(rare_pairs_are_left)
{
    static const counted words[] = {{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}};
    lam_vocab *v = train(words, 4, 1000, 7);
    ck_assert_str_eq(merges_of(v), "e+s es+t l+o lo+w");
    ck_assert_int_eq(lam_vocab_size(v), 261);
    lam_vocab_free(v);
    v = train(words, 4, 1000, 1); /* in the end every piece is one token */
    ck_assert_int_ge(lam_vocab_find(v, "widest", 6), 256);
    ck_assert_int_ge(lam_vocab_find(v, "lower", 5), 256);
    lam_vocab_free(v);
    v = train(words, 4, LAM_BPE_SMALLEST, 1);
    ck_assert_int_eq(lam_vocab_size(v), 257);
    lam_vocab_free(v);
}
END_TEST

/* Runs: "aaaa" has a+a three times at first, but two merges. */
START_TEST(overlapping_pairs_are_counted_once_merged)
{
    static const counted runs[] = {{"aaaaa", 3}, {"aab", 10}, {"ba", 11}};
    lam_vocab *v = train(runs, 3, 257 + 4, 1);
    /* a+a 4*3+10 = 22; then aa+b 10, aa+aa 3, aa+a 3, b+a 11 */
    ck_assert_str_eq(merges_of(v), "a+a b+a aa+b aa+a");
    lam_vocab_free(v);
}
END_TEST

/* Two ways to the same bytes: "abc" is ab+c where ab is common, a+bc elsewhere; one token, two merges. */
START_TEST(one_token_may_come_of_two_merges)
{
    static const counted words[] = {{"ab", 100}, {"abc", 60}, {"xbc", 200}, {"bcy", 90}};
    /* b+c 350 > a+b 160: bc first, then x+bc 200, a+b 100, bc+y 90, a+bc 60; */
    lam_vocab *v = train(words, 4, 1000, 1);
    ck_assert_str_eq(merges_of(v), "b+c x+bc a+b bc+y a+bc");
    lam_vocab_free(v);
    static const counted both[] = {{"ab", 100}, {"cab", 50}, {"ca", 90}, {"caz", 95}, {"cabz", 60}};
    v = train(both, 5, 1000, 1);
    const lam_bpe_rules *r = lam_bpe_rules_of(lam_vocab_bpe(v));
    ck_assert_uint_ge((size_t)lam_vocab_size(v), 257 + 4);
    ck_assert_uint_ge(r->n_merges, (size_t)lam_vocab_size(v) - 257);
    lam_vocab_free(v);
}
END_TEST

/* ---- comparison with a naive implementation that recounts all pairs for every merge ---- */

typedef struct plain {
    int32_t ids[40];
    int n;
    int64_t count;
} plain;

static void plain_best(const plain *words, int n, lam_merge *best, int64_t *most)
{
    *most = 0;
    for (int w = 0; w < n; w++)
        for (int i = 0; i + 1 < words[w].n; i++) {
            const lam_merge m = {words[w].ids[i], words[w].ids[i + 1]};
            int64_t sum = 0;
            for (int x = 0; x < n; x++)
                for (int k = 0; k + 1 < words[x].n; k++)
                    sum += words[x].ids[k] == m.left && words[x].ids[k + 1] == m.right
                               ? words[x].count
                               : 0;
            if (sum > *most || (sum == *most && (m.left < best->left || (m.left == best->left &&
                                                                         m.right < best->right)))) {
                *most = sum;
                *best = m;
            }
        }
}

static void plain_merge(plain *words, int n, lam_merge m, int32_t into)
{
    for (int w = 0; w < n; w++) {
        int kept = 0;
        for (int i = 0; i < words[w].n; i++) {
            const bool found =
                i + 1 < words[w].n && words[w].ids[i] == m.left && words[w].ids[i + 1] == m.right;
            words[w].ids[kept++] = found ? into : words[w].ids[i];
            i += found;
        }
        words[w].n = kept;
    }
}

START_TEST(counts_kept_up_to_date_give_the_same_merges)
{
    lam_rng rng = test_rng(17);
    for (int round = 0; round < 40; round++) {
        plain words[12];
        lam_symbols *pieces;
        int64_t counts[12];
        lam_vocab *v;
        must(lam_symbols_create(&pieces));
        int n = 0;
        for (int i = 0; i < 12; i++) {
            char text[40];
            int32_t id;
            const int size = 1 + (int)lam_rng_below(&rng, 24);
            for (int k = 0; k < size; k++)
                text[k] = "aaabbc"[lam_rng_below(&rng, 6)];
            must(lam_symbols_add(pieces, text, (size_t)size, &id));
            if (id < n)
                continue;
            words[n] = (plain){.n = size, .count = 1 + (int64_t)lam_rng_below(&rng, 3)};
            counts[n] = words[n].count;
            for (int k = 0; k < size; k++)
                words[n].ids[k] = text[k];
            n++;
        }
        const lam_bpe_training o = {.pattern = ".+", .size = 300, .min_count = 2};
        must(lam_bpe_train(&v, pieces, counts, &o));
        const lam_bpe_rules *r = lam_bpe_rules_of(lam_vocab_bpe(v));
        for (size_t i = 0; i < r->n_merges; i++) {
            lam_merge best = {0};
            int64_t most;
            char both[64];
            size_t a, b;
            plain_best(words, n, &best, &most);
            ck_assert_int_ge(most, 2);
            ck_assert_int_eq(r->merges[i].left, best.left);
            ck_assert_int_eq(r->merges[i].right, best.right);
            const char *text = lam_vocab_symbol(v, best.left, &a);
            memcpy(both, text, a);
            text = lam_vocab_symbol(v, best.right, &b);
            memcpy(both + a, text, b);
            plain_merge(words, n, best, lam_vocab_find(v, both, a + b));
        }
        lam_vocab_free(v);
        lam_symbols_free(pieces);
    }
}
END_TEST

/* ---- counting ---- */

/* A text of 9 MB, so that there are several chunks, with places where a chunk begins in the middle of something. */
static char *long_text(size_t *size)
{
    static const char *const parts[] = {"the ", "cat",  "\n", " sat\n\n",
                                        "   ",  "\xff", "12", "\xe6\x97\xa5"};
    lam_rng rng = test_rng(3);
    char *text = malloc(9 << 20);
    *size = 0;
    while (*size < (9 << 20) - 100) {
        const char *part = parts[lam_rng_below(&rng, 8)];
        memcpy(text + *size, part, strlen(part));
        *size += strlen(part);
    }
    memset(text + (4 << 20) - 5000, ' ', 15000); /* no good place here */
    memset(text + (8 << 20) - 50, 'x', 5000);
    return text;
}

static lam_piece_counts *count(const lam_vocab *v, const char *text, size_t size, int threads,
                               int32_t most)
{
    lam_piece_counts *c;
    const lam_bpe_text t = {text, size, LAM_SPECIAL_TEXT};
    must(lam_piece_counts_create(&c, lam_vocab_bpe(v), most, threads));
    must(lam_piece_counts_add(c, &t, NULL, NULL));
    return c;
}

static void check_same(const lam_piece_counts *a, const lam_piece_counts *b)
{
    const lam_symbols *x = lam_piece_counts_pieces(a), *y = lam_piece_counts_pieces(b);
    ck_assert_int_eq(lam_symbols_count(x), lam_symbols_count(y));
    ck_assert_int_eq(lam_piece_counts_forgot(a), lam_piece_counts_forgot(b));
    for (int32_t i = 0; i < lam_symbols_count(x); i++) {
        size_t n, m;
        const char *p = lam_symbols_text(x, i, &n), *q = lam_symbols_text(y, i, &m);
        ck_assert(n == m && memcmp(p, q, n) == 0);
        ck_assert_int_eq(lam_piece_counts_of(a)[i], lam_piece_counts_of(b)[i]);
    }
}

START_TEST(counts_do_not_depend_on_threads)
{
    lam_vocab *v;
    size_t size;
    char *text = long_text(&size);
    must(lam_bpe_untrained(&v, lam_pattern_named("gpt2")));
    for (int32_t most = 10; most <= 1 << 20; most <<= 17) { /* with forgetting, and without */
        lam_piece_counts *one = count(v, text, size, 1, most),
                         *three = count(v, text, size, 3, most);
        check_same(one, three);
        ck_assert_int_eq(lam_piece_counts_forgot(one) > 0, most == 10);
        int64_t bytes = 0;
        for (int32_t i = 0; i < lam_symbols_count(lam_piece_counts_pieces(one)); i++) {
            size_t n;
            lam_symbols_text(lam_piece_counts_pieces(one), i, &n);
            bytes += (int64_t)n * lam_piece_counts_of(one)[i];
        }
        ck_assert(most == 10 || bytes > (int64_t)size - 15000 - 5100); /* without the long runs */
        ck_assert(most != 10 || lam_symbols_count(lam_piece_counts_pieces(one)) <= 10);
        lam_piece_counts_free(one);
        lam_piece_counts_free(three);
    }
    free(text);
    lam_vocab_free(v);
}
END_TEST

START_TEST(special_tokens_are_no_pieces)
{
    static const char text[] = "a<|endoftext|>a<|endoftext|>";
    lam_vocab *v;
    lam_piece_counts *c;
    must(lam_bpe_untrained(&v, lam_pattern_named("gpt2")));
    for (int read = 0; read < 2; read++) {
        const lam_bpe_text t = {text, sizeof text - 1, read ? LAM_SPECIAL_READ : LAM_SPECIAL_TEXT};
        must(lam_piece_counts_create(&c, lam_vocab_bpe(v), 100, 1));
        must(lam_piece_counts_add(c, &t, NULL, NULL));
        ck_assert_int_eq(lam_symbols_count(lam_piece_counts_pieces(c)), read ? 1 : 4);
        ck_assert_int_eq(lam_piece_counts_of(c)[0], 2);
        lam_piece_counts_free(c);
    }
    lam_vocab_free(v);
}
END_TEST

START_TEST(without_memory_it_fails_cleanly)
{
    static const char text[] = "the cat sat on the mat, the cat";
    const lam_bpe_text t = {text, sizeof text - 1, LAM_SPECIAL_TEXT};
    const lam_bpe_training o = {.pattern = "\\S+|\\s", .size = 270, .min_count = 1};
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_vocab *bytes = NULL, *made = NULL;
        lam_piece_counts *c = NULL;
        lam_status status = lam_bpe_untrained(&bytes, o.pattern);
        if (status == LAM_OK)
            status = lam_piece_counts_create(&c, lam_vocab_bpe(bytes), 3, 1);
        if (status == LAM_OK)
            status = lam_piece_counts_add(c, &t, NULL, NULL);
        if (status == LAM_OK)
            status = lam_bpe_train(&made, lam_piece_counts_pieces(c), lam_piece_counts_of(c), &o);
        test_alloc_end(status);
        lam_vocab_free(bytes);
        lam_vocab_free(made);
        lam_piece_counts_free(c);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, the_classic_example);
    tcase_add_test(tests, rare_pairs_are_left);
    tcase_add_test(tests, overlapping_pairs_are_counted_once_merged);
    tcase_add_test(tests, one_token_may_come_of_two_merges);
    tcase_add_test(tests, counts_kept_up_to_date_give_the_same_merges);
    tcase_add_test(tests, counts_do_not_depend_on_threads);
    tcase_add_test(tests, special_tokens_are_no_pieces);
    tcase_add_test(tests, without_memory_it_fails_cleanly);
    return test_run("data/bpe_train", tests);
}
