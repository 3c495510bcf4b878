/* split_name.c -- see split_name.h. */
#include "data/split_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *word;
    int split;
} words[] = {
    {"train", LAM_TRAIN},        {"training", LAM_TRAIN},           {"val", LAM_VALID},
    {"valid", LAM_VALID},        {"validation", LAM_VALID},         {"dev", LAM_VALID},
    {"devel", LAM_VALID},        {"development", LAM_VALID},        {"test", LAM_TEST},
    {"testing", LAM_TEST},       {"heldout", LAM_SPLIT_UNCLEAR},    {"holdout", LAM_SPLIT_UNCLEAR},
    {"eval", LAM_SPLIT_UNCLEAR}, {"evaluation", LAM_SPLIT_UNCLEAR},
};
enum { WORDS = sizeof words / sizeof *words };

static const char *const packings[] = {".gz", ".xz", ".zst", ".zip", NULL};
static const char *const texts[] = {".txt", ".tokens", ".raw", NULL};
static const char *const json_lines[] = {".jsonl", ".ndjson", ".json", NULL};

static const char *const things[] = {"set", "data", "split", "text", "corpus", "file", NULL};

/* name[0, size) without one of these suffixes. */
static size_t without(const char *name, size_t size, const char *const *suffixes)
{
    for (; *suffixes != NULL; suffixes++) {
        const size_t k = strlen(*suffixes);
        if (size > k && strncasecmp(name + size - k, *suffixes, k) == 0)
            return size - k;
    }
    return size;
}

/* Of the word alone, or with what it is a split of: trainset, testdata. */
static int split_of(const char *word, size_t size)
{
    const size_t bare = without(word, size, things);
    for (int i = 0; i < WORDS; i++) {
        const size_t k = strlen(words[i].word);
        if ((k == size || k == bare) && strncasecmp(words[i].word, word, k) == 0)
            return words[i].split;
    }
    return LAM_SPLIT_NONE;
}

/* The bytes of `name` without the suffix of a packing. */
static size_t unpacked(const char *name)
{
    return without(name, strlen(name), packings);
}

size_t lam_text_stem(const char *name)
{
    return without(name, unpacked(name), texts);
}

bool lam_text_name(const char *name)
{
    const size_t size = unpacked(name);
    size_t at = size;
    while (at > 0 && name[at - 1] != '.')
        at--;
    return name[0] != '.' &&
           (lam_text_stem(name) < size || split_of(name + at, size - at) < LAM_SPLITS);
}

bool lam_json_lines_name(const char *name)
{
    const size_t size = unpacked(name);
    return name[0] != '.' && without(name, size, json_lines) < size;
}

/* ---- words of a name ---- */

typedef struct span {
    size_t from, to;
} span;

/* The next word of path[from, to): letters alone, since train1 is train, too; a capital after a small letter begins
 * another (wikiTest).  Empty: there is none. */
static span next_word(const char *path, size_t from, size_t to)
{
    while (from < to && !isalpha((unsigned char)path[from]))
        from++;
    span word = {from, from};
    while (word.to < to && isalpha((unsigned char)path[word.to]) &&
           !(word.to > from && isupper((unsigned char)path[word.to]) &&
             islower((unsigned char)path[word.to - 1])))
        word.to++;
    return word;
}

/* Puts `c` at the end, if there is room. */
static void put(char *family, char c)
{
    const size_t n = strlen(family);
    if (n + 1 < LAM_FAMILY_MAX) {
        family[n] = c;
        family[n + 1] = '\0';
    }
}

/* path[0, from) | path[to, end), with '#' for numbers in the second part. */
static void name_family(char *family, const char *path, span word, size_t end)
{
    for (size_t i = 0; i < word.from; i++)
        put(family, path[i]);
    put(family, '|');
    for (size_t i = word.to; i < end; i++) {
        const bool digit = isdigit((unsigned char)path[i]);
        if (!digit)
            put(family, path[i]);
        else if (i == word.to || !isdigit((unsigned char)path[i - 1]))
            put(family, '#');
    }
}

/* What of `path` is its name without kind and packing: [0, end). */
static size_t end_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const size_t folders = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    return folders + lam_text_stem(path + folders);
}

/* What a name says in which this word stands for a split. */
static lam_split_guess guess_of(const char *path, span word, size_t end, int split)
{
    lam_split_guess name = {.split = split};
    /* a folder that is a split may hold anything: its files have its name in common */
    const char *inside = strchr(path + word.to, '/');
    snprintf(name.word, sizeof name.word, "%.*s", (int)(word.to - word.from), path + word.from);
    name_family(name.family, path, word, inside != NULL ? (size_t)(inside - path) : end);
    return name;
}

lam_split_guess lam_split_guess_of(const char *path)
{
    const size_t end = end_of(path);
    lam_split_guess name = {.split = LAM_SPLIT_NONE};
    for (span w = next_word(path, 0, end); w.from < w.to; w = next_word(path, w.to, end)) {
        const int split = split_of(path + w.from, w.to - w.from);
        if (split == LAM_SPLIT_NONE || split == name.split)
            continue;
        if (name.split != LAM_SPLIT_NONE)
            return (lam_split_guess){.split = LAM_SPLIT_UNCLEAR};
        name = guess_of(path, w, end, split);
    }
    return name;
}

/* The longest end of a word that is a split's (with what it is a split of: wikitestset), other letters before it; empty:
 * none is. */
static span ending_of(const char *path, span word, int *split)
{
    const char *text = path + word.from;
    const size_t whole = word.to - word.from, sizes[] = {whole, without(text, whole, things)};
    size_t at = whole;
    for (int i = 0; i < 2 * WORDS; i++) {
        const size_t size = sizes[i % 2], k = strlen(words[i / 2].word);
        if (k < size && size - k < at && strncasecmp(text + size - k, words[i / 2].word, k) == 0) {
            at = size - k;
            *split = words[i / 2].split;
        }
    }
    return (span){word.from + at, word.to};
}

lam_split_guess lam_split_ending_of(const char *path, int number)
{
    const size_t end = end_of(path);
    for (span w = next_word(path, 0, end); w.from < w.to; w = next_word(path, w.to, end)) {
        int split = LAM_SPLIT_NONE;
        const span ending = ending_of(path, w, &split);
        if (ending.from < ending.to && number-- == 0)
            return guess_of(path, ending, end, split);
    }
    return (lam_split_guess){.split = LAM_SPLIT_NONE};
}
