/* cmd_verify.c -- `lamemo verify`: does this build compute what the reference computed? */
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/output.h"
#include "cli/term.h"
#include "data/json_name.h"
#include "io/json.h"
#include "train/verify.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

typedef struct verify_options {
    lam_device_options device;
    double tolerance;
    bool json;
} verify_options;

static const lam_option options[] = {
    LAM_DEVICE_OPTIONS(verify_options, device, "ref"),
    LAM_NUMERICS_OPTION(verify_options, device),
    {"tolerance", 0, "X", LAM_OPT_DOUBLE, offsetof(verify_options, tolerance), "0", .max = 1,
     .shown = "ref 1e-10, cpu 1e-4, cuda 1e-3",
     .help = "Largest relative error allowed for every quantity."},
    {"json", 0, NULL, LAM_OPT_FLAG, offsetof(verify_options, json),
     .help = "Print one JSON object per file."},
    {0},
};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void print_line(const char *path, const lam_verdict *v)
{
    lam_print("%-34s", file_name(path));
    for (int q = 0; q < LAM_QUANTITIES; q++)
        if (v->tensors[q] > 0)
            lam_print(" %s %.1e%s", lam_quantity_name((lam_quantity)q), v->worst[q],
                      v->worst[q] <= v->limit[q] ? "" : "!");
    puts(v->failed ? "  FAILED" : "  ok");
    for (int q = 0; q < LAM_QUANTITIES; q++)
        if (v->tensors[q] > 0 && !(v->worst[q] <= v->limit[q]))
            lam_print("    %s: %s is off by %.3e, the limit is %.0e\n",
                      lam_quantity_name((lam_quantity)q), v->where[q], v->worst[q], v->limit[q]);
}

/* RMS errors, next to those of ref16. */
static void print_ratios(const char *path, const lam_verdict *v, const lam_verdict *like)
{
    lam_print("%-34s", file_name(path));
    for (int i = 0; i < LAM_QUANTITIES; i++) {
        const lam_quantity q = (lam_quantity)i;
        const double rms = lam_verify_rms(v, q);
        if (v->tensors[q] > 0)
            lam_print(" %s %.1e (%.2f)%s", lam_quantity_name(q), rms, rms / lam_verify_rms(like, q),
                      rms <= lam_verify_rms_limit(like, q) ? "" : "!");
    }
    puts(v->failed ? "  FAILED" : "  ok");
}

/* `like`: what ref16 made of it, where that decides; else NULL. */
static lam_status print_json(const char *path, const lam_verdict *v, const lam_verdict *like)
{
    json_t *quantities = json_object();
    for (int q = 0; q < LAM_QUANTITIES; q++) {
        if (v->tensors[q] == 0)
            continue;
        json_t *it = json_pack("{s:o, s:s, s:i, s:o}", "worst", lam_json_number(v->worst[q]),
                               "tensor", v->where[q], "tensors", v->tensors[q], "rms",
                               lam_json_number(lam_verify_rms(v, (lam_quantity)q)));
        json_object_set_new(
            it, like ? "rms_limit" : "limit",
            lam_json_number(like ? lam_verify_rms_limit(like, (lam_quantity)q) : v->limit[q]));
        json_object_set_new(quantities, lam_quantity_name((lam_quantity)q), it);
    }
    json_t *root = json_pack("{s:o, s:b, s:o}", "file", lam_json_name(path), "ok", !v->failed,
                             "quantities", quantities);
    return lam_print_json(root, JSON_COMPACT | JSON_REAL_PRECISION(6));
}

/* The same trace on ref16. */
static lam_status verify_ref16(lam_verdict *like, const char *path)
{
    const lam_ops *ops = NULL;
    lam_dev *dev = NULL;
    LAM_TRY(lam_ops_find(&ops, "ref16"));
    LAM_TRY(ops->open(&dev, &(lam_dev_options){0}));
    const lam_status status = lam_verify_file(like, path, dev);
    ops->close(dev);
    return status;
}

static lam_status verify_one(const verify_options *o, lam_dev *dev, const char *path, int *failed)
{
    lam_verdict v = {0}, like = {0};
    const int ratios = o->tolerance == 0.0 && lam_verify_in_bf16(dev);
    lam_verify_limits(&v, dev);
    for (int q = 0; q < LAM_QUANTITIES && o->tolerance > 0.0; q++)
        v.limit[q] = o->tolerance;
    LAM_TRY(lam_verify_file(&v, path, dev));
    if (ratios) {
        LAM_TRY(verify_ref16(&like, path));
        lam_verify_compare(&v, &like);
    }
    *failed += v.failed;
    if (o->json)
        return print_json(path, &v, ratios ? &like : NULL);
    if (ratios)
        print_ratios(path, &v, &like);
    else
        print_line(path, &v);
    return LAM_OK;
}

static lam_status run(const lam_args *args)
{
    const verify_options *o = args->options;
    lam_dev *dev = NULL;
    int failed = 0;
    LAM_TRY(lam_device_open(&dev, &o->device));
    lam_status status = LAM_OK;
    for (int i = 0; i < args->n_operands && status == LAM_OK; i++)
        status = verify_one(o, dev, args->operands[i], &failed);
    dev->ops->close(dev);
    LAM_TRY(status);
    if (failed > 0)
        return lam_fail(LAM_ERR_NUMERIC, "%d of %d traces differ", failed, args->n_operands);
    return LAM_OK;
}

const lam_command lam_command_verify = {
    .name = "verify",
    .summary = "compare this build with reference traces",
    .operands = "TRACE.safetensors...",
    .operands_min = 1,
    .operands_max = -1,
    .description =
        "Runs the model of each trace and compares losses, every gradient, the memory after each "
        "segment and a short training run with what a float64 reference computed. Prints the worst "
        "error of each quantity; exits with 1 if one exceeds its limit. In bf16 the limit is on "
        "the root mean square of the errors: 2 times (gradients 3 times) that of ref16, the "
        "reference rounded to bf16 after every operation. The ratio is in brackets.",
    .options = options,
    .options_size = sizeof(verify_options),
    .examples = "lamemo verify tests/golden/lamemo.safetensors\n"
                "# the float32 back-end, every trace\n"
                "lamemo verify --device cpu tests/golden/*.safetensors",
    .run = run,
    .killable = true,
};
