/* page.c -- the page at `/` and its parts, which the build embeds (cmake/web.cmake). */
#include "draw/assets.h"
#include "draw/palette.h"
#include "serve/handlers.h"

static void give(lam_request *x, const lam_asset *asset, const char *type)
{
    if (asset->size == 0) {
        lam_reply_error(&x->reply, 404, NULL, "the page is not in this build");
    } else {
        x->reply.status = 200;
        x->reply.type = type;
        lam_text_bytes(&x->reply.body, asset->data, asset->size);
    }
    lam_request_done(x);
}

void lam_get_page(lam_request *x)
{
    give(x, &lam_asset_serve_html, "text/html; charset=utf-8");
}

void lam_get_style(lam_request *x)
{
    if (lam_asset_serve_css.size > 0)
        lam_palette_sheet(&x->reply.body);
    give(x, &lam_asset_serve_css, "text/css; charset=utf-8");
}

void lam_get_script(lam_request *x)
{
    give(x, &lam_asset_serve_js, "text/javascript; charset=utf-8");
}
