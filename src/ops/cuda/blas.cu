/* cuda/blas.cu -- opens cuBLASLt and remembers which algorithm serves which product.
 *
 * The library's own heuristic is asked once per shape and one of its answers is kept by a fixed rule:
 * if the candidates were timed, two runs could choose differently and sum in different orders.  For the same reason only reductions with a fixed order are allowed. */
#include "ops/cuda/blas.cuh"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORKSPACE = 64 << 20, /* bytes; twice what cuBLAS asks for on Hopper */
    CANDIDATES = 8        /* algorithms the heuristic is asked for */
};

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)
static const char library_name[] = "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR);

static void *open_library(void)
{
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/", "/opt/cuda/lib64/"};
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof folders / sizeof *folders; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", folders[i], library_name);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

/* Fills in the function pointers; the name of the first that is missing, or NULL. */
static const char *find_functions(lam_cuda_blas *blas)
{
#define FIND(name)                                                                                 \
    blas->name = (decltype(blas->name))dlsym(blas->library, #name);                                \
    if (!blas->name)                                                                               \
        return #name;
    LAM_BLAS_FUNCTIONS(FIND)
#undef FIND
    return NULL;
}

lam_status lam_cuda_blas_open(lam_cuda_dev *dev)
{
    lam_cuda_blas *blas = (lam_cuda_blas *)calloc(1, sizeof *blas);
    dev->blas = blas; /* close() frees what there is */
    if (!blas)
        return lam_fail(LAM_ERR_MEMORY, "device cuda: no memory for the table of products");
    blas->library = open_library();
    if (!blas->library)
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "device cuda: %s is not installed, or LD_LIBRARY_PATH does not name it",
                        library_name);
    const char *missing = find_functions(blas);
    if (missing)
        return lam_fail(LAM_ERR_UNSUPPORTED, "device cuda: %s has no %s", library_name, missing);
    const cublasStatus_t status = blas->cublasLtCreate(&blas->handle);
    if (status != CUBLAS_STATUS_SUCCESS)
        return lam_fail(LAM_ERR_DEVICE, "device cuda: cublasLtCreate: %s",
                        blas->cublasLtGetStatusName(status));
    if (cudaMalloc(&blas->workspace, WORKSPACE) != cudaSuccess)
        return lam_fail(LAM_ERR_MEMORY, "device cuda: no memory for %d bytes of workspace",
                        (int)WORKSPACE);
    blas->workspace_bytes = WORKSPACE;
    if (cudaMalloc(&blas->bias, LAM_BLAS_BIAS * sizeof(lam_bf16)) != cudaSuccess)
        return lam_fail(LAM_ERR_MEMORY, "device cuda: no memory for a bias");
    return LAM_OK;
}

static void drop_plan(const lam_cuda_blas *blas, lam_blas_plan *plan)
{
    if (plan->a)
        blas->cublasLtMatrixLayoutDestroy(plan->a);
    if (plan->b)
        blas->cublasLtMatrixLayoutDestroy(plan->b);
    if (plan->c)
        blas->cublasLtMatrixLayoutDestroy(plan->c);
    if (plan->product)
        blas->cublasLtMatmulDescDestroy(plan->product);
    memset(plan, 0, sizeof *plan);
}

static void drop_plans(lam_cuda_blas *blas)
{
    for (int i = 0; i < LAM_BLAS_PLANS; i++)
        if (blas->plans[i].found)
            drop_plan(blas, &blas->plans[i]);
    blas->n_plans = 0;
}

void lam_cuda_blas_close(lam_cuda_dev *dev)
{
    lam_cuda_blas *blas = dev->blas;
    if (!blas)
        return;
    drop_plans(blas);
    if (blas->handle)
        blas->cublasLtDestroy(blas->handle);
    if (blas->workspace)
        cudaFree(blas->workspace);
    if (blas->bias)
        cudaFree(blas->bias);
    if (blas->library)
        dlclose(blas->library);
    free(blas);
    dev->blas = NULL;
}

/* One matrix as it is stored: `rows` is the direction in which elements are neighbours. */
struct stored {
    int rows, cols;
    size_t ld, step;
    cudaDataType type;
};

static cublasStatus_t make_layout(const lam_cuda_blas *blas, cublasLtMatrixLayout_t *out,
                                  const stored *s, int batch)
{
    const int64_t step = (int64_t)s->step;
    cublasStatus_t status = blas->cublasLtMatrixLayoutCreate(out, s->type, (uint64_t)s->rows,
                                                             (uint64_t)s->cols, (int64_t)s->ld);
    if (status == CUBLAS_STATUS_SUCCESS && batch > 1)
        status = blas->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                        &batch, sizeof batch);
    if (status == CUBLAS_STATUS_SUCCESS && batch > 1)
        status = blas->cublasLtMatrixLayoutSetAttribute(
            *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step);
    return status;
}

