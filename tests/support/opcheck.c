/* opcheck.c -- running a case on ref, on the naive loop and on the device, and judging it. */
#include "support/naive.h"
#include "support/opcase.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const lam_ops lam_ops_ref;

/* Naive runs, at most, and at least where they are moved by units of bf16: each row of a softmax has
 * errors of its own size, so that the largest is not found by looking once; elements that make one
 * run enough elsewhere. */
enum { MAX_SAMPLES = 48, ROUNDED_SAMPLES = 6, ENOUGH = 256 };

typedef struct error {
    double rms, max;
    size_t at; /* where the largest is */
} error;

static void *make(size_t bytes)
{
    void *p = calloc(bytes + 1, 1);
    if (!p)
        abort();
    return p;
}

static lam_dtype type_of(const lam_dev *dev, lam_class type)
{
    switch (type) {
    case LAM_INT:
        return LAM_I32;
    case LAM_HALF:
        return LAM_BF16;
    case LAM_BYTE:
        return LAM_I8;
    default:
        return type == LAM_ACT ? dev->act : dev->wide;
    }
}

/* Runs the case on `dev`.  before[i] are the values of buffer i; after[i] receives what the device
 * left, as it left it.  Returns 0 and reports if the device fails. */
static int execute(lam_case *c, lam_dev *dev, double *const *before, void *const *after)
{
    const lam_ops *ops = dev->ops;
    void *memory[LAM_CASE_BUFFERS] = {0};
    int ok = ops->reserve(dev, &c->work) == LAM_OK;

    for (int i = 0; ok && i < c->n_buffers; i++) {
        const lam_case_buffer *b = &c->buffer[i];
        const size_t bytes = b->count * lam_class_size(dev, b->type);
        void *host = make(bytes);
        lam_convert(host, type_of(dev, b->type), before[i], LAM_F64, b->count);
        ok = ops->alloc(dev, &memory[i], bytes) == LAM_OK;
        if (ok)
            ops->upload(dev, memory[i], host, bytes);
        ok = ok && ops->sync(dev) == LAM_OK; /* before the host copy goes */
        free(host);
    }
    for (int i = 0; ok && i < c->n_slots; i++) {
        const lam_case_slot *s = &c->slot[i];
        void *p = lam_at(dev, c->buffer[s->buffer].type, memory[s->buffer], s->offset);
        memcpy(s->pointer, &p, sizeof p);
    }
    if (ok) {
        c->call(ops, dev, c->op);
        ok = ops->sync(dev) == LAM_OK;
    }
    for (int i = 0; ok && i < c->n_buffers; i++) {
        const size_t bytes = c->buffer[i].count * lam_class_size(dev, c->buffer[i].type);
        ok = ops->download(dev, after[i], memory[i], bytes) == LAM_OK;
    }
    for (int i = 0; i < c->n_buffers; i++)
        ops->release(dev, memory[i]);
    if (!ok && c->run->report)
        fprintf(c->run->report, "FAIL %s on %s: %s\n", c->what, ops->name, lam_error());
    return ok;
}

/* What the device will see of the buffers. */
static void round_buffers(lam_case *c)
{
    for (int i = 0; i < c->n_buffers; i++) {
        lam_case_buffer *b = &c->buffer[i];
        const lam_dtype type = type_of(c->run->dev, b->type);
        void *rounded = make(b->count * sizeof(double));
        lam_convert(rounded, type, b->first, LAM_F64, b->count);
        lam_convert(b->first, LAM_F64, rounded, type, b->count);
        free(rounded);
    }
}

/* A buffer of doubles as the integers they are; NULL: it holds none. */
static int32_t *whole_numbers(const lam_case_buffer *b)
{
    if (b->type != LAM_INT)
        return NULL;
    int32_t *out = malloc((b->count + 1) * sizeof *out);
    if (!out)
        abort();
    for (size_t i = 0; i < b->count; i++)
        out[i] = (int32_t)b->first[i];
    return out;
}

void lam_case_prepare(lam_case *c, lam_case_call *call)
{
    int32_t *whole[LAM_CASE_BUFFERS];
    round_buffers(c);
    for (int i = 0; i < c->n_buffers; i++)
        whole[i] = whole_numbers(&c->buffer[i]);
    for (int i = 0; i < c->n_slots; i++) {
        const int n = c->slot[i].buffer;
        void *p = whole[n] ? (void *)(whole[n] + c->slot[i].offset)
                           : (void *)(c->buffer[n].first + c->slot[i].offset);
        memcpy(c->slot[i].pointer, &p, sizeof p);
    }
    if (lam_ops_ref.reserve(c->run->ref, &c->work) != LAM_OK)
        abort();
    call(&lam_ops_ref, c->run->ref, c->op);
    for (int i = 0; i < c->n_buffers; i++)
        free(whole[i]);
}

