/* exact_dots_test.c -- integer products are the sums that they should be, for every length and the largest numbers. */
#include "ops/cpu/exact.h"
#include "support/suite.h"

enum { ROWS = 9, COLUMNS = 100 };

static int16_t x[ROWS * LAM_EXACT_TERMS];
static int8_t w[ROWS * LAM_EXACT_TERMS];

/* Every other time the largest there are, all of one sign. */
static void fill(uint32_t seed)
{
    for (int i = 0; i < ROWS * LAM_EXACT_TERMS; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (int16_t)((int)(seed >> 8) % (2 * LAM_EXACT_ROW + 1) - LAM_EXACT_ROW);
        w[i] = (int8_t)((int)(seed >> 12) % (2 * LAM_EXACT_HEAD + 1) - LAM_EXACT_HEAD);
        if (seed % 2 == 0 && i < LAM_EXACT_TERMS) {
            x[i] = LAM_EXACT_ROW;
            w[i] = -LAM_EXACT_HEAD;
        }
    }
}

START_TEST(rows_by_rows)
{
    for (int k = 1; k <= LAM_EXACT_TERMS; k = k < 70 ? k + 1 : k + 53) {
        const size_t ld = lam_exact_padded((size_t)k);
        int32_t out[ROWS * ROWS];
        fill((uint32_t)k);
        lam_exact_dots(out, ROWS, (lam_exact_rows){x, ld, ROWS},
                       (lam_exact_bytes){.p = w, .ld = (ptrdiff_t)ld, .n = ROWS}, k);
        for (size_t r = 0; r < ROWS; r++)
            for (size_t c = 0; c < ROWS; c++) {
                int64_t sum = 0;
                for (size_t t = 0; t < (size_t)k; t++)
                    sum += (int64_t)x[r * ld + t] * w[c * ld + t];
                ck_assert_int_eq(out[r * ROWS + c], sum);
            }
    }
}
END_TEST

/* Forwards and backwards: positions are read in both directions. */
START_TEST(one_row_by_many)
{
    enum { MOST = 40 };
    for (int k = 1; k <= 130; k++)
        for (int n = 1; n <= MOST; n += k % 3 + 1) {
            const ptrdiff_t ld = (ptrdiff_t)lam_exact_padded((size_t)k), way = n % 2 ? ld : -ld;
            const int8_t *const first = w + (n % 2 ? 0 : (n - 1) * ld);
            int32_t out[MOST + 1];
            fill((uint32_t)(k + n));
            out[n] = 77;
            lam_exact_dots(out, MOST, (lam_exact_rows){x, (size_t)ld, 1},
                           (lam_exact_bytes){.p = first, .ld = way, .n = n}, k);
            for (int c = 0; c < n; c++) {
                int64_t sum = 0;
                for (int t = 0; t < k; t++)
                    sum += (int64_t)x[t] * first[c * way + t];
                ck_assert_int_eq(out[c], sum);
            }
            ck_assert_int_eq(out[n], 77); /* nothing behind is written */
        }
}
END_TEST

START_TEST(sums_of_rows)
{
    for (int K = 1; K <= COLUMNS; K++) {
        int32_t out[COLUMNS] = {0};
        const int n = 1 + K % 80;
        fill((uint32_t)K);
        lam_exact_mix(out, x, (lam_exact_bytes){.p = w, .ld = COLUMNS, .n = n}, K);
        for (int c = 0; c < K; c++) {
            int64_t sum = 0;
            for (int j = 0; j < n; j++)
                sum += (int64_t)x[j] * w[j * COLUMNS + c];
            ck_assert_int_eq(out[c], sum);
        }
    }
}
END_TEST

/* All heads of a row, with other columns beside them, forwards and backwards. */
START_TEST(heads_side_by_side)
{
    enum { HEADS = 5, MOST = 40, LD = 384 };
    static const int widths[] = {1, 16, 33, 64, 72};
    static int32_t dots[HEADS * (MOST + 1)], sums[HEADS * LD];
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int n = 1; n <= 24; n++) {
            const int K = widths[i], heads = 1 + n % HEADS;
            const ptrdiff_t way = n % 2 ? LD : -LD;
            const int8_t *const first = w + (n % 2 ? 0 : (n - 1) * LD);
            const lam_exact_rows rows = {x, LAM_EXACT_TERMS, heads};
            const lam_exact_bytes bytes = {first, way, n};
            const lam_exact_ahead ahead = {(const char *)w, (size_t)(n % 3 * 50)};
            fill((uint32_t)(K + n));
            memset(dots, 77, sizeof dots);
            memset(sums, 0, sizeof sums);
            lam_exact_head_dots(dots, MOST + 1, rows, bytes, K, ahead);
            lam_exact_head_mix(sums, LD, rows, bytes, K);
            for (int h = 0; h < heads; h++) {
                const int16_t *const by = x + h * LAM_EXACT_TERMS;
                for (int c = 0; c < n; c++) {
                    int64_t sum = 0;
                    for (int t = 0; t < K; t++)
                        sum += (int64_t)by[t] * first[c * way + h * K + t];
                    ck_assert_int_eq(dots[h * (MOST + 1) + c], sum);
                }
                ck_assert_int_eq(dots[h * (MOST + 1) + n],
                                 0x4d4d4d4d); /* nothing behind is written */
                for (int c = 0; c < K; c++) {
                    int64_t sum = 0;
                    for (int j = 0; j < n; j++)
                        sum += (int64_t)by[j] * first[j * way + h * K + c];
                    ck_assert_int_eq(sums[h * LD + c], sum);
                }
            }
        }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, rows_by_rows);
    tcase_add_test(tests, one_row_by_many);
    tcase_add_test(tests, sums_of_rows);
    tcase_add_test(tests, heads_side_by_side);
    return test_run("ops/cpu/exact_dots", tests);
}
