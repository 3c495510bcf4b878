/* cmd_compare.c -- `lamemo compare`: several memories, trained alike, in one table. */
#include "cli/commands.h"
#include "cli/compare_runs.h"
#include "cli/describe.h"
#include "cli/ranks.h"
#include "cli/output.h"
#include "cli/recipes.h"
#include "cli/term.h"
#include "cli/variants.h"
#include "core/file.h"
#include "core/log.h"
#include "core/own.h"
#include "data/utf8.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

typedef struct compare_options {
    lam_train_options train; /* first: what lies in it is passed on */
    const char *data, *out, *memory;
    lam_int_list seeds;
    int jobs;
    bool json, resume;
} compare_options;

#define OPT(field) offsetof(compare_options, train.field)
#define OWN(field) offsetof(compare_options, field)

/* clang-format off */
static const lam_option options[] = {
    {"data", 0, "DIR", LAM_OPT_PATH, OWN(data), .shown = "the comparison's, when resuming",
     .help = "Corpus folder made by lamemo prepare."},
    {"out", 'o', "DIR", LAM_OPT_PATH, OWN(out), .aliases = "work-dir",
     .help = "Folder of the comparison: compare.json, .txt, .md and .csv, and a run folder LABEL-sSEED for each "
             "training."},
    {"seeds", 0, "N,...", LAM_OPT_INTS, OWN(seeds), .max = 2147483647, .shown = "1111", .former = 's',
     .help = "Train every model once with each of these seeds. The table shows mean and standard deviation; with one "
             "seed, the standard error of the evaluation."},
    {"jobs", 'j', "N", LAM_OPT_INT, OWN(jobs), "1", .min = 1, .max = LAM_JOBS_MAX,
     .help = "Number of trainings that run at the same time; on a CPU they share its cores."},
    {"json", 0, NULL, LAM_OPT_FLAG, OWN(json), .help = "Print compare.json instead of the table."},
    {"resume", 0, NULL, LAM_OPT_FLAG, OWN(resume),
     .help = "Resume the comparison in --out, which also happens without this option."},
    {"memory", 0, "NAME", LAM_OPT_STRING, OWN(memory), .hidden = true,
     .help = "Refused: the memories to compare are operands."},
    LAM_PRESET_OPTION,
    LAM_DEVICE_OPTIONS(compare_options, train.device, "auto"),
    {.type = LAM_OPT_REST, .help = "see lamemo train"},
#include "cli/train_rows.inc"

#include "cli/shape_rows.inc"
    {0},
};
/* clang-format on */

typedef struct session {
    const lam_args *args;
    const compare_options *o;
    lam_comparison *c;
    lam_corpus *corpus;
    int resumed;
    char file[PATH_MAX];   /* compare.json */
    int n_kept;            /* models that come from it */
    lam_settings settings; /* of the last model: their length holds for all */
    lam_comm *comm;        /* of whose ranks 0 alone writes the comparison */
    int lock;              /* file descriptor of the folder; -1: not yet */
} session;

/* ---- what is asked ---- */

/* The same text, or the same number. */
static int same_value(const char *a, const char *b)
{
    char *end_a, *end_b;
    const double x = strtod(a, &end_a), y = strtod(b, &end_b);
    return strcmp(a, b) == 0 || (*a && *b && !*end_a && !*end_b && x == y);
}

/* One option of train's that the user wrote: is it what the comparison was begun with? */
static lam_status keep_option(session *s, const lam_option *option, const char *text)
{
    const json_t *then = json_object_get(s->c->options, option->name);
    const char *was = then ? json_string_value(then) : option->value;
    if (!s->resumed)
        return json_object_set_new(s->c->options, option->name,
                                   text ? json_string(text) : json_true()) == 0
                   ? LAM_OK
                   : lam_fail(LAM_ERR_ARG, "--%s: '%s' is not UTF-8", option->name, text);
    if (text ? was && same_value(text, was) : then != NULL)
        return LAM_OK;
    return lam_fail(LAM_ERR_ARG, "--%s%s%s: the comparison in %s was begun with%s%s", option->name,
                    text ? " " : "", text ? text : "", s->o->out, was ? " " : "out it",
                    was ? was : "");
}

