/* config.h -- what a model is: every number that changes what it computes.
 *
 * Field names are Transformer-XL's where it has them; config.json uses the same spelling.  How long a
 * run is, and how fast it learns, is not here (train/). */
#ifndef LAM_NN_CONFIG_H
#define LAM_NN_CONFIG_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    LAM_MAX_CUTOFFS = 8,
    LAM_MAX_WIDTH = 1 << 16,
    LAM_MAX_LAYERS = 512,
    LAM_MAX_LEN = 1 << 20,
    LAM_MAX_RATE = 1 << 10,
    LAM_MAX_BASIS = 1 << 12,
    LAM_MAX_LTM_WIDTHS = 8,
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

/* What alpha of Eq. 11 is. */
typedef enum lam_alpha {
    LAM_ALPHA_LEARNED, /* the paper's */
    LAM_ALPHA_ZERO,    /* ablation "no interpolation": only what look-ahead finds */
    LAM_ALPHA_ONE      /* ablation "no look-ahead": only what was known; equals Transformer-XL */
} lam_alpha;

/* Which keys are new to a memory slot (Eq. 7; docs/equations.md says why two). */
typedef enum lam_window {
    LAM_WINDOW_PREVIOUS, /* the previous segment's tokens, shifted by one: each key seen once */
    LAM_WINDOW_CURRENT   /* the authors' code */
} lam_window;

/* Compressive Transformer: how a group of `rate` rows becomes one. */
typedef enum lam_pooling {
    LAM_POOL_CONV, /* a convolution, trained by attention reconstruction */
    LAM_POOL_MEAN,
    LAM_POOL_MAX
} lam_pooling;

/* What happens to evicted rows that fill no whole group. */
typedef enum lam_remainder {
    LAM_REMAINDER_DROP, /* the newest of them are lost */
    LAM_REMAINDER_PAD,  /* zero rows in front fill the first group */
    LAM_REMAINDER_CARRY /* they wait, unseen, for the next segment */
} lam_remainder;

/* Infinity-former: where the old signal is sampled for the next one. */
typedef enum lam_sticky {
    LAM_STICKY_OFF,    /* evenly */
    LAM_STICKY_LEFT,   /* where attention was, at the left edges of a histogram's bins */
    LAM_STICKY_UNIFORM /* where attention was, anywhere in the bins */
} lam_sticky;

/* How W_o and the second feed-forward map, which write into the residual stream, begin. */
typedef enum lam_init_out {
    LAM_INIT_OUT_SAME, /* the paper's: like every other map */
    LAM_INIT_OUT_DEPTH, /* smaller by sqrt(2 n_layer): the stream's variance does not grow with depth */
    LAM_INIT_OUT_ZERO
} lam_init_out;

/* The words of the choices above, by value, as config.json and the options have them; each ends with NULL. */
extern const char *const lam_alpha_names[];
extern const char *const lam_window_names[];
extern const char *const lam_pooling_names[];
extern const char *const lam_remainder_names[];
extern const char *const lam_sticky_names[];
extern const char *const lam_init_out_names[];

