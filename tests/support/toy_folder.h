/* toy_folder.h -- a small model of bytes with random weights, as a folder on disk. */
#ifndef TEST_TOY_FOLDER_H
#define TEST_TOY_FOLDER_H

#include "core/status.h"

enum { TOY_FOLDER_N = 12, TOY_FOLDER_M = 9 }; /* its segment and memory length */

/* 2 layers, 2 heads of 8, width 16, inner 24, memory "lamemo", "xl" or "none"; all 256 bytes are its
 * vocabulary.  `seed` draws the weights, wide enough that every term matters. */
lam_status toy_folder_save(const char *dir, const char *memory, unsigned seed);

#endif
