/* session.c -- `session [--save] MODEL FILE`: reads a snapshot of a session, which no command of the program does,
 * and goes on from it. */
#include "fuzz/cli/fuzz.h"

#include "lamemo.h"

#include <stdio.h>
#include <string.h>

static const int32_t text[] = {'o', 'n', 'c', 'e', ' ', 'u', 'p', 'o',
                               'n', ' ', 'a', ' ', 't', 'i', 'm', 'e'};

static lamemo_status go_on(lamemo_session *session)
{
    for (int i = 0; i < 16; i++) {
        int32_t token;
        double logprob;
        lamemo_status status = lamemo_session_sample(session, &token, &logprob);
        if (status == LAMEMO_OK)
            status = lamemo_session_feed(session, &token, 1);
        if (status != LAMEMO_OK)
            return status;
        printf("%d %g\n", (int)token, logprob);
    }
    return LAMEMO_OK;
}

int session_main(int argc, char **argv)
{
    const int save = argc == 4 && strcmp(argv[1], "--save") == 0;
    if (argc != 3 + save) {
        fputs("session [--save] MODEL FILE\n", stderr);
        return 2;
    }
    lamemo_engine *engine = NULL;
    lamemo_session *session = NULL;
    const lamemo_engine_options options = {.max_memory = 400000000};
    lamemo_status status = lamemo_engine_open(argv[1 + save], &options, &engine);
    if (status == LAMEMO_OK)
        status = lamemo_session_create(engine, NULL, &session);
    if (status == LAMEMO_OK && save)
        status = lamemo_session_feed(session, text, sizeof text / sizeof *text);
    if (status == LAMEMO_OK)
        status = save ? lamemo_session_save(session, argv[2 + save])
                      : lamemo_session_load(session, argv[2]);
    if (status == LAMEMO_OK)
        status = go_on(session);
    if (status != LAMEMO_OK)
        fprintf(stderr, "session: %s\n", lamemo_error());
    lamemo_session_free(session);
    lamemo_engine_close(engine);
    return status != LAMEMO_OK;
}
