/* list.h -- the list of operations: X(name, argument), each named here and nowhere else.
 *
 * Made from it: the slots of lam_ops (ops.h), and in every back-end the prototypes and the entries of its table
 * (lam_ref_NAME, lam_cpu_NAME, lam_cuda_NAME; lam_naive_NAME in the tests).  So a new operation is a line here, its
 * argument in the header of its family, one function for each back-end, and its cases, lam_cases_NAME
 * (tests/support).  Whoever forgets one of them learns it from the compiler or the linker. */
#ifndef LAM_OPS_LIST_H
#define LAM_OPS_LIST_H

/* What a model needs to compute forward with the memories that have exact arithmetic (exact.h). */
#define LAM_EXACT_OPS(X)                                                                           \
    X(gemm, lam_gemm)                                                                              \
    X(norm_fwd, lam_norm)                                                                          \
    X(dropout, lam_dropout)                                                                        \
    X(copy, lam_copy)                                                                              \
    X(attn_fwd, lam_attn)                                                                          \
    X(attn_next, lam_attn_next)                                                                    \
    X(interp_fwd, lam_interp)                                                                      \
    X(embed_fwd, lam_embed)                                                                        \
    X(xent, lam_xent)                                                                              \
    X(gather, lam_pick)

/* The rest: training, analysis, other memories. */
#define LAM_OTHER_OPS(X)                                                                           \
    X(norm_bwd, lam_norm)                                                                          \
    X(colsum, lam_colsum)                                                                          \
    X(attn_bwd, lam_attn)                                                                          \
    X(attn_stats, lam_attn_stats)                                                                  \
    X(interp_bwd, lam_interp)                                                                      \
    X(pool, lam_pool)                                                                              \
    X(distance, lam_distance)                                                                      \
    X(gate_fwd, lam_gate)                                                                          \
    X(gate_bwd, lam_gate)                                                                          \
    X(density_fwd, lam_density)                                                                    \
    X(density_bwd, lam_density)                                                                    \
    X(sticky, lam_sticky_samples)                                                                  \
    X(embed_bwd, lam_embed)                                                                        \
    X(scatter, lam_pick)                                                                           \
    X(gnorm, lam_gnorm)                                                                            \
    X(update, lam_update)                                                                          \
    X(ortho_begin, lam_ortho_begin)                                                                \
    X(ortho_mix, lam_ortho_mix)                                                                    \
    X(ortho_even, lam_ortho_even)                                                                  \
    X(tally, lam_tally)

/* What every back-end computes with kernels of its own. */
#define LAM_KERNEL_OPS(X)                                                                          \
    LAM_EXACT_OPS(X)                                                                               \
    LAM_OTHER_OPS(X)

/* What devices whose memory is the host's share one implementation of, lam_host_NAME (decode.c). */
#define LAM_SHARED_OPS(X)                                                                          \
    X(norm_gemm, lam_norm_gemm)                                                                    \
    X(put_rows, lam_put_rows)

#define LAM_OPS(X)                                                                                 \
    LAM_KERNEL_OPS(X)                                                                              \
    LAM_SHARED_OPS(X)

#endif
