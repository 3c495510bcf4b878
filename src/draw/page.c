/* page.c -- see page.h: headings, text, figures, tables, and the file. */
#include "draw/page_int.h"

#include "core/own.h"
#include "draw/assets.h"
#include "draw/palette.h"
#include "draw/svg.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* By which a page of ours is known; older ones have it too. */
#define MARK "<meta name=\"generator\" content=\"lamemo "

static char *copy_of(const char *s, bool *failed)
{
    char *const copy = s ? strdup(s) : NULL;
    *failed |= s && !copy;
    return copy;
}

lam_status lam_page_create(lam_page **out, const lam_page_options *options)
{
    bool failed = false;
    *out = NULL;
    lam_page *const page = calloc(1, sizeof *page);
    if (!page)
        return lam_fail(LAM_ERR_MEMORY, "no memory for a page");
    page->title = copy_of(options->title, &failed);
    page->subtitle = copy_of(options->subtitle, &failed);
    page->command = copy_of(options->command, &failed);
    page->files = copy_of(options->files, &failed);
    page->refresh = options->refresh;
    if (failed) {
        lam_page_free(page);
        return lam_fail(LAM_ERR_MEMORY, "no memory for a page");
    }
    *out = page;
    return LAM_OK;
}

void lam_page_free(lam_page *page)
{
    if (!page)
        return;
    free(page->title);
    free(page->subtitle);
    free(page->command);
    free(page->files);
    lam_text_free(&page->contents);
    lam_text_free(&page->body);
    free(page);
}

/* ---- sections ---- */

/* Charts that follow each other are a group, which wide screens show in two columns. */
static void group(lam_page *page, bool chart)
{
    if (chart != page->charts)
        lam_text_add(&page->body, chart ? "<div class=\"charts\">" : "</div>\n");
    page->charts = chart;
}

void lam_page_heading(lam_page *page, const char *id, const char *title)
{
    assert(lam_id_valid(id));
    group(page, false);
    lam_text_format(&page->contents, "<li><a href=\"#%s\">", id);
    lam_text_html(&page->contents, title);
    lam_text_add(&page->contents, "</a></li>");
    lam_text_format(&page->body, "<h2 id=\"%s\">", id);
    lam_text_html(&page->body, title);
    lam_text_add(&page->body, "</h2>\n");
    page->headings++;
}

void lam_page_text(lam_page *page, const char *text)
{
    group(page, false);
    while (*text) {
        const char *const end = strstr(text, "\n\n");
        const size_t size = end ? (size_t)(end - text) : strlen(text);
        if (size > 0) {
            lam_text_add(&page->body, "<p>");
            lam_text_html_bytes(&page->body, text, size);
            lam_text_add(&page->body, "</p>\n");
        }
        text += size;
        text += strspn(text, "\n");
    }
}

void lam_page_open(lam_page *page, const lam_page_head *h)
{
    lam_text *const out = &page->body;
    const int level = page->headings > 0 ? 3 : 2; /* no level is left out */
    assert(lam_id_valid(h->id));
    group(page, strcmp(h->class, "chart") == 0);
    lam_text_format(out, "<figure id=\"%s\" class=\"%s\"><figcaption><h%d>", h->id, h->class,
                    level);
    lam_text_html(out, h->title);
    lam_text_format(out, "</h%d>", level);
    if (h->finding && *h->finding) {
        lam_text_add(out, "<p class=\"finding\">");
        lam_text_html(out, h->finding);
        lam_text_add(out, "</p>");
    }
    if (h->caption) {
        lam_text_add(out, "<p>");
        lam_text_html(out, h->caption);
        lam_text_add(out, "</p>");
    }
    lam_text_add(out, "</figcaption>");
}

void lam_page_data(lam_page *page, const char *id, const lam_text *json)
{
    lam_text_format(&page->body, "<script type=\"application/json\" id=\"%s-data\">", id);
    lam_text_bytes(&page->body, json->data, json->size);
    lam_text_add(&page->body, "</script>\n");
    page->body.failed |= json->failed;
}

lam_status lam_page_figure(lam_page *page, const lam_figure *figure)
{
    lam_text json = {0};
    lam_page_open(page, &(lam_page_head){"chart", figure->id, figure->title, figure->finding,
                                         figure->caption});
    lam_text_add(&page->body, "<div class=\"plot\">");
    lam_figure_svg(&page->body, figure, LAM_FOR_PAGE);
    lam_text_add(&page->body, "</div></figure>\n");
    lam_figure_json(&json, figure, LAM_FOR_PAGE);
    lam_page_data(page, figure->id, &json);
    lam_text_free(&json);
    return page->files ? lam_figure_save(figure, page->files) : LAM_OK;
}

