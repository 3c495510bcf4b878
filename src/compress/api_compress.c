/* api_compress.c -- the public interface, include/lamemo.h: archives. */
#include "compress/decompressor.h"
#include "infer/api_int.h"

#include <stdlib.h>
#include <string.h>

/* What both directions have: a device context of their own, and the caller's sink. */
typedef struct outlet {
    lam_dev *dev;
    lamemo_byte_sink *sink;
    void *user;
} outlet;

struct lamemo_compressor {
    outlet out;
    lam_compressor *inner;
};

struct lamemo_decompressor {
    outlet out;
    lam_decompressor *inner;
};

static lam_status pass_on(void *user, const void *bytes, size_t n)
{
    const outlet *const out = user;
    return out->sink(out->user, bytes, n) == 0
               ? LAM_OK
               : lam_fail(LAM_ERR_INTERRUPTED, "stopped by the caller");
}

static lam_status open_outlet(outlet *out, const lamemo_engine *engine,
                              const lamemo_compress_options *o, lamemo_byte_sink *sink, void *user)
{
    out->sink = sink;
    out->user = user;
    return lam_api_context(&out->dev, engine, o->threads);
}

static void close_outlet(outlet *out)
{
    if (out->dev)
        out->dev->ops->close(out->dev);
}

/* ---- compressing ---- */

static lam_status build_compressor(lamemo_compressor *c, lamemo_engine *engine,
                                   const lamemo_compress_options *o)
{
    int adapt = LAM_ADAPT_MIX;
    if (o->adapt)
        for (adapt = 0; adapt < LAM_ADAPTS; adapt++)
            if (strcmp(o->adapt, lam_adapt_names[adapt]) == 0)
                break;
    if (adapt == LAM_ADAPTS)
        return lam_fail(LAM_ERR_ARG, "adapt '%s': there are mix and none", o->adapt);
    return lam_compressor_create(
        &c->inner, engine->inner,
        &(lam_compressor_options){.streams = o->streams,
                                  .block = o->block,
                                  .adapt = (lam_adapt)adapt,
                                  .dev = c->out.dev,
                                  .watch = {o->progress, o->progress_user}},
        pass_on, &c->out);
}

lamemo_status lamemo_compressor_create(lamemo_engine *engine,
                                       const lamemo_compress_options *options,
                                       lamemo_byte_sink *sink, void *user,
                                       lamemo_compressor **compressor)
{
    const lamemo_compress_options o = options ? *options : (lamemo_compress_options){0};
    *compressor = NULL;
    lamemo_compressor *const c = calloc(1, sizeof *c);
    if (!c)
        return lam_api_status(lam_fail(LAM_ERR_MEMORY, "compressor: no memory"));
    lam_status status = open_outlet(&c->out, engine, &o, sink, user);
    if (status == LAM_OK)
        status = build_compressor(c, engine, &o);
    if (status == LAM_OK)
        *compressor = c;
    else
        lamemo_compressor_free(c);
    return lam_api_status(status);
}

lamemo_status lamemo_compressor_push(lamemo_compressor *c, const void *bytes, size_t n)
{
    return lam_api_status(lam_compressor_push(c->inner, bytes, n));
}

lamemo_status lamemo_compressor_finish(lamemo_compressor *c)
{
    return lam_api_status(lam_compressor_finish(c->inner));
}

void lamemo_compressor_free(lamemo_compressor *c)
{
    if (!c)
        return;
    lam_compressor_free(c->inner);
    close_outlet(&c->out);
    free(c);
}

/* ---- decompressing ---- */

lamemo_status lamemo_decompressor_create(lamemo_engine *engine,
                                         const lamemo_compress_options *options,
                                         lamemo_byte_sink *sink, void *user,
                                         lamemo_decompressor **decompressor)
{
    const lamemo_compress_options o = options ? *options : (lamemo_compress_options){0};
    *decompressor = NULL;
    lamemo_decompressor *const d = calloc(1, sizeof *d);
    if (!d)
        return lam_api_status(lam_fail(LAM_ERR_MEMORY, "decompressor: no memory"));
    lam_status status = open_outlet(&d->out, engine, &o, sink, user);
    if (status == LAM_OK)
        status = lam_decompressor_create(
            &d->inner, engine->inner,
            &(lam_decompressor_options){.dev = d->out.dev, .watch = {o.progress, o.progress_user}},
            pass_on, &d->out);
    if (status == LAM_OK)
        *decompressor = d;
    else
        lamemo_decompressor_free(d);
    return lam_api_status(status);
}

lamemo_status lamemo_decompressor_push(lamemo_decompressor *d, const void *bytes, size_t n)
{
    return lam_api_status(lam_decompressor_push(d->inner, bytes, n));
}

lamemo_status lamemo_decompressor_finish(lamemo_decompressor *d)
{
    return lam_api_status(lam_decompressor_finish(d->inner));
}

void lamemo_decompressor_free(lamemo_decompressor *d)
{
    if (!d)
        return;
    lam_decompressor_free(d->inner);
    close_outlet(&d->out);
    free(d);
}
