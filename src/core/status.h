/* status.h -- how everything reports failure.
 *
 * Anything that can fail returns a lam_status; results leave through out-parameters, which are
 * NULL or 0 after a failure.  A failure always carries one line of text that names the thing and
 * the limit; it is kept per thread and printed by src/cli alone.  Programmer mistakes are asserts. */
#ifndef LAM_CORE_STATUS_H
#define LAM_CORE_STATUS_H

typedef enum lam_status {
    LAM_OK = 0,
    LAM_ERR_ARG,         /* an option or argument is wrong */
    LAM_ERR_IO,          /* the operating system refused: open, read, write, no space */
    LAM_ERR_FORMAT,      /* a file does not hold what it should */
    LAM_ERR_MEMORY,      /* no memory */
    LAM_ERR_NUMERIC,     /* a number is not finite, or a comparison failed */
    LAM_ERR_UNSUPPORTED, /* valid, but not in this build or not for this model */
    LAM_ERR_INTERRUPTED, /* a signal asked us to stop */
    LAM_ERR_DEVICE       /* the accelerator failed */
} lam_status;

/* Records the message for this thread and returns `code`, so that callers write
 *     return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s ends past end of file", path, name);
 * The text is cut at 1023 bytes; what a terminal would obey is written out (printable.h).  `code` must not be
 * LAM_OK. */
lam_status lam_fail(lam_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The message of this thread's last failure; "" if there was none.  Valid until the next one. */
const char *lam_error(void);

/* A word for the code: "argument", "io", ...; for --json output. */
const char *lam_status_name(lam_status code);

#define LAM_TRY(expr)                                                                              \
    do {                                                                                           \
        const lam_status lam_try_st_ = (expr);                                                     \
        if (lam_try_st_ != LAM_OK)                                                                 \
            return lam_try_st_;                                                                    \
    } while (0)

#endif