static error error_of(const double *got, const double *want, size_t n)
{
    error e = {0};
    size_t counted = 0;
    for (size_t i = 0; i < n; i++) {
        if (want[i] == LAM_GUARD || isinf(want[i]))
            continue; /* judged by compare(), exactly */
        const double d = fabs(got[i] - want[i]);
        e.rms += d * d;
        counted++;
        if (!(d <= e.max)) { /* also when d is not a number */
            e.max = isnan(d) ? INFINITY : d;
            e.at = i;
        }
    }
    e.rms = counted ? sqrt(e.rms / (double)counted) : 0.0;
    return e;
}

static error size_of(const double *want, size_t n)
{
    error e = {0};
    size_t counted = 0;
    for (size_t i = 0; i < n; i++) {
        if (want[i] == LAM_GUARD || isinf(want[i]))
            continue;
        e.rms += want[i] * want[i];
        e.max = fmax(e.max, fabs(want[i]));
        counted++;
    }
    e.rms = counted ? sqrt(e.rms / (double)counted) : 0.0;
    return e;
}

/* Are inputs of this case moved by units of bf16? */
static int is_rounded(const lam_case *c)
{
    return c->mixed && c->run->dev->act == LAM_BF16;
}

/* Half a unit in the last place of x as bf16, which has eight digits: the most that rounding moves it. */
static double half_unit16(double x)
{
    return ldexp(1.0, ilogb(x) - 8);
}

/* Moves a value by at most a unit in the last place of float, or, where the case is mixed, by at most what
 * rounding to ACT would move it. */
static double jitter(lam_case *c, double x, const lam_case_buffer *b)
{
    if (!isfinite(x) || x == 0.0 || x == LAM_GUARD)
        return x;
    if (is_rounded(c) && (b->type == LAM_ACT || b->flags & LAM_SUMMED))
        return x + half_unit16(x) * (2.0 * lam_rng_uniform(&c->rng) - 1.0);
    switch (lam_rng_u32(&c->rng) % 8) {
    case 0:
        return (double)nextafterf((float)x, INFINITY);
    case 1:
        return (double)nextafterf((float)x, -INFINITY);
    default:
        return x;
    }
}

/* The precision in which the device gives a buffer back: half a unit in the last place of 1. */
static double rounding(const lam_case *c, const lam_case_buffer *b)
{
    switch (type_of(c->run->dev, b->type)) {
    case LAM_F64:
        return 0x1p-53;
    case LAM_BF16:
        return 0x1p-9;
    default:
        return 0x1p-24;
    }
}

static int is_whole(lam_class type)
{
    return type == LAM_INT || type == LAM_BYTE;
}

/* The worst errors of the naive loop, its results rounded to the types of the device. */
static int naive_errors(lam_case *c, error *worst)
{
    size_t fewest = ENOUGH;
    double *before[LAM_CASE_BUFFERS];
    void *after[LAM_CASE_BUFFERS];
    for (int i = 0; i < c->n_buffers; i++) {
        const lam_case_buffer *b = &c->buffer[i];
        before[i] = make(b->count * sizeof(double));
        after[i] = make(b->count * sizeof(float));
        memcpy(before[i], b->first, b->count * sizeof(double));
        if (b->flags & LAM_WRITTEN && b->count > 0 && b->count < fewest)
            fewest = b->count;
    }
    const size_t often = ENOUGH / fewest + 1;
    const size_t least = is_rounded(c) ? ROUNDED_SAMPLES : 1;
    const size_t wanted = often > least ? often : least;
    const size_t samples = wanted < MAX_SAMPLES ? wanted : MAX_SAMPLES;
    int ok = 1;
    for (size_t s = 0; ok && s <= samples; s++) { /* sample 0 is without jitter */
        for (int i = 0; s > 0 && i < c->n_buffers; i++)
            for (size_t j = 0; !is_whole(c->buffer[i].type) && j < c->buffer[i].count; j++)
                before[i][j] = jitter(c, c->buffer[i].first[j], &c->buffer[i]);
        ok = execute(c, c->run->naive, before, after);
        for (int i = 0; ok && i < c->n_buffers; i++) {
            const lam_case_buffer *b = &c->buffer[i];
            if (!(b->flags & LAM_WRITTEN) || b->type == LAM_INT)
                continue;
            const lam_dtype as = type_of(c->run->dev, b->type);
            void *rounded = make(b->count * sizeof(double));
            double *got = make(b->count * sizeof(double));
            lam_convert(rounded, as, after[i], type_of(c->run->naive, b->type), b->count);
            lam_convert(got, LAM_F64, rounded, as, b->count);
            const error e = error_of(got, b->want, b->count);
            worst[i].rms = fmax(worst[i].rms, e.rms);
            worst[i].max = fmax(worst[i].max, e.max);
            free(rounded);
            free(got);
        }
    }
    for (int i = 0; i < c->n_buffers; i++) {
        free(before[i]);
        free(after[i]);
    }
    return ok;
}

static void fail(lam_case *c, const char *buffer, const char *why, size_t at, double got,
                 double want)
{
    if (c->run->report)
        fprintf(c->run->report, "FAIL %s: %s: %s; element %zu is %.9g, ref %.9g\n", c->what, buffer,
                why, at, got, want);
}

static int is_padding(const lam_layout *at, size_t i)
{
    return at->blocks > 0 && i % at->step < at->rows * at->ld && i % at->step % at->ld >= at->width;
}

