/* prepare_describe.c -- what corpus.json says of a corpus: its name, which published one it is, its vocabulary. */
#include "data/prepare_int.h"

#include "core/file.h"
#include "data/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_one_line(const char *name)
{
    for (const char *at = name; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return false;
    return lam_utf8_valid(name, strlen(name));
}

lam_status lam_prepare_check_name(const lam_prepare_options *o)
{
    if (o->published == NULL && o->name != NULL && lam_published_name(o->name))
        return lam_fail(LAM_ERR_ARG, "'%s' is the name of a published corpus: name it otherwise",
                        o->name);
    if (o->name != NULL && !is_one_line(o->name))
        return lam_fail(LAM_ERR_ARG, "the name of a corpus is one line of UTF-8");
    return LAM_OK;
}

/* The name of a text that is not a published corpus: the one asked for, or that of its first file
 * without packing suffixes; never the name of a published one. */
static lam_status choose_name(lam_corpus_info *info, const lam_prepare_options *o)
{
    static const char *const suffixes[] = {".gz", ".xz", ".zst", ".zip", ".txt", NULL};
    char *name = info->name;
    const size_t room = sizeof info->name;
    const char *base = lam_input_base(o->inputs[0]);
    if (o->name != NULL) {
        snprintf(name, room, "%s", o->name);
        if (lam_published_name(name))
            return lam_fail(LAM_ERR_FORMAT,
                            "this text is not the published '%s': name it otherwise", name);
        return LAM_OK;
    }
    snprintf(name, room - 16, "%s", strcmp(base, "-") == 0 ? "stdin" : base);
    for (int i = 0; suffixes[i] != NULL; i++) {
        const size_t len = strlen(name), cut = strlen(suffixes[i]);
        if (len > cut && strcmp(name + len - cut, suffixes[i]) == 0)
            name[len - cut] = '\0';
    }
    while (strlen(name) > 1 && name[strlen(name) - 1] == '/')
        name[strlen(name) - 1] = '\0';
    if (lam_published_name(name))
        strcat(name, o->published != NULL ? "-altered" : "-own");
    return LAM_OK;
}

lam_status lam_prepare_describe(lam_corpus_info *info, const lam_prepare_options *o,
                                const lam_vocab *vocab)
{
    const lam_published *pub = o->published;
    info->kind = lam_vocab_kind(vocab);
    info->metric = lam_metric_for(info->kind);
    info->vocab_size = lam_vocab_size(vocab);
    if (pub == NULL)
        return choose_name(info, o);

    snprintf(info->like, sizeof info->like, "%s", pub->name);
    lam_status status = lam_published_check_counts(pub, info);
    if (status == LAM_OK)
        status = lam_published_check_source(pub, &info->sources[0]);
    info->original = status == LAM_OK;
    if (info->original)
        snprintf(info->name, sizeof info->name, "%s", o->name != NULL ? o->name : pub->name);
    else
        LAM_TRY(o->force ? choose_name(info, o) : status);
    return LAM_OK;
}

lam_status lam_prepare_save(const char *dir, const lam_corpus_info *info, const lam_vocab *vocab)
{
    char path[PATH_MAX], *text;
    LAM_TRY(lam_path_join(path, sizeof path, dir, "vocab.json"));
    LAM_TRY(lam_vocab_save(vocab, path));
    LAM_TRY(lam_path_join(path, sizeof path, dir, "corpus.json"));
    LAM_TRY(lam_corpus_info_text(info, &text));
    const lam_status status = lam_file_save(path, text, strlen(text));
    free(text);
    return status;
}
