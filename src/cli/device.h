/* device.h -- the --device, --threads and --precision options that every computing command shares. */
#ifndef LAM_CLI_DEVICE_H
#define LAM_CLI_DEVICE_H

#include "cli/options.h"
#include "ops/ops.h"

typedef struct lam_device_options {
    const char *device;
    int threads;
    int precision; /* index into lam_precisions */
} lam_device_options;

extern const char *const lam_precisions[]; /* "bf16", "float32"; ends with NULL */

/* Three table entries for a lam_device_options at `field` of struct `type`. */
#define LAM_DEVICE_OPTIONS(type, field, standard)                                                  \
    {"device",                                                                                     \
     'd',                                                                                          \
     "NAME",                                                                                       \
     LAM_OPT_STRING,                                                                               \
     offsetof(type, field.device),                                                                 \
     standard,                                                                                     \
     .help = "Back-end: auto, cpu, cuda, or ref (double precision, slow, exact)."},                \
        {"threads",                                                                                \
         't',                                                                                      \
         "N",                                                                                      \
         LAM_OPT_INT,                                                                              \
         offsetof(type, field.threads),                                                            \
         "0",                                                                                      \
         .max = 1024,                                                                              \
         .help = "CPU threads; 0 uses every core this process may run on."},                       \
    {                                                                                              \
        "precision", 0, "P", LAM_OPT_CHOICE, offsetof(type, field.precision), "bf16",              \
            .choices = lam_precisions,                                                             \
            .help = "Activations and weights on cuda: bf16, or float32 (to verify; slow)."         \
    }

/* Opens the device and logs which one it is.  Close it with dev->ops->close(dev). */
lam_status lam_device_open(lam_dev **out, const lam_device_options *options);

#endif
