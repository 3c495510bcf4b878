/* torchfile.c -- see torchfile.h. */
#include "io/torchfile.h"

#include "core/file.h"
#include "core/size.h"
#include "io/zip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_PREFIX = 512,
    MAX_KEY = 64,
    MAX_PICKLE = 1 << 30,
    /* What the pickle may describe, for each byte of the file and besides.  Tensors' descriptions and vocabularies
     * need up to 10 bytes for each of the pickle, which may be compressed. */
    TREE_RATIO = 24,
    TREE_FLOOR = 1 << 24
};

struct lam_torch {
    char *label;
    lam_map map; /* empty if the caller keeps the bytes */
    lam_zip *zip;
    lam_pickle *pickle;
    char prefix[MAX_PREFIX]; /* "NAME/" */
    size_t size, pickled;    /* bytes of the file, and of its pickle */
};

/* ---- opening ---- */

/* The folder of data.pkl: the name the file had when it was saved. */
static lam_status find_pickle(lam_torch *t, int *entry)
{
    static const char file[] = "/data.pkl";
    *entry = -1;
    for (int i = 0; i < lam_zip_count(t->zip); i++) {
        const char *name = lam_zip_name(t->zip, i);
        const size_t n = strlen(name), suffix = sizeof file - 1;
        if (n <= suffix || strcmp(name + n - suffix, file) != 0)
            continue;
        if (*entry >= 0)
            return lam_fail(LAM_ERR_FORMAT, "%s: has two files data.pkl", t->label);
        if (n - suffix + 1 >= sizeof t->prefix)
            return lam_fail(LAM_ERR_FORMAT, "%s: the name inside is longer than %zu bytes",
                            t->label, sizeof t->prefix);
        *entry = i;
        memcpy(t->prefix, name, n - suffix + 1); /* with the slash; the rest is zero */
    }
    if (*entry < 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: a zip archive, but not of PyTorch: no data.pkl",
                        t->label);
    return LAM_OK;
}

static lam_status load_entry(lam_torch *t, const char *name, const void **data, size_t *size)
{
    char path[MAX_PREFIX + MAX_KEY + 8];
    snprintf(path, sizeof path, "%s%s", t->prefix, name);
    const int i = lam_zip_find(t->zip, path);
    *data = NULL;
    if (i < 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: %s is missing in the archive", t->label, path);
    return lam_zip_load(t->zip, i, data, size);
}

/* Newer versions say how they count bytes; the older ones only knew one way. */
static lam_status check_byteorder(lam_torch *t)
{
    char path[MAX_PREFIX + 16];
    const void *data;
    size_t size;
    snprintf(path, sizeof path, "%sbyteorder", t->prefix);
    if (lam_zip_find(t->zip, path) < 0)
        return LAM_OK;
    LAM_TRY(load_entry(t, "byteorder", &data, &size));
    if (size == 6 && memcmp(data, "little", 6) == 0)
        return LAM_OK;
    return lam_fail(LAM_ERR_UNSUPPORTED, "%s: its numbers are not little-endian", t->label);
}

/* A file before version 1.6: a pickled magic number stands where the archive should begin. */
static lam_status check_kind(const lam_torch *t, const unsigned char *data, size_t size)
{
    static const unsigned char legacy[] = {0x80, 0x02, 0x8a, 0x0a};
    if (size >= sizeof legacy && memcmp(data, legacy, sizeof legacy) == 0)
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "%s: saved by PyTorch before 1.6; load it there and save it again with "
                        "_use_new_zipfile_serialization=True",
                        t->label);
    return LAM_OK;
}

