/* session_bench.c -- tokens per second of a session, fed whole and token by token: session_bench MODEL FED DRAWN
 *
 * One thread, whose CPU time is what counts.  bench/python_bench.py compiles this file as a library too, and compares
 * itself with its two functions on one session. */
#include "lamemo.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* CPU seconds of feeding n tokens; negative: it failed. */
double bench_feed(lamemo_session *session, const int32_t *tokens, size_t n);
double bench_feed(lamemo_session *session, const int32_t *tokens, size_t n)
{
    const double begin = cpu_seconds();
    const lamemo_status status = lamemo_session_feed(session, tokens, n);
    return status == LAMEMO_OK ? cpu_seconds() - begin : -1.0;
}

/* The same for drawing n tokens, each of which is fed. */
double bench_draw(lamemo_session *session, long n);
double bench_draw(lamemo_session *session, long n)
{
    lamemo_status status = LAMEMO_OK;
    const double begin = cpu_seconds();
    for (long i = 0; i < n && status == LAMEMO_OK; i++) {
        int32_t next;
        status = lamemo_session_sample(session, &next, NULL);
        if (status == LAMEMO_OK)
            status = lamemo_session_feed(session, &next, 1);
    }
    return status == LAMEMO_OK ? cpu_seconds() - begin : -1.0;
}

int main(int argc, char **argv)
{
    lamemo_engine *engine = NULL;
    lamemo_session *session = NULL;
    const size_t fed = argc == 4 ? (size_t)atol(argv[2]) : 0;
    const long drawn = argc == 4 ? atol(argv[3]) : 0;
    const lamemo_engine_options options = {.device = "cpu", .threads = 1};
    int32_t *tokens = calloc(fed + 128, sizeof *tokens);
    if (argc != 4 || !tokens) {
        fprintf(stderr, "usage: session_bench MODEL FED DRAWN\n");
        return 2;
    }
    for (size_t i = 0; i < fed + 128; i++)
        tokens[i] = (int32_t)(i * 7 % 256);
    lamemo_status status = lamemo_engine_open(argv[1], &options, &engine);
    if (status == LAMEMO_OK)
        status = lamemo_session_create(engine, NULL, &session);
    if (status == LAMEMO_OK)
        status = lamemo_session_feed(session, tokens, 128);
    const double feeding = status == LAMEMO_OK ? bench_feed(session, tokens, fed) : -1.0;
    const double drawing = feeding >= 0.0 ? bench_draw(session, drawn) : -1.0;
    const int done = drawing >= 0.0;
    if (done)
        printf("%.3f %.3f\n", (double)fed / feeding, (double)drawn / drawing);
    else
        fprintf(stderr, "session_bench: %s\n", lamemo_error());
    lamemo_session_free(session);
    lamemo_engine_close(engine);
    free(tokens);
    return !done;
}
