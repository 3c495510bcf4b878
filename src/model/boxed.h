/* boxed.h -- the bundled models (models/), found by name from any folder.
 *
 * They are in the folder that the environment variable LAMEMO_MODELS names; without it in ../share/lamemo/models,
 * relative to the running program or the shared library, where `cmake --install` puts them (../../share if the library
 * is in lib/MACHINE); else in ../../models, where a program in build/PRESET finds those of its source tree.  No build
 * path is stored, so an installed tree can be moved. */
#ifndef LAM_MODEL_BOXED_H
#define LAM_MODEL_BOXED_H

#include <stddef.h>

#define LAM_BOXED "wiki11m" /* the model that messages and help name */

/* Returns 1 and the folder in `out` if a model called `name` (not a path) exists and has its weights; else 0. */
int lam_boxed_find(char *out, size_t size, const char *name);

#endif
