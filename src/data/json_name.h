/* json_name.h -- names of files in JSON: the one is any bytes, the other UTF-8. */
#ifndef LAM_DATA_JSON_NAME_H
#define LAM_DATA_JSON_NAME_H

#include <jansson.h>

/* A JSON string; every byte that is part of no character becomes U+FFFD.  NULL: no memory. */
json_t *lam_json_name(const char *name);
json_t *lam_json_bytes(const char *bytes, size_t size); /* zero among them stays */

#endif
