/* json_field.h -- maps fields of a struct to members of a JSON object, in both directions.
 *
 * A model's configuration (model/config_json.c) and a run's settings (train/settings.c) are one table of
 * such fields each: everything written can be read back, and a new field is a new row. Lists and checks
 * across fields belong to the tables' owners. */
#ifndef LAM_IO_JSON_FIELD_H
#define LAM_IO_JSON_FIELD_H

#include "io/json.h"

#include <stdint.h>

typedef enum lam_json_kind {
    LAM_JSON_INT,  /* int, -2^30 to 2^30 */
    LAM_JSON_LONG, /* int64_t */
    LAM_JSON_REAL, /* double */
    LAM_JSON_BOOL, /* int: true or false */
    LAM_JSON_FLAG, /* bool */
    LAM_JSON_WORD, /* int or an enum: one of `words` */
    LAM_JSON_REALS /* lam_json_reals: a list of at least one number */
} lam_json_kind;

enum { LAM_JSON_REALS_MAX = 8 };

typedef struct lam_json_reals {
    int n;
    double v[LAM_JSON_REALS_MAX];
} lam_json_reals;

typedef struct lam_json_field {
    const char *name;
    lam_json_kind kind;
    size_t offset;            /* in its struct */
    const char *const *words; /* of LAM_JSON_WORD, by value; ends with NULL */
} lam_json_field;

/* Structs are reached by offsets, so fields are copied in and out of them, never read through a pointer of their type. */

/* The field, unless it is a real or a list; of a word, its number. */
int64_t lam_field_whole(const void *from, const lam_json_field *f);
/* The same, of reals too. */
double lam_field_number(const void *from, const lam_json_field *f);
lam_json_reals lam_field_list(const void *from, const lam_json_field *f);
/* Sets the field to what `text` says: "4", "0.5", "mean", "0.1 0.3", of a flag "0" or "1".  Returns 0 where it cannot be
 * that. */
int lam_field_set(void *to, const lam_json_field *f, const char *text);

/* Sets the member of that name to the field of `from`; not 0: no memory, as jansson says it. */
int lam_json_put(json_t *object, const lam_json_field *f, const void *from);

/* Sets the field of `to` to the member of that name; without one it keeps its value.  LAM_ERR_FORMAT opens with
 * `label` and the type that the member must have. */
lam_status lam_json_take(void *to, const lam_json_field *f, const json_t *object,
                         const char *label);

#endif
