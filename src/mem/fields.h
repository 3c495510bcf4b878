/* fields.h -- what a memory adds to a configuration: fields, each with its key in config.json, its option, range,
 * default and help in one row of the memory's own file.
 *
 * A memory keeps its fields in a struct of its own, which nobody else knows: a lam_config has room for one of every
 * memory and treats it as bytes.  The table says where a field lies in the struct and what it is; config.json
 * (model/config_json.c), the rules (model/configure.c) and the options (cli/shape_options.c) follow from it.
 * config.json has the fields in the order of the struct, lists behind everything else; help has them in the order of
 * the table. */
#ifndef LAM_MEM_FIELDS_H
#define LAM_MEM_FIELDS_H

#include "io/json_field.h"
#include "mem/mem.h"

/* What reals may be; whole numbers have a range. */
typedef enum lam_real_rule {
    LAM_NOT_NEGATIVE,
    LAM_POSITIVE,
    LAM_BETWEEN_0_AND_1, /* neither of them */
    LAM_BELOW_1          /* 0 or more */
} lam_real_rule;

/* A length that is 0 until others say what it is. */
typedef enum lam_follows { LAM_ON_ITS_OWN, LAM_FOLLOWS_MEM_LEN, LAM_FOLLOWS_TGT_LEN } lam_follows;

struct lam_mem_field {
    lam_json_field json; /* key, kind and place in the memory's struct: LAM_FIELD, LAM_WORD_FIELD */
    const char *value;   /* default, as a user would write it; NULL: 0, off, the first word */
    const char *fresh;   /* what presets have instead */
    double min, max;     /* whole numbers: in files and options, equal: any; reals: in options */
    lam_real_rule rule;  /* reals, in files */
    lam_follows follows;
    int weighs;          /* shapes of weights hang on it: an old model keeps it */
    const char *option;  /* of train, info and bench; NULL: it has none */
    const char *aliases; /* other names of that, separated by spaces */
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

/* Copies the struct of `mem` out of a configuration, or into it. */
void lam_fields_get(void *own, size_t size, const lam_config *cfg, const lam_mem_ops *mem);
void lam_fields_put(lam_config *cfg, const lam_mem_ops *mem, const void *own, size_t size);
/* Where it lies in a lam_config. */
size_t lam_fields_offset(const lam_mem_ops *mem);

/* Gives all fields of `mem` their defaults; those of presets where these are others. */
void lam_fields_default(lam_config *cfg, const lam_mem_ops *mem);
void lam_fields_fresh(lam_config *cfg, const lam_mem_ops *mem);

/* Gives *to the lengths in *from that follow others and that no weights hang on. */
void lam_fields_take_lengths(lam_config *to, const lam_config *from);

/* Has config.json of a model with memory `model` the fields of `mem`?  Then they must be in range, too. */
int lam_fields_written(const lam_mem_ops *mem, const lam_mem_ops *model);
/* LAM_ERR_ARG names the first field that is out of range, and the range. */
lam_status lam_fields_check(const lam_config *cfg, const lam_mem_ops *mem);

/* From and to a JSON object; writing returns non-zero where memory lacks, as jansson does.  Lists have a place of
 * their own in config.json. */
typedef enum lam_fields_part { LAM_FIELDS_SINGLE, LAM_FIELDS_LISTS } lam_fields_part;
lam_status lam_fields_read(lam_config *cfg, const lam_mem_ops *mem, const json_t *object,
                           const char *label);
int lam_fields_write(json_t *object, const lam_config *cfg, const lam_mem_ops *mem,
                     lam_fields_part part);

/* The field called `key` of whichever memory has it, as text: "4", "mean", "0.1 0.3".  LAM_ERR_ARG: there is none, or
 * it cannot be that. */
lam_status lam_fields_set(lam_config *cfg, const char *key, const char *text);
/* Its value, of a word its number; NaN: there is none. */
double lam_fields_value(const lam_config *cfg, const char *key);

#endif
