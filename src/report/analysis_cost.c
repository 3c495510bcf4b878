/* analysis_cost.c -- parameters and multiply-accumulates of the memories, beside the paper's columns (Table 1). */
#include "model/configure.h"
#include "model/macs.h"
#include "report/analysis_int.h"

enum { MOST = 16, COLS = 5 }; /* memories; columns */

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
    lam_cell cells[MOST][COLS] = {0};
    lam_config cfg;
    int rows = 0;
    (void)a;
    LAM_TRY(lam_config_preset(&cfg, "wt103-base", LAM_MEMORY_DEFAULT));
    for (int i = 0; lam_mem_all[i] && rows < MOST; i++) {
        const lam_mem_ops *mem = lam_mem_all[i];
        if (mem->paper.role == LAM_NOT_IN_PAPER)
            continue;
        cells[rows][0].text = mem->title;
        LAM_TRY(count_parameters(&cells[rows][1].number, mem->name));
        cells[rows][2].number = mem->paper.parameters;
        cells[rows][3].number = lam_macs_token(&cfg, mem->name).total / 1e6;
        cells[rows++][4].number = mem->paper.macs;
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
            .rows = rows,
            .cols = COLS,
            .columns = columns,
            .cells = cells[0]});
}
