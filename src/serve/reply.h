/* reply.h -- the reply to a request: status, content type and text; errors in OpenAI's format. */
#ifndef LAM_SERVE_REPLY_H
#define LAM_SERVE_REPLY_H

#include "draw/text.h"

#include <stdint.h>

/* Of all methods of a path. */
enum { LAM_ALLOW_ROOM = 32 };

typedef struct lam_reply {
    int status;                 /* of HTTP; 0: not yet */
    const char *type;           /* of its content; NULL: JSON */
    char allow[LAM_ALLOW_ROOM]; /* the methods that the path has; "": no header */
    int retry_after;            /* seconds; 0: no header */
    int close;                  /* close the connection afterwards */
    lam_text body;
} lam_reply;

void lam_reply_free(lam_reply *r);

/* {"error": {...}}.  `param` may be NULL. */
void lam_reply_error(lam_reply *r, int status, const char *param, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The error object alone, as events contain it. */
void lam_error_json(lam_text *out, int status, const char *param, const char *message);

/* The same for a lam_status and its message: wrong arguments and unsupported requests are 400, everything else 500. */
void lam_reply_status(lam_reply *r, lam_status status, const char *param);

/* A JSON string of a token's bytes: `bytes:\xNN...` if they are not whole characters. */
void lam_token_json(lam_text *out, const char *bytes, size_t size);

/* 128 random bits as 32 digits. */
enum { LAM_ID_ROOM = 33 };
lam_status lam_id_draw(char out[LAM_ID_ROOM]);
/* Is this such an id? */
int lam_id_check(const char *text, size_t size);

#endif
