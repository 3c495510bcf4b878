/* cmd_score.c -- `lamemo score`: how likely a model finds texts, token by token. */
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "data/json_name.h"
#include "lamemo.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct score_options {
    const char *model, *texts;
    int segment, mem_len;
    lam_device_options device;
    lam_storage_options storage;
    bool per_token, json;
} score_options;

static const lam_option options[] = {
    LAM_MODEL_OPTION(score_options, model),
    {"texts", 0, "FILE", LAM_OPT_PATH, offsetof(score_options, texts),
     .help = "Score each line of FILE (- for standard input); in NAME.jsonl each line is a JSON "
             "string or an object with \"text\"."},
    {"per-token", 0, NULL, LAM_OPT_FLAG, offsetof(score_options, per_token), .aliases = "tokens",
     .help = "Print every token with its log-probability."},
    {"json", 0, NULL, LAM_OPT_FLAG, offsetof(score_options, json),
     .help = "Print one JSON object per text, in the order given."},
    {"tgt-len", 0, "N", LAM_OPT_INT, offsetof(score_options, segment), .min = 1, .max = LAM_MAX_LEN,
     .shown = "the model's", .help = "Segment length, in tokens."},
    {"mem-len", 0, "M", LAM_OPT_INT, offsetof(score_options, mem_len), .min = 1, .max = LAM_MAX_LEN,
     .shown = "the model's", .help = "Memory length, in tokens."},
    LAM_STORAGE_OPTIONS(score_options, storage, "the folder's"),
    LAM_NUMERICS_OPTION(score_options, device),
    LAM_DEVICE_OPTIONS(score_options, device, "auto"),
    {0},
};

/* A text as the model saw it. */
typedef struct scored {
    const lam_given_text *given;
    int index, rank; /* from 1: the place among all of them, by log-probability per token */
    int32_t *ids;
    size_t n;
    double *logprobs; /* [n] */
    double total;
} scored;

typedef struct job {
    const score_options *o;
    lamemo_engine *engine;
    lam_texts texts;
    scored *scored; /* [texts.n] */
    int at;         /* the text that is being scored */
    lam_progress line;
} job;

static double per_token(const scored *s)
{
    return -s->total / (double)s->n;
}

static int on_progress(void *user, double part)
{
    job *j = user;
    if (lam_progress_due(&j->line))
        lam_progress_show(&j->line, "text %d of %d  %3.0f %%", j->at + 1, j->texts.n, 100.0 * part);
    return lam_stop_signal() != 0;
}

static lam_status encode(job *j, scored *s)
{
    const lam_given_text *g = s->given;
    lam_status status = (lam_status)lamemo_encode(j->engine, g->text, g->size, &s->ids, &s->n);
    if (status == LAM_OK && s->n == 0)
        status = lam_fail(LAM_ERR_FORMAT, "the text is empty");
    if (status == LAM_ERR_FORMAT && (g->from_file || j->texts.n > 1))
        return lam_fail(status, "%s: %s", g->name, lam_error());
    LAM_TRY(status);
    s->logprobs = malloc(s->n * sizeof *s->logprobs);
    return s->logprobs ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "no memory for %zu tokens", s->n);
}

static lam_status score(job *j, scored *s)
{
    const lamemo_session_options wanted = {.longest = j->o->segment,
                                           .memory = j->o->mem_len,
                                           .progress = on_progress,
                                           .progress_user = j};
    LAM_TRY(encode(j, s));
    LAM_TRY((lam_status)lamemo_score(j->engine, s->ids, s->n, &wanted, s->logprobs));
    for (size_t i = 0; i < s->n; i++)
        s->total += s->logprobs[i];
    /* Finite log-probabilities may be large enough that their perplexity is not. */
    return isfinite(exp(per_token(s)))
               ? LAM_OK
               : lam_fail(LAM_ERR_NUMERIC, "model %s: the perplexity, exp(%g), is not finite",
                          j->o->model, per_token(s));
}

