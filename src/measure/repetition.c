/* repetition.c -- see repetition.h.  Words are numbered in the order of their bytes; n-grams are sorted. */
#include "measure/repetition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct word {
    const char *text;
    size_t size;
    int at; /* in the text */
} word;

static int is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Counts the words, and writes them down where `out` is given. */
static int cut(word *out, const char *text, size_t size)
{
    int n = 0;
    for (size_t i = 0; i < size;) {
        size_t from = i;
        while (i < size && !is_blank(text[i]))
            i++;
        if (i > from) {
            if (out)
                out[n] = (word){text + from, i - from, n};
            n++;
        }
        i += i < size;
    }
    return n;
}

static int by_text(const void *a, const void *b)
{
    const word *x = a, *y = b;
    const int order = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);
    return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

/* ids[at] becomes the number of the word at `at`; equal words have equal numbers. */
static void number(int *ids, word *words, int n)
{
    qsort(words, (size_t)n, sizeof *words, by_text);
    for (int i = 0, id = 0; i < n; i++) {
        id += i > 0 && by_text(&words[i - 1], &words[i]) != 0;
        ids[words[i].at] = id;
    }
}

/* An n-gram for sorting. */
typedef struct gram {
    int id[LAM_DISTINCT];
} gram;

static int by_ids(const void *a, const void *b)
{
    const gram *x = a, *y = b;
    for (int k = 0; k < LAM_DISTINCT; k++)
        if (x->id[k] != y->id[k])
            return x->id[k] < y->id[k] ? -1 : 1;
    return 0;
}

static double distinct(gram *grams, const int *ids, int words, int n)
{
    const int count = words - n + 1;
    int different = count > 0;
    for (int i = 0; i < count; i++) {
        grams[i] = (gram){{0}};
        memcpy(grams[i].id, ids + i, (size_t)n * sizeof *ids);
    }
    if (count < 1)
        return NAN;
    qsort(grams, (size_t)count, sizeof *grams, by_ids);
    for (int i = 1; i < count; i++)
        different += by_ids(&grams[i - 1], &grams[i]) != 0;
    return (double)different / count;
}

static double repeated(const int *ids, int words)
{
    int again = 0;
    for (int i = 0; i < words; i++) {
        int found = 0;
        for (int k = i - 1; k >= 0 && k >= i - LAM_RECENT; k--)
            found |= ids[k] == ids[i];
        again += found;
    }
    return words > 0 ? (double)again / words : NAN;
}

lam_status lam_repetition_of(lam_repetition *out, const char *text, size_t size)
{
    *out = (lam_repetition){.words = cut(NULL, text, size)};
    const size_t n = (size_t)out->words + 1;
    word *words = calloc(n, sizeof *words);
    gram *grams = calloc(n, sizeof *grams);
    int *ids = calloc(n, sizeof *ids);
    lam_status status = LAM_OK;
    if (words && grams && ids) {
        cut(words, text, size);
        number(ids, words, out->words);
        for (int k = 0; k < LAM_DISTINCT; k++)
            out->distinct[k] = distinct(grams, ids, out->words, k + 1);
        out->repeated = repeated(ids, out->words);
    } else {
        status = lam_fail(LAM_ERR_MEMORY, "repetition: no memory for %d words", out->words);
    }
    free(words);
    free(grams);
    free(ids);
    return status;
}
