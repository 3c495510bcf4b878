/* status.c -- the per-thread text of the last failure, and names for the codes. */
#include "core/status.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[1024];

lam_status lam_fail(lam_status code, const char *format, ...)
{
    assert(code != LAM_OK);
    /* Through a second buffer: a caller may quote lam_error() in its own, longer message. */
    char text[8 * sizeof message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t n = strlen(text);
    const int half = (int)sizeof message / 2 - 2;
    if (n < sizeof message)
        memcpy(message, text, n + 1);
    else /* a very long name: what is wrong with it stands at the end */
        snprintf(message, sizeof message, "%.*s...%s", half, text, text + n - (size_t)half);
    return code;
}

const char *lam_error(void)
{
    return message;
}

const char *lam_status_name(lam_status code)
{
    switch (code) {
    case LAM_OK:
        return "ok";
    case LAM_ERR_ARG:
        return "argument";
    case LAM_ERR_IO:
        return "io";
    case LAM_ERR_FORMAT:
        return "format";
    case LAM_ERR_MEMORY:
        return "memory";
    case LAM_ERR_NUMERIC:
        return "numeric";
    case LAM_ERR_UNSUPPORTED:
        return "unsupported";
    case LAM_ERR_INTERRUPTED:
        return "interrupted";
    case LAM_ERR_DEVICE:
        return "device";
    }
    return "unknown";
}
