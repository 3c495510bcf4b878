/* corpus.c -- opening a corpus folder: its parts must agree with each other. */
#include "data/corpus.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const lam_split_names[] = {"train", "valid", "test", NULL};

const char *lam_split_name(lam_split split)
{
    return lam_split_names[split];
}

const char *lam_metric_name(lam_metric metric)
{
    return metric == LAM_BPC ? "bpc" : "ppl";
}

lam_status lam_split_path(char path[PATH_MAX], const char *dir, lam_split split)
{
    char name[32];
    snprintf(name, sizeof name, "%s.bin", lam_split_name(split));
    return lam_path_join(path, PATH_MAX, dir, name);
}

lam_metric lam_metric_for(lam_text_kind kind)
{
    return kind == LAM_WORDS || kind == LAM_BPE ? LAM_PPL : LAM_BPC;
}

static lam_status open_split(lam_corpus *c, lam_split s, const char *dir, lam_corpus_check check)
{
    char path[PATH_MAX];
    lam_tokens *t = &c->split[s];
    LAM_TRY(lam_split_path(path, dir, s));
    LAM_TRY(lam_tokens_open(t, path));
    if (strcmp(t->split, lam_split_name(s)) != 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: holds the %s split", path, t->split);
    if (t->vocab_size != c->info.vocab_size || t->count != c->info.tokens[s])
        return lam_fail(
            LAM_ERR_FORMAT, "%s: %lld tokens of %d kinds, but corpus.json says %lld of %d", path,
            (long long)t->count, t->vocab_size, (long long)c->info.tokens[s], c->info.vocab_size);
    if (lam_corpus_info_divided(&c->info))
        t->separator = c->info.separator;
    if (check == LAM_CORPUS_VERIFY)
        LAM_TRY(lam_tokens_verify(t, path));
    lam_tokens_weigh(t, c->sizes, check == LAM_CORPUS_VERIFY ? c->info.bytes[s] : 0);
    return LAM_OK;
}

static lam_status open_parts(lam_corpus *c, const char *dir, lam_corpus_check check)
{
    char path[PATH_MAX];
    LAM_TRY(lam_corpus_info_load(&c->info, dir));
    LAM_TRY(lam_path_join(path, sizeof path, dir, "vocab.json"));
    LAM_TRY(lam_vocab_load(&c->vocab, path));
    if (lam_vocab_size(c->vocab) != c->info.vocab_size)
        return lam_fail(LAM_ERR_FORMAT, "%s: %d tokens, but corpus.json says %d", path,
                        lam_vocab_size(c->vocab), c->info.vocab_size);
    if (lam_vocab_kind(c->vocab) != c->info.kind)
        return lam_fail(LAM_ERR_FORMAT, "%s: a vocabulary of %s, but corpus.json says %s", path,
                        lam_text_kind_name(lam_vocab_kind(c->vocab)),
                        lam_text_kind_name(c->info.kind));
    LAM_TRY(lam_vocab_sizes(c->vocab, &c->sizes));
    for (int s = 0; s < LAM_SPLITS; s++)
        LAM_TRY(open_split(c, (lam_split)s, dir, check));
    return LAM_OK;
}

lam_status lam_corpus_open(lam_corpus **out, const char *dir, lam_corpus_check check)
{
    *out = NULL;
    lam_corpus *c = calloc(1, sizeof *c);
    if (c == NULL)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for a corpus", dir);
    const lam_status status = open_parts(c, dir, check);
    if (status != LAM_OK)
        lam_corpus_close(c);
    else
        *out = c;
    return status;
}

lam_status lam_corpus_of_text(lam_corpus **out, const char *name, lam_vocab *vocab,
                              const char *bytes, size_t size)
{
    size_t n = 0;
    *out = NULL;
    lam_corpus *c = calloc(1, sizeof *c);
    if (c == NULL)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for a corpus", name);
    c->info.kind = lam_vocab_kind(vocab);
    c->info.metric = lam_metric_for(c->info.kind);
    c->info.vocab_size = lam_vocab_size(vocab);
    snprintf(c->info.name, sizeof c->info.name, "%s", name);
    lam_status status = lam_vocab_encode(vocab, &c->text, &n, bytes, size);
    if (status == LAM_OK)
        status = lam_vocab_sizes(vocab, &c->sizes);
    if (status != LAM_OK) {
        lam_corpus_close(c);
        return status;
    }
    c->vocab = vocab;
    c->info.tokens[LAM_TEST] = (int64_t)n;
    for (size_t i = 0; i < n; i++)
        c->info.unknown[LAM_TEST] +=
            lam_vocab_unk(vocab) >= 0 && c->text[i] == lam_vocab_unk(vocab);
    c->split[LAM_TEST] = (lam_tokens){.ids = (const unsigned char *)c->text,
                                      .width = sizeof *c->text,
                                      .vocab_size = c->info.vocab_size,
                                      .count = (int64_t)n,
                                      .separator = -1,
                                      .split = "test"};
    lam_tokens_weigh(&c->split[LAM_TEST], c->sizes, c->info.kind == LAM_WORDS ? (int64_t)size : 0);
    *out = c;
    return LAM_OK;
}

void lam_corpus_close(lam_corpus *c)
{
    if (c == NULL)
        return;
    for (int s = 0; s < LAM_SPLITS; s++)
        lam_tokens_close(&c->split[s]);
    free(c->sizes);
    if (c->text == NULL)
        lam_vocab_free(c->vocab);
    lam_corpus_info_free(&c->info);
    free(c->text);
    free(c);
}
