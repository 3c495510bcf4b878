/* page_texts.c -- several texts side by side, or below each other where the screen is narrow. */
#include "report/page_int.h"

static void one(lam_text *out, const lam_texts *t, int i)
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
        one(&page->body, texts, i);
    lam_text_add(&page->body, "</div></figure>\n");
    return LAM_OK;
}
