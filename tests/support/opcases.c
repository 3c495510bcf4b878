/* opcases.c -- the list of families and the walk through it. */
#include "support/opcases.h"

#include "support/naive.h"
#include "support/opcase.h"

#include <stdlib.h>
#include <string.h>

extern const lam_ops lam_ops_ref;

typedef struct family {
    const char *name;
    void (*run)(lam_case_run *run);
} family;

#define FAMILY(name, argument) {#name, lam_cases_##name},

static const family families[] = {
    {"device", lam_cases_device},
    LAM_OPS(FAMILY) /* and what asks for more than one family of cases: */
    {"gemm_inner", lam_cases_gemm_inner},
    {"gemm_narrow", lam_cases_gemm_narrow},
    {"attn_narrow", lam_cases_attn_narrow},
    {"embed_narrow", lam_cases_embed_narrow},
    {"repeat", lam_cases_repeat},
    {"attn_tiles", lam_cases_attn_tiles},
};

const char *lam_opcases_family(int i)
{
    return i < (int)(sizeof families / sizeof *families) ? families[i].name : NULL;
}

static int run_family(lam_case_run *run, const family *f)
{
    run->cases = run->failures = 0;
    run->worst = 0.0;
    run->worst_case[0] = '\0';
    f->run(run);
    if (run->report)
        fprintf(run->report, "%-12s %4d cases, %d failed, worst error %.2f of the limit%s%s\n",
                f->name, run->cases, run->failures, run->worst, run->worst > 0.0 ? ": " : "",
                run->worst_case);
    return run->failures;
}

static int open_all(lam_case_run *run, const lam_dev_options *options)
{
    const lam_dev_options plain = {0};
    lam_dev_options single = *options;
    single.threads = 1;
    return lam_ops_ref.open(&run->ref, &plain) == LAM_OK &&
           lam_ops_naive.open(&run->naive, &plain) == LAM_OK &&
           run->ops->open(&run->single, &single) == LAM_OK &&
           run->ops->open(&run->dev, options) == LAM_OK;
}

static void close_all(lam_case_run *run)
{
    if (run->dev)
        run->ops->close(run->dev);
    if (run->single)
        run->ops->close(run->single);
    if (run->naive)
        lam_ops_naive.close(run->naive);
    if (run->ref)
        lam_ops_ref.close(run->ref);
}

/* `run` has the table, the report and its manners. */
static int run_families(lam_case_run *run, const lam_dev_options *options, const char *only)
{
    const char *seed = getenv("LAM_OPCASES_SEED");
    int failures = 0, known = 0;
    run->seed = seed ? strtoull(seed, NULL, 10) : 1;

    if (!open_all(run, options)) {
        if (run->report)
            fprintf(run->report, "%s: %s\n", run->ops->name, lam_error());
        close_all(run);
        return 1;
    }
    if (run->report)
        fprintf(run->report, "%s (%s), seed %llu\n", run->ops->name, run->ops->summary,
                (unsigned long long)run->seed);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        run->next = (uint64_t)i << 32; /* a family has the same cases alone or among the others */
        if (only && strcmp(only, families[i].name) != 0)
            continue;
        known = 1;
        failures += run_family(run, &families[i]);
    }
    if (!known && run->report)
        fprintf(run->report, "%s: there is no family of that name\n", only);
    close_all(run);
    return known ? failures : 1;
}

int lam_opcases_run(const lam_ops *ops, const char *only, FILE *report)
{
    return lam_opcases_run_on(ops, &(lam_dev_options){0}, only, report);
}

int lam_opcases_run_on(const lam_ops *ops, const lam_dev_options *options, const char *only,
                       FILE *report)
{
    lam_case_run run = {.ops = ops, .report = report};
    return run_families(&run, options, only);
}

int lam_opcases_find_failure(const lam_ops *ops, const char *name)
{
    lam_case_run run = {.ops = ops, .hasty = 1};
    return run_families(&run, &(lam_dev_options){0}, name);
}