static lam_status read_archive(lam_torch *t, const void *data, size_t size)
{
    const void *pickle;
    size_t most;
    int entry;
    t->size = size;
    LAM_TRY(check_kind(t, data, size));
    LAM_TRY(lam_zip_parse(&t->zip, t->label, data, size));
    LAM_TRY(find_pickle(t, &entry));
    LAM_TRY(check_byteorder(t));
    if (lam_zip_size(t->zip, entry) > MAX_PICKLE)
        return lam_fail(LAM_ERR_FORMAT, "%s: a pickle of %zu bytes, at most %d are read", t->label,
                        lam_zip_size(t->zip, entry), MAX_PICKLE);
    LAM_TRY(lam_zip_load(t->zip, entry, &pickle, &t->pickled));
    lam_size_muladd(&most, size, TREE_RATIO, TREE_FLOOR);
    return lam_pickle_parse(&t->pickle, t->label, pickle, t->pickled, most);
}

lam_status lam_torch_parse(lam_torch **out, const char *label, const void *data, size_t size)
{
    *out = NULL;
    lam_torch *t = calloc(1, sizeof *t);
    if (!t || !(t->label = strdup(label))) {
        free(t);
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", label);
    }
    const lam_status status = read_archive(t, data, size);
    if (status == LAM_OK)
        *out = t;
    else
        lam_torch_close(t);
    return status;
}

lam_status lam_torch_open(lam_torch **out, const char *path)
{
    lam_map map;
    *out = NULL;
    LAM_TRY(lam_map_open(&map, path));
    const lam_status status = lam_torch_parse(out, path, map.data, map.size);
    if (status == LAM_OK)
        (*out)->map = map;
    else
        lam_map_close(&map);
    return status;
}

void lam_torch_close(lam_torch *t)
{
    if (!t)
        return;
    lam_pickle_free(t->pickle);
    lam_zip_close(t->zip);
    lam_map_close(&t->map);
    free(t->label);
    free(t);
}

const char *lam_torch_label(const lam_torch *t)
{
    return t->label;
}

size_t lam_torch_size(const lam_torch *t)
{
    return t->size;
}

size_t lam_torch_pickled(const lam_torch *t)
{
    return t->pickled;
}

const lam_py *lam_torch_root(const lam_torch *t)
{
    return lam_pickle_root(t->pickle);
}

/* ---- tensors ---- */

/* torch._utils._rebuild_tensor_v2(storage, offset, sizes, strides, ...), perhaps as the data of
 * torch._utils._rebuild_parameter(data, ...). */
static const lam_py *tensor_args(const lam_py *node)
{
    static const char module[] = "torch._utils";
    for (int depth = 0; depth < 4; depth++) {
        if (lam_py_made_by(node, module, "_rebuild_tensor_v2") ||
            lam_py_made_by(node, module, "_rebuild_tensor"))
            return node->as.object->args;
        if (!lam_py_made_by(node, module, "_rebuild_parameter") &&
            !lam_py_made_by(node, module, "_rebuild_parameter_with_state"))
            return NULL;
        node = lam_py_item(node->as.object->args, 0);
    }
    return NULL;
}

int lam_torch_is_tensor(const lam_py *node)
{
    return tensor_args(node) != NULL;
}

static lam_status bad(const lam_torch *t, const char *name, const char *what)
{
    return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s: %s", t->label, name, what);
}

typedef struct storage {
    lam_dtype dtype;
    const void *data;
    size_t count; /* elements */
} storage;

