/* seal.h -- CRC32SUMS: a folder's record of the length and CRC-32 of each of its files.
 *
 * A truncated file is noticed when it is parsed. One whose bytes changed on disk may not be: any bit
 * pattern is a plausible weight. */
#ifndef LAM_CORE_SEAL_H
#define LAM_CORE_SEAL_H

#include "core/status.h"

/* Reads every file in `dir` and writes the record, in the place of an older one.  For a folder that is about to be
 * renamed (lam_dir_write), after its last file. */
lam_status lam_seal_write(const char *dir);

/* Is the file `name` of `dir` (NULL: every file on the record) what it was?  LAM_ERR_FORMAT names the first that is
 * damaged, the record itself included.  A folder without a record is taken as it is. */
lam_status lam_seal_check(const char *dir, const char *name);

#endif
