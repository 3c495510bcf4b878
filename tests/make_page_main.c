/* make_page_main.c -- a page with every kind of section, for the eye and for tests/browser: make_page FOLDER
 *
 * The numbers are made up but have the shapes of real ones. */
#include "draw/page.h"

#include "core/file.h"
#include "core/rng.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 4000, EVALS = 20, LAYERS = 12, SLOTS = 512, TEXT = 1200 };

static lam_rng rng = {.key = 17};

static lam_status training(lam_page *page)
{
    static double x[STEPS], y[3][STEPS], ex[EVALS], e[EVALS], low[EVALS], high[EVALS];
    for (int i = 0; i < STEPS; i++) {
        x[i] = 50.0 * (i + 1);
        for (int k = 0; k < 3; k++)
            y[k][i] = 1.05 + 0.06 * k + 4.2 * pow(x[i], -0.28) + 0.02 * lam_rng_normal(&rng);
    }
    for (int i = 0; i < EVALS; i++) {
        ex[i] = 10000.0 * (i + 1);
        e[i] = 1.1 + 4 * pow(ex[i], -0.28);
        low[i] = e[i] - 0.02;
        high[i] = e[i] + 0.02;
    }
    const lam_series series[] = {{.name = "LaMemo", .n = STEPS, .x = x, .y = y[0]},
                                 {.name = "Transformer-XL", .n = STEPS, .x = x, .y = y[1]},
                                 {.name = "no memory", .n = STEPS, .x = x, .y = y[2]},
                                 {.name = "LaMemo, dev",
                                  .n = EVALS,
                                  .x = ex,
                                  .y = e,
                                  .low = low,
                                  .high = high,
                                  .colour = 4}};
    return lam_page_figure(
        page,
        &(lam_figure){.id = "training",
                      .title = "Training loss",
                      .caption =
                          "Bits per character of the training text over the steps, three models.",
                      .x = {.label = "step"},
                      .y = {.label = "bits per character"},
                      .n_series = 4,
                      .series = series});
}

static lam_status distance(lam_page *page)
{
    enum { BINS = 60 };
    static double x[BINS], y[2][BINS];
    for (int i = 0; i < BINS; i++) {
        x[i] = 5 * i + 2.5;
        y[0][i] = 0.3 / (1 + 0.3 * i) * exp(0.1 * lam_rng_normal(&rng));
        y[1][i] = 0.32 / (1 + 0.5 * i) * exp(0.1 * lam_rng_normal(&rng));
    }
    const lam_series series[] = {{.name = "LaMemo", .n = BINS, .x = x, .y = y[0]},
                                 {.name = "Transformer-XL", .n = BINS, .x = x, .y = y[1]}};
    return lam_page_figure(
        page, &(lam_figure){
                  .id = "distance",
                  .title = "Attention over distance",
                  .caption = "Largest attention weight in each interval of 5 tokens on the left.",
                  .x = {.label = "distance (tokens)"},
                  .y = {.label = "attention weight", .scale = LAM_SCALE_LOG},
                  .n_series = 2,
                  .series = series});
}

static lam_status alpha(lam_page *page)
{
    static double z[LAYERS * SLOTS];
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < SLOTS; i++)
            z[l * SLOTS + i] = 1 / (1 + (0.2 + 0.1 * l) * exp(-3.0 * (SLOTS - i) / SLOTS)) +
                               0.004 * lam_rng_normal(&rng);
    LAM_TRY(lam_page_figure(
        page, &(lam_figure){.id = "alpha",
                            .title = "How much of the past stays",
                            .caption = "Alpha (Eq. 11) by layer and memory slot.",
                            .kind = LAM_FIGURE_HEAT,
                            .x = {.label = "memory slot, newest right", .min = -SLOTS, .max = -1},
                            .y = {.label = "layer", .min = 1, .max = LAYERS},
                            .rows = LAYERS,
                            .cols = SLOTS,
                            .z = z,
                            .z_label = "alpha"}));
    for (int i = 0; i < 48; i++)
        z[i] = lam_rng_normal(&rng);
    return lam_page_figure(page, &(lam_figure){.id = "change",
                                               .title = "Change by layer and head",
                                               .kind = LAM_FIGURE_HEAT,
                                               .x = {.label = "head"},
                                               .y = {.label = "layer"},
                                               .rows = 6,
                                               .cols = 8,
                                               .z = z,
                                               .z_label = "difference (bits)"});
}

