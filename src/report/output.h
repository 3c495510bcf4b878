/* output.h -- one written text becomes one file. */
#ifndef LAM_REPORT_OUTPUT_H
#define LAM_REPORT_OUTPUT_H

#include "report/text.h"

/* May `id` be a file name and an anchor: 1 to 100 of a-z, 0-9, '-', '_'? */
bool lam_id_valid(const char *id);

/* Writes DIR/ID.EXTENSION atomically (DIR is made) and frees the text, whatever happens. */
lam_status lam_output_save(const char *dir, const char *id, const char *extension, lam_text *text);

#endif
