/* safetensors.c -- reads the safetensors format.
 *
 * The file is untrusted: nothing is used before it is checked, and a tensor is handed out only after the
 * whole header proved consistent. Entries are sorted by offset, so one pass finds overlaps, holes and
 * trailing bytes. Refused: element types and ranks that lamemo does not have. Writing is in
 * safetensors_writer.c. */
#include "io/safetensors_int.h"

#include "core/little.h"
#include "core/size.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the data is little-endian, mapped as is");

enum { PREFIX = 8, MAX_HEADER = 100000000 };

/* The data section, and what to call the file in messages. */
typedef struct section {
    const char *label;
    const unsigned char *data;
    size_t size;
} section;

static lam_status read_shape(lam_shape *shape, const json_t *list, const char *label,
                             const char *name)
{
    const size_t rank = json_array_size(list);
    if (!json_is_array(list) || rank > LAM_MAX_DIMS)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s: shape is not a list of at most %d numbers",
                        label, name, LAM_MAX_DIMS);
    shape->rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(list, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s: dimension %zu is not a number >= 0",
                            label, name, i);
        shape->dim[i] = json_integer_value(dim);
    }
    return LAM_OK;
}

/* "data_offsets": [begin, end], counted from the start of the data. */
static lam_status read_range(lam_st_tensor *tensor, const json_t *pair, const section *in)
{
    const json_t *first = json_array_get(pair, 0), *last = json_array_get(pair, 1);
    if (json_array_size(pair) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s: data_offsets are not two integers",
                        in->label, tensor->name);
    const json_int_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin || (uint64_t)end > in->size)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s: bytes %lld to %lld of %zu", in->label,
                        tensor->name, (long long)begin, (long long)end, in->size);
    tensor->data = in->data + begin;
    tensor->bytes = (size_t)(end - begin);
    return LAM_OK;
}

static lam_status read_tensor(lam_st_tensor *tensor, const char *name, const json_t *entry,
                              const section *in)
{
    tensor->name = name;
    const char *const dtype = json_string_value(json_object_get(entry, "dtype"));
    tensor->dtype = dtype ? lam_dtype_find(dtype) : LAM_DTYPES;
    if (tensor->dtype == LAM_DTYPES)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s: unknown dtype %s", in->label, name,
                        dtype ? dtype : "(none)");
    LAM_TRY(read_shape(&tensor->shape, json_object_get(entry, "shape"), in->label, name));
    LAM_TRY(read_range(tensor, json_object_get(entry, "data_offsets"), in));

    size_t bytes;
    if (!lam_size_muladd(&bytes, lam_shape_count(&tensor->shape), lam_dtype_size(tensor->dtype),
                         0) ||
        bytes != tensor->bytes) {
        char shape[256];
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s: %zu bytes do not hold %s of %s", in->label,
                        name, tensor->bytes, lam_shape_text(&tensor->shape, shape, sizeof shape),
                        dtype);
    }
    return LAM_OK;
}

static int compare_data(const void *a, const void *b)
{
    const lam_st_tensor *x = a, *y = b;
    const unsigned char *p = x->data, *q = y->data;
    if (p != q)
        return p < q ? -1 : 1;
    if (x->bytes != y->bytes) /* empty ones first, or they would look like an overlap */
        return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

int lam_st_compare_names(const void *a, const void *b)
{
    const lam_st_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Each tensor begins where the one before it ends, and the last one ends the file. */
static lam_status check_cover(const lam_safetensors *st, const section *in)
{
    const unsigned char *at = in->data;
    for (int i = 0; i < st->count; i++) {
        const lam_st_tensor *t = &st->tensors[i];
        const unsigned char *const begin = t->data;
        if (begin != at)
            return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s: %s before its data at byte %zu",
                            in->label, t->name, begin < at ? "overlap" : "hole",
                            (size_t)(begin - in->data));
        at += t->bytes;
    }
    if (at != in->data + in->size)
        return lam_fail(LAM_ERR_FORMAT, "%s: %zu bytes after the last tensor", in->label,
                        (size_t)(in->data + in->size - at));
    return LAM_OK;
}

static lam_status check_metadata(const json_t *metadata, const char *label)
{
    if (metadata && !json_is_object(metadata))
        return lam_fail(LAM_ERR_FORMAT, "%s: __metadata__ is not an object", label);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)metadata, key, value)
        if (!json_is_string(value))
            return lam_fail(LAM_ERR_FORMAT, "%s: __metadata__ %s is not a string", label, key);
    return LAM_OK;
}

static lam_status read_tensors(lam_safetensors *st, const section *in)
{
    const size_t entries = json_object_size(st->header);
    st->tensors = calloc(entries + 1, sizeof *st->tensors);
    st->by_name = calloc(entries + 1, sizeof *st->by_name);
    if (!st->tensors || !st->by_name)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu tensors", in->label, entries);

    const char *name;
    json_t *entry;
    json_object_foreach(st->header, name, entry) {
        if (entry == st->metadata)
            continue;
        LAM_TRY(read_tensor(&st->tensors[st->count], name, entry, in));
        st->count++;
    }
    qsort(st->tensors, (size_t)st->count, sizeof *st->tensors, compare_data);
    for (int i = 0; i < st->count; i++)
        st->by_name[i] = &st->tensors[i];
    qsort(st->by_name, (size_t)st->count, sizeof *st->by_name, lam_st_compare_names);
    return check_cover(st, in);
}

