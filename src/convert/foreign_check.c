/* foreign_check.c -- see foreign.h: checks that the tensors of a file are exactly those of the model. */
#include "convert/foreign.h"

#include "nn/params_io.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The scales of a matrix in int8: one for each row, numbers that can be multiplied with. */
static lam_status check_scales(const lam_tensors *all, const char *name, int64_t rows)
{
    const lam_strided *t = lam_tensors_scales(all, name);
    if (!t)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is I8 and has no scales", all->label, name);
    if (t->dtype != LAM_F32 || t->shape.rank != 1 || t->shape.dim[0] != rows)
        return lam_fail(LAM_ERR_FORMAT, "%s: the scales of %s must be F32 [%lld]", all->label, name,
                        (long long)rows);
    for (int64_t i = 0; i < rows; i++) {
        double x;
        lam_strided_copy(&x, LAM_F64, t, (size_t)i, 1);
        if (!(isfinite(x) && x >= 0.0))
            return lam_fail(LAM_ERR_FORMAT,
                            "%s: scale %lld of %s is %g, must be finite and not below 0",
                            all->label, (long long)i, name, x);
    }
    return LAM_OK;
}

static lam_status check_param(const lam_tensors *all, const lam_param *param)
{
    char have[128], want[128];
    const lam_strided *t = lam_tensors_find(all, param->name);
    const lam_shape shape = lam_param_shape(param);
    if (!t)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is missing", all->label, param->name);
    const int scaled = t->dtype == LAM_I8 && lam_param_may_narrow(param);
    if (!lam_dtype_is_float(t->dtype) && !scaled)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is %s, not of a floating-point type",
                        all->label, param->name, lam_dtype_name(t->dtype));
    if (!lam_shape_equal(&t->shape, &shape))
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is %s, the configuration makes it %s",
                        all->label, param->name, lam_shape_text(&t->shape, have, sizeof have),
                        lam_shape_text(&shape, want, sizeof want));
    return scaled ? check_scales(all, param->name, shape.dim[0]) : LAM_OK;
}

/* The parameter that a tied tensor repeats; 0: it repeats none. */
static int original_of(char out[LAM_TENSOR_NAME_MAX], const char *name, const lam_config *cfg)
{
    int i, end = 0;
    if (sscanf(name, "crit.out_layers.%d.weight%n", &i, &end) == 1 && end == (int)strlen(name))
        return snprintf(out, LAM_TENSOR_NAME_MAX, "word_emb.emb_layers.%d.weight", i);
    if (sscanf(name, "crit.out_projs.%d%n", &i, &end) == 1 && end == (int)strlen(name))
        return snprintf(out, LAM_TENSOR_NAME_MAX, "word_emb.emb_projs.%d",
                        cfg->div_val == 1 ? 0 : i);
    /* Hugging Face's layers keep the shared biases of attention too. */
    if (sscanf(name, "layers.%d.dec_attn.r_w_bias%n", &i, &end) == 1 && end == (int)strlen(name))
        return snprintf(out, LAM_TENSOR_NAME_MAX, "r_w_bias");
    if (sscanf(name, "layers.%d.dec_attn.r_r_bias%n", &i, &end) == 1 && end == (int)strlen(name))
        return snprintf(out, LAM_TENSOR_NAME_MAX, "r_r_bias");
    return 0;
}

/* 10000^(-2t/D) for t = 0 .. D/2 - 1, in whatever precision. */
static lam_status check_frequencies(const lam_tensors *all, const lam_strided *t, int D)
{
    if (lam_shape_count(&t->shape) != (size_t)(D / 2))
        return lam_fail(LAM_ERR_FORMAT, "%s: pos_emb.inv_freq has not %d elements", all->label,
                        D / 2);
    for (int k = 0; k < D / 2; k++) {
        const double want = pow(10000.0, -2.0 * k / D);
        double have;
        lam_strided_copy(&have, LAM_F64, t, (size_t)k, 1);
        if (!(fabs(have - want) <= 0.01 * want))
            return lam_fail(
                LAM_ERR_UNSUPPORTED,
                "%s: other positional frequencies: element %d of pos_emb.inv_freq is %g, not %g",
                all->label, k, have, want);
    }
    return LAM_OK;
}

static int ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

/* Is it the scales of a tensor in int8? */
static int is_scale(const lam_tensors *all, const char *name)
{
    if (!ends_with(name, LAM_SCALE_SUFFIX))
        return 0;
    const int length = (int)(strlen(name) - strlen(LAM_SCALE_SUFFIX));
    const lam_strided *t = lam_tensors_at(all, "%.*s", length, name);
    return t && t->dtype == LAM_I8;
}

static lam_status check_other(const lam_tensors *all, const lam_named *it, const lam_config *cfg)
{
    char original[LAM_TENSOR_NAME_MAX];
    if (strcmp(it->name, "pos_emb.inv_freq") == 0)
        return check_frequencies(all, &it->t, cfg->d_model);
    /* Buffers of LaMemo's module that nothing reads. */
    if (ends_with(it->name, ".dec_attn.train_logits_constant") ||
        ends_with(it->name, ".dec_attn.eval_logits_constant"))
        return LAM_OK;
    const lam_strided *other =
        original_of(original, it->name, cfg) ? lam_tensors_find(all, original) : NULL;
    if (!other)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is not part of this configuration",
                        all->label, it->name);
    if (!lam_shape_equal(&it->t.shape, &other->shape) || !lam_strided_equal(&it->t, other))
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s should be tied to %s and differs from it",
                        all->label, it->name, original);
    return LAM_OK;
}

lam_status lam_foreign_check(const lam_tensors *all, const lam_params *params,
                             const lam_config *cfg)
{
    for (int i = 0; i < params->n; i++) {
        LAM_TRY(lam_tensors_go_on(all));
        LAM_TRY(check_param(all, &params->list[i]));
    }
    for (int i = 0; i < all->n; i++) {
        LAM_TRY(lam_tensors_go_on(all));
        if (lam_params_find(params, all->list[i].name) < 0 && !is_scale(all, all->list[i].name))
            LAM_TRY(check_other(all, &all->list[i], cfg));
    }
    return LAM_OK;
}
