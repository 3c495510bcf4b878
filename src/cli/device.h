/* device.h -- the --device, --threads and --precision options that every computing command shares, and
 * --weights, --cache and --numerics of those that only infer. */
#ifndef LAM_CLI_DEVICE_H
#define LAM_CLI_DEVICE_H

#include "cli/options.h"
#include "model/storage.h"
#include "ops/ops.h"

typedef struct lam_device_options {
    const char *device;
    int threads;
    int precision; /* index into lam_precisions */
    int numerics;  /* index into lam_numerics */
    int card;      /* no option: which GPU, of processes that share a host (ranks.h) */
} lam_device_options;

extern const char *const lam_precisions[]; /* "bf16", "float32"; ends with NULL */
extern const char *const lam_numerics[];   /* "fast", "exact" */
extern const char *const lam_stores[];     /* "auto", "float32", "bf16", "int8"; as in lam_store */
extern const char *const lam_cache_stores[]; /* the same without int8 */

/* What is in a lam_storage at `field` of struct `type`, as two ints. */
typedef struct lam_storage_options {
    int weights, cache; /* lam_store */
} lam_storage_options;

/* clang-format off */
#define LAM_STORAGE_OPTIONS(type, field, standard) \
    {"weights", 0, "TYPE", LAM_OPT_CHOICE, offsetof(type, field.weights), "auto", .choices = lam_stores, \
     .shown = standard, \
     .help = "Type of matrices and embeddings on cpu: float32, bf16, or int8 with a scale for each row."}, \
    {"cache", 0, "TYPE", LAM_OPT_CHOICE, offsetof(type, field.cache), "auto", .choices = lam_cache_stores, \
     .shown = "bf16 where weights are bf16 or int8", \
     .help = "Type of cached keys, values and positions on cpu: float32 or bf16."}
/* clang-format on */

lam_storage lam_storage_of(const lam_storage_options *options);

/* Three table entries for a lam_device_options at `field` of struct `type`; and one more, for a command that computes
 * forward alone. */
/* clang-format off */
#define LAM_DEVICE_OPTIONS(type, field, standard) \
    {"device", 'd', "NAME", LAM_OPT_STRING, offsetof(type, field.device), standard, \
     .help = "Back-end: cpu, cuda, ref (double precision, the slow reference), or auto: cuda where there is a GPU, " \
             "else cpu."}, \
    {"threads", 't', "N", LAM_OPT_INT, offsetof(type, field.threads), "0", .max = 1024, \
     .help = "Number of CPU threads; 0: one for every core this process may run on."}, \
    {"precision", 0, "P", LAM_OPT_CHOICE, offsetof(type, field.precision), "bf16", .choices = lam_precisions, \
     .help = "Type of activations and weights on cuda: bf16, or float32 (slow, to verify)."}
#define LAM_NUMERICS_OPTION(type, field) \
    {"numerics", 0, "N", LAM_OPT_CHOICE, offsetof(type, field.numerics), "fast", .choices = lam_numerics, \
     .help = "Arithmetic: fast, or exact: int8 weights and integer sums that give the same bits on every machine, " \
             "device, number of threads and batch size (memories none, xl and lamemo)."}
/* clang-format on */

/* Opens the device and logs which one it is.  Close it with dev->ops->close(dev). */
lam_status lam_device_open(lam_dev **out, const lam_device_options *options);

#endif