/* ---- printing ---- */

static int by_likelihood(const void *a, const void *b)
{
    const scored *x = *(scored *const *)a, *y = *(scored *const *)b;
    const double p = per_token(x), q = per_token(y);
    return p != q ? (p > q) - (p < q) : (x->index > y->index) - (x->index < y->index);
}

static lam_status rank(job *j, scored ***sorted)
{
    *sorted = calloc((size_t)j->texts.n, sizeof **sorted);
    if (!*sorted)
        return lam_fail(LAM_ERR_MEMORY, "no memory to rank %d texts", j->texts.n);
    for (int i = 0; i < j->texts.n; i++)
        (*sorted)[i] = &j->scored[i];
    qsort(*sorted, (size_t)j->texts.n, sizeof **sorted, by_likelihood);
    for (int i = 0; i < j->texts.n; i++)
        (*sorted)[i]->rank = i + 1;
    return LAM_OK;
}

static void print_tokens(const job *j, const scored *s)
{
    for (size_t i = 0; i < s->n; i++) {
        size_t size;
        const char *const bytes = lamemo_token_text(j->engine, s->ids[i], &size);
        printf("%10.5f  ", s->logprobs[i]);
        lam_print_token(bytes, size);
        putchar('\n');
    }
}

static void print_one(const job *j, const scored *s)
{
    const double nats = per_token(s);
    if (j->o->per_token)
        print_tokens(j, s);
    printf("tokens %zu, log-probability %.4f, per token %.5f nats = %.5f bits, perplexity %.4f\n",
           s->n, s->total, nats, nats / log(2.0), exp(nats));
}

enum { SHOWN = 48 }; /* bytes of a text's beginning in the table */

/* Most likely first. */
static void print_ranking(const job *j, scored *const *sorted)
{
    printf("%4s %14s %12s %16s %8s  %s\n", "rank", "bits per token", "perplexity",
           "log-probability", "tokens", "text");
    for (int i = 0; i < j->texts.n; i++) {
        const scored *const s = sorted[i];
        const lam_given_text *const g = s->given;
        printf("%4d %14.5f %12.4f %16.4f %8zu  ", s->rank, per_token(s) / log(2.0),
               exp(per_token(s)), s->total, s->n);
        if (g->from_file)
            lam_print("%s: ", g->name);
        lam_print_token(g->text, g->size < SHOWN ? g->size : SHOWN);
        puts(g->size < SHOWN ? "" : " ...");
        if (j->o->per_token)
            print_tokens(j, s);
    }
}

static lam_status print_json(const job *j, const scored *s)
{
    const double nats = per_token(s);
    json_t *root = json_pack("{s:I, s:f, s:f, s:f, s:f}", "count", (json_int_t)s->n, "logprob",
                             s->total, "nats_per_token", nats, "bits_per_token", nats / log(2.0),
                             "perplexity", exp(nats));
    if (root && j->texts.n > 1)
        json_object_update_new(root, json_pack("{s:i, s:i, s:o}", "index", s->index, "rank",
                                               s->rank, s->given->from_file ? "name" : "text",
                                               lam_json_name(s->given->name)));
    if (root && j->o->per_token) {
        json_t *ids = json_array(), *symbols = json_array(), *logprobs = json_array();
        for (size_t i = 0; i < s->n; i++) {
            size_t size;
            const char *const bytes = lamemo_token_text(j->engine, s->ids[i], &size);
            json_array_append_new(ids, json_integer(s->ids[i]));
            json_array_append_new(symbols, lam_json_bytes(bytes, size));
            json_array_append_new(logprobs, json_real(s->logprobs[i]));
        }
        json_object_set_new(root, "tokens", ids);
        json_object_set_new(root, "symbols", symbols);
        json_object_set_new(root, "token_logprobs", logprobs);
    }
    return lam_print_json(root, JSON_COMPACT);
}

