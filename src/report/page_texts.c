/* page_texts.c -- several texts side by side, or below each other where the screen is narrow. */
#include "report/page_int.h"

static void one(lam_text *out, const lam_texts *t, int i)
{
    lam_text_add(out, "<div><h4>");
    lam_text_html(out, t->names[i]);
    lam_text_add(out, "</h4><p>");
    if (t->prompt) {
        lam_text_add(out, "<span class=\"prompt\">");
        lam_text_html(out, t->prompt);
        lam_text_add(out, "</span>");
    }
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
    lam_page_open(page, "compare", texts->id, texts->title, texts->caption);
    lam_text_add(&page->body, "<div class=\"texts\">");
    for (int i = 0; i < texts->n; i++)
        one(&page->body, texts, i);
    lam_text_add(&page->body, "</div></figure>\n");
    return LAM_OK;
}
