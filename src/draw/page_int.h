/* page_int.h -- what the parts of a page share. */
#ifndef LAM_DRAW_PAGE_INT_H
#define LAM_DRAW_PAGE_INT_H

#include "draw/page.h"

struct lam_page {
    char *title, *subtitle, *command, *files; /* but for the first they may be NULL */
    int refresh;
    int headings;
    bool charts; /* the last section is a chart: others may stand beside it */
    lam_text contents, body;
};

/* <figure id=ID class=CLASS> with its title and, where not NULL, finding and caption; </figure> is the caller's. */
typedef struct lam_page_head {
    const char *class, *id, *title, *finding, *caption;
} lam_page_head;
void lam_page_open(lam_page *page, const lam_page_head *head);
/* Data for the script of the page, under the name ID-data; adds nothing that could end it. */
void lam_page_data(lam_page *page, const char *id, const lam_text *json);

#endif
