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
#include "ops/gemm.h"
#include "ops/memory.h"
#include "ops/optim.h"
#include "ops/ortho.h"
#include "ops/profile.h"
#include "ops/rowwise.h"
#include "ops/types.h"
#include "ops/vocab.h"

typedef struct lam_dev
    lam_dev; /* an execution context: threads or a stream, scratch, sticky error */

enum {
    LAM_NARROW_ROW = 1 << 18
}; /* elements of a stored row of weights in HALF or BYTE, at most */

/* The largest shapes a model will ask for, so that scratch can be planned. */
typedef struct lam_work {
    int B, H, K, queries, keys, r_rows; /* attention */
    int rows, width;                    /* row-wise work and column sums */
    int narrow;                         /* 1: some operands are HALF or BYTE */
} lam_work;

typedef struct lam_dev_options {
    int threads;   /* 0: as many as the process may use */
    int full_prec; /* cuda: ACT is float instead of bf16 */
} lam_dev_options;

typedef struct lam_ops {
    const char *name;    /* "ref", "cpu", "cuda" */
    const char *summary; /* the libraries behind it, for the log: "float32, oneDNN 2.6, AVX-512" */

    lam_status (*open)(lam_dev **out, const lam_dev_options *options);
    void (*close)(lam_dev *dev);
    lam_status (*reserve)(lam_dev *dev, const lam_work *largest);
    size_t (*reserve_bytes)(const lam_dev *dev, const lam_work *largest);

    lam_status (*alloc)(lam_dev *dev, void **out, size_t bytes); /* zeroed, LAM_ALIGN-aligned */
    void (*release)(lam_dev *dev, void *memory);
    void (*upload)(lam_dev *dev, void *dst, const void *host, size_t bytes);
    lam_status (*download)(lam_dev *dev, void *host, const void *src, size_t bytes); /* waits */
    void (*zero)(lam_dev *dev, void *dst, size_t bytes);
    lam_status (*sync)(lam_dev *dev);

    void (*gemm)(lam_dev *dev, const lam_gemm *a);
    void (*norm_fwd)(lam_dev *dev, const lam_norm *a);
    void (*norm_bwd)(lam_dev *dev, const lam_norm *a);
    void (*relu_bwd)(lam_dev *dev, const lam_relu_bwd *a);
    void (*dropout)(lam_dev *dev, const lam_dropout *a);
    void (*copy)(lam_dev *dev, const lam_copy *a);
    void (*colsum)(lam_dev *dev, const lam_colsum *a);
    void (*attn_fwd)(lam_dev *dev, const lam_attn *a);
    void (*attn_bwd)(lam_dev *dev, const lam_attn *a);
    void (*profile)(lam_dev *dev, const lam_profile *a);
    void (*interp_fwd)(lam_dev *dev, const lam_interp *a);
    void (*interp_bwd)(lam_dev *dev, const lam_interp *a);
    void (*pool)(lam_dev *dev, const lam_pool *a);
    void (*distance)(lam_dev *dev, const lam_distance *a);
    void (*gate_fwd)(lam_dev *dev, const lam_gate *a);
    void (*gate_bwd)(lam_dev *dev, const lam_gate *a);
    void (*density_fwd)(lam_dev *dev, const lam_density *a);
    void (*density_bwd)(lam_dev *dev, const lam_density *a);
    void (*sticky)(lam_dev *dev, const lam_sticky_samples *a);
    void (*embed_fwd)(lam_dev *dev, const lam_embed *a);
    void (*embed_bwd)(lam_dev *dev, const lam_embed *a);
    void (*xent)(lam_dev *dev, const lam_xent *a);
    void (*gather)(lam_dev *dev, const lam_pick *a);
    void (*scatter)(lam_dev *dev, const lam_pick *a);
    void (*gnorm)(lam_dev *dev, const lam_gnorm *a);
    void (*update)(lam_dev *dev, const lam_update *a);
    void (*ortho_begin)(lam_dev *dev, const lam_ortho_begin *a);
    void (*ortho_mix)(lam_dev *dev, const lam_ortho_mix *a);
} lam_ops;

/* What every back-end's lam_dev begins with. */
struct lam_dev {
    const lam_ops *ops;
    lam_dtype act, wide; /* the C type of each class */
    int pad;             /* widths of buffers are rounded up to a multiple of this; 1: not at all */
    size_t logits;       /* how many logits the softmax should keep at a time; 0: a few million */
    int narrow;          /* 1: products, tables and attention take HALF and BYTE */
};

/* The back-end called `name` ("ref", "cpu", "cuda", or "auto": cuda where there is a GPU, else cpu).
 * LAM_ERR_UNSUPPORTED names what was not built. */
lam_status lam_ops_find(const lam_ops **out, const char *name);

/* Bytes of one element of a class on this device. */
static inline size_t lam_class_size(const lam_dev *dev, lam_class type)
{
    switch (type) {
    case LAM_ACT:
        return lam_dtype_size(dev->act);
    case LAM_WIDE:
        return lam_dtype_size(dev->wide);
    case LAM_INT:
        return sizeof(int32_t);
    case LAM_HALF:
        return sizeof(uint16_t);
    case LAM_BYTE:
        return sizeof(int8_t);
    }
    return 0;
}

/* The address of element `index` of a buffer. */
static inline void *lam_at(const lam_dev *dev, lam_class type, const void *p, size_t index)
{
    return (char *)(uintptr_t)p + index * lam_class_size(dev, type);
}

#endif
