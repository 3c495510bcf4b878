/* feed.c -- POST /v1/sessions/{id}/feed: a completion without new tokens, whose session keeps the tokens it read. */
#include "serve/completion.h"

#include "io/json.h"
#include "serve/handlers.h"

#include <stdlib.h>
#include <string.h>

static lam_status read_prompt(lam_prompt *p, const json_t *o, const char **param)
{
    const json_t *text = json_object_get(o, "text"), *tokens = json_object_get(o, "tokens");
    if (json_is_string(text) == json_is_array(tokens)) {
        *param = "text";
        return lam_fail(LAM_ERR_ARG, "text: give either text, a string, or tokens, a list");
    }
    *param = json_is_string(text) ? "text" : "tokens";
    if (!json_is_string(text))
        return lam_member_tokens(&p->tokens, &p->n, tokens);
    p->size = json_string_length(text);
    p->text = malloc(p->size + 1);
    if (!p->text)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %zu bytes", p->size);
    memcpy(p->text, json_string_value(text), p->size + 1);
    return LAM_OK;
}

static lam_status read_feed(lam_completion_request *r, const char **param, const lam_request *x)
{
    json_t *o;
    *param = NULL;
    *r = (lam_completion_request){.n = 1,
                                  .n_prompts = 1,
                                  .temperature = 1.0,
                                  .top_p = 1.0,
                                  .repetition_penalty = 1.0,
                                  .logprobs = -1,
                                  .echo = 1,
                                  .keep = 1};
    memcpy(r->session, x->id, sizeof r->session);
    LAM_TRY(lam_body_parse(&o, x->body, x->size));
    r->prompts = calloc(1, sizeof *r->prompts);
    lam_status status = r->prompts ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "no memory");
    if (status == LAM_OK)
        status = lam_member_int(&r->logprobs, o, "logprobs", 0, LAM_MOST_TOP, param);
    if (status == LAM_OK)
        status = read_prompt(r->prompts, o, param);
    json_decref(o);
    return status;
}

void lam_post_feed(lam_request *x)
{
    lam_completion_request r;
    const char *param;
    const lam_status status = read_feed(&r, &param, x);
    if (status != LAM_OK) {
        if (!r.prompts)
            r.n_prompts = 0;
        lam_completion_request_free(&r);
        lam_reply_status(&x->reply, status, param);
        lam_request_done(x);
        return;
    }
    lam_completion_begin(x, &r, LAM_AS_FEED);
}
