/* status.c -- the per-thread text of the last failure, and names for the codes. */
#include "core/status.h"

#include "core/printable.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[1024];

/* A very long name: what is wrong with it stands at the end. */
static void keep_ends(const char *text, size_t n)
{
    const size_t half = sizeof message / 2 - 2;
    const char *tail = text + n - half;
    while ((*tail & 0xc0) == 0x80) /* inside a character */
        tail++;
    lam_printable(message, half + 1, text);
    strcat(strcat(message, "..."), tail);
}

lam_status lam_fail(lam_status code, const char *format, ...)
{
    assert(code != LAM_OK);
    /* Through other buffers: a caller may quote lam_error() in its own, longer message. */
    char text[8 * sizeof message], clean[4 * sizeof text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t n = strlen(lam_printable(clean, sizeof clean, text));
    if (n < sizeof message)
        memcpy(message, clean, n + 1);
    else
        keep_ends(clean, n);
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
