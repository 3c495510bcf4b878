/* corpus_json.c -- corpus.json, both ways.  docs/formats.md describes it. */
#include "data/corpus.h"

#include "data/json_name.h"
#include "io/json.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CORPUS_VERSION = 1 };
static const size_t JSON_LIMIT = (size_t)64 << 20;

void lam_corpus_info_free(lam_corpus_info *info)
{
    for (int i = 0; i < info->n_sources; i++)
        free(info->sources[i].name);
    free(info->sources);
    *info = (lam_corpus_info){0};
}

bool lam_corpus_info_divided(const lam_corpus_info *info)
{
    return info->documents[LAM_TRAIN] > 0 || info->documents[LAM_VALID] > 0 ||
           info->documents[LAM_TEST] > 0;
}

static json_t *per_split(const int64_t *n)
{
    return json_pack("{s:I, s:I, s:I}", "train", (json_int_t)n[LAM_TRAIN], "valid",
                     (json_int_t)n[LAM_VALID], "test", (json_int_t)n[LAM_TEST]);
}

/* NULL without memory. */
static json_t *sources_to_json(const lam_corpus_info *info)
{
    json_t *list = json_array();
    for (int i = 0; i < info->n_sources; i++) {
        const lam_source *s = &info->sources[i];
        json_t *item = json_pack("{s:o, s:I, s:s}", "file", lam_json_name(s->name), "bytes",
                                 (json_int_t)s->bytes, "md5", s->md5);
        if (s->split < LAM_SPLITS)
            item = lam_json_set(item, "split", json_string(lam_split_name(s->split)));
        list = lam_json_add(list, item);
    }
    return list;
}

lam_status lam_corpus_info_text(const lam_corpus_info *info, char **text)
{
    json_t *root = json_pack(
        "{s:s, s:i, s:o, s:s, s:s, s:s?, s:b, s:i, s:o, s:o, s:o, s:o}", "format", "lamemo-corpus",
        "version", CORPUS_VERSION, "name", lam_json_name(info->name), "kind",
        lam_text_kind_name(info->kind), "metric", lam_metric_name(info->metric), "like",
        info->like[0] ? info->like : NULL, "original", info->original, "vocab_size",
        info->vocab_size, "tokens", per_split(info->tokens), "unknown", per_split(info->unknown),
        "bytes", per_split(info->bytes), "sources", sources_to_json(info));
    *text = NULL;
    if (lam_corpus_info_divided(info)) {
        root = lam_json_set(root, "separator", json_integer(info->separator));
        root = lam_json_set(root, "documents", per_split(info->documents));
    }
    if (root == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory to describe a corpus");
    const lam_status status = lam_json_text(text, NULL, root, JSON_INDENT(2));
    json_decref(root);
    return status;
}

/* ---- reading ---- */

static lam_status damaged(const char *path, const char *what)
{
    return lam_fail(LAM_ERR_FORMAT, "%s: not a corpus description: %s", path, what);
}

static lam_status read_splits(int64_t *out, json_t *node, const char *path)
{
    for (int s = 0; s < LAM_SPLITS; s++) {
        const json_t *n = json_object_get(node, lam_split_name((lam_split)s));
        if (!json_is_integer(n) || json_integer_value(n) < 0)
            return damaged(path, "a count is missing");
        out[s] = json_integer_value(n);
    }
    return LAM_OK;
}

static lam_status read_sources(lam_corpus_info *out, json_t *list, const char *path)
{
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || n > LAM_SOURCES_MAX)
        return damaged(path, "no list of sources");
    out->sources = calloc(n + 1, sizeof *out->sources);
    if (out->sources == NULL)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu sources", path, n);
    for (size_t i = 0; i < n; i++) {
        const char *name = NULL, *md5 = NULL, *split = NULL;
        json_int_t bytes = 0;
        lam_source *s = &out->sources[i];
        if (json_unpack(json_array_get(list, i), "{s:s, s:I, s:s, s?s}", "file", &name, "bytes",
                        &bytes, "md5", &md5, "split", &split) != 0)
            return damaged(path, "a source is damaged");
        while (s->split < LAM_SPLITS && (!split || strcmp(split, lam_split_name(s->split)) != 0))
            s->split++;
        snprintf(s->md5, sizeof s->md5, "%s", md5);
        s->bytes = bytes;
        s->name = strdup(name);
        out->n_sources++;
        if (s->name == NULL)
            return lam_fail(LAM_ERR_MEMORY, "%s: no memory for a name", path);
    }
    return LAM_OK;
}

