/* config_rows.h -- the fields that the configuration of every model has: key in config.json, kind, default and range,
 * each in one row. configure.c has the table and the checks that ranges cannot express; config_json.c uses it to read
 * and write. */
#ifndef LAM_MODEL_CONFIG_ROWS_H
#define LAM_MODEL_CONFIG_ROWS_H

#include "mem/fields.h"

/* In the order of config.json: the memories' own fields come after the shape. */
extern const lam_mem_field lam_shape_rows[], lam_init_rows[];
/* Written only if it is set: no model of the paper uses it. */
extern const lam_mem_field lam_rare_rows[];

#endif
