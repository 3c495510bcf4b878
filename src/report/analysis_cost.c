/* analysis_cost.c -- parameters and multiply-accumulates of the five memories, beside the paper's columns (Table 1). */
#include "model/macs.h"
#include "report/analysis_int.h"

typedef struct published {
    const char *memory, *name;
    double parameters, macs; /* millions, as printed */
} published;

static const published table_1[] = {{"none", "Transformer+RPE", 151, 148},
                                    {"xl", "Transformer-XL", 151, 157},
                                    {"compressive", "Compressive Transformer", 161, 169},
                                    {"infinite", "infinity-former", 160, 235},
                                    {"lamemo", "LaMemo", 151, 191}};
enum { ROWS = sizeof table_1 / sizeof *table_1, COLS = 5 };

static lam_status count_parameters(double *millions, const char *memory)
{
    lam_config cfg;
    lam_model model = {0};
    lam_dev bare = {.act = LAM_F32, .wide = LAM_F32, .pad = 1};
    LAM_TRY(lam_config_preset(&cfg, "wt103-base", memory));
    LAM_TRY(lam_config_finish(&cfg));
    const lam_status status = lam_model_declare(&model, &cfg, &bare);
    *millions = (double)lam_model_count(&model) / 1e6;
    lam_model_undeclare(&model);
    return status;
}

lam_status lam_analysis_cost(const lam_analysis *a, lam_page *page)
{
    static const lam_column columns[COLS] = {
        {.name = "model"},
        {.name = "parameters", .decimals = 2, .note = "millions"},
        {.name = "paper (parameters)", .note = "#Params, millions"},
        {.name = "MACs per token", .decimals = 2, .note = "millions"},
        {.name = "paper (MACs)", .note = "#FLOPS, millions"}};
    lam_cell cells[ROWS][COLS] = {0};
    lam_config cfg;
    (void)a;
    LAM_TRY(lam_config_preset(&cfg, "wt103-base", "xl"));
    for (int i = 0; i < ROWS; i++) {
        cells[i][0].text = table_1[i].name;
        LAM_TRY(count_parameters(&cells[i][1].number, table_1[i].memory));
        cells[i][2].number = table_1[i].parameters;
        cells[i][3].number = lam_macs_token(&cfg, table_1[i].memory).total / 1e6;
        cells[i][4].number = table_1[i].macs;
    }
    lam_page_heading(page, "cost", "Parameters and cost");
    return lam_page_table(
        page,
        &(lam_table){
            .id = "cost",
            .title = "The five memories at the paper's size",
            .caption =
                "wt103-base, segments and memories of 150 tokens, full softmax.  MACs are "
                "multiply-accumulates per predicted token, which the paper calls FLOPS; its "
                "formulas are not given, and the infinity-former's 235 cannot be reached with "
                "512 samples.  The models of this report are in the first table.",
            .rows = ROWS,
            .cols = COLS,
            .columns = columns,
            .cells = cells[0]});
}
