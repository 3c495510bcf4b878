/* log.c -- log lines with levels, to stderr or to a sink.
 *
 * Level and sink are set at program start, before threads exist, and are not locked. A line is formatted
 * completely and handed over in one call, so lines of two threads do not mix. */
#include "core/log.h"

#include "core/printable.h"

#include <stdarg.h>
#include <stdio.h>

static void to_stderr(lam_log_level level, const char *line, void *user)
{
    static const char *const prefix[] = {"error: ", "warning: ", "", "debug: "};
    (void)user;
    fprintf(stderr, "%s%s\n", prefix[level], line);
}

static struct {
    lam_log_level level;
    lam_log_sink *sink;
    void *user;
} logger = {LAM_LOG_INFO, to_stderr, NULL};

void lam_log(lam_log_level level, const char *format, ...)
{
    if (level > logger.level)
        return;
    char line[2048], clean[4 * sizeof line];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    logger.sink(level, lam_printable(clean, sizeof clean, line), logger.user);
}

void lam_log_set_level(lam_log_level level)
{
    logger.level = level;
}

void lam_log_set_sink(lam_log_sink *sink, void *user)
{
    logger.sink = sink ? sink : to_stderr;
    logger.user = user;
}
