/* make_checkpoint_main.c -- writes a checkpoint as PyTorch does, with the parameters of a reference trace:
 * make_checkpoint FILE TRACE lamemo|state|module
 *
 * What it is made of asserts by Check, so making it is a test. */
#include "support/checkpoint.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

enum { SYMBOLS = 4096 };

static const char *path, *trace;
static checkpoint_form form;

/* Rows of all tables of embeddings: the adaptive ones have one for each cluster. */
static int n_symbols(const lam_safetensors *st)
{
    int n = 0;
    for (int i = 0;; i++) {
        char name[64];
        snprintf(name, sizeof name, "param.word_emb.emb_layers.%d.weight", i);
        const lam_st_tensor *const table = lam_st_find(st, name);
        if (!table)
            return n;
        n += (int)table->shape.dim[0];
    }
}

START_TEST(a_checkpoint_is_written)
{
    static const char *symbols[SYMBOLS];
    static char words[SYMBOLS][16];
    lam_safetensors *st = NULL;
    must(lam_st_open(&st, trace));
    checkpoint how = {form, symbols, n_symbols(st), 0, {0}};
    ck_assert(how.n_symbols > 0 && how.n_symbols <= SYMBOLS);
    for (int i = 0; i < how.n_symbols; i++) {
        snprintf(words[i], sizeof words[i], i == 0 ? "<eos>" : i == 1 ? "<unk>" : "word%d", i);
        symbols[i] = words[i];
    }
    checkpoint_write(path, st, &how);
    lam_st_close(st);
}
END_TEST

int main(int argc, char **argv)
{
    static const char *const forms[] = {"lamemo", "state", "module"};
    int i = 0;
    while (argc == 4 && i < 3 && strcmp(argv[3], forms[i]) != 0)
        i++;
    if (argc != 4 || i == 3) {
        fputs("make_checkpoint FILE TRACE lamemo|state|module\n", stderr);
        return 2;
    }
    path = argv[1];
    trace = argv[2];
    form = (checkpoint_form)i;
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, a_checkpoint_is_written);
    return test_run("make_checkpoint", tests);
}
