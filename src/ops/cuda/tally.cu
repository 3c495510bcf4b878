/* cuda/tally.cu -- totals of a run kept on the device: sums of losses, and how many were not finite.
 *
 * ref/optim.c says what is computed.  All in double, in a fixed order; many terms are summed in parts first. */
#include "ops/cuda/cuda_int.cuh"

enum { TALLY = 1024, MANY_TERMS = 16384, MOST_PARTS = 512 };

static __global__ void tally_parts(const float *x, int n, double *parts)
{
    __shared__ double smem[LAM_WARP];
    double sum = 0.0;
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n;
         i += (int)(gridDim.x * blockDim.x))
        sum += (double)x[i];
    sum = lam_block_sum(sum, smem);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
}

/* T is double where x was summed in parts. */
template <typename T>
static __global__ void tally(lam_tally a, const T *x, int n)
{
    __shared__ double smem[LAM_WARP];
    double sum = 0.0;
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        sum += (double)x[i];
    sum = lam_block_sum(sum, smem);
    if (threadIdx.x != 0)
        return;
    float *totals = (float *)a.totals;
    bool finite = true;
    for (int i = 0; i < a.n_norms; i++)
        finite = finite && isfinite(((const float *)a.norms)[i]);
    if (isfinite(sum)) {
        const double all = (double)totals[0] + (double)totals[1] + sum;
        totals[0] = (float)all;
        totals[1] = (float)(all - (double)totals[0]);
    } else {
        totals[2] += (float)a.n;
    }
    totals[3] += finite ? 0.0f : 1.0f;
}

size_t lam_cuda_tally_scratch(void)
{
    return MOST_PARTS * sizeof(double);
}

extern "C" void lam_cuda_tally(lam_dev *dev, const lam_tally *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    const float *x = (const float *)a->x;
    if (a->n <= MANY_TERMS) {
        lam_cuda_launch(cuda, "tally", tally<float>, {1, TALLY}, *a, x, a->n);
    } else {
        const int wanted = lam_cuda_ceil(a->n, 4 * TALLY),
                  n = wanted < MOST_PARTS ? wanted : MOST_PARTS;
        double *parts = (double *)lam_cuda_scratch(cuda, (size_t)n * sizeof *parts);
        lam_cuda_launch(cuda, "tally", tally_parts, {n, TALLY}, x, a->n, parts);
        lam_cuda_launch(cuda, "tally", tally<double>, {1, TALLY}, *a, parts, n);
    }
}
