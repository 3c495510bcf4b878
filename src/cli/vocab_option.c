/* vocab_option.c -- see vocab_option.h. */
#include "cli/vocab_option.h"

#include "convert/vocabulary.h"
#include "core/file.h"
#include "model/folder.h"

#include <limits.h>

lam_status lam_vocab_option(lam_vocab **out, const char *from, const char *pattern)
{
    char path[PATH_MAX];
    *out = NULL;
    if (lam_path_exists(from) && !lam_path_is_folder(from))
        return lam_vocabulary_load(out, from, pattern);
    if (pattern != NULL)
        return lam_fail(LAM_ERR_ARG, "--pattern: the vocabulary of %s has its own, or none", from);
    LAM_TRY(lam_path_join(path, sizeof path, from, "corpus.json"));
    if (lam_path_exists(path)) {
        LAM_TRY(lam_path_join(path, sizeof path, from, "vocab.json"));
        return lam_vocab_load(out, path);
    }
    const lam_status status = lam_folder_vocab(path, sizeof path, from);
    if (status == LAM_ERR_FORMAT)
        return lam_fail(status, "%s; nor a corpus folder: it has no corpus.json", lam_error());
    LAM_TRY(status);
    lam_config cfg;
    LAM_TRY(lam_folder_config(&cfg, from));
    LAM_TRY(lam_vocab_load(out, path));
    const lam_status fits = lam_vocab_fits(*out, path, cfg.n_token);
    if (fits != LAM_OK) {
        lam_vocab_free(*out);
        *out = NULL;
    }
    return fits;
}
