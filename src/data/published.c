/* published.c -- the table of published corpora, and the checks. */
#include "data/published.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const lam_published table[] = {
    {.name = "enwik8",
     .title = "the first 100,000,000 bytes of a 2006 dump of English Wikipedia",
     .kind = LAM_BYTES,
     .metric = LAM_BPC,
     .drop_newlines = true,
     .count_all = true,
     .split = "90M/5M/5M",
     .bytes = 100000000,
     .md5 = "a1fa5ffddb56f4953e226637dabbb36a",
     .tokens = {88982818, 4945742, 4943417},
     .vocab_size = 204},
    {.name = "text8",
     .title = "100,000,000 letters and blanks made from enwik9",
     .kind = LAM_CHARS,
     .metric = LAM_BPC,
     .strip = true,
     .count_all = true,
     .split = "90M/5M/5M",
     .bytes = 100000000,
     .md5 = "3bea1919949baf155f99411df5fada7e",
     .tokens = {89999999, 4999999, 5000000},
     .vocab_size = 27},
    {.name = "wt103",
     .title = "WikiText-103, word level",
     .kind = LAM_WORDS,
     .metric = LAM_PPL,
     .tokens = {103227021, 217646, 245569},
     .vocab_size = 267735},
    {.name = "wt2",
     .title = "WikiText-2, word level",
     .kind = LAM_WORDS,
     .metric = LAM_PPL,
     .count_all = true,
     .tokens = {2088628, 217646, 245569},
     .vocab_size = 33278},
    {.name = "ptb",
     .title = "Penn Treebank, Mikolov's preparation",
     .kind = LAM_WORDS,
     .metric = LAM_PPL,
     .lower = true,
     .count_all = true,
     .tokens = {929589, 73760, 82430},
     .vocab_size = 10000},
};

enum { TABLE = sizeof table / sizeof *table };

const lam_published *lam_published_find(const char *name)
{
    for (int i = 0; i < TABLE; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

bool lam_published_name(const char *name)
{
    static const char *const others[] = {"wikitext-103",  "wikitext103", "wikitext-2", "wikitext2",
                                         "penn treebank", "penn",        NULL};
    for (int i = 0; i < TABLE; i++)
        if (strcasecmp(table[i].name, name) == 0)
            return true;
    for (int i = 0; others[i] != NULL; i++)
        if (strcasecmp(others[i], name) == 0)
            return true;
    return false;
}

lam_status lam_published_check_source(const lam_published *p, const lam_source *source)
{
    if (p->md5 == NULL)
        return LAM_OK;
    if (source->bytes != p->bytes)
        return lam_fail(LAM_ERR_FORMAT, "%s is not %s: it has %lld bytes, not %lld", source->name,
                        p->name, (long long)source->bytes, (long long)p->bytes);
    if (strcmp(source->md5, p->md5) != 0)
        return lam_fail(LAM_ERR_FORMAT,
                        "%s is not %s: its size is right, but its md5 is %s, not %s", source->name,
                        p->name, source->md5, p->md5);
    return LAM_OK;
}

lam_status lam_published_check_counts(const lam_published *p, const lam_corpus_info *info)
{
    for (int s = 0; s < LAM_SPLITS; s++)
        if (info->tokens[s] != p->tokens[s])
            return lam_fail(LAM_ERR_FORMAT, "this is not %s: %s has %lld tokens, not %lld", p->name,
                            lam_split_name((lam_split)s), (long long)info->tokens[s],
                            (long long)p->tokens[s]);
    for (int s = 0; s < LAM_SPLITS; s++)
        if (info->unknown[s] != 0)
            return lam_fail(LAM_ERR_FORMAT, "this is not %s: %s has %lld words that train lacks",
                            p->name, lam_split_name((lam_split)s), (long long)info->unknown[s]);
    if (info->vocab_size != p->vocab_size)
        return lam_fail(LAM_ERR_FORMAT, "this is not %s: the vocabulary has %d tokens, not %d",
                        p->name, info->vocab_size, p->vocab_size);
    return LAM_OK;
}