static lam_status read_header(lam_safetensors *st, const unsigned char *data, size_t size)
{
    if (size < PREFIX)
        return lam_fail(LAM_ERR_FORMAT, "%s: %zu bytes are too few for safetensors", st->path,
                        size);
    const uint64_t length = lam_little(data, PREFIX);
    if (length > MAX_HEADER || length > size - PREFIX)
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: not safetensors: header of %llu bytes in a file of %zu, at most %d",
                        st->path, (unsigned long long)length, size, MAX_HEADER);

    const char *const text = (const char *)data + PREFIX;
    LAM_TRY(lam_json_parse(&st->header, st->path, text, (size_t)length));
    if (!json_is_object(st->header))
        return lam_fail(LAM_ERR_FORMAT, "%s: header is not a JSON object", st->path);
    st->metadata = json_object_get(st->header, "__metadata__");
    LAM_TRY(check_metadata(st->metadata, st->path));
    const section in = {st->path, data + PREFIX + length, size - PREFIX - (size_t)length};
    return read_tensors(st, &in);
}

lam_status lam_st_parse(lam_safetensors **out, const char *label, const void *data, size_t size)
{
    *out = NULL;
    lam_safetensors *const st = calloc(1, sizeof *st);
    if (!st || !(st->path = strdup(label))) {
        free(st);
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", label);
    }
    st->whole = (lam_map){data, size};
    const lam_status status = read_header(st, data, size);
    if (status == LAM_OK)
        *out = st;
    else
        lam_st_close(st);
    return status;
}

lam_status lam_st_open(lam_safetensors **out, const char *path)
{
    lam_map map;
    *out = NULL;
    LAM_TRY(lam_map_open(&map, path));
    const lam_status status = lam_st_parse(out, path, map.data, map.size);
    if (status == LAM_OK)
        (*out)->map = map;
    else
        lam_map_close(&map);
    return status;
}

void lam_st_close(lam_safetensors *st)
{
    if (!st)
        return;
    for (int i = 0; i < st->n_parts; i++)
        lam_st_close(st->parts[i]);
    free(st->parts);
    json_decref(st->header);
    lam_map_close(&st->map);
    free(st->tensors);
    free(st->by_name);
    free(st->path);
    free(st);
}

int lam_st_count(const lam_safetensors *st)
{
    return st->count;
}

const lam_st_tensor *lam_st_at(const lam_safetensors *st, int i)
{
    return &st->tensors[i];
}

const lam_st_tensor *lam_st_find(const lam_safetensors *st, const char *name)
{
    const lam_st_tensor wanted = {.name = name}, *const key = &wanted;
    const lam_st_tensor *const *found =
        bsearch(&key, st->by_name, (size_t)st->count, sizeof *st->by_name, lam_st_compare_names);
    return found ? *found : NULL;
}

const char *lam_st_meta(const lam_safetensors *st, const char *key)
{
    return json_string_value(json_object_get(st->metadata, key));
}

const char *lam_st_path(const lam_safetensors *st)
{
    return st->path;
}

lam_status lam_st_check_seal(const lam_safetensors *st)
{
    const lam_st_tensor *t = lam_st_find(st, LAM_ST_SEAL);
    uint32_t then, now;
    if (!t || t->dtype != LAM_U32 || t->bytes != sizeof then || st->whole.size < sizeof then ||
        t->data != st->whole.data + st->whole.size - sizeof then)
        return lam_fail(LAM_ERR_FORMAT, "%s: does not end with a checksum", st->path);
    memcpy(&then, t->data, sizeof then);
    now = (uint32_t)crc32_z(0, st->whole.data, st->whole.size - sizeof then);
    if (now != then)
        return lam_fail(LAM_ERR_FORMAT, "%s: damaged: its CRC-32 is %08x, written was %08x",
                        st->path, (unsigned)now, (unsigned)then);
    return LAM_OK;
}

lam_status lam_st_read(const lam_safetensors *st, const char *name, void *dst, lam_dtype dtype,
                       size_t n)
{
    const lam_st_tensor *const tensor = lam_st_find(st, name);
    if (!tensor)
        return lam_fail(LAM_ERR_FORMAT, "%s: no tensor %s", st->path, name);
    const size_t count = lam_shape_count(&tensor->shape);
    if (count != n) {
        char shape[256];
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is %s, %zu elements expected", st->path,
                        name, lam_shape_text(&tensor->shape, shape, sizeof shape), n);
    }
    lam_convert(dst, dtype, tensor->data, tensor->dtype, n);
    return LAM_OK;
}
