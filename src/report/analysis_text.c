/* analysis_text.c -- the text itself: a passage in which every token is coloured by its loss, or by what one model
 * saves over another, and shows which tokens the models attended to. */
#include "report/analysis_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEASURES = 8 };

typedef struct passage {
    int n;
    lam_token *tokens;
    double *values; /* [MEASURES][n] */
    lam_measure measures[MEASURES];
    char names[MEASURES][160];
    char ends[MEASURES][2][96];
    int n_measures;
} passage;

/* Tokens that every model has measured, from the first on. */
static int common_length(const lam_analysis *a)
{
    int n = a->n > 0 ? a->models[0].passage.n : 0;
    for (int i = 1; i < a->n; i++)
        n = a->models[i].passage.n < n ? a->models[i].passage.n : n;
    return n;
}

/* Words are followed by a blank, <eos> by a newline; other symbols are the text itself. */
static lam_status spell(const lam_analysis *a, passage *p, char **room)
{
    const lam_vocab *vocab = a->corpus->vocab;
    const int words = lam_vocab_kind(vocab) == LAM_WORDS;
    size_t total = 1, used = 0, size;
    for (int i = 0; i < p->n; i++) {
        lam_vocab_symbol(vocab, a->models[0].passage.tokens[i], &size);
        total += size + 2;
    }
    if (!(*room = malloc(total)))
        return lam_fail(LAM_ERR_MEMORY, "analysis: no memory for %d tokens", p->n);
    for (int i = 0; i < p->n; i++) {
        const int32_t id = a->models[0].passage.tokens[i];
        const char *symbol = lam_vocab_symbol(vocab, id, &size);
        const char *after = !words ? "" : id == lam_vocab_eos(vocab) ? "\n" : " ";
        p->tokens[i] = (lam_token){*room + used, size + strlen(after)};
        memcpy(*room + used, symbol, size); /* any bytes */
        memcpy(*room + used + size, after, strlen(after));
        used += size + strlen(after);
    }
    return LAM_OK;
}

static double *add_measure(passage *p, bool diverging)
{
    double *values = p->values + (size_t)p->n_measures * (size_t)p->n;
    lam_measure *m = &p->measures[p->n_measures];
    m->name = p->names[p->n_measures++];
    m->values = values;
    m->diverging = diverging;
    return values;
}

/* First what the first model saves over each other one, where there are two; then the losses themselves. */
static void measure(const lam_analysis *a, passage *p)
{
    for (int i = 1; i < a->n && p->n_measures < MEASURES - 1; i++) {
        const double *first = a->models[0].passage.nll, *other = a->models[i].passage.nll;
        snprintf(p->names[p->n_measures], sizeof *p->names, "%s saves over %s (bits)",
                 a->models[0].name, a->models[i].name);
        for (int end = 0; end < 2; end++) {
            char *text = p->ends[p->n_measures][end];
            snprintf(text, sizeof **p->ends, "%s knew more", a->models[end ? 0 : i].name);
            p->measures[p->n_measures].ends[end] = text;
        }
        double *v = add_measure(p, true);
        for (int k = 0; k < p->n; k++)
            v[k] = (other[k] - first[k]) / log(2.0);
    }
    for (int i = 0; i < a->n && p->n_measures < MEASURES; i++) {
        snprintf(p->names[p->n_measures], sizeof *p->names, "%s: loss (bits)", a->models[i].name);
        double *v = add_measure(p, false);
        for (int k = 0; k < p->n; k++)
            v[k] = a->models[i].passage.nll[k] / log(2.0);
    }
}

lam_status lam_analysis_passage(const lam_analysis *a, lam_page *page)
{
    passage p = {.n = common_length(a)};
    lam_reader readers[LAM_ANALYSED];
    char *room = NULL, layer[32], caption[640];
    if (p.n == 0)
        return LAM_OK;
    lam_page_heading(page, "text", "The text, token by token");
    for (int i = 0; i < a->n; i++)
        readers[i] = (lam_reader){.name = a->models[i].name,
                                  .most = LAM_ATTENDED,
                                  .back = a->models[i].passage.back,
                                  .weight = a->models[i].passage.weight};
    lam_analysis_layer_name(a, layer, sizeof layer);
    snprintf(
        caption, sizeof caption,
        "%s%s  Click a token, or press Enter, to see which earlier tokens the model attends to "
        "when it predicts it: attention weights of %s, averaged over heads, the largest %d.",
        a->own     ? "Your text, read from an empty memory on."
        : a->n > 1 ? "A passage of the text, read by all models with full memory."
                   : "A passage of the text, read with full memory.",
        a->n > 1
            ? "  Blue: the first model was less surprised by the token; orange: the other one was."
            : "  The darker a token, the more it surprised the model.",
        layer, LAM_ATTENDED);
    p.tokens = calloc((size_t)p.n, sizeof *p.tokens);
    p.values = calloc(MEASURES * (size_t)p.n, sizeof *p.values);
    lam_status status = p.tokens && p.values
                            ? spell(a, &p, &room)
                            : lam_fail(LAM_ERR_MEMORY, "analysis: no memory for %d tokens", p.n);
    if (status == LAM_OK) {
        measure(a, &p);
        status =
            lam_page_tokens(page, &(lam_coloured){.id = "passage",
                                                  .title = a->n > 1 ? "Where the models differ"
                                                                    : "What surprised the model",
                                                  .caption = caption,
                                                  .n = p.n,
                                                  .tokens = p.tokens,
                                                  .n_measures = p.n_measures,
                                                  .measures = p.measures,
                                                  .n_readers = a->n,
                                                  .readers = readers});
    }
    free(room);
    free(p.tokens);
    free(p.values);
    return status;
}
