/* gemm_check.c -- does the GEMM library work here?  Asked once a device, before its first GEMM.
 *
 * oneDNN has been seen to leave parts of C unwritten when OpenMP started fewer threads than it said, and
 * everything computed from them was wrong without a word.  gemm.c rules out that cause: the library works on one
 * thread.  This looks at the effect: a GEMM that is divided among all threads of the device, of small integers, so that the plain
 * sum is exact and every correct library has the same result.  It takes 0.1 ms on two threads. */
#include "ops/cpu/gemv.h"

#include <math.h>
#include <stdio.h>
#include <sys/mman.h>

enum {
    ROWS = 64, /* of C, for each thread; four times as many are above what gemm.c leaves to one */
    COLUMNS = 64,
    TERMS = 32,
    SIDE = 16 /* of GEMMs that are too small to be divided */
};

/* A, B and C, in one block of `bytes`. */
typedef struct trial {
    size_t rows, bytes;
    float *a, *b, *c; /* [TERMS][rows], [TERMS][COLUMNS], [rows][COLUMNS] */
} trial;

/* From the system: whole pages, and nothing of it stays. */
static void *map(size_t bytes)
{
    void *const p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* oneDNN generates its kernels in the first GEMM of a process that wants them, and crashes without memory for
 * them.  So all it has are generated here, by one thread, while there is room.  0: there is not. */
static int generate_kernels(lam_cpu_dev *cpu)
{
    static const float zero[SIDE * SIDE];
    float out[SIDE * SIDE];
    lam_gemm g = {.m = SIDE,
                  .n = SIDE,
                  .k = SIDE,
                  .batch = 1,
                  .a = zero,
                  .b = zero,
                  .c = out,
                  .lda = SIDE,
                  .ldb = SIDE,
                  .ldc = SIDE};
    if (!lam_cpu_has_room(LAM_GEMM_KERNELS))
        return 0;
    lam_cpu_gemm(&cpu->base, &g);
    g.tb = LAM_FLIP;
    g.m = SIDE / 2; /* few rows have kernels of their own */
    lam_cpu_gemm(&cpu->base, &g);
    return 1;
}

/* -3 to 3; neighbours in a row and in a column differ. */
static float entry(size_t row, size_t col)
{
    return (float)((row * 5 + col * 3 + row * col) % 7) - 3.0f;
}

static int make(trial *t, int threads)
{
    t->rows = (size_t)(threads > 4 ? threads : 4) * ROWS;
    t->bytes = (t->rows * TERMS + TERMS * COLUMNS + t->rows * COLUMNS) * sizeof(float);
    t->a = map(t->bytes);
    if (!t->a)
        return 0;
    t->b = t->a + t->rows * TERMS;
    t->c = t->b + TERMS * COLUMNS;
    for (size_t i = 0; i < t->rows * TERMS; i++)
        t->a[i] = entry(i / t->rows, i % t->rows);
    for (size_t i = 0; i < TERMS * COLUMNS; i++)
        t->b[i] = entry(i / COLUMNS, i % COLUMNS);
    for (size_t i = 0; i < t->rows * COLUMNS; i++)
        t->c[i] = NAN; /* what is not written shows */
    return 1;
}

static size_t wrong_in_row(const trial *t, size_t row)
{
    float sum[COLUMNS] = {0};
    size_t wrong = 0;
    for (size_t i = 0; i < TERMS; i++)
        for (size_t col = 0; col < COLUMNS; col++)
            sum[col] += t->a[i * t->rows + row] * t->b[i * COLUMNS + col];
    for (size_t col = 0; col < COLUMNS; col++)
        wrong += !(t->c[row * COLUMNS + col] == sum[col]);
    return wrong;
}

static size_t wrong_elements(lam_cpu_dev *cpu, const trial *t)
{
    const lam_gemm g = {.m = (int)t->rows,
                        .n = COLUMNS,
                        .k = TERMS,
                        .batch = 1,
                        .ta = LAM_FLIP, /* which is the library's, whatever our own tiles take */
                        .a = t->a,
                        .b = t->b,
                        .c = t->c,
                        .lda = t->rows,
                        .ldb = COLUMNS,
                        .ldc = COLUMNS};
    size_t wrong = 0;
    lam_cpu_gemm(&cpu->base, &g);
#pragma omp parallel for num_threads(cpu->threads) schedule(static) reduction(+ : wrong)
    for (size_t row = 0; row < t->rows; row++)
        wrong += wrong_in_row(t, row);
    return wrong;
}

void lam_gemm_check(lam_cpu_dev *cpu)
{
    trial t;
    cpu->checked = 1; /* before its own GEMMs, which would ask again */
    if (!generate_kernels(cpu) || !make(&t, cpu->threads)) {
        snprintf(cpu->broken, sizeof cpu->broken, "no memory for the kernels of the GEMM library");
        return;
    }
    const size_t wrong = wrong_elements(cpu, &t), all = t.rows * COLUMNS;
    munmap(t.a, t.bytes);
    if (wrong > 0 && !cpu->broken[0])
        snprintf(cpu->broken, sizeof cpu->broken,
                 "the GEMM library fails a test: %zu of %zu elements are wrong on %d threads; "
                 "try 1 thread",
                 wrong, all, cpu->threads);
}
