/* config.h -- the configuration of a model: every number that changes what it computes.
 *
 * Field names are Transformer-XL's where it has them; config.json uses the same spelling.  The length of a run and its
 * learning rate are in train/. Defaults, rules, presets and files are in model/configure.h, which may use the
 * memories. */
#ifndef LAM_NN_CONFIG_H
#define LAM_NN_CONFIG_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAM_MAX_CUTOFFS = 8,
    LAM_MAX_WIDTH = 1 << 16,
    LAM_MAX_LAYERS = 512,
    LAM_MAX_LEN = 1 << 20,
    LAM_MOST_MEMORIES = 16,
    LAM_OWN_BYTES = 192,
};

/* attn_type, with the authors' numbers. */
typedef enum lam_attn_type {
    LAM_ATTN_XL = 0,           /* sinusoids projected by W_r, biases u and v (Eq. 6) */
    LAM_ATTN_LEARNED = 1,      /* learned table by distance */
    LAM_ATTN_ABSOLUTE = 2,     /* sinusoids added to the embeddings */
    LAM_ATTN_LAMEMO = 3,       /* disentangled: R(+distance) with its own bias v- (Eq. 12) */
    LAM_ATTN_LAMEMO_XL = 31,   /* ablation: XL encoding, R(-distance) and v- = v */
    LAM_ATTN_LAMEMO_BOTH = 32, /* as 3, with its own content bias u- too */
    LAM_ATTN_LAMEMO_FULL = 33  /* as 3, each slot sees the whole window, past keys too */
} lam_attn_type;

/* Does the encoding have distances to later rows?  If so, memory rows look ahead. */
static inline int lam_attn_looks_ahead(int attn_type)
{
    return attn_type == LAM_ATTN_LAMEMO ||
           (attn_type >= LAM_ATTN_LAMEMO_XL && attn_type <= LAM_ATTN_LAMEMO_FULL);
}

/* How W_o and the second feed-forward matrix, which write into the residual stream, are initialised. */
typedef enum lam_init_out {
    LAM_INIT_OUT_SAME, /* the paper's: like every other weight matrix */
    LAM_INIT_OUT_DEPTH, /* smaller by sqrt(2 n_layer): the stream's variance does not grow with depth */
    LAM_INIT_OUT_ZERO
} lam_init_out;

extern const char *const lam_init_out_names[]; /* by value, as in config.json; ends with NULL */

/* Storage for the struct with a memory's own fields (mem/fields.h).  The options of a command write these fields in
 * place, so the storage is declared with every type that an option may have; all other code copies the struct in and
 * out (lam_fields_get, io/json_field.h). */
typedef union lam_own_fields {
    int whole[LAM_OWN_BYTES / sizeof(int)];
    double real[LAM_OWN_BYTES / sizeof(double)];
    bool flag[LAM_OWN_BYTES];
    unsigned char bytes[LAM_OWN_BYTES];
} lam_own_fields;

typedef struct lam_config {
    char memory[16]; /* its name: mem/memories.def */
    int attn_type;   /* lam_attn_type */

    int n_token, n_layer, n_head, d_model, d_head, d_inner, d_embed;
    int tgt_len, mem_len;
    int ext_len;     /* rows of the previous segment that a segment computes again, as context */
    int clamp_len;   /* <= 0: off */
    int same_length; /* 0 or 1, as are the next three */
    int untie_r; /* attn_type 0: every layer has its own biases u and v (Hugging Face's TransfoXL) */
    int pre_lnorm;
    int tie_weight;   /* output weights are the input embeddings */
    int init_uniform; /* 0: normal with init_std, 1: uniform in +-init_range */
    lam_init_out init_out;

    int n_cutoffs, cutoffs[LAM_MAX_CUTOFFS]; /* adaptive input and softmax */
    int div_val;
    int tie_projs[LAM_MAX_CUTOFFS + 1]; /* output projection i is the input projection */

    double dropout, dropatt;
    double layer_norm_epsilon;

    double init_std, init_range, proj_init_std;

    /* For every memory, not only this model's: files and options may name fields of others. */
    lam_own_fields own[LAM_MOST_MEMORIES];
} lam_config;

/* Reduces a length that `most` tokens never fill to one that they fill, or to LAM_FIT_LEAST: the results are the same,
 * and no memory is allocated for unused rows.  Shorter lengths stay: memories may rely on that many rows. */
enum { LAM_FIT_LEAST = 1 << 10 };
int lam_length_fit(int length, int64_t most);

/* Rows that the last token of a segment can see. */
int lam_config_span(const lam_config *cfg);

/* Cluster i = 0 .. n_cutoffs of the vocabulary: its ids [first, first + count) and embedding width. */
typedef struct lam_cluster {
    int first, count, width;
} lam_cluster;
lam_cluster lam_config_cluster(const lam_config *cfg, int i);

#endif
