/* tiktoken.c -- see tiktoken.h. */
#include "convert/tiktoken.h"

#include "convert/numbered.h"
#include "core/file.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 28, SPECIAL = 5 };

/* OpenAI's files, by how many ranks they have. */
typedef struct known {
    int64_t ranks;
    const char *name, *pattern;
    struct {
        const char *text;
        int number;
    } special[SPECIAL];
} known;

static const known files[] = {
    {50256, "r50k_base (gpt2)", "gpt2", {{"<|endoftext|>", 50256}}},
    {50280, "p50k_base", "gpt2", {{"<|endoftext|>", 50256}}},
    {100256,
     "cl100k_base",
     "cl100k",
     {{"<|endoftext|>", 100257},
      {"<|fim_prefix|>", 100258},
      {"<|fim_middle|>", 100259},
      {"<|fim_suffix|>", 100260},
      {"<|endofprompt|>", 100276}}},
    {199998, "o200k_base", "o200k", {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
};

static const known *find_known(int64_t ranks)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i].ranks == ranks)
            return &files[i];
    return NULL;
}

/* ---- a line ---- */

static int value_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c != '\0' ? strchr(digits, c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

/* The bytes of base64 text; returns how many, or -1.  `out` has room for 3/4 of it. */
static long decode(char *out, const char *text, size_t size)
{
    long n = 0;
    if (size == 0 || size % 4 != 0)
        return -1;
    const size_t padding = (text[size - 1] == '=') + (size_t)(text[size - 2] == '=');
    for (size_t i = 0; i < size; i += 4) {
        const size_t digits = i + 4 < size ? 4 : 4 - padding;
        uint32_t bits = 0;
        for (size_t k = 0; k < 4; k++) {
            const int value = k < digits ? value_of(text[i + k]) : 0;
            if (value < 0)
                return -1;
            bits = bits << 6 | (uint32_t)value;
        }
        for (size_t k = 0; k + 1 < digits; k++)
            out[n++] = (char)(bits >> (16 - 8 * k));
    }
    return n;
}

/* "IQ== 0" */
static bool parse_line(const char *line, size_t size, char *bytes, long *n, int64_t *number)
{
    const char *blank = memchr(line, ' ', size);
    if (blank == NULL || (size_t)(blank - line) > 2 * LAM_TOKEN_MAX)
        return false;
    *n = decode(bytes, line, (size_t)(blank - line));
    *number = 0;
    for (const char *p = blank + 1; p < line + size; p++) {
        if (*p < '0' || *p > '9' || *number > INT32_MAX)
            return false;
        *number = 10 * *number + (*p - '0');
    }
    return *n > 0 && blank + 1 < line + size;
}

bool lam_tiktoken_is(const char *text, size_t size)
{
    const char *end = memchr(text, '\n', size < 4096 ? size : 4096);
    char bytes[2 * LAM_TOKEN_MAX];
    long n;
    int64_t number;
    size_t line = end != NULL ? (size_t)(end - text) : size;
    line -= line > 0 && text[line - 1] == '\r';
    return parse_line(text, line, bytes, &n, &number) && n == 1 && number == 0;
}

/* ---- the file ---- */

static lam_status add_lines(lam_numbered *tokens, const char *text, size_t size, const char *path)
{
    long at_line = 1;
    for (size_t at = 0; at < size; at_line++) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t whole = end != NULL ? (size_t)(end - text) - at : size - at;
        const size_t line = whole - (whole > 0 && text[at + whole - 1] == '\r');
        char bytes[2 * LAM_TOKEN_MAX];
        long n;
        int64_t number;
        if (line > 0 && !parse_line(text + at, line, bytes, &n, &number))
            return lam_fail(LAM_ERR_FORMAT,
                            "%s, line %ld: not a token in base64 and its number (tiktoken)", path,
                            at_line);
        if (line > 0)
            LAM_TRY(lam_numbered_add(tokens, number, bytes, (size_t)n));
        at += whole + 1;
    }
    return LAM_OK;
}

static lam_status add_special(lam_numbered *tokens, const known *file)
{
    static const char end[] = "<|endoftext|>";
    if (file == NULL)
        return lam_numbered_special(tokens, lam_numbered_count(tokens), end, sizeof end - 1);
    for (int i = 0; i < SPECIAL && file->special[i].text != NULL; i++)
        LAM_TRY(lam_numbered_special(tokens, file->special[i].number, file->special[i].text,
                                     strlen(file->special[i].text)));
    return LAM_OK;
}

static lam_status build(lam_vocab **out, lam_numbered *tokens, const char *path,
                        const char *pattern)
{
    const int64_t ranks = lam_numbered_count(tokens);
    const known *file = find_known(ranks);
    if (pattern == NULL && file == NULL)
        return lam_fail(LAM_ERR_ARG,
                        "%s: a tiktoken file of %lld tokens, which is none of OpenAI's: say its "
                        "pattern (--pattern gpt2, cl100k, o200k, qwen2 or a regular expression)",
                        path, (long long)ranks);
    if (pattern == NULL)
        pattern = file->pattern;
    LAM_TRY(add_special(tokens, file));
    const lam_bpe_rules rules = {
        .pattern = lam_pattern_named(pattern) != NULL ? lam_pattern_named(pattern) : pattern,
        .whole = true};
    return lam_numbered_vocab(out, tokens, &rules);
}

lam_status lam_tiktoken_load(lam_vocab **out, const char *path, const char *pattern)
{
    char *text;
    size_t size;
    lam_numbered *tokens;
    *out = NULL;
    LAM_TRY(lam_file_load(&text, &size, path, MAX_FILE));
    lam_status status = lam_numbered_create(&tokens, path);
    if (status == LAM_OK)
        status = add_lines(tokens, text, size, path);
    if (status == LAM_OK)
        status = build(out, tokens, path, pattern);
    lam_numbered_free(tokens);
    free(text);
    return status;
}
