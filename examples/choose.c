/* choose.c -- which ending does a model find likeliest?  choose FOLDER TEXT ENDING...
 *
 * The text is read once; a snapshot takes the session back to its end before each ending.
 *
 *     cc choose.c $(pkg-config --cflags --libs lamemo) -lm -o choose */
#include <lamemo.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* log p(token) under the logits of a row. */
static double log_probability(const double *logits, int n, int32_t token)
{
    double most = logits[0], sum = 0.0;
    for (int i = 1; i < n; i++)
        most = logits[i] > most ? logits[i] : most;
    for (int i = 0; i < n; i++)
        sum += exp(logits[i] - most);
    return logits[token] - most - log(sum);
}

/* *sum = log p(ending | what the session has read), token by token. */
static lamemo_status judge(lamemo_engine *engine, lamemo_session *session, const char *ending,
                           double *sum)
{
    const int vocab = lamemo_vocab_size(engine);
    double *logits = (double *)malloc((size_t)vocab * sizeof *logits);
    int32_t *tokens = NULL;
    size_t n = 0;
    lamemo_status status = logits ? LAMEMO_OK : LAMEMO_ERR_MEMORY;
    *sum = 0.0;
    if (status == LAMEMO_OK)
        status = lamemo_encode(engine, ending, strlen(ending), &tokens, &n);
    for (size_t i = 0; i < n && status == LAMEMO_OK; i++) {
        status = lamemo_session_logits(session, logits);
        if (status == LAMEMO_OK)
            *sum += log_probability(logits, vocab, tokens[i]);
        if (status == LAMEMO_OK)
            status = lamemo_session_feed(session, &tokens[i], 1);
    }
    lamemo_free(tokens);
    free(logits);
    return status;
}

/* Reads the text after the token every text begins with, as lamemo_score() does. */
static lamemo_status read_text(lamemo_engine *engine, lamemo_session *session, const char *text)
{
    const int32_t start = lamemo_start_token(engine);
    int32_t *tokens = NULL;
    size_t n = 0;
    lamemo_status status = lamemo_encode(engine, text, strlen(text), &tokens, &n);
    if (status == LAMEMO_OK)
        status = lamemo_session_feed(session, &start, 1);
    if (status == LAMEMO_OK)
        status = lamemo_session_feed(session, tokens, n);
    lamemo_free(tokens);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: choose FOLDER TEXT ENDING...\n");
        return 2;
    }
    lamemo_engine *engine = NULL;
    lamemo_session *session = NULL;
    lamemo_snapshot *here = NULL;
    lamemo_status status = lamemo_engine_open(argv[1], NULL, &engine);
    if (status == LAMEMO_OK)
        status = lamemo_session_create(engine, NULL, &session);
    if (status == LAMEMO_OK)
        status = read_text(engine, session, argv[2]);
    if (status == LAMEMO_OK)
        status = lamemo_session_snapshot(session, &here);
    for (int i = 3; i < argc && status == LAMEMO_OK; i++) {
        double sum = 0.0;
        status = lamemo_session_restore(session, here);
        if (status == LAMEMO_OK)
            status = judge(engine, session, argv[i], &sum);
        if (status == LAMEMO_OK)
            printf("%10.4f  %s\n", sum, argv[i]);
    }
    if (status != LAMEMO_OK)
        fprintf(stderr, "choose: %s\n", lamemo_error());
    lamemo_snapshot_free(here);
    lamemo_session_free(session);
    lamemo_engine_close(engine);
    return status != LAMEMO_OK;
}
