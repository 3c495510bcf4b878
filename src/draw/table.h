/* table.h -- a table, apart from how it is shown: in a page, on a terminal, as CSV or JSON. */
#ifndef LAM_DRAW_TABLE_H
#define LAM_DRAW_TABLE_H

#include "core/status.h"
#include "draw/text.h"

#include <stdbool.h>
#include <stdint.h>

/* A cell is its text or, where that is NULL, its number; a number that is not finite is an empty cell. */
typedef struct lam_cell {
    const char *text;
    double number;
} lam_cell;

typedef struct lam_column {
    const char *name;
    int decimals;     /* of its numbers when shown; files have them in full */
    const char *note; /* a few words under the name ("paper", "bpc"), or NULL */
    bool error;       /* of the column before: a page shows it there, after a sign */
} lam_column;

typedef struct lam_table {
    const char *id;                        /* file name and anchor: a-z, 0-9, '-', '_' */
    const char *title, *finding, *caption; /* the last two may be NULL */
    int rows, cols;
    const lam_column *columns;
    const lam_cell *cells; /* [rows][cols]; the first column names the row */
} lam_table;

/* The cell as shown: "1.3766", "88,982,818", its text, or "". */
char *lam_cell_shown(char *out, size_t size, const lam_table *t, int row, int col);

/* "88,982,818", for sentences too. */
char *lam_count_shown(char *out, size_t size, int64_t n);

/* Plain text in columns, for a terminal. */
void lam_table_text(lam_text *out, const lam_table *t);
/* The same in lines of at most `width` letters, where that can be: columns that do not fit follow below, each block with
 * the names of the rows. */
void lam_table_within(lam_text *out, const lam_table *t, int width);
void lam_table_markdown(lam_text *out, const lam_table *t);
void lam_table_html(lam_text *out, const lam_table *t);
void lam_table_csv(lam_text *out, const lam_table *t);
void lam_table_json(lam_text *out, const lam_table *t); /* a list of objects */

/* Writes DIR/ID.csv and DIR/ID.json; DIR is made. */
lam_status lam_table_save(const lam_table *t, const char *dir);

#endif