static lam_dtype dtype_of(const lam_py *type)
{
    static const struct {
        const char *name;
        lam_dtype dtype;
    } types[] = {{"FloatStorage", LAM_F32}, {"DoubleStorage", LAM_F64},
                 {"HalfStorage", LAM_F16},  {"BFloat16Storage", LAM_BF16},
                 {"LongStorage", LAM_I64},  {"IntStorage", LAM_I32},
                 {"ShortStorage", LAM_I16}, {"CharStorage", LAM_I8},
                 {"ByteStorage", LAM_U8},   {"BoolStorage", LAM_BOOL}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (lam_py_global_is(type, NULL, types[i].name))
            return types[i].dtype;
    return LAM_DTYPES;
}

/* The id of a storage: ("storage", class, key, place, count). */
static lam_status find_storage(lam_torch *t, const lam_py *node, const char *name, storage *out)
{
    char path[MAX_KEY + 8];
    const lam_py *id = lam_py_is(node, LAM_PY_PERSISTENT) ? node->as.id : NULL;
    const lam_py *key = lam_py_item(id, 2), *count = lam_py_item(id, 4);
    size_t bytes;
    if (!lam_py_text_is(lam_py_item(id, 0), "storage") || !lam_py_is(key, LAM_PY_TEXT) ||
        !lam_py_is(count, LAM_PY_INT) || count->as.integer < 0)
        return bad(t, name, "its storage is not described as PyTorch does");
    out->dtype = dtype_of(lam_py_item(id, 1));
    if (out->dtype == LAM_DTYPES)
        return bad(t, name, "an element type that is not known here");
    if (key->as.text.n > MAX_KEY || memchr(key->as.text.s, '\0', key->as.text.n))
        return bad(t, name, "a storage with a strange name");
    snprintf(path, sizeof path, "data/%.*s", (int)key->as.text.n, key->as.text.s);
    LAM_TRY(load_entry(t, path, &out->data, &bytes));
    out->count = bytes / lam_dtype_size(out->dtype);
    if ((uint64_t)count->as.integer > out->count)
        return bad(t, name, "its storage is shorter than it should be");
    return LAM_OK;
}

static lam_status read_sizes(const lam_torch *t, const lam_py *sizes, const lam_py *strides,
                             const char *name, lam_strided *out)
{
    if (!lam_py_is(sizes, LAM_PY_TUPLE) || !lam_py_is(strides, LAM_PY_TUPLE) ||
        sizes->as.list.n != strides->as.list.n || sizes->as.list.n > LAM_MAX_DIMS)
        return bad(t, name, "sizes and strides are not two lists of one length up to 8");
    out->shape.rank = (int)sizes->as.list.n;
    for (int i = 0; i < out->shape.rank; i++) {
        const lam_py *size = lam_py_item(sizes, (size_t)i), *step = lam_py_item(strides, (size_t)i);
        if (!lam_py_is(size, LAM_PY_INT) || !lam_py_is(step, LAM_PY_INT) || size->as.integer < 0 ||
            step->as.integer < 0)
            return bad(t, name, "a size or stride is not a number >= 0");
        out->shape.dim[i] = size->as.integer;
        out->stride[i] = step->as.integer;
    }
    return LAM_OK;
}

/* The last element lies within the storage, and there are not more elements than a file could mean:
 * stride 0 repeats without end. */
static lam_status check_extent(const lam_torch *t, const lam_strided *x, uint64_t offset,
                               const storage *s, const char *name)
{
    const size_t count = lam_shape_count(&x->shape);
    if (count == 0)
        return LAM_OK;
    if (count == SIZE_MAX || offset >= s->count)
        return bad(t, name, "it lies outside of its storage");
    size_t last = offset;
    for (int i = 0; i < x->shape.rank; i++)
        if (!lam_size_muladd(&last, (size_t)x->shape.dim[i] - 1, (size_t)x->stride[i], last))
            break; /* last is SIZE_MAX */
    if (last >= s->count)
        return bad(t, name, "it reaches past the end of its storage");
    if (count > s->count)
        return bad(t, name, "it has more elements than its storage");
    return LAM_OK;
}

lam_status lam_torch_tensor(lam_torch *t, const lam_py *node, const char *name, lam_strided *out)
{
    const lam_py *args = tensor_args(node), *offset = lam_py_item(args, 1);
    storage s;
    *out = (lam_strided){0};
    if (!args || !lam_py_is(offset, LAM_PY_INT) || offset->as.integer < 0)
        return bad(t, name, "not described as PyTorch does");
    LAM_TRY(find_storage(t, lam_py_item(args, 0), name, &s));
    LAM_TRY(read_sizes(t, lam_py_item(args, 2), lam_py_item(args, 3), name, out));
    LAM_TRY(check_extent(t, out, (uint64_t)offset->as.integer, &s, name));
    out->dtype = s.dtype;
    const size_t start = lam_shape_count(&out->shape) > 0 ? (size_t)offset->as.integer : 0;
    out->data = (const char *)s.data + start * lam_dtype_size(s.dtype);
    return LAM_OK;
}
