/* prepare_summary.c -- see prepare_summary.h. */
#include "cli/prepare_summary.h"

#include "cli/term.h"
#include "core/budget.h"
#include "core/log.h"
#include "model/configure.h"
#include "train/settings.h"

#include <stdio.h>
#include <string.h>

static const char *ending(int64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_splits(const lam_corpus_info *info)
{
    char text[32];
    for (int s = 0; s < LAM_SPLITS; s++) {
        lam_print("  %-6s %14s token%s", lam_split_name((lam_split)s),
                  lam_format_count(text, sizeof text, info->tokens[s]), ending(info->tokens[s]));
        if (info->unknown[s] > 0)
            lam_print(", %s of them (%.2f %%) became <unk>",
                      lam_format_count(text, sizeof text, info->unknown[s]),
                      100.0 * (double)info->unknown[s] / (double)info->tokens[s]);
        if (lam_corpus_info_divided(info))
            lam_print(", %s document%s", lam_format_count(text, sizeof text, info->documents[s]),
                      ending(info->documents[s]));
        putchar('\n');
    }
}

/* Several files: which they were, and how large. */
static void print_sources(const lam_corpus_info *info)
{
    enum { SHOWN = 20 };
    char text[32];
    int64_t rest = 0;
    for (int i = 0; i < info->n_sources && info->n_sources > 1; i++) {
        const lam_source *s = &info->sources[i];
        if (i < SHOWN)
            lam_print("  %-6s %14s bytes   %s\n",
                      s->split < LAM_SPLITS ? lam_split_name(s->split) : "joined",
                      lam_format_count(text, sizeof text, s->bytes), s->name);
        else
            rest += s->bytes;
    }
    if (info->n_sources > SHOWN)
        lam_print("  %21s bytes   in %d other files\n", lam_format_count(text, sizeof text, rest),
                  info->n_sources - SHOWN);
}

void lam_prepare_summary(const lam_corpus_info *info, const char *dir, const char *vocab_from,
                         double seconds)
{
    char text[32], rate[32];
    int64_t bytes = 0;
    for (int i = 0; i < info->n_sources; i++)
        bytes += info->sources[i].bytes;
    lam_print("%s: %s, vocabulary of %s%s%s, measured in %s\n", info->name,
              lam_text_kind_name(info->kind), lam_format_count(text, sizeof text, info->vocab_size),
              vocab_from ? " from " : "", vocab_from ? vocab_from : "",
              lam_metric_name(info->metric));
    print_sources(info);
    print_splits(info);
    if (info->original)
        lam_print("  checked: token counts and vocabulary size are those of the published %s\n",
                  info->like);
    else if (info->like[0] != '\0')
        lam_print("  prepared like %s, which it is not: results are those of %s\n", info->like,
                  info->name);
    lam_print("wrote %s: %s of text in %.1f s, %s/s\n", dir,
              lam_format_size(text, sizeof text, (double)bytes), seconds,
              lam_format_size(rate, sizeof rate, (double)bytes / (seconds > 0 ? seconds : 1)));
}

/* What the smallest preset reads as it stands, so that train does not have to refuse the corpus first. */
static lam_status warn_if_short(const lam_corpus_info *info)
{
    lam_settings s;
    lam_config cfg;
    lam_settings_defaults(&s);
    lam_settings_preset(&s, "tiny");
    LAM_TRY(lam_config_preset(&cfg, "tiny", LAM_MEMORY_DEFAULT));
    const int step = s.batch_size * (cfg.tgt_len + 1); /* inputs, and a target more */
    if (info->tokens[LAM_TRAIN] < step)
        lam_log(
            LAM_LOG_WARN,
            "the train split has %lld token%s: a whole step of the smallest preset, tiny, takes %d",
            (long long)info->tokens[LAM_TRAIN], ending(info->tokens[LAM_TRAIN]), step);
    for (int i = LAM_VALID; i <= LAM_TEST; i++)
        if (info->tokens[i] > 0 && info->tokens[i] < 2 * s.eval_batch_size)
            lam_log(LAM_LOG_WARN,
                    "the %s split has %lld token%s: evaluations need %d, or fewer streams (train "
                    "--eval-batch-size, eval --batch-size)",
                    lam_split_name((lam_split)i), (long long)info->tokens[i],
                    ending(info->tokens[i]), 2 * s.eval_batch_size);
    return LAM_OK;
}

/* A program or a picture is bytes, too, but seldom meant. */
static lam_status warn_if_binary(const lam_corpus_info *info, const char *dir)
{
    enum { LOOK = 1 << 20 };                            /* tokens */
    static const char in_text[] = "\t\n\v\f\r\x1b\x1e"; /* the last one ends documents */
    lam_corpus *corpus;
    int64_t strange = 0;
    if (info->kind != LAM_BYTES)
        return LAM_OK;
    LAM_TRY(lam_corpus_open(&corpus, dir, LAM_CORPUS_TRUST));
    const lam_tokens *const text = &corpus->split[LAM_TRAIN];
    const int64_t n = text->count < LOOK ? text->count : LOOK;
    for (int64_t i = 0; i < n; i++) {
        int32_t c;
        lam_tokens_copy(text, &c, i, 1);
        strange += c == 0x7f || (c < 0x20 && !memchr(in_text, c, sizeof in_text - 1));
    }
    lam_corpus_close(corpus);
    if (50 * strange > n)
        lam_log(LAM_LOG_WARN, "%s looks like a binary file (%.0f %% control bytes)",
                info->n_sources == 1 ? info->sources[0].name : info->name,
                100.0 * (double)strange / (double)n);
    return LAM_OK;
}

/* What is <unk> cannot be learned. */
static void warn_if_unknown(const lam_corpus_info *info)
{
    for (int s = 0; s < LAM_SPLITS; s++) {
        const double share =
            info->tokens[s] > 0 ? (double)info->unknown[s] / (double)info->tokens[s] : 0;
        if (share > 0.05)
            lam_log(LAM_LOG_WARN,
                    "%.1f %% of the %s split became <unk>: a smaller --min-count, a larger "
                    "--max-vocab or --corpus bpe keeps more of the text",
                    100 * share, lam_split_name((lam_split)s));
    }
}

lam_status lam_prepare_warn(const lam_corpus_info *info, const char *dir)
{
    warn_if_unknown(info);
    LAM_TRY(warn_if_short(info));
    return warn_if_binary(info, dir);
}
