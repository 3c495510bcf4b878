/* completion_request_fuzz.c -- whatever the body of a request is, reading it fails with a message or gives a request
 * whose every number is within its limits; nothing leaks, and memory is bounded by the body's size. */
#include "serve/completion_request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lam_completion_request r;
    const char *param;
    if (lam_completion_read(&r, &param, (const char *)data, size) != LAM_OK) {
        require(lam_error()[0] != '\0' && r.prompts == NULL && r.n_stops == 0);
        return 0;
    }
    require(r.n_prompts >= 1 && r.n >= 1 && r.n_prompts * r.n <= LAM_MOST_CHOICES);
    require(r.max_tokens >= 0 && r.max_tokens <= LAM_MOST_NEW);
    require(r.logprobs >= -1 && r.logprobs <= LAM_MOST_TOP);
    require(isfinite(r.temperature) && r.temperature >= 0.0 && r.top_p > 0.0 && r.top_p <= 1.0);
    require(r.top_k >= 0 && r.n_stops >= 0 && r.n_stops <= LAM_MOST_STOPS);
    require(strlen(r.model) < sizeof r.model && strlen(r.session) < sizeof r.session);
    for (int i = 0; i < r.n_stops; i++)
        require(r.stops[i][0] != '\0');
    for (int i = 0; i < r.n_prompts; i++) {
        const lam_prompt *p = &r.prompts[i];
        require(p->size <= size && p->n <= size && !(p->text && p->tokens));
        for (size_t k = 0; k < p->n; k++)
            require(p->tokens[k] >= 0);
    }
    lam_completion_request_free(&r);
    return 0;
}
