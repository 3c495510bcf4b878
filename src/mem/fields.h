/* fields.h -- the fields that a memory adds to a configuration: one row in the memory's own file defines the key in
 * config.json, option, range, default and help.
 *
 * A memory keeps its fields in a private struct: a lam_config has room for one of every memory and treats it as bytes.
 * The table gives the offset and the type of each field in the struct; config.json (model/config_json.c), the rules
 * (model/configure.c) and the options (cli/shape_options.c) follow from it. config.json has the fields in the order of
 * the struct, lists behind everything else; help has them in the order of the table. */
#ifndef LAM_MEM_FIELDS_H
#define LAM_MEM_FIELDS_H

#include "io/json_field.h"
#include "mem/mem.h"

/* The range of reals; integers have min and max. */
typedef enum lam_real_rule {
    LAM_NOT_NEGATIVE,
    LAM_POSITIVE,
    LAM_BETWEEN_0_AND_1, /* excluding both */
    LAM_BELOW_1          /* 0 or more */
} lam_real_rule;

/* A length that is 0 until it is derived from other settings. */
typedef enum lam_follows { LAM_ON_ITS_OWN, LAM_FOLLOWS_MEM_LEN, LAM_FOLLOWS_TGT_LEN } lam_follows;

struct lam_mem_field {
    lam_json_field json; /* key, kind and place in the memory's struct: LAM_FIELD, LAM_WORD_FIELD */
    const char *value;   /* default, as a user would write it; NULL: 0, off, the first word */
    const char *fresh;   /* default of presets, if different */
    double min, max;     /* whole numbers: in files and options, equal: any; reals: in options */
    lam_real_rule rule;  /* reals, in files */
    lam_follows follows;
    int weighs;          /* shapes of weights depend on it: an existing model keeps it */
    const char *option;  /* of train, info and bench; NULL: no option */
    const char *aliases; /* other names of the option, separated by spaces */
    const char *help;    /* one sentence without the default */
};

/* .json of the field of struct `type` that is called like its key; kind INT, REAL, FLAG or REALS. */
#define LAM_FIELD(type, key, kind)                                                                 \
    {                                                                                              \
#key, LAM_JSON_##kind, offsetof(type, key), NULL                                           \
    }
#define LAM_WORD_FIELD(type, key, choice)                                                          \
    {                                                                                              \
#key, LAM_JSON_WORD, offsetof(type, key), choice                                           \
    }

/* A struct with such rows, a memory's or lam_config itself (model/config_rows.h); a row of zeros ends them.  Defaults;
 * LAM_ERR_ARG names the first field that is out of range, and the range; from a JSON object. */
void lam_rows_default(void *own, const lam_mem_field *rows);
lam_status lam_rows_check(const void *own, const lam_mem_field *rows);
lam_status lam_rows_read(void *own, const lam_mem_field *rows, const json_t *object,
                         const char *label);

/* Copies the struct of `mem` from a configuration, or into it. */
void lam_fields_get(void *own, size_t size, const lam_config *cfg, const lam_mem_ops *mem);
void lam_fields_put(lam_config *cfg, const lam_mem_ops *mem, const void *own, size_t size);
/* The place of the struct in a lam_config. */
size_t lam_fields_offset(const lam_mem_ops *mem);

/* Sets all fields of `mem` to their defaults, or to those of presets. */
void lam_fields_default(lam_config *cfg, const lam_mem_ops *mem);
void lam_fields_fresh(lam_config *cfg, const lam_mem_ops *mem);

/* Copies the derived lengths on which no weights depend from *from to *to. */
void lam_fields_take_lengths(lam_config *to, const lam_config *from);

/* Does config.json of a model with memory `model` contain the fields of `mem`?  If so, they must be in range, too. */
int lam_fields_written(const lam_mem_ops *mem, const lam_mem_ops *model);
/* LAM_ERR_ARG names the first field that is out of range, and the range. */
lam_status lam_fields_check(const lam_config *cfg, const lam_mem_ops *mem);

/* Read from and write to a JSON object; writing returns non-zero if out of memory, as jansson does.  Lists are stored
 * separately in config.json. */
typedef enum lam_fields_part { LAM_FIELDS_SINGLE, LAM_FIELDS_LISTS } lam_fields_part;
lam_status lam_fields_read(lam_config *cfg, const lam_mem_ops *mem, const json_t *object,
                           const char *label);
int lam_fields_write(json_t *object, const lam_config *cfg, const lam_mem_ops *mem,
                     lam_fields_part part);

/* The field called `key` of whichever memory has it, and that memory; NULL: there is none. */
const lam_mem_field *lam_fields_find(const char *key, const lam_mem_ops **mem);
/* Sets that field to what a text says: "4", "mean", "0.1 0.3".  LAM_ERR_ARG: there is none, or
 * it cannot be that. */
lam_status lam_fields_set(lam_config *cfg, const char *key, const char *text);
/* The field's value, for a word its index; NaN: there is no such field. */
double lam_fields_value(const lam_config *cfg, const char *key);

#endif