/* A comparison names its recipe, so that it stays the same when the default does not.  One that does not was begun when
 * the default was the paper's. */
static lam_status keep_recipe(session *s)
{
    const lam_recipe recipe = s->resumed ? LAM_RECIPE_PAPER : lam_recipe_chosen(s->args);
    if (json_object_get(s->c->options, "recipe") ||
        json_object_set_new(s->c->options, "recipe", json_string(lam_recipe_names[recipe])) == 0)
        return LAM_OK;
    return lam_fail(LAM_ERR_MEMORY, "compare: no memory");
}

static lam_status keep_options(session *s)
{
    const lam_option *table = s->args->table.rows;
    for (int i = 0; table[i].help; i++)
        if (s->args->given[i] && table[i].offset < sizeof(lam_train_options))
            LAM_TRY(keep_option(s, &table[i], s->args->text[i]));
    return keep_recipe(s);
}

/* Adds to what is wrong with words where they stand; NULL: on the command line. */
static lam_status blame(lam_status status, const char *file)
{
    return status == LAM_ERR_ARG && file ? lam_fail(LAM_ERR_FORMAT, "%s: %s", file, lam_error())
                                         : status;
}

/* Options that no command line of ours could have left there. */
static lam_status check_kept_options(const session *s)
{
    const lam_option *table = s->args->table.rows;
    const char *name;
    json_t *value;
    json_object_foreach(s->c->options, name, value) {
        const int i = lam_option_row(table, name);
        if (i < 0 || table[i].offset >= sizeof(lam_train_options))
            return lam_fail(LAM_ERR_FORMAT, "%s: options: '%s' is no option of a training", s->file,
                            name);
        if ((table[i].type == LAM_OPT_FLAG) != json_is_true(value))
            return lam_fail(LAM_ERR_FORMAT, "%s: options: %s must be %s", s->file, name,
                            table[i].type == LAM_OPT_FLAG ? "true" : "a text");
    }
    return LAM_OK;
}

static lam_status keep_models(session *s)
{
    const compare_options *o = s->o;
    for (int i = 0; i < s->args->n_operands; i++)
        LAM_TRY(lam_variant_add(s->c, s->args->operands[i]));
    if (s->c->n_models == 0)
        LAM_TRY(lam_variant_add_memories(s->c));
    for (int i = 0; i < o->seeds.n; i++)
        LAM_TRY(lam_comparison_add_seed(s->c, o->seeds.v[i]));
    if (s->c->n_seeds == 0)
        LAM_TRY(lam_comparison_add_seed(s->c, 1111));
    LAM_TRY(blame(lam_variants_use(s->c), s->resumed ? s->file : NULL));
    for (int m = 0; m < s->c->n_models; m++) {
        const char *const file = m < s->n_kept ? s->file : NULL;
        LAM_TRY(
            blame(lam_variant_resolve(&s->c->models[m], &s->settings, s->c, &s->corpus->info, file),
                  file));
    }
    return LAM_OK;
}

/* ---- opening ---- */

