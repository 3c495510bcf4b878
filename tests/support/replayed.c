/* replayed.c -- see replayed.h.  One capture is at work at a time. */
#include "support/replayed.h"

#include <stdlib.h>
#include <string.h>

extern const lam_ops lam_ops_cpu;

enum { ARGUMENT = 768, GRAPHS = 8, MOST_ITEMS = 64 };

typedef struct entry {
    void (*call)(lam_dev *dev, const void *argument);
    _Alignas(16) char argument[ARGUMENT];
    lam_put_item items[MOST_ITEMS]; /* of a lam_put_rows */
} entry;

typedef struct captured {
    uint64_t key;
    int made; /* else seen once */
    entry *list;
    size_t n, room;
} captured;

struct lam_graphs {
    captured list[GRAPHS];
    int next;
};

typedef struct zeroes {
    void *at;
    size_t bytes;
} zeroes;

static enum { PLAIN, CAPTURE, REPLAY } mode;
static captured *now;
static long times;

static entry *add(void (*call)(lam_dev *, const void *), const void *argument, size_t bytes)
{
    if (now->n == now->room) {
        now->room = 2 * now->room + 64;
        now->list = realloc(now->list, now->room * sizeof *now->list);
        if (!now->list || bytes > ARGUMENT)
            abort();
    }
    entry *e = &now->list[now->n++];
    e->call = call;
    memcpy(e->argument, argument, bytes);
    return e;
}

#define DEFINE(name, type)                                                                         \
    static void call_##name(lam_dev *dev, const void *argument)                                    \
    {                                                                                              \
        lam_ops_cpu.name(dev, (const type *)argument);                                             \
    }                                                                                              \
    static void replayed_##name(lam_dev *dev, const type *a)                                       \
    {                                                                                              \
        if (mode == PLAIN)                                                                         \
            call_##name(dev, a);                                                                   \
        else if (mode == CAPTURE)                                                                  \
            add(call_##name, a, sizeof *a);                                                        \
    }
LAM_KERNEL_OPS(DEFINE)
DEFINE(norm_gemm, lam_norm_gemm)

static void call_put_rows(lam_dev *dev, const void *argument)
{
    lam_ops_cpu.put_rows(dev, argument);
}

/* The list is the caller's; the copies may move as the list grows, so their address is set last. */
static void replayed_put_rows(lam_dev *dev, const lam_put_rows *a)
{
    if (mode == PLAIN)
        call_put_rows(dev, a);
    if (mode != CAPTURE)
        return;
    entry *e = add(call_put_rows, a, sizeof *a);
    if (a->n > MOST_ITEMS)
        abort();
    memcpy(e->items, a->items, (size_t)a->n * sizeof *a->items);
}

static void call_zero(lam_dev *dev, const void *argument)
{
    const zeroes *z = argument;
    lam_ops_cpu.zero(dev, z->at, z->bytes);
}

static void replayed_zero(lam_dev *dev, void *dst, size_t bytes)
{
    const zeroes z = {dst, bytes};
    if (mode == PLAIN)
        call_zero(dev, &z);
    else if (mode == CAPTURE)
        add(call_zero, &z, sizeof z);
}

static void execute(lam_dev *dev, const captured *r)
{
    for (size_t i = 0; i < r->n; i++) {
        entry *e = &r->list[i];
        if (e->call == call_put_rows)
            ((lam_put_rows *)e->argument)->items = e->items;
        e->call(dev, e->argument);
    }
}

static captured *find(lam_graphs *graphs, uint64_t key)
{
    for (int i = 0; i < GRAPHS; i++)
        if (graphs->list[i].key == key)
            return &graphs->list[i];
    return NULL;
}

static void repeat(lam_dev *dev, lam_graphs **graphs, uint64_t key, void (*work)(void *), void *arg)
{
    if (key != 0 && !*graphs)
        *graphs = calloc(1, sizeof **graphs);
    captured *r = key != 0 ? find(*graphs, key) : NULL;
    if (!r) {
        work(arg);
        if (key == 0)
            return;
        r = &(*graphs)->list[(*graphs)->next];
        (*graphs)->next = ((*graphs)->next + 1) % GRAPHS;
        free(r->list);
        *r = (captured){.key = key};
        return;
    }
    now = r;
    mode = r->made ? REPLAY : CAPTURE;
    work(arg);
    times += r->made;
    mode = PLAIN;
    r->made = 1;
    execute(dev, r);
}

static int replay(lam_dev *dev, lam_graphs *graphs, uint64_t key)
{
    const captured *r = graphs && key != 0 ? find(graphs, key) : NULL;
    if (!r || !r->made)
        return 0;
    times++;
    execute(dev, r);
    return 1;
}

static void free_graphs(lam_dev *dev, lam_graphs *graphs)
{
    (void)dev;
    for (int i = 0; graphs && i < GRAPHS; i++)
        free(graphs->list[i].list);
    free(graphs);
}

long replayed_times(void)
{
    return times;
}

static lam_status replayed_open(lam_dev **out, const lam_dev_options *options)
{
    const lam_status status = lam_ops_cpu.open(out, options);
    if (status == LAM_OK)
        (*out)->ops = &lam_ops_replayed;
    return status;
}

/* The rest is cpu's. */
static void replayed_close(lam_dev *dev)
{
    lam_ops_cpu.close(dev);
}

static lam_status replayed_reserve(lam_dev *dev, const lam_work *largest)
{
    return lam_ops_cpu.reserve(dev, largest);
}

static size_t replayed_reserve_bytes(const lam_dev *dev, const lam_work *largest)
{
    return lam_ops_cpu.reserve_bytes(dev, largest);
}

static lam_status replayed_alloc(lam_dev *dev, void **out, size_t bytes)
{
    return lam_ops_cpu.alloc(dev, out, bytes);
}

static void replayed_release(lam_dev *dev, void *memory)
{
    lam_ops_cpu.release(dev, memory);
}

static void replayed_upload(lam_dev *dev, void *dst, const void *host, size_t bytes)
{
    lam_ops_cpu.upload(dev, dst, host, bytes);
}

static lam_status replayed_download(lam_dev *dev, void *host, const void *src, size_t bytes)
{
    if (mode != PLAIN)
        abort(); /* work that repeats does not wait */
    return lam_ops_cpu.download(dev, host, src, bytes);
}

static lam_status replayed_sync(lam_dev *dev)
{
    return lam_ops_cpu.sync(dev);
}

static size_t replayed_peak(lam_dev *dev)
{
    return lam_ops_cpu.peak(dev);
}

#define ENTRY(name, type) .name = replayed_##name,
const lam_ops lam_ops_replayed = {
    LAM_OPS(ENTRY) /* every operation; then the device */
        .name = "replayed",
    .summary = "cpu, capturing and replaying work, for tests",
    .open = replayed_open,
    .close = replayed_close,
    .reserve = replayed_reserve,
    .reserve_bytes = replayed_reserve_bytes,
    .alloc = replayed_alloc,
    .release = replayed_release,
    .upload = replayed_upload,
    .download = replayed_download,
    .zero = replayed_zero,
    .sync = replayed_sync,
    .peak = replayed_peak,
    .left = lam_host_left,
    .repeat = repeat,
    .replay = replay,
    .free_graphs = free_graphs,
};
