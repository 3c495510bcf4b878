/* continue.c -- continues a text with a model: continue FOLDER TEXT
 *
 *     cc continue.c $(pkg-config --cflags --libs lamemo) -o continue */
#include <lamemo.h>

#include <stdio.h>
#include <string.h>

static int show(void *user, const lamemo_piece *piece)
{
    (void)user;
    fwrite(piece->text, 1, piece->size, stdout);
    fflush(stdout);
    return 0; /* anything else would end it here */
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: continue FOLDER TEXT\n");
        return 2;
    }
    lamemo_engine *engine = NULL;
    int32_t *tokens = NULL;
    size_t n = 0;
    lamemo_sampling sampling;
    lamemo_generate_options options;
    memset(&sampling, 0, sizeof sampling); /* zero means the default */
    memset(&options, 0, sizeof options);
    sampling.temperature = 0.8;
    options.tokens = 200;
    options.sampling = &sampling;

    lamemo_status status = lamemo_engine_open(argv[1], NULL, &engine);
    if (status == LAMEMO_OK)
        status = lamemo_encode(engine, argv[2], strlen(argv[2]), &tokens, &n);
    if (status == LAMEMO_OK)
        status = lamemo_generate(engine, tokens, n, &options, show, NULL);
    if (status != LAMEMO_OK)
        fprintf(stderr, "continue: %s\n", lamemo_error());
    putchar('\n');
    lamemo_free(tokens);
    lamemo_engine_close(engine);
    return status != LAMEMO_OK;
}
