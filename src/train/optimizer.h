/* optimizer.h -- one update of all parameters: clip by the global norm, then a rule (Adam, SGD, Adagrad, Muon).
 *
 * The rules are siblings: each is one file (adam.c, sgd.c, adagrad.c, muon.c) that defines a lam_rule, and one line of
 * LAM_RULES.  This file knows none of them: it lists the parameters that received a gradient, computes the norm and
 * hands both to the rule.  Rules for some parameters only (Muon's hidden matrices) leave the others to Adam.
 *
 * Parameters that learn only from an auxiliary loss (a memory's compression) are clipped by a separate norm, so that
 * this loss does not shrink the language model's updates.  Each norm guards its own parameters against gradients that
 * are not finite.
 *
 * Nothing is read back from the device: norm and clip factor stay there; lam_optimizer_norm waits. */
#ifndef LAM_TRAIN_OPTIMIZER_H
#define LAM_TRAIN_OPTIMIZER_H

#include "train/exchange.h"

#include <stdbool.h>

/* The rules, in the order in which options list them. */
#define LAM_RULES(X)                                                                               \
    X(ADAM, adam)                                                                                  \
    X(SGD, sgd)                                                                                    \
    X(ADAGRAD, adagrad)                                                                            \
    X(MUON, muon)

#define LAM_OPTIM_NUMBER(NAME, name) LAM_OPTIM_##NAME,
typedef enum lam_optim { LAM_RULES(LAM_OPTIM_NUMBER) LAM_OPTIMS } lam_optim;
#undef LAM_OPTIM_NUMBER

typedef enum lam_muon_rows {
    LAM_MUON_ROWS_FREE, /* as orthogonalisation leaves them */
    LAM_MUON_ROWS_EVEN  /* all of one length */
} lam_muon_rows;

typedef struct lam_rule lam_rule;
typedef struct lam_optimizer lam_optimizer;
typedef struct lam_holding lam_holding; /* holdings.h */
typedef struct lam_holdings lam_holdings;

/* The options, under the names of lam_settings; each rule reads its own. */
typedef struct lam_optimizer_options {
    const lam_rule *rule;
    double mom;
    double beta1, beta2, adam_eps;
    double muon_mom;
    lam_muon_rows muon_rows;
    double matrix_lr, embed_lr, vector_lr; /* factors of the learning rate, by lam_role */
    double clip;                           /* 0: none */
    bool clip_together;     /* one norm for all, also for parameters that are set apart */
    double weight_decay;    /* decoupled, of matrices and tables; 0: none */
    int shares;             /* a rule's work is divided into this many parts (leaves); 0: 1 */
    int ranks, rank;        /* processes that share these parts out, a power of two; 0: 1 */
    bool zero;              /* each keeps the moments of its units alone (holdings.h) */
    bool averages;          /* there is a mean of the weights (average.h), on every rank */
    lam_exchange *exchange; /* kept; set if there are several ranks */
} lam_optimizer_options;

/* The options of the default settings (settings.c). */
lam_optimizer_options lam_optimizer_defaults(void);

/* One update of the parameters of a rule. */
typedef struct lam_rule_step {
    double lr;             /* before the factors of the options; each part has its own with them */
    const lam_part *parts; /* [n_parts] */
    int n_parts;
    const void *norm; /* WIDE [1], from gnorm */
} lam_rule_step;

struct lam_rule {
    const char *name;
    bool mean, square; /* the moments it keeps: lam_optimizer.m, .v */
    lam_status (*check)(const lam_optimizer_options *o);
    void (*step)(lam_optimizer *o, const lam_rule_step *s);

    /* For a rule that handles only some parameters; Adam handles the others.  NULL: the rule handles all. */
    bool (*takes)(const lam_param *q);
    /* Its units (holdings.h) in any order, with their owners; the list has room for as many as there are maps. */
    lam_status (*divide)(lam_holding *list, int *n, const lam_model *model,
                         const lam_optimizer_options *o);
    /* Allocates buffers besides the moments, lam_optimizer.own; NULL: the rule has none. */
    lam_status (*measure)(size_t *bytes, lam_model *model, const lam_optimizer_options *o);
    lam_status (*create)(void **own, lam_model *model, const lam_optimizer_options *o);
    void (*free)(void *own); /* NULL is fine */
};

extern const lam_rule *const lam_rules[LAM_OPTIMS]; /* by lam_optim */
extern const char *const lam_optim_names[];         /* by lam_optim; ends with NULL */

struct lam_optimizer {
    lam_optimizer_options opt;
    lam_model *model; /* kept */
    /* WIDE moments, flat like the parameters; NULL where the rule has none.  With a rule for some parameters
     * only, v ends before the hidden matrices, which have none.  With units: those of this rank's, where these say. */
    void *m, *v;
    lam_holdings *holdings; /* NULL: this rank keeps everything */
    void *average,
        *zero;  /* WIDE [total], WIDE [1], which is 0: of average.h; NULL: nothing is averaged */
    void *norm; /* WIDE [2]: gradient norms of the last step, before clipping; the second is that of
                         the parameters set apart */
    lam_part *parts;   /* [n params] */
    long *counted;     /* [n params]: steps that were counted since lam_optimizer_resolve */
    void *own;         /* of the rule */
    lam_status failed; /* of an exchange between ranks */
};

/* Bytes of device memory that the optimiser allocates besides the gradients. */
lam_status lam_optimizer_measure(size_t *bytes, lam_model *model,
                                 const lam_optimizer_options *options);
lam_status lam_optimizer_create(lam_optimizer **out, lam_model *model,
                                const lam_optimizer_options *options);
void lam_optimizer_free(lam_optimizer *o); /* NULL is fine */

/* Clears the gradients and the marks of which parameters received one. */
void lam_optimizer_zero(lam_optimizer *o);
/* Updates every parameter that received a gradient since zero(), at learning rate lr.  Fails only where ranks share the
 * work. */
lam_status lam_optimizer_step(lam_optimizer *o, double lr);
/* Counts the last step in totals[3] if it was skipped (lam_tally), in totals[7] if that of the parameters set
 * apart was. */
void lam_optimizer_tally(const lam_optimizer *o, void *totals);
/* Reports how many steps since the last call were skipped, for the two groups; Adam's counts exclude them.  Only the
 * device knows whether a step was skipped, so all steps count until this call. */
void lam_optimizer_resolve(lam_optimizer *o, const int64_t skipped[2]);
/* The last step's gradient norm, without parameters that were clipped apart unless theirs is not finite.
 * Waits. */
lam_status lam_optimizer_norm(const lam_optimizer *o, double *norm);

/* The rule that updates a parameter: the options', or Adam. */
const lam_rule *lam_rule_of(const lam_optimizer_options *o, const lam_param *q);

/* For rules: refuses a moment that never decays with LAM_ERR_ARG. */
lam_status lam_rule_below_one(const char *name, double x);
/* p -= lr (decay p + x), n numbers: SGD without momentum, whose moment is x itself.  With lr = -1 and no decay an addition,
 * which no device rounds differently. */
typedef struct lam_plain_sgd {
    size_t n;
    void *p, *x;
    double lr, decay;
    const void *zero; /* WIDE [1], which is 0: the norm */
    void *weight;     /* as in lam_update */
} lam_plain_sgd;
void lam_sgd_plain(lam_dev *dev, const lam_plain_sgd *s);

/* A step by the device's own arithmetic: `u` says which, and its numbers; the rest is filled in here. */
void lam_rule_update(const lam_optimizer *o, const lam_rule_step *s, lam_update u);

#endif
