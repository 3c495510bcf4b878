/* toy.h -- small models with random weights on any back-end, and streams of random tokens.
 *
 * Weights are drawn wider than a fresh model's (0.3), so that every term matters. */
#ifndef TEST_TOY_H
#define TEST_TOY_H

#include "model/stack.h"

typedef struct toy {
    lam_dev *dev;
    lam_model *model;
    lam_stack *stack;
    int B, N;
} toy;

/* Sets a field of a memory (mem/fields.h); aborts the test where it cannot be that. */
void toy_set(lam_config *cfg, const char *key, const char *value);
void toy_set_number(lam_config *cfg, const char *key, double value);

/* A configuration of 2 layers, 2 heads of 4, width 8, inner 12, 13 types; memory and attn_type given.
 * Words may follow the memory's name: "compressive pad", "compressive carry thirds" (a rate of 3),
 * "compressive max", "infinite sticky", "infinite within" (samples within bins), "infinite share" (the layer's
 * projections), "infinite slow" (blocks longer than a segment), "lamemo zero", "lamemo one" (alpha),
 * "lamemo from1" (refresh_from; up to from3), "lamemo every2" (refresh_every; or every3). */
lam_config toy_config(const char *memory, int attn_type, int N, int M);

/* The device called `name`, as in lam_ops_find or "replayed" (support/replayed.h). */
const lam_ops *toy_ops(const char *name);

/* Opens a device (toy_ops) and builds model and stack; aborts the test on failure.  `pad` > 1 makes the
 * reference device ask for padded widths. */
toy toy_open(const char *device, const lam_config *cfg, const lam_stack_options *options, int pad);
/* The same with matrices and caches in other types, for inference. */
toy toy_open_as(const char *device, const lam_config *cfg, const lam_stack_options *options,
                lam_class weights, lam_class cache);
void toy_close(toy *t);

/* The same pseudo-random parameters for the same names on every device and every configuration: the
 * number at place k of a parameter depends on its name and k alone. */
void toy_fill(toy *t);
/* Copies the parameters of one model to another of the same total layout; LaMemo's q_net and kv_net
 * meet Transformer-XL's qkv_net. */
void toy_copy_params(toy *to, const toy *from);

/* tokens[i] in [0, V), from `seed`. */
void toy_tokens(int32_t *tokens, size_t n, int V, uint64_t seed);

/* One whole segment: begin, forward, loss, and commit if asked; nll is [B][n]. */
void toy_segment(toy *t, const int32_t *in, const int32_t *out, int n, double *nll, int commit);

/* Two models over the same `segments` segments must give the same losses; at most 256 tokens each. */
void toy_same_losses(toy *a, toy *b, int segments, double tolerance);

/* Rows [at, at + n) of every stream of [B][total] into packed [B][n]. */
void toy_cut(int32_t *packed, const int32_t *all, int B, int total, int at, int n);

#endif