/* Row-major C = A B is column-major C^T = B^T A^T, so our B is cuBLASLt's A and a bias along our
 * columns lies along its rows, where the fused epilogue wants it. */
static cublasStatus_t make_layouts(const lam_cuda_dev *dev, lam_blas_plan *plan)
{
    const lam_blas_key *k = &plan->key;
    const lam_cuda_blas *blas = dev->blas;
    const cudaDataType act = dev->bf16 ? CUDA_R_16BF : CUDA_R_32F;
    const stored a = {k->tb == LAM_KEEP ? k->n : k->k, k->tb == LAM_KEEP ? k->k : k->n, k->ldb,
                      k->step_b, act};
    const stored b = {k->ta == LAM_KEEP ? k->k : k->m, k->ta == LAM_KEEP ? k->m : k->k, k->lda,
                      k->step_a, act};
    const stored c = {k->n, k->m, k->ldc, k->step_c, k->wide ? CUDA_R_32F : act};
    cublasStatus_t status = make_layout(blas, &plan->a, &a, k->batch);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = make_layout(blas, &plan->b, &b, k->batch);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = make_layout(blas, &plan->c, &c, k->batch);
    return status;
}

/* CUBLAS_COMPUTE_32F never means TF32: that would have to be asked for. */
static cublasStatus_t make_product(const lam_cuda_dev *dev, lam_blas_plan *plan)
{
    const lam_cuda_blas *blas = dev->blas;
    const lam_blas_key *k = &plan->key;
    const cublasOperation_t first = k->tb == LAM_KEEP ? CUBLAS_OP_N : CUBLAS_OP_T;
    const cublasOperation_t second = k->ta == LAM_KEEP ? CUBLAS_OP_N : CUBLAS_OP_T;
    const cublasLtEpilogue_t epilogue = k->bias && k->relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                        : k->bias          ? CUBLASLT_EPILOGUE_BIAS
                                        : k->relu          ? CUBLASLT_EPILOGUE_RELU
                                                           : CUBLASLT_EPILOGUE_DEFAULT;
    const cudaDataType bias = k->wide ? CUDA_R_32F : CUDA_R_16BF; /* the type of C */
    const struct {
        cublasLtMatmulDescAttributes_t name;
        const void *value;
        size_t size;
    } list[] = {
        {CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first},
        {CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second},
        {CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue},
        {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias, sizeof bias}, /* last: only with a bias */
    };
    const size_t n = sizeof list / sizeof *list - (k->bias ? 0 : 1);
    cublasStatus_t status =
        blas->cublasLtMatmulDescCreate(&plan->product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    for (size_t i = 0; status == CUBLAS_STATUS_SUCCESS && i < n; i++)
        status = blas->cublasLtMatmulDescSetAttribute(plan->product, list[i].name, list[i].value,
                                                      list[i].size);
    return status;
}

/* On a Hopper card tiles of 128 x 160 beat the heuristic's first choice by 5 to 20 % in every product of
 * ours that fills the card at least twice and is not split along k.  They are taken if they are among
 * the candidates; how a sum is ordered does not depend on the tile. */
static void prefer_tile(const lam_cuda_dev *dev, lam_blas_plan *plan,
                        cublasLtMatmulPreference_t wish)
{
    const lam_cuda_blas *blas = dev->blas;
    const lam_blas_key *k = &plan->key;
    const size_t tiles = ((size_t)k->m * (size_t)k->n) / (128 * 160) * (size_t)k->batch;
    cublasLtMatmulHeuristicResult_t list[CANDIDATES];
    int n = 0;
    if (tiles < 2 * (size_t)dev->sms ||
        blas->cublasLtMatmulAlgoGetHeuristic(blas->handle, plan->product, plan->a, plan->b, plan->c,
                                             plan->c, wish, CANDIDATES, list,
                                             &n) != CUBLAS_STATUS_SUCCESS)
        return;
    for (int i = 0; i < n; i++) {
        int tile = 0, split = 0;
        size_t written;
        blas->cublasLtMatmulAlgoConfigGetAttribute(&list[i].algo, CUBLASLT_ALGO_CONFIG_TILE_ID,
                                                   &tile, sizeof tile, &written);
        blas->cublasLtMatmulAlgoConfigGetAttribute(&list[i].algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
                                                   &split, sizeof split, &written);
        if (tile == CUBLASLT_MATMUL_TILE_128x160 && split <= 1) {
            plan->algo = list[i].algo;
            return;
        }
    }
}

/* Asks the heuristic.  Partial sums of a split product are kept in float, never rounded to bf16. */
static cublasStatus_t choose(const lam_cuda_dev *dev, lam_blas_plan *plan,
                             cublasLtMatmulPreference_t wish)
{
    const lam_cuda_blas *blas = dev->blas;
    const lam_blas_key *k = &plan->key;
    const uint32_t sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const uint32_t align_a = (uint32_t)k->align_b, align_b = (uint32_t)k->align_a,
                   align_c = (uint32_t)k->align_c;
    const struct {
        cublasLtMatmulPreferenceAttributes_t name;
        const void *value;
        size_t size;
    } wishes[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &blas->workspace_bytes,
         sizeof blas->workspace_bytes},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &sums, sizeof sums},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align_a, sizeof align_a},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align_b, sizeof align_b},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align_c, sizeof align_c},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align_c, sizeof align_c},
    };
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    for (size_t i = 0; status == CUBLAS_STATUS_SUCCESS && i < sizeof wishes / sizeof *wishes; i++)
        status = blas->cublasLtMatmulPreferenceSetAttribute(wish, wishes[i].name, wishes[i].value,
                                                            wishes[i].size);
    cublasLtMatmulHeuristicResult_t best;
    int n = 0;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas->cublasLtMatmulAlgoGetHeuristic(blas->handle, plan->product, plan->a, plan->b,
                                                      plan->c, plan->c, wish, 1, &best, &n);
    if (status == CUBLAS_STATUS_SUCCESS && n < 1)
        status = CUBLAS_STATUS_NOT_SUPPORTED;
    if (status == CUBLAS_STATUS_SUCCESS) {
        plan->algo = best.algo; /* asked for one; the first of several is often another */
        prefer_tile(dev, plan, wish);
    }
    return status;
}

