/* model_list.c -- see model_list.h. */
#include "cli/model_list.h"

#include "core/file.h"
#include "draw/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lam_status add(lam_model_list *t, const char *dir, size_t size)
{
    if (size == 0)
        return lam_fail(LAM_ERR_ARG, "--model: a name is empty");
    if (t->n == LAM_ANALYSED)
        return lam_fail(LAM_ERR_ARG, "--model: more than %d models", LAM_ANALYSED);
    if (!(t->dir[t->n] = strndup(dir, size)))
        return lam_fail(LAM_ERR_MEMORY, "no memory for a path");
    t->n++;
    return LAM_OK;
}

/* A folder whose name has a comma is one folder. */
static lam_status split(lam_model_list *t, const lam_string_list *list)
{
    for (int i = 0; i < list->n; i++) {
        const char *at = list->v[i];
        const bool whole = lam_path_exists(at);
        for (;;) {
            const size_t size = whole ? strlen(at) : strcspn(at, ",");
            LAM_TRY(add(t, at, size));
            if (at[size] == '\0')
                break;
            at += size + 1;
        }
    }
    return LAM_OK;
}

/* The last part of the path; models that share one are numbered. */
static void name(lam_model_list *t, int i, const lam_string_list *given)
{
    char path[64];
    size_t end = strlen(t->dir[i]), from;
    while (end > 1 && t->dir[i][end - 1] == '/')
        end--;
    for (from = end; from > 0 && t->dir[i][from - 1] != '/';)
        from--;
    snprintf(path, sizeof path, "%.*s", (int)(end - from > 55 ? 55 : end - from), t->dir[i] + from);
    lam_text_plain(t->name[i], sizeof *t->name, i < given->n ? given->v[i] : path);
    for (int k = 0; k < i; k++)
        if (strcmp(t->name[k], t->name[i]) == 0)
            snprintf(t->name[i], sizeof *t->name, "%.48s (%d)", path, i + 1);
}

lam_status lam_model_list_read(lam_model_list *t, const lam_string_list *dirs,
                               const lam_string_list *names)
{
    *t = (lam_model_list){0};
    LAM_TRY(split(t, dirs));
    if (names->n > t->n)
        return lam_fail(LAM_ERR_ARG, "--name: %d names for %d models", names->n, t->n);
    for (int i = 0; i < t->n; i++)
        name(t, i, names);
    return LAM_OK;
}

void lam_model_list_free(lam_model_list *t)
{
    for (int i = 0; i < t->n; i++)
        free(t->dir[i]);
}