lam_status lam_page_table(lam_page *page, const lam_table *table)
{
    lam_page_open(
        page, &(lam_page_head){"table", table->id, table->title, table->finding, table->caption});
    lam_text_add(&page->body, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"");
    lam_text_html(&page->body, table->title);
    lam_text_add(&page->body, "\">");
    lam_table_html(&page->body, table);
    lam_text_add(&page->body, "</div></figure>\n");
    return page->files ? lam_table_save(table, page->files) : LAM_OK;
}

static void text_html(lam_text *out, const lam_texts *t, int i)
{
    lam_text_add(out, "<div><h4>");
    lam_text_html(out, t->names[i]);
    lam_text_add(out, "</h4><p>");
    lam_text_html(out, t->texts[i]);
    lam_text_add(out, "</p>");
    if (t->notes) {
        lam_text_add(out, "<p class=\"note\">");
        lam_text_html(out, t->notes[i]);
        lam_text_add(out, "</p>");
    }
    lam_text_add(out, "</div>");
}

lam_status lam_page_texts(lam_page *page, const lam_texts *texts)
{
    lam_page_open(page, &(lam_page_head){"compare", texts->id, texts->title, NULL, texts->caption});
    if (texts->prompt) {
        lam_text_add(&page->body, "<p class=\"prompt\"><b>Prompt</b>\n");
        lam_text_html(&page->body, texts->prompt);
        lam_text_add(&page->body, "</p>");
    }
    lam_text_format(&page->body, "<div class=\"texts%s\">", texts->prompt ? " on" : "");
    for (int i = 0; i < texts->n; i++)
        text_html(&page->body, texts, i);
    lam_text_add(&page->body, "</div></figure>\n");
    return LAM_OK;
}

/* ---- the file ---- */

static void asset(lam_text *out, const char *tag, const lam_asset *a)
{
    if (a->size == 0)
        return;
    lam_text_format(out, "<%s>", tag);
    lam_text_bytes(out, a->data, a->size);
    lam_text_format(out, "</%s>\n", tag);
}

/* Nothing may be loaded: the policy makes the browser see to it. */
static void head(lam_text *out, const lam_page *page)
{
    lam_text_add(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n" MARK LAM_VERSION
        "\">\n"
        "<link rel=\"icon\" href=\"data:,\">\n<title>");
    lam_text_html(out, page->title);
    lam_text_add(out, "</title>\n<style>");
    lam_palette_sheet(out);
    lam_text_add(out, "</style>\n");
    asset(out, "style", &lam_asset_uplot_css);
    asset(out, "style", &lam_asset_page_css);
    lam_text_add(out, "</head>\n");
}

static void whole(lam_text *out, const lam_page *page)
{
    head(out, page);
    lam_text_format(
        out, "<body data-refresh=\"%d\"><a class=\"skip\" href=\"#main\">To the content</a>\n",
        page->refresh);
    lam_text_add(out, "<header><h1>");
    lam_text_html(out, page->title);
    lam_text_add(out, "</h1>");
    if (page->subtitle) {
        lam_text_add(out, "<p class=\"subtitle\">");
        lam_text_html(out, page->subtitle);
        lam_text_add(out, "</p>");
    }
    if (page->command) {
        lam_text_add(out, "<p class=\"command\">Made by <code>");
        lam_text_html(out, page->command);
        lam_text_add(out, "</code></p>");
    }
    lam_text_add(out, "<button id=\"theme\" hidden>Dark</button>\n");
    lam_text_add(out, "</header>\n");
    if (page->headings > 1) {
        lam_text_add(out, "<nav aria-label=\"Contents\"><ul>");
        lam_text_bytes(out, page->contents.data, page->contents.size);
        lam_text_add(out, "</ul></nav>\n");
    }
    lam_text_add(out, "<main id=\"main\">\n");
    lam_text_bytes(out, page->body.data, page->body.size);
    lam_text_add(out, page->charts ? "</div>" : "");
    lam_text_add(out, "</main>\n<footer>Made by lamemo " LAM_VERSION ".</footer>\n");
    asset(out, "script", &lam_asset_uplot_js);
    asset(out, "script", &lam_asset_page_js);
    lam_text_add(out, "</body></html>\n");
    out->failed |= page->body.failed | page->contents.failed;
}

static bool is_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && info.st_size > 0;
}

lam_status lam_page_may_save(const char *path, const char *files)
{
    LAM_TRY(lam_own_file(path, MARK));
    return !files || is_there(path) ? LAM_OK : lam_own_room(files, "report");
}

lam_status lam_page_begin(const lam_page *page, const char *path)
{
    return is_there(path) ? LAM_OK : lam_page_save(page, path);
}

lam_status lam_page_save(const lam_page *page, const char *path)
{
    lam_text out = {0};
    whole(&out, page);
    lam_status status = lam_text_status(&out, path);
    if (status == LAM_OK)
        status = lam_file_save(path, out.data, out.size);
    lam_text_free(&out);
    return status;
}
