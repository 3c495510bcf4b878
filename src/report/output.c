/* output.c -- see output.h. */
#include "report/output.h"

#include "core/file.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

bool lam_id_valid(const char *id)
{
    const size_t length = strlen(id);
    return length > 0 && length <= 100 &&
           strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") == length;
}

static lam_status save(const char *dir, const char *id, const char *extension, const lam_text *text)
{
    char path[PATH_MAX], name[128];
    assert(lam_id_valid(id));
    snprintf(name, sizeof name, "%s.%s", id, extension);
    LAM_TRY(lam_path_join(path, sizeof path, dir, name));
    LAM_TRY(lam_text_status(text, path));
    LAM_TRY(lam_dir_make(dir));
    return lam_file_save(path, text->data, text->size);
}

lam_status lam_output_save(const char *dir, const char *id, const char *extension, lam_text *text)
{
    const lam_status status = save(dir, id, extension, text);
    lam_text_free(text);
    return status;
}