typedef struct lam_config {
    char memory[16]; /* "none", "xl", "compressive", "infinite", "lamemo": mem/mem.h */
    int attn_type;   /* lam_attn_type */

    int n_token, n_layer, n_head, d_model, d_head, d_inner, d_embed;
    int tgt_len, mem_len;
    int ext_len;     /* rows of the previous segment that a segment computes again, as context */
    int clamp_len;   /* <= 0: off */
    int same_length; /* 0 or 1, as are the next two */
    int pre_lnorm;
    int tie_weight;   /* output weights are the input embeddings */
    int init_uniform; /* 0: normal with init_std, 1: uniform in +-init_range */
    lam_init_out init_out;

    int n_cutoffs, cutoffs[LAM_MAX_CUTOFFS]; /* adaptive input and softmax */
    int div_val;
    int tie_projs[LAM_MAX_CUTOFFS + 1]; /* output projection i is the input projection */

    double dropout, dropatt;
    double layer_norm_epsilon;

    lam_alpha alpha;
    lam_window window;
    double interp_eps; /* eps of Eq. 11, relative to the larger sum */

    int cmem_len; /* compressive: rows of compressed memory; 0: mem_len */
    int rate;     /* rows that become one */
    lam_pooling pooling;
    lam_remainder remainder;
    double aux_weight; /* of the attention-reconstruction loss */

    /* infinite: the long-term memory */
    int ltm_basis;    /* bumps; 0: mem_len, as far as the widths divide it */
    int n_ltm_widths; /* each centre has a bump of each of these */
    double ltm_widths[LAM_MAX_LTM_WIDTHS];
    double ltm_ridge;
    int ltm_block;   /* evicted rows that enter it together; 0: tgt_len */
    int ltm_samples; /* of the old signal, for the next one */
    double ltm_tau;  /* the old signal's share of the next one */
    double ltm_sigma0,
        ltm_kl; /* prior deviation of attention, and the weight of the divergence from it */
    double ltm_var_min;
    int ltm_padding;    /* 0 or 1, as is the next: zeros beyond both ends of the signal */
    int ltm_share_proj; /* keys, values and output are projected by the layer's own weights */
    lam_sticky ltm_sticky;
    int ltm_reset; /* forget it after so many tokens; 0: never */

    double init_std, init_range, proj_init_std;
} lam_config;

/* Sensible values for everything that is not a size; sizes are 0. */
void lam_config_defaults(lam_config *cfg);

/* Fills in what follows from the rest (d_embed, attn_type from memory or the other way round) and
 * refuses what cannot be built, naming the field and the limit. */
lam_status lam_config_finish(lam_config *cfg);

/* The presets, for help and messages. */
#define LAM_PRESET_LIST "tiny, small, enwik8-base, text8-base, wt103-base or wt103-adaptive"
const char *lam_preset_name(int i); /* NULL after the last */

/* A preset: the sizes of a model, and the batch and the steps it is trained with unless asked otherwise. */
typedef struct lam_preset {
    const char *name;
    int n_layer, d_model, n_head, d_head, d_inner, len, n_token; /* len: tgt_len and mem_len */
    int batch_size, max_step;
    int n_cutoffs, cutoffs[3];
} lam_preset;
const lam_preset *lam_preset_find(const char *name); /* NULL: there is none */
/* LAM_ERR_ARG lists the presets if there is no such name.  memory is set to `memory`. */
lam_status lam_config_preset(lam_config *cfg, const char *preset, const char *memory);

/* A length that `most` tokens never fill becomes one that they do, or LAM_FIT_LEAST: the results are the same, and
 * no memory is allocated for rows that never come.  Shorter lengths stay, as every compression rate wants. */
enum { LAM_FIT_LEAST = LAM_MAX_RATE };
int lam_length_fit(int length, int64_t most);

/* JSON text to and from a config.  Reading starts from the defaults, ignores keys it does not know
 * and ends with lam_config_finish(); `label` names the source in all messages, and what cannot be is
 * LAM_ERR_FORMAT.  The text is owned by the caller (free). */
lam_status lam_config_parse(lam_config *cfg, const char *json, const char *label);
lam_status lam_config_load(lam_config *cfg, const char *path); /* a file; LAM_ERR_IO too */
lam_status lam_config_print(char **json, const lam_config *cfg);

/* LAM_ERR_FORMAT "LABEL: another configuration: it has \"n_layer\": 2, not \"n_layer\": 4" with the first
 * field in which `it` differs from `wanted`. */
lam_status lam_config_same(const lam_config *it, const lam_config *wanted, const char *label);

/* May rows come again with the next segment?  Where the memory keeps the newest rows and nothing else, and
 * positions are relative; or ext_len is 0.  Otherwise LAM_ERR_ARG says why not. */
lam_status lam_config_extends(const lam_config *cfg, int ext_len);

/* Rows that the last token of a segment can see. */
int lam_config_span(const lam_config *cfg);

/* Cluster i = 0 .. n_cutoffs of the vocabulary: its ids [first, first + count) and embedding width. */
typedef struct lam_cluster {
    int first, count, width;
} lam_cluster;
lam_cluster lam_config_cluster(const lam_config *cfg, int i);

#endif
