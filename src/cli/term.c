/* term.c -- see term.h.  Everything that depends on the kind of output is decided here. */
#include "cli/term.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/printable.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const double TTY_INTERVAL = 0.1;
static const double LINE_INTERVAL = 2.0, LINE_INTERVAL_MAX = 60.0;

bool lam_term_is_tty(FILE *stream)
{
    return isatty(fileno(stream)) == 1;
}

int lam_term_width(FILE *stream)
{
    struct winsize size;
    if (lam_term_is_tty(stream) && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

const char *lam_term_style(FILE *stream, lam_style style)
{
    static const char *const codes[] = {"\033[0m", "\033[1m", "\033[2m", "\033[32m", "\033[31m"};
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (!lam_term_is_tty(stream) || (no_color != NULL && *no_color != '\0') ||
        (term != NULL && strcmp(term, "dumb") == 0))
        return "";
    return codes[style];
}

void lam_term_write(FILE *stream, const char *text, size_t n)
{
    char next[LAM_PRINTABLE_MAX];
    if (!lam_term_is_tty(stream)) {
        fwrite(text, 1, n, stream);
        return;
    }
    for (size_t at = 0; at < n;) {
        const char c = text[at];
        at += lam_printable_next(next, text + at, n - at);
        if (c == '\n' || c == '\t')
            putc(c, stream);
        else
            fputs(next, stream);
    }
}

void lam_print(const char *format, ...)
{
    char room[4096], *text = room;
    va_list ap, again;
    va_start(ap, format);
    va_copy(again, ap);
    const int n = vsnprintf(room, sizeof room, format, ap);
    if (n >= (int)sizeof room && (text = malloc((size_t)n + 1)) != NULL)
        vsnprintf(text, (size_t)n + 1, format, again);
    else if (n >= (int)sizeof room)
        text = room; /* without memory: its beginning */
    va_end(again);
    va_end(ap);
    lam_term_write(stdout, text, strlen(text));
    if (text != room)
        free(text);
}

char *lam_format_time(char *text, size_t size, double seconds)
{
    if (!(seconds >= 0) || seconds > 1e9) { /* also NaN: an estimate from nothing */
        snprintf(text, size, "-:--");
        return text;
    }
    const long s = lround(seconds);
    if (s < 3600)
        snprintf(text, size, "%ld:%02ld", s / 60, s % 60);
    else
        snprintf(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    return text;
}

char *lam_format_count(char *text, size_t size, int64_t n)
{
    char digits[24];
    const int len = snprintf(digits, sizeof digits, "%lld", (long long)n);
    size_t used = 0;
    for (int i = 0; i < len && used + 2 < size; i++) {
        text[used++] = digits[i];
        if ((len - i) % 3 == 1 && i + 1 < len && digits[i] != '-')
            text[used++] = ',';
    }
    text[used] = '\0';
    return text;
}

/* ---- the live line ---- */

/* Bytes of the part of a line that fits in `width` letters: up to a blank where there is one. */
static size_t fitting(const char *line, int width)
{
    size_t at = 0, blank = 0;
    int letters = 0;
    for (; line[at] != '\0'; at++) {
        letters += ((unsigned char)line[at] & 0xc0) != 0x80;
        if (letters > width)
            return line[at] == ' ' || blank == 0 ? at : blank;
        blank = line[at] == ' ' && at > 0 && line[at - 1] != ' ' ? at : blank;
    }
    return at;
}

/* A terminal breaks long lines anywhere; here they break at words, and what follows is indented. */
static void log_in_words(lam_log_level level, const char *line, void *user)
{
    static const char *const prefix[] = {"error: ", "warning: ", "", "debug: "};
    const int width = lam_term_width(stderr);
    int indent = (int)strlen(prefix[level]);
    (void)user;
    fputs(prefix[level], stderr);
    for (size_t n; (n = fitting(line, width > indent + 8 ? width - indent : 8)) < strlen(line);
         line += n + strspn(line + n, " ")) {
        indent = 2;
        fprintf(stderr, "%.*s\n%*s", (int)n, line, indent, "");
    }
    fprintf(stderr, "%s\n", line);
}

void lam_term_log(void)
{
    if (lam_term_is_tty(stderr))
        lam_log_set_sink(log_in_words, NULL);
}

static void log_apart(lam_log_level level, const char *line, void *user)
{
    lam_progress_clear(user);
    log_in_words(level, line, NULL);
}

void lam_progress_open(lam_progress *p, bool quiet)
{
    const double now = lam_clock();
    const bool tty = lam_term_is_tty(stderr);
    *p = (lam_progress){.tty = tty,
                        .quiet = quiet,
                        .started = now,
                        .last = now,
                        .interval = tty ? TTY_INTERVAL : LINE_INTERVAL};
    if (tty && !quiet)
        lam_log_set_sink(log_apart, p);
}

bool lam_progress_due(const lam_progress *p)
{
    return !p->quiet && lam_clock() - p->last >= p->interval;
}

void lam_progress_show(lam_progress *p, const char *format, ...)
{
    char text[512], line[4 * sizeof text];
    va_list ap;

    if (!lam_progress_due(p))
        return;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    lam_printable(line, sizeof line, text);
    if (p->tty) {
        fprintf(stderr, "\r%.*s\033[K", lam_term_width(stderr) - 1, line);
        p->drawn = true;
    } else {
        fprintf(stderr, "%s\n", line);
        p->interval = fmin(2 * p->interval, LINE_INTERVAL_MAX);
    }
    fflush(stderr);
    p->last = lam_clock();
}

void lam_progress_clear(lam_progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}

double lam_progress_seconds(const lam_progress *p)
{
    return lam_clock() - p->started;
}

void lam_progress_close(lam_progress *p)
{
    lam_progress_clear(p);
    if (p->tty && !p->quiet)
        lam_log_set_sink(log_in_words, NULL);
}
