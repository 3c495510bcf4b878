/* prepare_compare.c -- warns of text that two splits have in common. */
#include "data/prepare_int.h"

#include "core/log.h"
#include "data/detok.h"
#include "data/overlap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct comparing {
    const lam_prepare_options *o;
    const lam_corpus_info *info;
    const lam_vocab *vocab;
    lam_tokens split[LAM_SPLITS];
} comparing;

static lam_status tell_compared(void *user, int64_t done, int64_t total)
{
    const comparing *c = user;
    return lam_prepare_tell(c->o, "comparing", (uint64_t)done, (uint64_t)total);
}

/* A line of the text that two splits have in common, for the message. */
static void show_text(const comparing *c, char *out, size_t size, const lam_tokens *t, int64_t at)
{
    enum { SHOWN = 64 }; /* tokens; the message cuts them short */
    int32_t ids[SHOWN];
    char *text = NULL;
    size_t n = 0;
    const int64_t left = t->count - at;
    const size_t some = (size_t)(left < SHOWN ? left : SHOWN);
    lam_tokens_copy(t, ids, at, some);
    snprintf(out, size, "...");
    if (lam_detok_all(c->vocab, &text, &n, ids, some) != LAM_OK)
        return;
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] == '\n' ? ' ' : text[i];
    snprintf(out, size, "%.*s", (int)n, text);
    free(text);
}

static lam_status compare_two(comparing *c, lam_split held_out, lam_split other)
{
    lam_overlap o;
    char text[80];
    LAM_TRY(lam_overlap_find(&o, &c->split[held_out], &c->split[other], c->info->kind,
                             tell_compared, c));
    if (o.found == 0)
        return LAM_OK;
    show_text(c, text, sizeof text, &c->split[held_out], o.at);
    lam_log(LAM_LOG_WARN,
            "%lld of %lld chunks of the %s split (%d tokens each) are in the %s split, too: the "
            "first is token %lld of %s and %lld of %s: '%s...'",
            (long long)o.found, (long long)o.looked, lam_split_name(held_out), o.piece,
            lam_split_name(other), (long long)o.at, lam_split_name(held_out), (long long)o.other,
            lam_split_name(other), text);
    return LAM_OK;
}

/* Files that are the same may be too short for chunks. */
static void compare_files(const lam_corpus_info *info)
{
    for (int i = 0; i < info->n_sources; i++)
        for (int k = 0; k < i; k++) {
            const lam_source *a = &info->sources[k], *b = &info->sources[i];
            if (a->split == b->split || a->bytes == 0 || a->bytes != b->bytes ||
                strcmp(a->md5, b->md5) != 0)
                continue;
            lam_log(LAM_LOG_WARN, "%s (%s) and %s (%s) are the same text", a->name,
                    lam_split_name(a->split), b->name, lam_split_name(b->split));
            return;
        }
}

static lam_status compare_all(comparing *c, const char *dir)
{
    for (int s = 0; s < LAM_SPLITS; s++) {
        char path[PATH_MAX];
        LAM_TRY(lam_split_path(path, dir, (lam_split)s));
        LAM_TRY(lam_tokens_open(&c->split[s], path));
    }
    for (int s = LAM_VALID; s < LAM_SPLITS; s++)
        for (int other = LAM_TRAIN; other < s; other++)
            LAM_TRY(compare_two(c, (lam_split)s, (lam_split)other));
    return LAM_OK;
}

lam_status lam_prepare_compare(const lam_prepare_options *o, const lam_corpus_info *info,
                               const lam_vocab *vocab, const char *dir)
{
    comparing c = {.o = o, .info = info, .vocab = vocab};
    compare_files(info);
    const lam_status status = compare_all(&c, dir);
    for (int s = 0; s < LAM_SPLITS; s++)
        lam_tokens_close(&c.split[s]);
    return status;
}