static lam_status open_corpus(session *s)
{
    lam_corpus_mark *mark = &s->c->corpus;
    char path[PATH_MAX];
    const char *dir = s->o->data ? s->o->data : mark->path;
    if (*dir == '\0')
        return lam_fail(LAM_ERR_ARG, "--data is missing: which corpus? (lamemo prepare makes one)");
    LAM_TRY(lam_corpus_open(&s->corpus, dir, LAM_CORPUS_VERIFY));
    const lam_tokens *train = &s->corpus->split[LAM_TRAIN];
    if (s->resumed && (train->count != mark->tokens || train->crc != mark->crc))
        return lam_fail(LAM_ERR_ARG,
                        "--data %s: the comparison in %s was begun with another corpus", dir,
                        s->o->out);
    if (!realpath(dir, path) ||
        (size_t)snprintf(mark->path, sizeof mark->path, "%s", path) >= sizeof mark->path)
        return lam_fail(LAM_ERR_ARG, "--data %s: the path is longer than %zu bytes", dir,
                        sizeof mark->path);
    if (!lam_utf8_valid(path, strlen(path)))
        return lam_fail(LAM_ERR_ARG, "--data %s: not UTF-8, compare.json cannot name it", path);
    mark->tokens = train->count;
    mark->crc = train->crc;
    s->c->metric = s->corpus->info.metric;
    snprintf(s->c->corpus_name, sizeof s->c->corpus_name, "%s", s->corpus->info.name);
    return LAM_OK;
}

static lam_status lock_folder(session *s)
{
    s->lock = open(s->o->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->lock < 0)
        return lam_fail(LAM_ERR_IO, "%s: not a folder", s->o->out);
    if (flock(s->lock, LOCK_EX | LOCK_NB) != 0)
        return lam_fail(LAM_ERR_IO, "%s: another process is comparing here", s->o->out);
    return LAM_OK;
}

/* Runs of somebody else must not be taken for ours, nor files be replaced. */
static lam_status check_folders(const session *s)
{
    char name[LAM_LABEL_MAX + 16], path[PATH_MAX];
    for (int m = 0; m < s->c->n_models; m++)
        for (int k = 0; k < s->c->n_seeds; k++) {
            lam_comparison_folder(name, s->c, m, k);
            LAM_TRY(lam_path_join(path, sizeof path, s->o->out, name));
            if (lam_path_exists(path))
                return lam_fail(LAM_ERR_ARG, "%s is there already, but no compare.json", path);
        }
    return lam_own_room(s->o->out, "comparison");
}

static lam_status open_comparison(session *s)
{
    if (s->o->memory)
        return lam_fail(
            LAM_ERR_ARG,
            "--memory %s: name the memories to compare without it: lamemo compare ... none %s",
            s->o->memory, s->o->memory);
    if (!s->o->out)
        return lam_fail(LAM_ERR_ARG, "--out is missing: the folder for the comparison");
    LAM_TRY(lam_dir_may_make(s->o->out));
    LAM_TRY(lam_comparison_create(&s->c));
    LAM_TRY(lam_path_join(s->file, sizeof s->file, s->o->out, "compare.json"));
    LAM_TRY(lam_path_look(&s->resumed, s->file));
    if (s->resumed) {
        if (lam_comm_rank(s->comm) == 0)
            LAM_TRY(lock_folder(s));
        LAM_TRY(lam_comparison_load(s->c, s->o->out));
        LAM_TRY(check_kept_options(s));
        s->n_kept = s->c->n_models;
    }
    LAM_TRY(keep_options(s));
    LAM_TRY(open_corpus(s));
    LAM_TRY(keep_models(s));
    if (!s->resumed) {
        LAM_TRY(check_folders(s));
        LAM_TRY(lam_dir_make(s->o->out));
        LAM_TRY(lock_folder(s));
        LAM_TRY(check_folders(s)); /* somebody may have been faster */
    }
    return lam_comm_rank(s->comm) == 0 ? lam_comparison_save(s->c, s->o->out) : LAM_OK;
}

/* The first process may begin the comparison; the others find it begun. */
static lam_status open_in_turn(session *s)
{
    const int rank = lam_comm_rank(s->comm);
    LAM_TRY(lam_comm_agree(s->comm, rank == 0 ? open_comparison(s) : LAM_OK));
    return lam_comm_agree(s->comm, rank == 0 ? LAM_OK : open_comparison(s));
}

static void close_session(session *s)
{
    lam_corpus_close(s->corpus);
    lam_comparison_free(s->c);
    if (s->lock >= 0)
        close(s->lock);
}

/* ---- the end ---- */