static lam_status results(lam_page *page)
{
    static const lam_column columns[] = {{.name = "model"},
                                         {.name = "parameters"},
                                         {.name = "bpc", .decimals = 3, .note = "test"},
                                         {.name = "remark"}};
    static const lam_cell cells[] = {
        {"LaMemo", 0},         {NULL, 41386112}, {NULL, 1.0742}, {"best", 0},
        {"Transformer-XL", 0}, {NULL, 41289344}, {NULL, 1.0811}, {"", 0}};
    return lam_page_table(page, &(lam_table){.id = "results",
                                             .title = "Results",
                                             .caption = "Smaller is better.",
                                             .rows = 2,
                                             .cols = 4,
                                             .columns = columns,
                                             .cells = cells});
}

static lam_status text(lam_page *page)
{
    static const char sample[] =
        "In the beginning God created the heaven and the earth.\nAnd the earth was without "
        "form, and void; and darkness was upon the face of the deep. </script> \xe2\x82\xac \xff ";
    static lam_token tokens[TEXT];
    static double bits[2][TEXT], gain[TEXT];
    static int32_t back[TEXT][2];
    static float weight[TEXT][2];
    for (int i = 0; i < TEXT; i++) {
        tokens[i] = (lam_token){&sample[(size_t)i % (sizeof sample - 1)], 1};
        bits[0][i] = -log2(1 - lam_rng_uniform(&rng)) * 1.5;
        bits[1][i] = fmax(0, bits[0][i] + 0.5 * lam_rng_normal(&rng));
        gain[i] = bits[1][i] - bits[0][i];
        back[i][0] = 1;
        back[i][1] = 2 + i % 30;
        weight[i][0] = 0.6f;
        weight[i][1] = 0.25f;
    }
    const lam_reader readers[] = {{"LaMemo", 2, back[0], weight[0]},
                                  {"Transformer-XL", 1, back[0], weight[0]}};
    const lam_measure measures[] = {
        {.name = "LaMemo: loss (bits)", .values = bits[0]},
        {.name = "Transformer-XL: loss (bits)", .values = bits[1]},
        {.name = "gain of LaMemo over Transformer-XL (bits)", .values = gain, .diverging = true}};
    static const char *const names[] = {"LaMemo", "Transformer-XL"},
                             *const notes[] = {"distinct-2 0.71", "distinct-2 0.64"},
                             *const texts[] = {
                                 "light: and there was light, and the light was good.",
                                 "darkness of the darkness of the darkness."};
    LAM_TRY(lam_page_tokens(
        page,
        &(lam_coloured){.id = "tokens",
                        .title = "Where the bits go",
                        .caption = "Each character of the test text, coloured by what it cost.",
                        .n = TEXT,
                        .tokens = tokens,
                        .n_measures = 3,
                        .measures = measures,
                        .n_readers = 2,
                        .readers = readers}));
    return lam_page_texts(page, &(lam_texts){.id = "continuations",
                                             .title = "Continuations",
                                             .prompt = "Let there be ",
                                             .n = 2,
                                             .names = names,
                                             .texts = texts,
                                             .notes = notes});
}

static lam_status write_page(const char *dir)
{
    static lam_status (*const parts[])(lam_page *) = {training, distance, alpha, results, text};
    static const char *const titles[] = {"Training", "Attention", "Memory", "Models", "Text"};
    static const char *const ids[] = {"s-training", "s-attention", "s-memory", "s-models",
                                      "s-text"};
    char files[PATH_MAX], path[PATH_MAX];
    LAM_TRY(lam_path_join(files, sizeof files, dir, "figures"));
    LAM_TRY(lam_path_join(path, sizeof path, dir, "report.html"));
    LAM_TRY(lam_dir_make(dir));
    lam_page *page;
    LAM_TRY(lam_page_create(
        &page, &(lam_page_options){.title = "Two memories on one text",
                                   .subtitle = "Made-up numbers with the shapes of real ones.",
                                   .command = "make_page 'a folder'",
                                   .files = files}));
    lam_status status = LAM_OK;
    for (int i = 0; i < 5 && status == LAM_OK; i++) {
        lam_page_heading(page, ids[i], titles[i]);
        status = parts[i](page);
    }
    if (status == LAM_OK)
        status = lam_page_save(page, path);
    lam_page_free(page);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_page FOLDER\n");
        return 2;
    }
    if (write_page(argv[1]) == LAM_OK)
        return 0;
    fprintf(stderr, "make_page: %s\n", lam_error());
    return 1;
}
