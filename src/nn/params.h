/* params.h -- the table of parameters: names, shapes, initial values and storage.
 *
 * All parameters are parts of one flat vector; so are their gradients and the optimiser's moments.  Names
 * and shapes are those of the authors' PyTorch modules, so that files carry over.  A device may want wider
 * rows than a model has: each dimension says how it is padded, and files and counts never see the padding
 * (it is zero and stays zero).
 *
 * For inference matrices may be stored in bf16 or int8 instead (`store`, set before lam_params_place): then
 * they have a vector of their own, and there is no float copy of them. */
#ifndef LAM_NN_PARAMS_H
#define LAM_NN_PARAMS_H

#include "core/rng.h"
#include "core/status.h"
#include "core/tensor.h"
#include "nn/weights.h"

enum { LAM_NAME_MAX = 96, LAM_PARAM_DIMS = 4 };

/* A dimension of groups * size elements, stored as groups * ld (ld >= size). */
typedef struct lam_dim {
    int groups, size, ld;
} lam_dim;

typedef enum lam_init {
    LAM_INIT_ZERO,
    LAM_INIT_LINEAR, /* N(0, scale), or U(+-init_range) where the config says uniform */
    LAM_INIT_NORMAL, /* N(0, scale) */
    LAM_INIT_GAIN,   /* N(1, scale) */
    LAM_INIT_UNIFORM /* U(+-scale) */
} lam_init;

/* The role of a parameter for the optimiser: it decides on weight decay, Muon and the factor of the learning rate. */
typedef enum lam_role {
    LAM_ROLE_VECTOR, /* gains, biases, u and v: never decays.  Everything of rank 1 */
    LAM_ROLE_TABLE, /* embeddings, output weights, tables of positions, convolutions.  The others */
    LAM_ROLE_MATRIX /* a hidden weight matrix [out][in], or several of equal shape, one below the other */
} lam_role;

typedef struct lam_param {
    char name[LAM_NAME_MAX];
    int rank;
    lam_dim dim[LAM_PARAM_DIMS];
    lam_init init;
    double scale;
    int joined; /* starts directly after the previous one */
    int turned; /* the last two dimensions are stored transposed */
    int apart;  /* learns only from an auxiliary loss */
    lam_role role;
    int maps;              /* LAM_ROLE_MATRIX: number of weight matrices, all of equal size */
    size_t offset, stored; /* place in the flat vectors, padding included */
    size_t row;            /* place among the scales */
    int used;              /* received a gradient in this step */
    long steps;            /* updates so far: Adam's own counter for this tensor */
} lam_param;

typedef struct lam_params {
    int n;
    size_t room;
    lam_param *list;
    size_t total;    /* elements of the flat vectors */
    size_t rest;     /* elements before the first hidden matrix (lam_params_arrange) */
    lam_class store; /* of matrices: ACT, HALF or BYTE */
    size_t narrow_total, rows;
    int failed;   /* an add ran out of memory: checked by lam_params_place() */
    lam_dev *dev; /* kept */
    void *master; /* WIDE [total] */
    void *weight; /* ACT [total]; the same memory as master where the types are equal */
    void *grad;   /* WIDE [total], NULL until training needs it */
    void *narrow; /* HALF or BYTE [narrow_total] */
    void *scale;  /* WIDE [rows]; of BYTE */
} lam_params;

/* Declares a parameter and returns its number.  name is printf-formatted. */
typedef struct lam_spec {
    int rank;
    lam_dim dim[LAM_PARAM_DIMS];
    lam_init init;
    double scale;
    int joined;
} lam_spec;
int lam_params_add(lam_params *p, const lam_spec *spec, const char *name, ...)
    __attribute__((format(printf, 3, 4)));

/* Stores parameter i, [..][a][b] in files, as [..][b][a]: a convolution's [out][in][tap] becomes a matrix
 * whose rows meet `tap` input rows one after the other. */
void lam_params_turn(lam_params *p, int i);

/* Marks parameter i as learning from a loss that reaches no other parameter: its gradient may be clipped by a separate
 * norm. */
void lam_params_set_apart(lam_params *p, int i);

/* Declares parameter i, of rank 2, as `maps` weight matrices one below the other, or as a vector in spite of its
 * rank. */
void lam_params_set_maps(lam_params *p, int i, int maps);
void lam_params_set_vector(lam_params *p, int i);

/* Hidden matrices are those that Muon updates; a parameter that is set apart is not one. */
int lam_param_is_hidden(const lam_param *param);
/* After the last declaration: moves the hidden matrices to the end, so that a vector without them simply ends before
 * them. */
void lam_params_arrange(lam_params *p);

/* Gives the declared parameters memory on the device, zeroed; gradients only on request, and not for
 * narrow matrices. */
lam_status lam_params_place(lam_params *p, lam_dev *dev);
lam_status lam_params_place_grad(lam_params *p);
void lam_params_free(lam_params *p);

/* Initialises every parameter at random: parameter i uses stream i of the generator, so that adding one does not change
 * the others. */
typedef struct lam_init_rule {
    uint64_t seed;
    int uniform;
    double range; /* of LAM_INIT_LINEAR when uniform */
} lam_init_rule;
lam_status lam_params_init(lam_params *p, const lam_init_rule *rule);

/* Addresses: matrices as GEMM operands, vectors and masters in full precision, gradients. */
lam_weights lam_weight(const lam_params *p, int i);
void *lam_vector(const lam_params *p, int i);
/* The gradient of parameter i, marked as used in this step. */
void *lam_grad(const lam_params *p, int i);

size_t lam_param_count(const lam_param *param);   /* true elements, without padding */
int lam_param_is_plain(const lam_param *param);   /* stored as in files, element by element */
int lam_param_may_narrow(const lam_param *param); /* may be stored in bf16 or int8 */
size_t lam_params_bytes(const lam_params *p);     /* of memory, without gradients */
lam_shape lam_param_shape(const lam_param *param);
int lam_params_find(const lam_params *p, const char *name); /* -1: none */

/* Copies parameter i between unpadded host memory and a flat device vector (master, grad, a moment);
 * setting the master refreshes the weight copy too. */
lam_status lam_params_get(const lam_params *p, const void *flat, int i, double *host);
lam_status lam_params_set(lam_params *p, void *flat, int i, const double *host);

#endif
