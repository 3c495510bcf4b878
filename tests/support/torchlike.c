/* torchlike.c -- see torchlike.h. */
#include "support/torchlike.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>
#include <zlib.h>

static void must(int claim, const char *what)
{
    if (!claim) {
        fprintf(stderr, "torchlike: %s failed\n", what);
        abort();
    }
}

/* ---- pickles ---- */

void pk_raw(pk *p, const void *bytes, size_t n)
{
    if (p->n + n > p->room) {
        p->room = 2 * (p->n + n) + 64;
        p->p = realloc(p->p, p->room);
        must(p->p != NULL, "memory");
    }
    memcpy(p->p + p->n, bytes, n);
    p->n += n;
}

void pk_op(pk *p, int opcode)
{
    const unsigned char byte = (unsigned char)opcode;
    pk_raw(p, &byte, 1);
}

static void pk_u32(pk *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        pk_op(p, (int)(value >> 8 * i & 0xff));
}

void pk_text(pk *p, const char *text)
{
    pk_op(p, 'X');
    pk_u32(p, (uint32_t)strlen(text));
    pk_raw(p, text, strlen(text));
}

void pk_int(pk *p, int64_t value)
{
    if (value >= INT32_MIN && value <= INT32_MAX) {
        pk_op(p, 'J');
        pk_u32(p, (uint32_t)value);
        return;
    }
    pk_raw(p, "\x8a\x08", 2); /* LONG1 of eight bytes */
    for (int i = 0; i < 8; i++)
        pk_op(p, (int)((uint64_t)value >> 8 * i & 0xff));
}

void pk_bool(pk *p, int value)
{
    pk_op(p, value ? 0x88 : 0x89);
}

void pk_float(pk *p, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    pk_op(p, 'G');
    for (int i = 7; i >= 0; i--)
        pk_op(p, (int)(bits >> 8 * i & 0xff));
}

void pk_global(pk *p, const char *module, const char *name)
{
    pk_op(p, 'c');
    pk_raw(p, module, strlen(module));
    pk_op(p, '\n');
    pk_raw(p, name, strlen(name));
    pk_op(p, '\n');
}

void pk_ordered_dict(pk *p)
{
    pk_global(p, "collections", "OrderedDict");
    pk_raw(p, ")R(", 3);
}

static void pk_tuple(pk *p, const int64_t *v, int n)
{
    pk_op(p, '(');
    for (int i = 0; i < n; i++)
        pk_int(p, v[i]);
    pk_op(p, 't');
}

void pk_tensor(pk *p, const pk_tensor_at *t)
{
    pk_global(p, "torch._utils", "_rebuild_tensor_v2");
    pk_raw(p, "((", 2);
    pk_text(p, "storage");
    pk_global(p, "torch", t->storage);
    pk_text(p, t->key);
    pk_text(p, "cpu");
    pk_int(p, t->count);
    pk_raw(p, "tQ", 2);
    pk_int(p, t->offset);
    pk_tuple(p, t->size, t->rank);
    pk_tuple(p, t->stride, t->rank);
    pk_bool(p, 0);
    pk_global(p, "collections", "OrderedDict");
    pk_raw(p, ")RtR", 4);
}

void pk_free(pk *p)
{
    free(p->p);
    *p = (pk){0};
}

/* ---- archives ---- */

void zip_write(const char *path, const zip_part *parts, int n)
{
    zipFile file = zipOpen64(path, APPEND_STATUS_CREATE);
    must(file != NULL, "opening the archive");
    for (int i = 0; i < n; i++) {
        const zip_part *part = &parts[i];
        must(zipOpenNewFileInZip64(file, part->name, NULL, NULL, 0, NULL, 0, NULL,
                                   part->deflate ? Z_DEFLATED : 0,
                                   part->deflate ? Z_DEFAULT_COMPRESSION : 0, 0) == ZIP_OK,
             "a new entry");
        must(zipWriteInFileInZip(file, part->data, (unsigned)part->size) == ZIP_OK, "its bytes");
        must(zipCloseFileInZip(file) == ZIP_OK, "closing the entry");
    }
    must(zipClose(file, NULL) == ZIP_OK, "closing the archive");
}
