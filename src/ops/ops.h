/* ops.h -- the narrow waist: every operation a model needs, one table, three back-ends.
 *
 * Model code above is written once; ref, cpu and cuda below implement the same table under the same
 * file names.  ref is double, naive and serial: it is the specification.  An operation earns a slot
 * only if it needs a device kernel; every back-end fills every slot.
 *
 * Operations cannot fail from the caller's side: shapes are the caller's promise (asserted), and a
 * device error is remembered and reported by sync() or download().  They never allocate: scratch is
 * set aside by reserve().  They are queued in order; sync() waits.  A lam_dev is used by one thread
 * at a time; several devices may share weights. */
#ifndef LAM_OPS_OPS_H
#define LAM_OPS_OPS_H

#include "core/status.h"
#include "core/tensor.h"
#include "ops/attn.h"
#include "ops/compress.h"
#include "ops/continuous.h"
#include "ops/decode.h"
#include "ops/gemm.h"
#include "ops/list.h"
#include "ops/memory.h"
#include "ops/optim.h"
#include "ops/ortho.h"
#include "ops/attn_stats.h"
#include "ops/rowwise.h"
#include "ops/types.h"
#include "ops/vocab.h"

/* An execution context: threads or a stream, scratch, sticky error. */
typedef struct lam_dev lam_dev;

/* Elements of a stored row of weights in HALF or BYTE, at most. */
enum { LAM_NARROW_ROW = 1 << 18 };

/* The largest shapes a model will ask for, so that scratch can be planned. */
typedef struct lam_work {
    int B, H, K, queries, keys, r_rows; /* attention */
    int rows, width;                    /* row-wise work and column sums */
    int narrow;                         /* 1: some operands are HALF or BYTE */
} lam_work;

typedef struct lam_dev_options {
    int threads;       /* 0: as many as the process may use */
    int full_prec;     /* cuda: ACT is float instead of bf16 */
    int card;          /* cuda: which of the GPUs that are visible, counted on from the first */
    int pad;           /* ref: pads widths as a GPU would, to test that; 0: not at all */
    int exact;         /* 1: exact arithmetic (exact.h), for inference */
    size_t max_memory; /* bytes, of the device's own memory or of the process; 0: what there is */
} lam_dev_options;

/* Captures of work that repeats itself; on cuda CUDA graphs.  What it is only the back-end knows. */
typedef struct lam_graphs lam_graphs;

typedef struct lam_ops {
    const char *name;    /* "ref", "ref16", "cpu", "cuda" */
    const char *summary; /* what is behind it, for the log: "float32, oneDNN 2.6, x86-64-v4" */

    lam_status (*open)(lam_dev **out, const lam_dev_options *options);
    void (*close)(lam_dev *dev);
    lam_status (*reserve)(lam_dev *dev, const lam_work *largest);
    size_t (*reserve_bytes)(const lam_dev *dev, const lam_work *largest);

    /* Zeroed, LAM_ALIGN-aligned.  Refuses more than left(). */
    lam_status (*alloc)(lam_dev *dev, void **out, size_t bytes);
    void (*release)(lam_dev *dev, void *memory);
    void (*upload)(lam_dev *dev, void *dst, const void *host, size_t bytes);
    lam_status (*download)(lam_dev *dev, void *host, const void *src, size_t bytes); /* waits */
    void (*zero)(lam_dev *dev, void *dst, size_t bytes);
    lam_status (*sync)(lam_dev *dev);
    size_t (*peak)(lam_dev *dev); /* most bytes of the device's own memory so far; 0: the host's */
    size_t (*left)(lam_dev *dev); /* bytes that may still be allocated (core/budget.h) */

    /* Does work(arg).  Where starting operations takes time, work of an equal key is captured into *graphs (NULL at
     * first) and later replayed: the code of `work` still runs, but only its uploads are carried out by it,
     * before all the rest.  So equal keys must mean equal operations on equal addresses, `work` uploads to an
     * address once, before anything reads it, and it does not wait (R1 - R5 in mem/segment.h, where its callers'
     * part is).  Where a capture fails, `work` runs a second time.  Key 0 is not captured. */
    void (*repeat)(lam_dev *dev, lam_graphs **graphs, uint64_t key, void (*work)(void *),
                   void *arg);
    /* For work that uploads nothing: replays what was captured under this key, without running its code; 0: nothing was, and
     * repeat() has to be called.  `graphs` may be NULL. */
    int (*replay)(lam_dev *dev, lam_graphs *graphs, uint64_t key);
    void (*free_graphs)(lam_dev *dev, lam_graphs *graphs); /* NULL is fine */

#define LAM_OP_SLOT(name, argument) void (*name)(lam_dev *, const argument *);
    LAM_OPS(LAM_OP_SLOT)
#undef LAM_OP_SLOT
} lam_ops;

