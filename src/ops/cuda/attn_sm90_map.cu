/* cuda/attn_sm90_map.cu -- describes a call's tensors to Hopper's copy engine, and calls the kernels
 * of backward with them. */
#include "ops/cuda/attn_sm90.cuh"

#include <cudaTypedefs.h>

typedef PFN_cuTensorMapEncodeTiled_v12000 encoder;

/* The driver's function, which the runtime library does not offer. */
static encoder find_encoder(void)
{
    void *found = NULL;
    cudaDriverEntryPointQueryResult how;
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found,
                                                               12000, cudaEnableDefault, &how);
#else
    const cudaError_t error =
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &how);
#endif
    return error == cudaSuccess && how == cudaDriverEntryPointSuccess ? (encoder)found : NULL;
}

/* Columns, rows, streams of bf16 with their strides in elements. */
struct shape {
    int cols, rows, streams;
    size_t ld, step;
};

static bool describe(encoder encode, CUtensorMap *map, const void *p, const shape &s)
{
    const cuuint64_t size[3] = {(cuuint64_t)s.cols, (cuuint64_t)s.rows, (cuuint64_t)s.streams};
    const cuuint64_t step = s.streams > 1 ? s.step : s.ld * (size_t)s.rows;
    const cuuint64_t strides[2] = {s.ld * sizeof(lam_bf16), step * sizeof(lam_bf16)};
    const cuuint32_t box[3] = {WG_ROWS, WG_ROWS, 1}, every[3] = {1, 1, 1};
    return encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, (void *)(uintptr_t)p, size, strides,
                  box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool lam_cuda_attn_maps(lam_cuda_dev *dev, const char *op, attn_maps *m, const attn_call *c)
{
    static encoder encode = NULL; /* the same for every thread */
    const lam_attn *a = &c->a;
    const int HK = a->H * a->K, lines = a->B * a->H * c->q_pad;
    if (!encode)
        encode = find_encoder();
    bool ok = encode != NULL;
    ok = ok && describe(encode, &m->q, a->q.p, {HK, a->queries, a->B, a->ldq, a->q.step});
    ok = ok && describe(encode, &m->k, a->k.p, {HK, a->keys, a->B, a->ldk, a->k.step});
    ok = ok && describe(encode, &m->value, a->value.p, {HK, a->keys, a->B, a->ldk, a->value.step});
    ok = ok && describe(encode, &m->r, c->rp ? c->rp : a->r,
                        {HK, a->r_rows, 1, c->rp ? (size_t)HK : a->ldr, 0});
    if (c->qu) {
        const shape rows = {a->K, lines, 1, (size_t)a->K, 0};
        ok = ok && describe(encode, &m->qu, c->qu, rows) && describe(encode, &m->qv, c->qv, rows);
        ok = ok && describe(encode, &m->d_o, a->d_o.p, {HK, a->queries, a->B, a->ldo, a->d_o.step});
    }
    if (!ok)
        lam_cuda_note_text(dev, op, "the driver cannot describe tensors to the copy engine");
    return ok;
}

void lam_cuda_attn_sm90_bwd(lam_cuda_dev *dev, const attn_call *c)
{
    const lam_attn *a = &c->a;
    attn_maps maps;
    if (!lam_cuda_attn_maps(dev, "attn_bwd", &maps, c))
        return;
    attn_call some = *c;
    for (some.head = 0; some.head < a->H; some.head += c->heads) {
        some.heads = c->heads < a->H - some.head ? c->heads : a->H - some.head;
        lam_cuda_attn_sm90_bwd_kv(dev, &some, &maps);
        lam_cuda_attn_sm90_bwd_r(dev, &some, &maps);
        lam_cuda_attn_sm90_bwd_q(dev, &some, &maps);
    }
    const int parts = a->B * lam_cuda_attn_sm90_q_parts(a->queries), width = a->H * a->K;
    float *du = a->u ? (float *)a->du : NULL, *dv = a->v ? (float *)a->dv : NULL;
    const lam_cuda_sums sums = {
        {du, dv, NULL}, c->du_part, (size_t)width, (size_t)(c->dv_part - c->du_part), parts, width};
    lam_cuda_fold(dev, "attn_bwd", &sums);
    lam_cuda_attn_sum_groups(dev, c);
}
