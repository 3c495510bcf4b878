/* chunks_test.c -- threads find what one of them finds, wherever chunks begin. */
#include "data/chunks.h"

#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 7, SIZE = 20000 };

/* Borders that follow from the place alone: a border is so many bytes behind the last as the byte there says. */
typedef struct walk {
    const char *text;
    size_t found[SLOTS][SIZE + 1], n[SLOTS];
    size_t all[SIZE + 1], n_all;
    int failing; /* the chunk whose taking fails */
} walk;

static size_t next_border(const char *text, size_t at)
{
    const size_t step = 1 + (size_t)(unsigned char)text[at] % 23;
    return SIZE - at < step ? SIZE : at + step;
}

static lam_status work(void *user, int slot, size_t *at, size_t goal)
{
    walk *w = user;
    w->n[slot] = 0;
    while (*at < SIZE && *at < goal) {
        w->found[slot][w->n[slot]++] = *at;
        *at = next_border(w->text, *at);
    }
    return LAM_OK;
}

static lam_status take(void *user, int slot, size_t end)
{
    walk *w = user;
    memcpy(w->all + w->n_all, w->found[slot], w->n[slot] * sizeof *w->all);
    w->n_all += w->n[slot];
    ck_assert_uint_le(end, SIZE);
    return --w->failing == 0 ? lam_fail(LAM_ERR_IO, "full") : LAM_OK;
}

static char text[SIZE];

static void fill(void)
{
    lam_rng rng = test_rng(9);
    for (int i = 0; i < SIZE; i++)
        text[i] =
            (char)lam_rng_below(&rng, i < SIZE / 2 ? 256 : 40); /* newlines in the second half */
}

START_TEST(chunks_and_threads_do_not_show)
{
    static walk w, alone;
    fill();
    alone.text = text;
    for (size_t at = 0; at < SIZE; at = next_border(text, at))
        alone.all[alone.n_all++] = at;
    static const size_t chunks[] = {17, 64, 100, 999, 5000, 4 * SIZE};
    for (int threads = 1; threads <= SLOTS; threads += 3)
        for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
            w = (walk){.text = text};
            must(lam_chunks_run(&(lam_chunks){text, SIZE, chunks[i], threads, work, take, &w}));
            ck_assert_uint_eq(w.n_all, alone.n_all);
            ck_assert_mem_eq(w.all, alone.all, alone.n_all * sizeof *w.all);
        }
}
END_TEST

START_TEST(a_failure_ends_it)
{
    static walk w;
    fill();
    w = (walk){.text = text, .failing = 3};
    ck_assert_int_eq(lam_chunks_run(&(lam_chunks){text, SIZE, 1000, 2, work, take, &w}),
                     LAM_ERR_IO);
    w = (walk){.text = text};
    must(lam_chunks_run(&(lam_chunks){text, 0, 1000, 2, work, take, &w}));
    ck_assert_uint_eq(w.n_all, 0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, chunks_and_threads_do_not_show);
    tcase_add_test(tests, a_failure_ends_it);
    return test_run("data/chunks", tests);
}
