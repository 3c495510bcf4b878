/* cmd_serve.c -- `lamemo serve`: models behind HTTP (docs/serve.md). */
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/input.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "core/log.h"

#include <string.h>
#include <time.h>

#ifdef LAM_SERVE
#include "serve/server.h"
#endif

typedef struct serve_options {
    lam_string_list models, hosts;
    const char *host, *key_file, *state;
    int port, slots, queue, rows, segment, mem_len, connections, sessions;
    int64_t prefix_bytes, session_bytes;
    double idle, drain, header_time, body_time;
    bool fixed;
    lam_device_options device;
    lam_storage_options storage;
} serve_options;

static const lam_option options[] = {
    {"model", 'm', "DIR", LAM_OPT_STRINGS, offsetof(serve_options, models),
     .help = "Model or run folder, or " LAM_BOXED
             ", the bundled model; may be repeated. Clients call it by the last part of the path, "
             "or by NAME in NAME=DIR."},
    {"host", 0, "ADDRESS", LAM_OPT_STRING, offsetof(serve_options, host), "127.0.0.1",
     .help =
         "Address to listen on; an address that other machines can reach requires --api-key-file."},
    {"port", 0, "N", LAM_OPT_INT, offsetof(serve_options, port), "8080", .max = 65535,
     .help = "Port to listen on; 0: any free port, which is printed."},
    {"api-key-file", 0, "FILE", LAM_OPT_PATH, offsetof(serve_options, key_file),
     .help = "Answer only requests with a key of FILE, one per line, in the header Authorization: "
             "Bearer KEY."},
    {"allow-host", 0, "NAME", LAM_OPT_STRINGS, offsetof(serve_options, hosts),
     .help = "Also answer requests whose Host header is NAME; may be repeated."},
    {0, 0, NULL, LAM_OPT_GROUP, .help = "Scheduling"},
    {"slots", 0, "N", LAM_OPT_INT, offsetof(serve_options, slots), "16", .min = 1, .max = 4096,
     .help = "Number of texts that are processed in one batch."},
    {"queue", 0, "N", LAM_OPT_INT, offsetof(serve_options, queue), "256", .min = 1, .max = 1 << 20,
     .help = "Number of texts that may wait for a slot; more are refused with status 429."},
    {"chunk", 0, "N", LAM_OPT_INT, offsetof(serve_options, rows), .min = 1, .max = 1 << 24,
     .shown = "one segment with its memory",
     .help = "Rows of prompts and memory refreshes computed between two decoding steps."},
    {"fixed-batch", 0, NULL, LAM_OPT_FLAG, offsetof(serve_options, fixed),
     .help = "Always compute all slots, so that results do not depend on the load, to the last "
             "bit; slower while few slots are used."},
    {"tgt-len", 0, "N", LAM_OPT_INT, offsetof(serve_options, segment), .min = 1, .max = LAM_MAX_LEN,
     .shown = "the model's", .help = "Segment length, in tokens."},
    {"mem-len", 0, "M", LAM_OPT_INT, offsetof(serve_options, mem_len), .min = 1, .max = LAM_MAX_LEN,
     .shown = "the model's", .help = "Memory length, in tokens."},
    {"prefix-cache", 0, "SIZE", LAM_OPT_SIZE, offsetof(serve_options, prefix_bytes), "256MiB",
     .help = "Memory for the cache of prompt prefixes."},
    {0, 0, NULL, LAM_OPT_GROUP, .help = "Sessions and limits"},
    {"sessions", 0, "N", LAM_OPT_INT, offsetof(serve_options, sessions), "256", .min = 1,
     .max = 1 << 20, .help = "Maximum number of sessions and snapshots."},
    {"session-memory", 0, "SIZE", LAM_OPT_SIZE, offsetof(serve_options, session_bytes), "1GiB",
     .help = "Maximum memory for sessions and snapshots."},
    {"session-idle", 0, "SECONDS", LAM_OPT_DOUBLE, offsetof(serve_options, idle), "3600",
     .max = 1e9,
     .help = "Drop sessions unused for SECONDS when there is no room for another; 0: never."},
    {"state", 0, "DIR", LAM_OPT_PATH, offsetof(serve_options, state),
     .help = "Save sessions in DIR when the server stops, and load them when it starts."},
    {"connections", 0, "N", LAM_OPT_INT, offsetof(serve_options, connections), "4096", .min = 1,
     .max = 1 << 20, .help = "Maximum number of connections."},
    {"header-time", 0, "SECONDS", LAM_OPT_DOUBLE, offsetof(serve_options, header_time), "10",
     .min = 0.1, .max = 1e6, .help = "Close connections whose headers take longer than SECONDS."},
    {"body-time", 0, "SECONDS", LAM_OPT_DOUBLE, offsetof(serve_options, body_time), "60",
     .min = 0.1, .max = 1e6, .help = "Close connections whose body takes longer than SECONDS."},
    {"drain", 0, "SECONDS", LAM_OPT_DOUBLE, offsetof(serve_options, drain), "30", .max = 1e6,
     .help = "After SIGTERM or Ctrl-C, let running requests finish for at most SECONDS."},
    LAM_STORAGE_OPTIONS(serve_options, storage, "the folder's"),
    LAM_DEVICE_OPTIONS(serve_options, device, "auto"),
    {0},
};

