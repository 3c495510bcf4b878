/* file.h -- maps input files for reading, and writes output files whole or not at all. */
#ifndef LAM_CORE_FILE_H
#define LAM_CORE_FILE_H

#include "core/status.h"

#include <stddef.h>

/* A read-only mapping.  An empty file maps to size 0 and a non-NULL address. */
typedef struct lam_map {
    const unsigned char *data;
    size_t size;
} lam_map;

lam_status lam_map_open(lam_map *out, const char *path);
void lam_map_close(lam_map *map); /* fine on a zeroed or closed map */

/* Atomic writing.  Bytes go to a temporary name beside `path`; finish() flushes, fsyncs, renames
 * over `path` and fsyncs the folder, so that a crash at any moment leaves the old file or the new
 * one.  abort() removes the temporary file.  Both free the object, whatever they return. */
typedef struct lam_outfile lam_outfile;

lam_status lam_outfile_open(lam_outfile **out, const char *path);
lam_status lam_outfile_write(lam_outfile *file, const void *data, size_t size);
/* Overwrites bytes written before, at `offset`: a header whose sums are known only at the end. */
lam_status lam_outfile_patch(lam_outfile *file, size_t offset, const void *data, size_t size);
lam_status lam_outfile_finish(lam_outfile *file);
void lam_outfile_abort(lam_outfile *file); /* NULL is fine */

/* Opens a regular file with the `flags` of open(2).  Anything else is refused, and never waited for: a named pipe
 * without a writer, a device that never ends.  With O_NOFOLLOW a link is refused too. */
lam_status lam_file_open(int *fd, const char *path, int flags);

/* open + write + finish for small files. */
lam_status lam_file_save(const char *path, const void *data, size_t size);
/* The whole of a regular file as a NUL-terminated string, *out owned by the caller (free).  Refuses more than `limit`
 * bytes. */
lam_status lam_file_load(char **out, size_t *size, const char *path, size_t limit);

/* Asked by whatever reads for long, or waits for a pipe: is the program to end?  NULL: never.  Set before anything is
 * read, and away only while nobody else reads. */
extern int (*lam_read_stop)(void);
/* LAM_ERR_INTERRUPTED if so. */
lam_status lam_read_check(const char *path);

/* Makes a folder and its parents; an existing folder is fine. */
lam_status lam_dir_make(const char *path);
/* Could it, as far as one can tell?  Before long work whose result goes there.  Refuses "/" as well. */
lam_status lam_dir_may_make(const char *path);
/* Is there a folder in which the file `path` can be created or replaced?  Changes nothing. */
lam_status lam_file_may_make(const char *path);
int lam_path_exists(const char *path);
int lam_path_is_folder(const char *path);
/* Is it there?  What cannot be looked at is not the same as what is missing: LAM_ERR_IO. */
lam_status lam_path_look(int *there, const char *path);
lam_status lam_dir_look(int *there, const char *dir, const char *name); /* DIR/NAME */
/* dir + "/" + name into out (size bytes); LAM_ERR_ARG if it does not fit. */
lam_status lam_path_join(char *out, size_t size, const char *dir, const char *name);

/* Atomic replacement of a whole folder: the caller fills `temporary` (a sibling of `target`), then
 * this fsyncs every file in it and puts it in the place of `target` by renaming (exchanging the two
 * names where the system can), and removes the old one.  A crash at any moment leaves a complete
 * `target`, or, where names cannot be exchanged, perhaps only a complete `target`.old:
 * lam_dir_recover() gives it its name back, or removes it where `target` exists. */
lam_status lam_dir_replace(const char *target, const char *temporary);
lam_status lam_dir_recover(const char *target);
/* Removes a folder and everything in it; a missing one is fine. */
lam_status lam_dir_remove(const char *path);

/* The same where `target` is missing or an empty folder, and fails where it is neither. */
lam_status lam_dir_place(const char *target, const char *temporary);

/* A folder of ours that appears whole or not at all: `fill` puts everything into a new one beside `target`, called
 * `target` with `suffix` behind, which then takes its place; what a crash left under that name goes first.  After a
 * failure the new one is removed and the message is that of the failure.  For a folder that a user has named:
 * core/own.h. */
typedef lam_status lam_dir_filler(void *user, const char *dir);
lam_status lam_dir_write(const char *target, const char *suffix, lam_dir_filler *fill, void *user);

/* Test hook: called before every write, fsync and rename of this file's functions with the word
 * "write", "fsync", "rename" or "exchange" (of two names); a non-zero return makes that call fail
 * with this errno. */
extern int (*lam_file_fault)(const char *what);

#endif
