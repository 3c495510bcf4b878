/* taped.c -- see taped.h.  One tape is at work at a time. */
#include "support/taped.h"

#include <stdlib.h>
#include <string.h>

extern const lam_ops lam_ops_cpu;

enum { ARGUMENT = 768, RECORDINGS = 8, MOST_ITEMS = 64 };

typedef struct entry {
    void (*call)(lam_dev *dev, const void *argument);
    _Alignas(16) char argument[ARGUMENT];
    lam_place_item items[MOST_ITEMS]; /* of a lam_place */
} entry;

typedef struct recording {
    uint64_t key;
    int made; /* else seen once */
    entry *list;
    size_t n, room;
} recording;

struct lam_tape {
    recording list[RECORDINGS];
    int next;
};

typedef struct zeroes {
    void *at;
    size_t bytes;
} zeroes;

static enum { PLAIN, RECORD, PLAY } mode;
static recording *now;
static long played;

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
    static void taped_##name(lam_dev *dev, const type *a)                                          \
    {                                                                                              \
        if (mode == PLAIN)                                                                         \
            call_##name(dev, a);                                                                   \
        else if (mode == RECORD)                                                                   \
            add(call_##name, a, sizeof *a);                                                        \
    }
LAM_KERNEL_OPS(DEFINE)
DEFINE(attn_next, lam_attn_next)

static void call_place(lam_dev *dev, const void *argument)
{
    lam_ops_cpu.place(dev, argument);
}

/* The list is the caller's; the copies may move as the recording grows, so their address is set last. */
static void taped_place(lam_dev *dev, const lam_place *a)
{
    if (mode == PLAIN)
        call_place(dev, a);
    if (mode != RECORD)
        return;
    entry *e = add(call_place, a, sizeof *a);
    if (a->n > MOST_ITEMS)
        abort();
    memcpy(e->items, a->items, (size_t)a->n * sizeof *a->items);
}

static void call_zero(lam_dev *dev, const void *argument)
{
    const zeroes *z = argument;
    lam_ops_cpu.zero(dev, z->at, z->bytes);
}

static void taped_zero(lam_dev *dev, void *dst, size_t bytes)
{
    const zeroes z = {dst, bytes};
    if (mode == PLAIN)
        call_zero(dev, &z);
    else if (mode == RECORD)
        add(call_zero, &z, sizeof z);
}

static void execute(lam_dev *dev, const recording *r)
{
    for (size_t i = 0; i < r->n; i++) {
        entry *e = &r->list[i];
        if (e->call == call_place)
            ((lam_place *)e->argument)->items = e->items;
        e->call(dev, e->argument);
    }
}

static recording *find(lam_tape *tape, uint64_t key)
{
    for (int i = 0; i < RECORDINGS; i++)
        if (tape->list[i].key == key)
            return &tape->list[i];
    return NULL;
}

static void repeat(lam_dev *dev, lam_tape **tape, uint64_t key, void (*work)(void *), void *arg)
{
    if (key != 0 && !*tape)
        *tape = calloc(1, sizeof **tape);
    recording *r = key != 0 ? find(*tape, key) : NULL;
    if (!r) {
        work(arg);
        if (key == 0)
            return;
        r = &(*tape)->list[(*tape)->next];
        (*tape)->next = ((*tape)->next + 1) % RECORDINGS;
        free(r->list);
        *r = (recording){.key = key};
        return;
    }
    now = r;
    mode = r->made ? PLAY : RECORD;
    work(arg);
    played += r->made;
    mode = PLAIN;
    r->made = 1;
    execute(dev, r);
}

static void forget(lam_dev *dev, lam_tape *tape)
{
    (void)dev;
    for (int i = 0; tape && i < RECORDINGS; i++)
        free(tape->list[i].list);
    free(tape);
}

long taped_played(void)
{
    return played;
}

static lam_status taped_open(lam_dev **out, const lam_dev_options *options)
{
    const lam_status status = lam_ops_cpu.open(out, options);
    if (status == LAM_OK)
        (*out)->ops = &lam_ops_taped;
    return status;
}

/* The rest is cpu's. */
static void taped_close(lam_dev *dev)
{
    lam_ops_cpu.close(dev);
}

static lam_status taped_reserve(lam_dev *dev, const lam_work *largest)
{
    return lam_ops_cpu.reserve(dev, largest);
}

static size_t taped_reserve_bytes(const lam_dev *dev, const lam_work *largest)
{
    return lam_ops_cpu.reserve_bytes(dev, largest);
}

static lam_status taped_alloc(lam_dev *dev, void **out, size_t bytes)
{
    return lam_ops_cpu.alloc(dev, out, bytes);
}

static void taped_release(lam_dev *dev, void *memory)
{
    lam_ops_cpu.release(dev, memory);
}

static void taped_upload(lam_dev *dev, void *dst, const void *host, size_t bytes)
{
    lam_ops_cpu.upload(dev, dst, host, bytes);
}

static lam_status taped_download(lam_dev *dev, void *host, const void *src, size_t bytes)
{
    if (mode != PLAIN)
        abort(); /* work that repeats does not wait */
    return lam_ops_cpu.download(dev, host, src, bytes);
}

static lam_status taped_sync(lam_dev *dev)
{
    return lam_ops_cpu.sync(dev);
}

static size_t taped_peak(lam_dev *dev)
{
    return lam_ops_cpu.peak(dev);
}

#define ENTRY(name, type) .name = taped_##name,
const lam_ops lam_ops_taped = {
    LAM_OPS(ENTRY) /* every operation; then the device */
        .name = "taped",
    .summary = "cpu, playing recordings, for tests",
    .open = taped_open,
    .close = taped_close,
    .reserve = taped_reserve,
    .reserve_bytes = taped_reserve_bytes,
    .alloc = taped_alloc,
    .release = taped_release,
    .upload = taped_upload,
    .download = taped_download,
    .zero = taped_zero,
    .sync = taped_sync,
    .peak = taped_peak,
    .left = lam_host_left,
    .repeat = repeat,
    .forget = forget,
};
