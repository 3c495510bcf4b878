/* assets.h -- files the build puts into the program (cmake/web.cmake): what a page needs to stand alone. */
#ifndef LAM_DRAW_ASSETS_H
#define LAM_DRAW_ASSETS_H

#include "core/asset.h"

extern const lam_asset lam_asset_page_css, lam_asset_page_js; /* src/report/web */
extern const lam_asset lam_asset_uplot_css,
    lam_asset_uplot_js; /* uPlot (MIT), where npm was there */

/* The page of lamemo serve: src/serve/web. */
extern const lam_asset lam_asset_serve_html, lam_asset_serve_css, lam_asset_serve_js;

#endif
