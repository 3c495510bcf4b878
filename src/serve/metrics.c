/* metrics.c -- the state and the counters of the server: /health, and /metrics for Prometheus. */
#include "serve/handlers.h"
#include "serve/server_int.h"

void lam_get_health(lam_request *x)
{
    lam_server *s = x->server;
    const char *state = atomic_load(&s->draining) ? "draining"
                        : !lam_server_is_ready(s) ? "loading"
                                                  : "ok";
    x->reply.status = state[0] == 'o' ? 200 : 503;
    x->reply.retry_after = x->reply.status == 503;
    lam_text_format(&x->reply.body, "{\"status\":\"%s\"}", state);
    lam_request_done(x);
}

static void head(lam_text *t, const char *name, const char *type, const char *help)
{
    lam_text_format(t, "# HELP lamemo_%s %s\n# TYPE lamemo_%s %s\n", name, help, name, type);
}

static void counter(lam_text *t, const char *name, const char *help, long long value)
{
    head(t, name, "counter", help);
    lam_text_format(t, "lamemo_%s %lld\n", name, value);
}

static void gauge(lam_text *t, const char *name, const char *help, double value)
{
    head(t, name, "gauge", help);
    lam_text_format(t, "lamemo_%s %.17g\n", name, value);
}

/* A label's value: quotes, backslashes and newlines are escaped. */
static void label(lam_text *t, const char *s)
{
    lam_text_add(t, "{model=\"");
    for (; *s; s++)
        if (*s == '\n')
            lam_text_add(t, "\\n");
        else
            lam_text_format(t, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
    lam_text_add(t, "\"}");
}

/* One value for each model. */
typedef struct row {
    const char *name, *type, *help;
    double (*value)(const lam_scheduler_load *load);
} row;

static double running(const lam_scheduler_load *l)
{
    return l->running;
}
static double waiting(const lam_scheduler_load *l)
{
    return l->waiting;
}
static double prompt_tokens(const lam_scheduler_load *l)
{
    return (double)l->read;
}
static double new_tokens(const lam_scheduler_load *l)
{
    return (double)l->drawn;
}
static double cached(const lam_scheduler_load *l)
{
    return (double)l->cached;
}
static double steps(const lam_scheduler_load *l)
{
    return (double)l->ticks;
}
static double stepped(const lam_scheduler_load *l)
{
    return (double)l->streams;
}
static double prefix_bytes(const lam_scheduler_load *l)
{
    return (double)l->prefix_bytes;
}

static const row rows[] = {
    {"jobs_running", "gauge", "Texts that are being read or written.", running},
    {"jobs_waiting", "gauge", "Texts that wait for a slot.", waiting},
    {"prompt_tokens_total", "counter", "Tokens of prompts that were computed.", prompt_tokens},
    {"generated_tokens_total", "counter", "Tokens that were drawn.", new_tokens},
    {"cached_tokens_total", "counter", "Tokens of prompts that the prefix cache had.", cached},
    {"batch_steps_total", "counter", "Decoding steps of the batch.", steps},
    {"batch_streams_total", "counter", "Streams that went on in those steps.", stepped},
    {"prefix_cache_bytes", "gauge", "Size of the prefix cache.", prefix_bytes},
};

void lam_get_metrics(lam_request *x)
{
    lam_server *s = x->server;
    lam_text *t = &x->reply.body;
    x->reply.status = 200;
    x->reply.type = "text/plain; version=0.0.4; charset=utf-8";
    counter(t, "http_requests_total", "Requests.", atomic_load(&s->counters.requests));
    counter(t, "http_refused_total", "Responses 4xx.", atomic_load(&s->counters.refused));
    counter(t, "http_failed_total", "Responses 5xx.", atomic_load(&s->counters.failed));
    counter(t, "http_disconnects_total", "Requests whose client was gone.",
            atomic_load(&s->counters.disconnects));
    counter(t, "http_timeouts_total", "Connections that were too slow.",
            atomic_load(&s->counters.timeouts));
    pthread_mutex_lock(&s->shelf.lock);
    const int n = s->shelf.n;
    const size_t bytes = s->shelf.bytes;
    pthread_mutex_unlock(&s->shelf.lock);
    gauge(t, "sessions", "Sessions and snapshots.", n);
    gauge(t, "session_bytes", "Their size.", (double)bytes);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && lam_server_is_ready(s); i++) {
        head(t, rows[i].name, rows[i].type, rows[i].help);
        for (int m = 0; m < s->o.n_models; m++) {
            const lam_scheduler_load load = lam_worker_look(&s->workers[m]);
            lam_text_format(t, "lamemo_%s", rows[i].name);
            label(t, s->o.models[m].name);
            lam_text_format(t, " %.17g\n", rows[i].value(&load));
        }
    }
    lam_request_done(x);
}