static void make_plan(lam_cuda_dev *dev, lam_blas_plan *plan)
{
    const lam_cuda_blas *blas = dev->blas;
    cublasLtMatmulPreference_t wish = NULL;
    cublasStatus_t status = make_layouts(dev, plan);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = make_product(dev, plan);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas->cublasLtMatmulPreferenceCreate(&wish);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = choose(dev, plan, wish);
    if (wish)
        blas->cublasLtMatmulPreferenceDestroy(wish);
    plan->found = status == CUBLAS_STATUS_SUCCESS ? 1 : -1;
}

/* FNV-1a over the bytes of the key. */
static uint32_t hash_of(const lam_blas_key *key)
{
    const unsigned char *p = (const unsigned char *)key;
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < sizeof *key; i++)
        h = (h ^ p[i]) * 16777619u;
    return h;
}

lam_blas_plan *lam_cuda_blas_plan(lam_cuda_dev *dev, const lam_blas_key *key)
{
    lam_cuda_blas *blas = dev->blas;
    uint32_t at = hash_of(key) % LAM_BLAS_PLANS;
    while (blas->plans[at].found && memcmp(&blas->plans[at].key, key, sizeof *key) != 0)
        at = (at + 1) % LAM_BLAS_PLANS;
    if (blas->plans[at].found)
        return &blas->plans[at];
    if (blas->n_plans >= LAM_BLAS_PLANS / 2) {
        drop_plans(blas);
        at = hash_of(key) % LAM_BLAS_PLANS;
    }
    blas->n_plans++;
    blas->plans[at].key = *key;
    make_plan(dev, &blas->plans[at]);
    return &blas->plans[at];
}
