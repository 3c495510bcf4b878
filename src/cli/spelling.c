/* spelling.c -- see spelling.h. */
#include "cli/spelling.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- a mistyped word ---- */

/* Optimal string alignment distance of two short words: insert, delete, change, swap. */
static int distance(const char *a, const char *b)
{
    enum { MAX = 32 };
    int d[MAX + 1][MAX + 1];
    const int na = (int)strlen(a), nb = (int)strlen(b);
    if (na > MAX || nb > MAX)
        return INT_MAX;
    for (int i = 0; i <= na; i++) {
        for (int j = 0; j <= nb; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            best = d[i - 1][j] + 1 < best ? d[i - 1][j] + 1 : best;
            best = d[i][j - 1] + 1 < best ? d[i][j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[na][nb];
}

const char *lam_closest(const char *word, const char *const *names)
{
    const char *best = NULL;
    const int length = (int)strlen(word);
    int best_distance = length < 6 ? 1 : length / 3; /* a slip, not another word */
    for (int i = 0; names[i] != NULL; i++) {
        const int d = distance(word, names[i]);
        if (d <= best_distance && (best == NULL || d < best_distance)) {
            best = names[i];
            best_distance = d;
        }
    }
    return best;
}

/* ---- names from elsewhere ---- */

/* Options by the names they have in other programs for language models. */
static const struct {
    const char *here, *words;
} brought[] = {
    {"batch-size",
     "bs batchsize mini-batch minibatch train-batch-size per-device-train-batch-size"},
    {"preset", "model-size size arch architecture config-name model-type"},
    {"n-layer", "layers n-layers num-layers num-hidden-layers depth"},
    {"n-head", "heads n-heads num-heads num-attention-heads"},
    {"d-model", "dim hidden hidden-size hidden-dim embed-dim n-embd width"},
    {"d-inner", "ffn-dim ffn-size ffn-embed-dim intermediate-size d-ff"},
    {"tgt-len", "block-size bptt context context-length ctx ctx-size seq-len seq-length "
                "sequence-length max-seq-len"},
    {"mem-len", "memory-length memory-size mem-size"},
    {"max-step", "iters max-iters iterations steps num-steps n-steps train-steps total-steps"},
    {"epochs", "epoch n-epochs max-epochs num-train-epochs"},
    {"optim", "optimizer optimiser opt"},
    {"scheduler", "schedule lr-schedule lr-scheduler lr-scheduler-type"},
    {"warmup-step", "warmup warmup-iters warm-up num-warmup-steps"},
    {"weight-decay", "wd"},
    {"clip", "gradient-clip gradient-clipping max-grad-norm max-norm"},
    {"batch-chunk", "grad-accum accumulate accumulation-steps gradient-accumulation-steps"},
    {"eval-interval", "eval-every eval-freq eval-steps evaluation-steps"},
    {"save-interval", "save-every save-freq save-steps"},
    {"log-interval", "log-every log-freq log-steps logging-steps"},
    {"sample-interval", "sample-every sample-freq sample-steps"},
    {"early-stop", "early-stopping early-stopping-patience"},
    {"init-from", "checkpoint ckpt load load-from pretrained from-pretrained finetune fine-tune"},
    {"model", "checkpoint ckpt load model-path model-name model-dir path"},
    {"resume", "resume-from continue"},
    {"out", "output output-dir save-dir checkpoint-dir run-dir"},
    {"data", "dataset data-dir data-path train-file corpus text input"},
    {"device cuda", "gpu gpus cuda use-gpu"},
    {"device cpu", "no-cuda no-gpu"},
    {"threads", "workers num-workers num-threads n-threads"},
    {"precision", "dtype fp16 bf16 half amp"},
    {"seed", "random-seed manual-seed rng-seed"},
    {"tokens", "max-tokens max-new-tokens num-predict n-predict length"},
    {"samples", "n-samples num-samples num-return-sequences"},
    {"repeat-penalty", "repetition-penalty"},
    {"stop", "stop-sequence stop-sequences stop-string"},
};

const char *lam_brought(const char *word, const char *const *names)
{
    for (size_t i = 0; i < sizeof brought / sizeof *brought; i++) {
        const size_t n = strcspn(brought[i].here, " ");
        for (int k = 0; lam_word_listed(brought[i].words, word) && names[k] != NULL; k++)
            if (strncmp(names[k], brought[i].here, n) == 0 && names[k][n] == '\0')
                return brought[i].here;
    }
    return NULL;
}

/* ---- fields as options ---- */

/* Is the word of n bytes the option's name, with underscores for dashes? */
static bool is_field(const char *word, size_t n, const char *name)
{
    if (strlen(name) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (word[i] != (name[i] == '-' ? '_' : name[i]))
            return false;
    return true;
}

static const char *option_of(const char *word, size_t n, const lam_option *table)
{
    const lam_option *const tables[] = {table, lam_common_options};
    for (int i = 0; i < 2; i++)
        for (const lam_option *o = tables[i]; o->help; o++)
            if (o->name && is_field(word, n, o->name))
                return o->name;
    return NULL;
}

const char *lam_spell_options(char *out, size_t size, const char *message, const lam_option *table)
{
    static const char config[] = "config: "; /* to the user it is the options */
    size_t used = 0;
    out[0] = '\0';
    message += strncmp(message, config, sizeof config - 1) == 0 ? sizeof config - 1 : 0;
    for (const char *word = message; *word && used < size;) {
        const size_t n = strcspn(word, " "), blanks = strspn(word + n, " ");
        const bool may_be = blanks > 0 && (word == message || memchr(word, '_', n));
        const char *name = may_be ? option_of(word, n, table) : NULL;
        used += (size_t)(name ? snprintf(out + used, size - used, "--%s%.*s", name, (int)blanks,
                                         word + n)
                              : snprintf(out + used, size - used, "%.*s", (int)(n + blanks), word));
        word += n + blanks;
    }
    return out;
}