static lam_status print(job *j)
{
    scored **sorted = NULL;
    lam_status status = rank(j, &sorted);
    for (int i = 0; i < j->texts.n && j->o->json && status == LAM_OK; i++)
        status = print_json(j, &j->scored[i]);
    if (status == LAM_OK && !j->o->json && j->texts.n == 1)
        print_one(j, &j->scored[0]);
    else if (status == LAM_OK && !j->o->json)
        print_ranking(j, sorted);
    free(sorted);
    return status;
}

/* ---- the command ---- */

static lam_status read_texts(job *j, const lam_args *args)
{
    for (int i = 0; i < args->n_operands; i++)
        LAM_TRY(lam_texts_add(&j->texts, args->operands[i]));
    if (j->o->texts)
        LAM_TRY(lam_texts_add_lines(&j->texts, j->o->texts, "text"));
    return j->texts.n > 0
               ? LAM_OK
               : lam_fail(
                     LAM_ERR_ARG,
                     "TEXT is missing: a text, @FILE, or - for standard input; or --texts FILE");
}

static lam_status open_engine(job *j)
{
    const score_options *o = j->o;
    const lamemo_engine_options wanted = {.device = o->device.device,
                                          .threads = o->device.threads,
                                          .full_precision = o->device.precision == 1,
                                          .weights = lam_stores[o->storage.weights],
                                          .cache = lam_cache_stores[o->storage.cache],
                                          .numerics = lam_numerics[o->device.numerics]};
    LAM_TRY((lam_status)lamemo_engine_open(o->model, &wanted, &j->engine));
    lamemo_model_info info;
    lamemo_engine_info(j->engine, &info);
    if (o->mem_len > 0 && lamemo_memory_length(j->engine) == 0)
        return lam_fail(LAM_ERR_ARG, "--mem-len %d: memory %s has none to be longer", o->mem_len,
                        info.memory);
    return LAM_OK;
}

static lam_status score_all(job *j, bool quiet)
{
    lam_status status = LAM_OK;
    j->scored = calloc((size_t)j->texts.n, sizeof *j->scored);
    if (!j->scored)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d texts", j->texts.n);
    lam_progress_open(&j->line, quiet);
    for (j->at = 0; j->at < j->texts.n && status == LAM_OK; j->at++) {
        j->scored[j->at].given = &j->texts.v[j->at];
        j->scored[j->at].index = j->at;
        status = score(j, &j->scored[j->at]);
    }
    lam_progress_close(&j->line);
    return status == LAM_OK ? print(j) : status;
}

static lam_status run(const lam_args *args)
{
    job j = {.o = args->options};
    LAM_TRY(lam_model_required(args, j.o->model));
    lam_status status = read_texts(&j, args);
    if (status == LAM_OK)
        status = open_engine(&j);
    if (status == LAM_OK)
        status = score_all(&j, args->quiet);
    for (int i = 0; j.scored && i < j.texts.n; i++) {
        lamemo_free(j.scored[i].ids);
        free(j.scored[i].logprobs);
    }
    free(j.scored);
    lamemo_engine_close(j.engine);
    lam_texts_free(&j.texts);
    return status;
}

const lam_command lam_command_score = {
    .name = "score",
    .summary = "print the log-probability of texts under a model",
    .operands = "[TEXT...]",
    .operands_max = -1,
    .description =
        "Prints the log-probability of a text under a model, in total and per token; several texts "
        "are ranked by it, the most likely per token first. TEXT is the text itself, @FILE, or - "
        "for standard input. The first token is predicted after the start token: the vocabulary's "
        "separator, such as <eos>, else a newline.",
    .options = options,
    .options_size = sizeof(score_options),
    .examples = "lamemo score --model runs/tiny \"In the beginning God created\"\n"
                "lamemo score -m runs/tiny @story.txt --per-token\n"
                "# which text does the model find most likely?\n"
                "lamemo score -m runs/tiny \"He went home.\" \"Home he went.\" @other.txt\n"
                "lamemo score -m runs/tiny --texts sentences.txt --json",
    .run = run,
    .reads = true,
};