/* Both or neither. */
static lam_status read_documents(lam_corpus_info *out, const json_t *root, const char *path)
{
    const json_t *separator = json_object_get(root, "separator");
    json_t *documents = json_object_get(root, "documents");
    if (separator == NULL && documents == NULL)
        return LAM_OK;
    const json_int_t id = json_integer_value(separator);
    if (!json_is_integer(separator) || id < 0 || id >= out->vocab_size)
        return damaged(path, "the separator of documents is no token");
    out->separator = (int32_t)id;
    return read_splits(out->documents, documents, path);
}

static lam_status from_json(lam_corpus_info *out, json_t *root, const char *path)
{
    const char *format = NULL, *name = NULL, *kind = NULL, *metric = NULL;
    int version = 0, original = 0;
    json_t *like = NULL, *tokens = NULL, *unknown = NULL, *sources = NULL;
    json_error_t why;
    if (json_unpack_ex(root, &why, 0, "{s:s, s:i, s:s, s:s, s:s, s:o, s:b, s:i, s:o, s:o, s:o}",
                       "format", &format, "version", &version, "name", &name, "kind", &kind,
                       "metric", &metric, "like", &like, "original", &original, "vocab_size",
                       &out->vocab_size, "tokens", &tokens, "unknown", &unknown, "sources",
                       &sources) != 0)
        return damaged(path, why.text);
    if (strcmp(format, "lamemo-corpus") != 0 || version != CORPUS_VERSION)
        return lam_fail(LAM_ERR_FORMAT, "%s: is '%s' version %d, not lamemo-corpus version %d",
                        path, format, version, CORPUS_VERSION);
    out->kind = lam_text_kind_find(kind);
    out->metric = strcmp(metric, lam_metric_name(LAM_PPL)) == 0 ? LAM_PPL : LAM_BPC;
    if (out->kind == LAM_KINDS || strcmp(metric, lam_metric_name(out->metric)) != 0 ||
        out->vocab_size < 1)
        return damaged(path, "unknown kind or metric, or no vocabulary");
    out->original = original != 0;
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->like, sizeof out->like, "%s",
             json_is_string(like) ? json_string_value(like) : "");
    LAM_TRY(read_splits(out->tokens, tokens, path));
    LAM_TRY(read_splits(out->unknown, unknown, path));
    if (json_object_get(root, "bytes") != NULL) /* older corpora have none */
        LAM_TRY(read_splits(out->bytes, json_object_get(root, "bytes"), path));
    LAM_TRY(read_documents(out, root, path));
    return read_sources(out, sources, path);
}

lam_status lam_corpus_info_load(lam_corpus_info *out, const char *dir)
{
    char path[PATH_MAX];
    *out = (lam_corpus_info){0};
    LAM_TRY(lam_path_join(path, sizeof path, dir, "corpus.json"));
    int there;
    LAM_TRY(lam_path_look(&there, dir));
    if (!there)
        return lam_fail(LAM_ERR_IO,
                        "%s: there is no such folder (lamemo prepare makes a corpus folder)", dir);
    if (!lam_path_is_folder(dir))
        return lam_fail(LAM_ERR_IO, "%s: a file, not a corpus folder (lamemo prepare makes one)",
                        dir);
    LAM_TRY(lam_path_look(&there, path));
    if (!there)
        return lam_fail(LAM_ERR_IO,
                        "%s: not a corpus folder: it has no corpus.json (lamemo prepare makes one)",
                        dir);
    json_t *root;
    LAM_TRY(lam_json_load(&root, path, JSON_LIMIT));
    const lam_status status = from_json(out, root, path);
    json_decref(root);
    if (status != LAM_OK)
        lam_corpus_info_free(out);
    return status;
}
