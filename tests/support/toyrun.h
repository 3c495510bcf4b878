/* toyrun.h -- small training runs on a text made up here, on any back-end. */
#ifndef TEST_TOYRUN_H
#define TEST_TOYRUN_H

#include "train/trainer.h"

typedef struct toyrun {
    lam_dev *dev;
    lam_model *model;
    lam_tokens *text;
    lam_trainer *trainer;
    unsigned char *ids; /* of the text */
} toyrun;

/* A text of n tokens below V, half of it predictable from the token before; one seed, one text. */
lam_tokens toyrun_text(unsigned char **ids, int64_t n, int V, uint64_t seed);

/* Three-layer configuration with dropout 0.1 and 13 types; N = M = 4, or M = 0 for "none". */
lam_config toyrun_config(const char *memory);
/* Adam at 1e-2, batches of 4 columns, no evaluation. */
lam_settings toyrun_settings(void);

/* A fresh run over 300 tokens, `device` as in lam_ops_find or "replayed"; aborts the test on failure. */
toyrun toyrun_open(const char *device, const lam_config *cfg, const lam_settings *settings);
void toyrun_close(toyrun *r);

/* n steps; the mean loss of each goes to losses unless that is NULL. */
void toyrun_steps(toyrun *r, int n, double *losses);

/* Do two runs have the same parameters, their mean and moments, bit for bit? */
int toyrun_equal(const toyrun *a, const toyrun *b);
/* All parameters, one after the other; to be freed. */
double *toyrun_params(const toyrun *r, size_t *n);

#endif