#ifdef LAM_SERVE

/* NAME=DIR, or a folder whose last part is the name. */
static lam_status name_model(lam_serve_model *out, char *copy, size_t room, const char *text)
{
    const char *equals = strchr(text, '=');
    size_t size = strlen(text);
    out->folder = equals ? equals + 1 : text;
    if (equals) {
        size = (size_t)(equals - text);
    } else {
        while (size > 1 && text[size - 1] == '/')
            size--;
        const char *start = text + size;
        while (start > text && start[-1] != '/')
            start--;
        size -= (size_t)(start - text);
        text = start;
    }
    if (size == 0 || size >= room)
        return lam_fail(LAM_ERR_ARG, "--model %s: its name must have 1 to %zu bytes", text,
                        room - 1);
    memcpy(copy, text, size);
    copy[size] = '\0';
    out->name = copy;
    return LAM_OK;
}

static lam_status open_device(lam_dev **out, void *user)
{
    return lam_device_open(out, user);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
}

/* Until the models are there, then until a signal comes. */
static lam_status watch(lam_server *server, const serve_options *o)
{
    int ready = 0;
    while (!ready && lam_stop_signal() == 0)
        LAM_TRY(lam_server_wait(server, 0.1, &ready));
    if (lam_stop_signal() != 0)
        return LAM_OK;
    lam_log(LAM_LOG_INFO, "ready: http://%s:%d/", strchr(o->host, ':') ? "[::1]" : o->host,
            lam_server_port(server));
    while (lam_stop_signal() == 0)
        nap();
    return LAM_OK;
}

static lam_status run(const lam_args *args)
{
    const serve_options *o = args->options;
    static char names[LAM_LIST_MAX][256];
    static lam_serve_model models[LAM_LIST_MAX];
    LAM_TRY(lam_model_required(args, o->models.n > 0 ? o->models.v[0] : NULL));
    for (int i = 0; i < o->models.n; i++) {
        LAM_TRY(name_model(&models[i], names[i], sizeof names[i], o->models.v[i]));
        for (int k = 0; k < i; k++)
            if (strcmp(names[i], names[k]) == 0)
                return lam_fail(LAM_ERR_ARG, "two models are called %s: write NAME=DIR", names[i]);
    }
    const lam_serve_options wanted = {.models = models,
                                      .n_models = o->models.n,
                                      .open_device = open_device,
                                      .user = (void *)&o->device,
                                      .storage = lam_storage_of(&o->storage),
                                      .scheduler = {.lanes = o->slots,
                                                    .segment = o->segment,
                                                    .mem_len = o->mem_len,
                                                    .rows = o->rows,
                                                    .queue = o->queue,
                                                    .fixed = o->fixed,
                                                    .prefixes = (size_t)o->prefix_bytes},
                                      .address = o->host,
                                      .port = o->port,
                                      .key_file = o->key_file,
                                      .hosts = o->hosts.v,
                                      .n_hosts = o->hosts.n,
                                      .state = o->state,
                                      .connections = o->connections,
                                      .header_seconds = o->header_time,
                                      .body_seconds = o->body_time,
                                      .sessions = o->sessions,
                                      .session_bytes = (size_t)o->session_bytes,
                                      .idle_seconds = o->idle};
    lam_server *server;
    LAM_TRY(lam_server_start(&server, &wanted));
    printf("listening on port %d\n", lam_server_port(server));
    fflush(stdout);
    lam_stop_answer("finishing what runs; Ctrl-C once more ends it at once\n");
    const lam_status status = watch(server, o);
    lam_server_stop(server, status == LAM_OK ? o->drain : 0.0);
    return status;
}

#else

static lam_status run(const lam_args *args)
{
    (void)args;
    return lam_fail(LAM_ERR_UNSUPPORTED,
                    "serve is not in this build: install libmicrohttpd-dev and build again");
}

#endif

const lam_command lam_command_serve = {
    .name = "serve",
    .summary = "serve models over HTTP",
    .description =
        "Serves OpenAI's completions API, so that existing clients work unchanged, and sessions, "
        "which keep the memory of a text: it can be fed, watched, forked, saved and transferred. "
        "The page at / generates text and shows the memory at work. Running requests share one "
        "batch. SIGTERM and Ctrl-C let running requests finish.",
    .options = options,
    .options_size = sizeof(serve_options),
    .examples = "lamemo serve --model wiki11m\n"
                "# two models, and sessions that outlive the server\n"
                "lamemo serve -m a=runs/a -m b=runs/b --state sessions --port 9000\n"
                "# for other machines\n"
                "lamemo serve -m runs/a --host 0.0.0.0 --api-key-file keys.txt",
    .run = run,
};
