/* toy_archive.c -- see toy_archive.h. */
#include "support/toy_archive.h"

#include "support/suite.h"
#include "support/toy_folder.h"

#include <stdlib.h>
#include <string.h>

lam_status toy_bytes_sink(void *user, const void *bytes, size_t n)
{
    toy_bytes *const b = user;
    if (b->room - b->n < n) {
        b->room = 2 * (b->n + n) + 64;
        b->v = realloc(b->v, b->room);
        ck_assert_ptr_nonnull(b->v);
    }
    if (n > 0)
        memcpy(b->v + b->n, bytes, n);
    b->n += n;
    return LAM_OK;
}

lam_engine *toy_engine(const char *dir, const char *device, int threads)
{
    const lam_ops *ops;
    lam_dev *dev;
    lam_engine *e;
    must(toy_folder_save(dir, "lamemo", 1));
    must(lam_ops_find(&ops, device));
    must(ops->open(&dev, &(lam_dev_options){.threads = threads, .exact = 1}));
    must(lam_engine_open(&e, dir, dev, &(lam_storage){0}));
    return e;
}

void toy_engine_close(lam_engine *e)
{
    lam_dev *const dev = e->dev;
    lam_engine_close(e);
    dev->ops->close(dev);
}

void toy_text(uint8_t *text, size_t n)
{
    static const char line[] = "And the same line again, number ";
    for (size_t i = 0; i < n; i++)
        text[i] = i % 40 < sizeof line - 1 ? (uint8_t)line[i % 40] : (uint8_t)(i * i / 40 % 251);
}

toy_bytes toy_pack(lam_engine *e, const uint8_t *text, size_t n, const lam_compressor_options *o)
{
    toy_bytes out = {0};
    lam_compressor *c;
    must(lam_compressor_create(&c, e, o, toy_bytes_sink, &out));
    must(lam_compressor_push(c, text, n));
    must(lam_compressor_finish(c));
    lam_compressor_free(c);
    return out;
}
