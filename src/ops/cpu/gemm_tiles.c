/* gemm_tiles.c -- y = x W^T by the tiles of attention.
 *
 * Only W is copied, to strips of sixteen columns that stay in the second cache; rows of x are read where they are, eight at a
 * time, and those that come next are asked for.  The library copies both.  With AVX-512 a tile of 8 x 2 vectors reaches what
 * the machine multiplies at most; narrower machines have too few registers for it.  Other layouts are the library's: for
 * dx = dy W it is as fast, and gradients of weights need copies of both operands.
 * C is walked in blocks of rows that are finished (bias, ReLU, dropout) before the next is begun.  Each element is a sum over all
 * terms in order, TERMS at a time, whatever the blocks are. */
#include "ops/cpu/attn_pack.h"
#include "ops/cpu/gemm_int.h"

enum {
    TERMS = 1024,    /* of a sum at a time */
    PANEL = 1 << 18, /* floats of B's copy */
    ROWS = 64,       /* of C at a time */
    PAIR = 2 * LAM_VEC,
    LEAST_ROWS = 32 /* fewer do not pay for B's copy */
};
_Static_assert(LAM_GEMM_ROOM == PANEL + LAM_TILE * TERMS, "lam_gemm_tiles() needs as much");

int lam_gemm_tiles_take(const lam_gemm *g)
{
#if defined(__AVX512F__)
    return g->ta == LAM_KEEP && g->tb == LAM_FLIP && g->m >= LEAST_ROWS && g->n >= LAM_VEC &&
           g->k >= LAM_VEC;
#else
    (void)g;
    return 0;
#endif
}

static void set_pair(const lam_tile *t)
{
    lam_tile_mul(t, 2, LAM_TILE_ROWS, LAM_TILE_SET);
}

static void add_pair(const lam_tile *t)
{
    lam_tile_mul(t, 2, LAM_TILE_ROWS, LAM_TILE_ADD);
}

/* A tile of which only some rows and columns exist: by way of a whole one. */
static void multiply_edge(const lam_tile *t, size_t rows, size_t n, int add, float *spare)
{
    float c[LAM_TILE * PAIR];
    lam_tile x = *t;
    const size_t k = (size_t)t->depth;
    x.c = c;
    x.ldc = PAIR;
    if (rows < LAM_TILE) {
        for (size_t i = 0; i < LAM_TILE; i++)
            memcpy(spare + i * k, t->a + (i < rows ? i : 0) * t->lda, k * sizeof *spare);
        x.a = spare;
        x.lda = k;
    }
    if (n <= LAM_VEC)
        x.next = 0; /* there is no second strip */
    set_pair(&x);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < n; j += LAM_VEC) {
            const size_t some = n - j < LAM_VEC ? n - j : LAM_VEC;
            float *const to = t->c + i * t->ldc + j;
            const lam_f16v sum = lam_load(c + i * PAIR + j);
            lam_store_n(to, add ? lam_add(sum, lam_load_n(to, some)) : sum, some);
        }
}

/* Some rows and columns of C, and k terms from `from` on. */
static void multiply_rows(const lam_product *p, size_t row, size_t rows, size_t col, size_t n,
                          size_t from, size_t k, float *room, lam_warm *warm)
{
    const int add = from > 0 || p->beta != 0.0f;
    for (size_t j = 0; j < n; j += PAIR) {
        const size_t columns = n - j < PAIR ? n - j : PAIR;
        lam_tile t = {.ldc = p->shape->ldc,
                      .lda = p->lda,
                      .b = room + j * k,
                      .ldb = LAM_VEC,
                      .next = LAM_VEC * k,
                      .depth = (int)k,
                      .warm = warm};
        for (size_t i = row; i < row + rows; i += LAM_TILE) {
            const size_t left = row + rows - i;
            t.a = p->a + i * p->lda + from;
            t.c = p->c + i * p->shape->ldc + col + j;
            if (left < LAM_TILE || columns < PAIR)
                multiply_edge(&t, left < LAM_TILE ? left : LAM_TILE, columns, add, room + PANEL);
            else if (add)
                add_pair(&t);
            else
                set_pair(&t);
        }
    }
}

/* The rows of A that come next, asked for while the tiles of those before are multiplied. */
static lam_warm next_rows(const lam_product *p, size_t row, size_t n, size_t from, size_t k)
{
    const size_t left = row < p->m ? p->m - row : 0;
    lam_warm warm = {.n = left > 0, .each = (int)((ROWS / LAM_TILE * PAIR + n - 1) / n)};
    if (left > 0)
        warm.list[0] = (lam_warm_rows){.at = p->a + row * p->lda + from,
                                       .step = (ptrdiff_t)p->lda,
                                       .rows = (int)(left < ROWS ? left : ROWS),
                                       .width = (int)k};
    return warm;
}

void lam_gemm_tiles(const lam_product *first, size_t products, float *room, const lam_finish *f)
{
    const lam_gemm *g = first->shape;
    const size_t most = first->k < TERMS ? first->k : TERMS, wide = PANEL / most / PAIR * PAIR;
    for (size_t col = 0; col < first->n; col += wide)
        for (size_t from = 0; from < first->k; from += most) {
            const size_t n = first->n - col < wide ? first->n - col : wide;
            const size_t k = first->k - from < most ? first->k - from : most;
            lam_pack_strips(room, &(lam_pack_source){.base = first->b + col * first->ldb + from,
                                                     .step = (ptrdiff_t)first->ldb,
                                                     .K = (int)k,
                                                     .part = {0, (int)n}});
            for (size_t i = 0; i < products; i++) {
                lam_product p = *first;
                p.which += i;
                p.a += i * g->step_a;
                p.c += i * g->step_c;
                for (size_t row = 0; row < p.m; row += ROWS) {
                    const size_t rows = p.m - row < ROWS ? p.m - row : ROWS;
                    lam_warm warm = next_rows(&p, row + rows, n, from, k);
                    multiply_rows(&p, row, rows, col, n, from, k, room, &warm);
                    if (f->some && from + k == p.k)
                        lam_finish_rows(f, &p, row, rows, col, n);
                }
            }
        }
}
