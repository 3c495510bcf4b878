/* log.h -- log messages with levels, for people watching a run.
 *
 * Messages go to stderr, one line each, with terminal control characters escaped (printable.h). Results go
 * to stdout and never through here. The program sets the level once (default LAM_LOG_INFO); users of the
 * library may install their own sink. */
#ifndef LAM_CORE_LOG_H
#define LAM_CORE_LOG_H

typedef enum lam_log_level {
    LAM_LOG_ERROR,
    LAM_LOG_WARN,
    LAM_LOG_INFO,
    LAM_LOG_DEBUG
} lam_log_level;

typedef void lam_log_sink(lam_log_level level, const char *line, void *user);

void lam_log(lam_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lam_log_set_level(lam_log_level level);
/* NULL restores the default sink (stderr).  `user` is kept. */
void lam_log_set_sink(lam_log_sink *sink, void *user);

#endif