/* What must hold exactly: untouched elements, inputs, infinities, zeros of masks. */
static int compare_exact(lam_case *c, const lam_case_buffer *b, const double *got)
{
    const int all = b->type == LAM_INT || b->flags & LAM_EXACT || !(b->flags & LAM_WRITTEN);
    for (size_t i = 0; i < b->count; i++) {
        const double want = b->want[i], x = got[i];
        const char *why = NULL;
        if (isnan(want) && (b->flags & LAM_WRITTEN))
            why = "ref left it undefined: the case is wrong";
        else if (isnan(want) != isnan(x))
            why = "is or is not a number";
        else if (want == LAM_GUARD && x != want)
            why = "wrote where there is no element";
        else if (isinf(want) && x != want)
            why = "the infinities differ";
        else if (b->flags & LAM_SAME_ZEROS && (x == 0.0) != (want == 0.0))
            why = "the zeros differ";
        else if (is_padding(&b->padded, i) && x != want)
            why = "padding must be exact";
        else if (all && !isnan(want) && x != want)
            why = b->flags & LAM_WRITTEN ? "must be exact" : "changed an input";
        if (why) {
            fail(c, b->name, why, i, x, want);
            return 0;
        }
    }
    return 1;
}

static int compare_error(lam_case *c, const lam_case_buffer *b, const double *got, error naive)
{
    const error e = error_of(got, b->want, b->count), size = size_of(b->want, b->count);
    const double unit = rounding(c, b), least = 0x1p-126; /* nothing promises denormals */
    const double rms = c->limit * e.rms / (c->limit * naive.rms + unit * size.rms + least);
    const double max = c->limit * e.max / (c->limit * naive.max + unit * size.max + least);
    const double ratio = fmax(rms, max);

    if (ratio / c->limit > c->run->worst) {
        c->run->worst = ratio / c->limit;
        snprintf(c->run->worst_case, sizeof c->run->worst_case, "%.60s %.180s", b->name, c->what);
    }
    if (ratio <= c->limit)
        return 1;
    char why[200];
    snprintf(why, sizeof why, "rms error %.3g (naive %.3g), largest %.3g (naive %.3g), limit %gx",
             e.rms, naive.rms, e.max, naive.max, c->limit);
    fail(c, b->name, why, e.at, got[e.at], b->want[e.at]);
    return 0;
}

static int compare_all(lam_case *c, void *const *after, const error *naive)
{
    int ok = 1;
    for (int i = 0; i < c->n_buffers; i++) {
        const lam_case_buffer *b = &c->buffer[i];
        double *got = make(b->count * sizeof(double));
        lam_convert(got, LAM_F64, after[i], type_of(c->run->dev, b->type), b->count);
        ok = compare_exact(c, b, got) && ok;
        if (b->flags & LAM_WRITTEN && b->type != LAM_INT)
            ok = compare_error(c, b, got, naive[i]) && ok;
        free(got);
    }
    return ok;
}

static int same_bits(lam_case *c, void *const *one, void *const *two)
{
    for (int i = 0; i < c->n_buffers; i++) {
        const lam_case_buffer *b = &c->buffer[i];
        if (memcmp(one[i], two[i], b->count * lam_class_size(c->run->dev, b->type)) != 0) {
            fail(c, b->name, "two runs give different bits", 0, NAN, NAN);
            return 0;
        }
    }
    return 1;
}

static int judge(lam_case *c)
{
    double *first[LAM_CASE_BUFFERS];
    void *want[LAM_CASE_BUFFERS], *one[LAM_CASE_BUFFERS], *two[LAM_CASE_BUFFERS];
    error naive[LAM_CASE_BUFFERS] = {0};
    round_buffers(c);
    for (int i = 0; i < c->n_buffers; i++) {
        const lam_case_buffer *b = &c->buffer[i];
        one[i] = make(b->count * sizeof(double));
        two[i] = make(b->count * sizeof(double));
        want[i] = make(b->count * sizeof(double));
        first[i] = b->first;
    }
    int ok = execute(c, c->run->ref, first, want);
    for (int i = 0; i < c->n_buffers; i++)
        lam_convert(c->buffer[i].want, LAM_F64, want[i], type_of(c->run->ref, c->buffer[i].type),
                    c->buffer[i].count);
    ok = ok && naive_errors(c, naive);
    ok = ok && execute(c, c->run->dev, first, one);
    ok = ok && execute(c, c->library ? c->run->dev : c->run->single, first, two);
    ok = ok && compare_all(c, one, naive) && same_bits(c, one, two);
    for (int i = 0; i < c->n_buffers; i++) {
        free(one[i]);
        free(two[i]);
        free(want[i]);
    }
    return ok;
}

void lam_case_check(lam_case *c)
{
    c->run->cases++;
    if (!c->run->hasty || c->run->failures == 0)
        c->run->failures += !judge(c);
    for (int i = 0; i < c->n_buffers; i++) {
        free(c->buffer[i].first);
        free(c->buffer[i].want);
    }
    c->n_buffers = c->n_slots = 0;
}
