/* toy_bpe.c -- see toy_bpe.h. */
#include "support/toy_bpe.h"

#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM = 512 };

static int32_t find(const lam_symbol *list, int32_t n, const char *text, size_t size)
{
    for (int32_t i = 0; i < n; i++)
        if (list[i].size == size && memcmp(list[i].text, text, size) == 0)
            return i;
    return -1;
}

lam_vocab *toy_bpe(const toy_merge *merges, size_t n, const lam_bpe_rules *more, bool ranked)
{
    static char bytes[256], joined[ROOM][64];
    lam_symbol list[ROOM];
    lam_merge pairs[ROOM];
    int32_t count = 0;
    lam_vocab *vocab = NULL;
    for (; count < 256; count++) {
        bytes[count] = (char)count;
        list[count] = (lam_symbol){&bytes[count], 1, 0};
    }
    for (size_t i = 0; i < n; i++) {
        const size_t left = strlen(merges[i].left), size = left + strlen(merges[i].right);
        ck_assert_uint_lt(size, sizeof *joined);
        memcpy(joined[i], merges[i].left, left);
        memcpy(joined[i] + left, merges[i].right, size - left);
        pairs[i] = (lam_merge){find(list, count, merges[i].left, left),
                               find(list, count, merges[i].right, size - left)};
        if (find(list, count, joined[i], size) < 0)
            list[count++] = (lam_symbol){joined[i], size, 0};
    }
    list[count] = (lam_symbol){"<|endoftext|>", 13, 0};
    lam_bpe_rules rules = more ? *more : (lam_bpe_rules){0};
    rules.pattern = rules.pattern ? rules.pattern : lam_pattern_named("gpt2");
    rules.merges = ranked ? NULL : pairs;
    rules.n_merges = ranked ? 0 : n;
    rules.special = &count;
    rules.n_special = 1;
    rules.separator = count;
    must(lam_vocab_create_bpe(&vocab, list, (size_t)count + 1, &rules, "toy"));
    return vocab;
}

lam_vocab *toy_bpe_english(void)
{
    static const toy_merge merges[] = {{"t", "h"},      {" ", "t"},  {"h", "e"},   {" t", "he"},
                                       {"i", "n"},      {"in", "g"}, {"t", "he"},  {"th", "e"},
                                       {"a", "n"},      {"an", "d"}, {" ", "and"}, {" ", "the"},
                                       {"\xc3", "\xa9"}};
    return toy_bpe(merges, sizeof merges / sizeof *merges, NULL, false);
}
