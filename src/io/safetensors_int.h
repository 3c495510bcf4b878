/* safetensors_int.h -- the inside of an open file, shared by safetensors.c and safetensors_index.c. */
#ifndef LAM_IO_SAFETENSORS_INT_H
#define LAM_IO_SAFETENSORS_INT_H

#include "core/file.h"
#include "io/json.h"
#include "io/safetensors.h"

struct lam_safetensors {
    char *path;
    lam_map whole;                 /* all of it, borrowed; */
    lam_map map;                   /* empty if the caller keeps the bytes */
    json_t *header;                /* owns the names */
    json_t *metadata;              /* inside header, or NULL */
    lam_st_tensor *tensors;        /* in the order of their data */
    const lam_st_tensor **by_name; /* sorted, for lam_st_find */
    int count;
    lam_safetensors **parts; /* owned: the files behind an index, whose tensors these are */
    int n_parts;
};

/* For qsort and bsearch over by_name. */
int lam_st_compare_names(const void *a, const void *b);

#endif
