/* reply.c -- see reply.h. */
#include "serve/reply.h"

#include "data/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

void lam_reply_free(lam_reply *r)
{
    lam_text_free(&r->body);
    *r = (lam_reply){0};
}

static const char *type_of(int status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 404:
        return "not_found_error";
    case 409:
        return "conflict_error";
    case 429:
        return "rate_limit_error";
    case 500:
        return "server_error";
    case 503:
        return "unavailable_error";
    default:
        return "invalid_request_error";
    }
}

void lam_error_json(lam_text *out, int status, const char *param, const char *message)
{
    lam_text_add(out, "{\"error\":{\"message\":");
    lam_text_json(out, message);
    lam_text_format(out, ",\"type\":\"%s\",\"param\":", type_of(status));
    if (param)
        lam_text_json(out, param);
    else
        lam_text_add(out, "null");
    lam_text_add(out, ",\"code\":null}}");
}

void lam_reply_error(lam_reply *r, int status, const char *param, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    lam_reply_free(r);
    r->status = status;
    r->retry_after = status == 429 || status == 503 ? 1 : 0;
    lam_error_json(&r->body, status, param, message);
}

void lam_reply_status(lam_reply *r, lam_status status, const char *param)
{
    const int wrong =
        status == LAM_ERR_ARG || status == LAM_ERR_FORMAT || status == LAM_ERR_UNSUPPORTED;
    lam_reply_error(r,
                    wrong                      ? 400
                    : status == LAM_ERR_MEMORY ? 503
                                               : 500,
                    param, "%s", lam_error());
}

void lam_token_json(lam_text *out, const char *bytes, size_t size)
{
    if (lam_utf8_valid(bytes, size)) {
        lam_text_json_bytes(out, bytes, size);
        return;
    }
    lam_text_add(out, "\"bytes:");
    for (size_t i = 0; i < size; i++)
        lam_text_format(out, "\\\\x%02x", (unsigned char)bytes[i]);
    lam_text_add(out, "\"");
}

lam_status lam_id_draw(char out[LAM_ID_ROOM])
{
    unsigned char bits[16];
    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return lam_fail(LAM_ERR_IO, "the system has no random numbers");
    for (size_t i = 0; i < sizeof bits; i++)
        snprintf(out + 2 * i, 3, "%02x", bits[i]);
    return LAM_OK;
}

int lam_id_check(const char *text, size_t size)
{
    return size == LAM_ID_ROOM - 1 && strspn(text, "0123456789abcdef") >= size;
}
