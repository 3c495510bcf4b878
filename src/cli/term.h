/* term.h -- what we know about the screen, and the one live line that shows progress.
 *
 * On a terminal the line is rewritten in place, at most ten times a second; elsewhere plain lines
 * appear at growing intervals, so that a log file stays short. */
#ifndef LAM_CLI_TERM_H
#define LAM_CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum lam_style {
    LAM_STYLE_NONE,
    LAM_STYLE_BOLD,
    LAM_STYLE_DIM,
    LAM_STYLE_GOOD,
    LAM_STYLE_BAD
} lam_style;

bool lam_term_is_tty(FILE *stream);
int lam_term_width(FILE *stream); /* columns; 80 when unknown */
/* The escape sequence that begins a style; "" where colour is unwanted (no terminal, NO_COLOR). */
const char *lam_term_style(FILE *stream, lam_style style);

/* Text with names from outside, or what a model wrote.  Bytes stay as they are, but on a terminal control characters
 * other than newline and tab are written out (core/printable.h).  `text` holds whole characters. */
void lam_term_write(FILE *stream, const char *text, size_t n);
/* printf() by way of it. */
void lam_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From now on long lines of the log break at words, where stderr is a terminal. */
void lam_term_log(void);

/* All write into text (size bytes) and return it. */
char *lam_format_time(char *text, size_t size, double seconds); /* 0:07, 1:23, 1:23:45 */
char *lam_format_count(char *text, size_t size, int64_t n);     /* 88,982,818 */

/* A live line on stderr.  One at a time: while it is open, log lines are kept apart from it. */
typedef struct lam_progress {
    bool tty, drawn, quiet;
    double started, last, interval;
} lam_progress;

void lam_progress_open(lam_progress *p, bool quiet);
/* True when the next lam_progress_show() would be seen: ask before formatting anything costly. */
bool lam_progress_due(const lam_progress *p);
/* Shows the line if it is due. */
void lam_progress_show(lam_progress *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Removes the line from the terminal, so that other output can be printed; it comes back with the
 * next show(). */
void lam_progress_clear(lam_progress *p);
double lam_progress_seconds(const lam_progress *p); /* since open() */
void lam_progress_close(lam_progress *p);

#endif