static lam_status print_result(const session *s)
{
    char *json;
    lam_text table = {0};
    if (s->o->json) {
        LAM_TRY(lam_comparison_json(&json, s->c));
        lam_print("%s\n", json);
        free(json);
        return LAM_OK;
    }
    const lam_status status = lam_comparison_models(&table, s->c, lam_table_for_stdout);
    if (status == LAM_OK)
        lam_term_write(stdout, table.data, table.size);
    lam_text_free(&table);
    return status;
}

/* How much work it is, before it begins. */
static void announce(const session *s)
{
    const lam_comparison *c = s->c;
    const int all = c->n_models * c->n_seeds, left = all - lam_comparison_settled(c);
    char length[LAM_DESCRIPTION_MAX];
    if (left > 0)
        lam_log(LAM_LOG_INFO, "%d model%s, %d seed%s: %d training%s of %s to do", c->n_models,
                c->n_models == 1 ? "" : "s", c->n_seeds, c->n_seeds == 1 ? "" : "s", left,
                left == 1 ? "" : "s", lam_describe_length(length, &s->settings));
}

static lam_status compare(session *s)
{
    int failed = 0;
    announce(s);
    const lam_status status =
        lam_compare_train(s->c, &failed, s->o->out, s->o->jobs, s->args, s->comm);
    if (status == LAM_ERR_INTERRUPTED)
        lam_log(LAM_LOG_INFO, "%d of %d runs are done; lamemo compare --out %s goes on",
                lam_comparison_settled(s->c), s->c->n_models * s->c->n_seeds, s->o->out);
    LAM_TRY(status);
    if (lam_comm_rank(s->comm) == 0)
        LAM_TRY(print_result(s));
    if (failed > 0)
        return lam_fail(LAM_ERR_IO, "%d of %d runs failed; lamemo compare --out %s tries again",
                        failed, s->c->n_models * s->c->n_seeds, s->o->out);
    return LAM_OK;
}

static lam_status run_shared(const void *user, lam_comm *comm)
{
    const lam_args *const args = user;
    session s = {.args = args, .o = args->options, .comm = comm, .lock = -1};
    lam_status status = open_in_turn(&s);
    if (status == LAM_OK)
        status = compare(&s);
    close_session(&s);
    return status;
}

/* Trainings take as long as they do: the others may be waited for any time. */
static lam_status run(const lam_args *args)
{
    return lam_ranks_run(args->command, 0.0, run_shared, args);
}

const lam_command lam_command_compare = {
    .name = "compare",
    .summary = "train several memory types with the same settings and compare them",
    .operands = "[MODEL...]",
    .operands_max = -1,
    .description =
        "Trains models that differ in their memory on one corpus, with the same data, seeds and "
        "steps, and prints the table of the paper: parameters, memory, external memory, "
        "multiply-accumulates per token, training throughput, validation and test results. MODEL "
        "is a memory (--memory of lamemo train lists them), an ablation (no-interpolation, "
        "no-look-ahead, xl-encoding), all of these (all), or LABEL=MODEL:OPTION=VALUE:... with "
        "options of train. Without MODEL, the memories are compared. Every other option of lamemo "
        "train is accepted and applies to all models that can use it. Each training has a run "
        "folder of its own; the same command, or --out alone, resumes a comparison, and may add "
        "models and seeds. Ctrl-C or SIGTERM finishes the step, saves and exits. A model whose "
        "loss is no longer finite is listed as diverged.",
    .shared = true,
    .options = options,
    .options_size = sizeof(compare_options),
    .examples = "lamemo compare --data corpus --preset tiny --max-step 2000 --out cmp\n"
                "# the ablations beside the full model, three seeds each\n"
                "lamemo compare --data corpus --out abl --seeds 1,2,3 lamemo no-interpolation "
                "no-look-ahead xl-encoding\n"
                "# a longer memory under a name of its own\n"
                "lamemo compare --data corpus --out len lamemo long=lamemo:mem-len=256\n"
                "# go on after an interruption\n"
                "lamemo compare --out cmp",
    .run = run,
};
