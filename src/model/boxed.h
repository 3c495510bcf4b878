/* boxed.h -- the models that come with lamemo (models/), found by name from anywhere.
 *
 * They lie in the folder that LAMEMO_MODELS of the environment names; without it in
 * ../share/lamemo/models, seen from the running program or from the shared library, where `cmake --install`
 * puts them (../../share where the library lies in lib/MACHINE); else in ../../models, where a program in
 * build/PRESET finds those of its source tree.  Nothing remembers where it was built: an installed tree
 * can be moved. */
#ifndef LAM_MODEL_BOXED_H
#define LAM_MODEL_BOXED_H

#include <stddef.h>

#define LAM_BOXED "wiki11m" /* the one that messages and help name */

/* 1 and its folder in `out`, if a model called `name` (no path) is there and has its weights; else 0. */
int lam_boxed_find(char *out, size_t size, const char *name);

#endif
