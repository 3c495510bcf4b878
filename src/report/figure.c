/* figure.c -- what can be said of any figure, and all its files. */
#include "report/figure.h"

#include "report/output.h"
#include "report/palette.h"
#include "report/png.h"
#include "report/svg.h"

int lam_figure_colour(const lam_figure *f, int series)
{
    const int own = f->series[series].colour, last = f->n_series - 1;
    if (f->ordered)
        return LAM_COLOURS + (last > 0 ? (series * (LAM_COLOURS - 1) + last / 2) / last : 0);
    return (own > 0 ? own - 1 : series) % LAM_COLOURS;
}

static lam_status save_picture(const lam_figure *f, const char *dir, unsigned files)
{
    lam_text svg = {0};
    lam_status status = LAM_OK;
    lam_figure_svg(&svg, f, LAM_FOR_FILE);
    if ((files & LAM_FILE_PNG) && !svg.failed && !lam_png_missing()) {
        lam_text png = {0};
        status = lam_png_draw(&png, &svg, LAM_PNG_SCALE);
        if (status == LAM_OK)
            status = lam_output_save(dir, f->id, "png", &png);
        lam_text_free(&png);
    }
    if (status == LAM_OK && (files & LAM_FILE_SVG))
        status = lam_output_save(dir, f->id, "svg", &svg);
    lam_text_free(&svg);
    return status;
}

lam_status lam_figure_save(const lam_figure *f, const char *dir, unsigned files)
{
    if (files & (LAM_FILE_SVG | LAM_FILE_PNG))
        LAM_TRY(save_picture(f, dir, files));
    if (files & LAM_FILE_CSV) {
        lam_text csv = {0};
        lam_figure_csv(&csv, f);
        LAM_TRY(lam_output_save(dir, f->id, "csv", &csv));
    }
    if (files & LAM_FILE_JSON) {
        lam_text json = {0};
        lam_figure_json(&json, f, LAM_FOR_FILE);
        LAM_TRY(lam_output_save(dir, f->id, "json", &json));
    }
    return LAM_OK;
}
