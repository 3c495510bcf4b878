/* own.h -- decides what may be replaced or removed: only what carries lamemo's mark.
 *
 * A user may name any place for a result. Every command checks here before it starts working, and an error
 * names what is in the way. Checking changes nothing. */
#ifndef LAM_CORE_OWN_H
#define LAM_CORE_OWN_H

#include "core/file.h"

/* A text near the beginning of a file of ours that no file of others has. */
typedef struct lam_mark {
    const char *name, *text;
} lam_mark;

/* A kind of folder that is made, replaced and removed as a whole. */
typedef struct lam_kind {
    const char *what;         /* "corpus" */
    const char *const *names; /* patterns of the files it is made of, ending with NULL */
    const lam_mark *marks;    /* one of them makes it ours; ends with a name of NULL */
} lam_kind;

/* May the file be written?  Where there is none, an empty one or one with the mark. */
lam_status lam_own_file(const char *path, const char *mark);

/* Is the folder `path` of that kind, with nothing else in it?  LAM_OK also where there is none or an empty one. */
lam_status lam_own_folder(const char *path, const lam_kind *kind);
/* The same for what a crash left of one: files may be missing, and temporary ones be there. */
lam_status lam_own_rest(const char *path, const lam_kind *kind);

/* May files be put into `dir`?  Where there is nothing yet but empty files. */
lam_status lam_own_room(const char *dir, const char *what);

/* May a user's `dir` become a folder of that kind?  Where there is nothing or an empty folder, and with `replace` where
 * there is a folder of that kind and nothing else. */
lam_status lam_own_target(const char *dir, const lam_kind *kind, int replace);
/* Writes it, whole or not at all (as lam_dir_write), after asking; and asks again before it takes the name, which
 * somebody else may have taken meanwhile.  Where `dir` is a link to a folder, that folder is written. */
lam_status lam_own_write(const char *dir, const lam_kind *kind, int replace, lam_dir_filler *fill,
                         void *user);

#endif