/* For libraries that send a device's memory to other devices, by a context of their own where that shall happen while
 * the queue of the first one is still at work. */
enum { LAM_MARKS = 64 };
typedef struct lam_dev_link {
    void *stream;              /* the queue of all operations */
    int (*idle)(lam_dev *dev); /* is it empty?  A failure counts as that; sync() reports it */
    char card[32];             /* its address, which no other device of this host has */
    /* Remembers this point of the queue as mark `i`, 0 .. LAM_MARKS - 1.  Within repeat() every repetition does it. */
    void (*mark)(lam_dev *dev, int i);
    /* What is queued on `dev` from here on waits until `other` has come to the mark `i` that it remembers now; not
     * within repeat(), which may queue the mark at its end. */
    void (*after)(lam_dev *dev, lam_dev *other, int i);
} lam_dev_link;

/* What every back-end's lam_dev begins with: what code above needs to know of a device, so that it never asks
 * which one it is. */
struct lam_dev {
    const lam_ops *ops;
    lam_dtype act, wide; /* the C type of each class */
    int own_memory;      /* 1: buffers are not in the host's memory; reading them back waits */
    double tolerance;    /* relative error that `verify` allows where ACT is not bf16 */
    double macs_per_s;   /* multiply-accumulates, roughly: how much work to do unasked */
    int rounds;          /* numbers in ACT are those of bf16, though act could hold more (ref16) */
    int pad;             /* widths of buffers are rounded up to a multiple of this; 1: not at all */
    size_t logits;       /* how many logits the softmax should keep at a time; 0: a few million */
    size_t together;     /* elements of small matrices that keep it busy; 0: 16 million */
    int narrow;          /* 1: products, tables and attention take HALF and BYTE */
    int exact; /* 1: results are the same bits everywhere; BYTE weights and caches, no training (exact.h) */
    size_t max_memory;        /* as in lam_dev_options */
    const lam_dev_link *link; /* NULL: its memory is the host's */
};

/* The back-end called `name` ("ref", "ref16", "cpu", "cuda", or "auto": cuda where there is a GPU, else cpu).
 * LAM_ERR_UNSUPPORTED names what was not built. */
lam_status lam_ops_find(const lam_ops **out, const char *name);

/* May `bytes` be allocated on the device, all that is to come together?  Otherwise LAM_ERR_MEMORY with both
 * numbers, after `what`. */
lam_status lam_dev_ask(lam_dev *dev, const char *what, size_t bytes);
/* left() and replay() of devices whose memory is the host's: these capture nothing. */
size_t lam_host_left(lam_dev *dev);
int lam_host_replay(lam_dev *dev, lam_graphs *graphs, uint64_t key);

/* Host numbers of any type as elements of a class on this device. */
void lam_to_class(const lam_dev *dev, lam_class type, void *out, const void *in, lam_dtype in_type,
                  size_t n);
/* x[i] rounded to bf16. */
void lam_round16(double *x, size_t n);

/* What the elements of a class are on this device. */
static inline lam_dtype lam_class_dtype(const lam_dev *dev, lam_class type)
{
    switch (type) {
    case LAM_ACT:
        return dev->act;
    case LAM_INT:
        return LAM_I32;
    case LAM_HALF:
        return LAM_BF16;
    case LAM_BYTE:
        return LAM_I8;
    case LAM_WIDE:
        break;
    }
    return dev->wide;
}

/* Bytes of one of them. */
static inline size_t lam_class_size(const lam_dev *dev, lam_class type)
{
    return lam_dtype_size(lam_class_dtype(dev, type));
}

/* The address of element `index` of a buffer. */
static inline void *lam_at(const lam_dev *dev, lam_class type, const void *p, size_t index)
{
    return (char *)(uintptr_t)p + index * lam_class_size(dev, type);
}

/* For devices whose memory is the host's: the shared operations, and the first half of attn_next. */
#define LAM_HOST_OP(name, argument) void lam_host_##name(lam_dev *dev, const argument *a);
LAM_SHARED_OPS(LAM_HOST_OP)
#undef LAM_HOST_OP
void lam_host_put_kv(lam_dev *dev, const lam_attn_next *x);
#define LAM_HOST_ENTRY(name, argument) .name = lam_host_##name,

/* What exact devices have in the place of the other operations (exact.c). */
#define LAM_INEXACT_OP(name, argument) void lam_inexact_##name(lam_dev *dev, const argument *a);
LAM_OTHER_OPS(LAM_INEXACT_OP)
#undef LAM_INEXACT_OP
#define LAM_INEXACT_ENTRY(name, argument) .name = lam_inexact_##name,

#endif
