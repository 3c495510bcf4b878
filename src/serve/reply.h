/* reply.h -- what a request is answered with: a status, a type and a text; errors in OpenAI's form. */
#ifndef LAM_SERVE_REPLY_H
#define LAM_SERVE_REPLY_H

#include "draw/text.h"

#include <stdint.h>

typedef struct lam_reply {
    int status;        /* of HTTP; 0: not yet */
    const char *type;  /* of its content; NULL: JSON */
    const char *allow; /* the method that the path has instead, or NULL */
    int retry_after;   /* seconds; 0: not told */
    int close;         /* the connection ends with it */
    lam_text body;
} lam_reply;

void lam_reply_free(lam_reply *r);

/* {"error": {...}}.  `param` may be NULL. */
void lam_reply_error(lam_reply *r, int status, const char *param, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The object alone, as events have it. */
void lam_error_json(lam_text *out, int status, const char *param, const char *message);

/* The same for a status of ours and its message: wrong arguments are 400, what is not supported 400, the rest 500. */
void lam_reply_status(lam_reply *r, lam_status status, const char *param);

/* A JSON string of a token's bytes: `bytes:\xNN...` where they are no whole characters. */
void lam_token_json(lam_text *out, const char *bytes, size_t size);

/* 128 random bits as 32 digits. */
enum { LAM_ID_ROOM = 33 };
lam_status lam_id_draw(char out[LAM_ID_ROOM]);
/* Is it one? */
int lam_id_check(const char *text, size_t size);

#endif
