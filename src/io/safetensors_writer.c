/* safetensors_writer.c -- writes the safetensors format: declare all tensors, then stream the data.
 *
 * The header precedes the data and holds every offset, so all tensors are declared before the first byte of
 * data. Nothing is buffered: a model larger than memory can pass through. */
#include "io/safetensors.h"

#include "core/file.h"
#include "core/grow.h"
#include "core/little.h"
#include "core/size.h"
#include "io/json.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { PREFIX = 8, MAX_HEADER = 100000000 };

struct lam_st_writer {
    char *path;
    json_t *header;
    lam_outfile *file; /* NULL until begin(), or in memory: */
    int in_memory, begun;
    char *bytes;
    size_t size, room;
    size_t declared; /* bytes of all tensors added */
    size_t written;
    int sealed;
    uint32_t crc; /* of all that was written, if it is sealed */
};

static lam_status no_memory(const lam_st_writer *w)
{
    return lam_fail(LAM_ERR_MEMORY, "%s: no memory for the header", w->path);
}

lam_status lam_st_writer_create(lam_st_writer **out, const char *path)
{
    *out = NULL;
    lam_st_writer *const w = calloc(1, sizeof *w);
    if (!w)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for a writer", path);
    w->path = strdup(path);
    w->header = json_object();
    if (!w->path || !w->header) {
        lam_st_writer_abort(w);
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for a writer", path);
    }
    *out = w;
    return LAM_OK;
}

lam_status lam_st_writer_create_memory(lam_st_writer **out, const char *label)
{
    LAM_TRY(lam_st_writer_create(out, label));
    (*out)->in_memory = 1;
    return LAM_OK;
}

/* jansson returns NULL for text that is not UTF-8 as for a lack of memory; tell them apart. */
static lam_status check_text(const lam_st_writer *w, const char *what, const char *text)
{
    json_error_t error = {0}; /* jansson sets the code only where it has something to say */
    json_t *const probe = json_pack_ex(&error, 0, "[s]", text);
    json_decref(probe);
    if (!probe && json_error_code(&error) == json_error_invalid_utf8)
        return lam_fail(LAM_ERR_ARG, "%s: %s is not UTF-8", w->path, what);
    return probe ? LAM_OK : no_memory(w);
}

lam_status lam_st_writer_meta(lam_st_writer *w, const char *key, const char *value)
{
    assert(!w->begun);
    LAM_TRY(check_text(w, "a metadata key", key));
    LAM_TRY(check_text(w, key, value));
    json_t *metadata = json_object_get(w->header, "__metadata__");
    if (!metadata) {
        metadata = json_object();
        if (json_object_set_new(w->header, "__metadata__", metadata) != 0)
            return no_memory(w);
    }
    return json_object_set_new(metadata, key, json_string(value)) == 0 ? LAM_OK : no_memory(w);
}

static json_t *shape_list(const lam_shape *shape)
{
    json_t *list = json_array();
    for (int i = 0; i < shape->rank; i++)
        list = lam_json_add(list, json_integer(shape->dim[i]));
    return list;
}

lam_status lam_st_writer_add(lam_st_writer *w, const char *name, lam_dtype dtype,
                             const lam_shape *shape)
{
    assert(!w->begun && shape->rank <= LAM_MAX_DIMS);
    LAM_TRY(check_text(w, "a tensor name", name));
    if (strcmp(name, "__metadata__") == 0 || json_object_get(w->header, name))
        return lam_fail(LAM_ERR_ARG, "%s: tensor name %s is taken", w->path, name);

    size_t end;
    if (!lam_size_muladd(&end, lam_shape_count(shape), lam_dtype_size(dtype), w->declared) ||
        end > INT64_MAX)
        return lam_fail(LAM_ERR_ARG, "%s: tensor %s is too large", w->path, name);

    json_t *const entry =
        json_pack("{s:s, s:o, s:[I, I]}", "dtype", lam_dtype_name(dtype), "shape",
                  shape_list(shape), "data_offsets", (json_int_t)w->declared, (json_int_t)end);
    if (!entry || json_object_set_new(w->header, name, entry) != 0)
        return no_memory(w);
    w->declared = end;
    return LAM_OK;
}

lam_status lam_st_writer_seal(lam_st_writer *w)
{
    w->sealed = 1;
    return lam_st_writer_add(w, LAM_ST_SEAL, LAM_U32, &(lam_shape){1, {1}});
}

static lam_status keep(lam_st_writer *w, const void *data, size_t size)
{
    if (size > w->room - w->size) { /* once, as a rule */
        const size_t need = w->declared + w->size + size + PREFIX;
        LAM_TRY(lam_grow(&w->bytes, &w->room, need, 1, "bytes of tensors"));
    }
    if (size > 0)
        memcpy(w->bytes + w->size, data, size);
    w->size += size;
    return LAM_OK;
}

static lam_status put(lam_st_writer *w, const void *data, size_t size)
{
    if (w->sealed)
        w->crc = (uint32_t)crc32_z(w->crc, data, size);
    return w->in_memory ? keep(w, data, size) : lam_outfile_write(w->file, data, size);
}

lam_status lam_st_writer_begin(lam_st_writer *w)
{
    assert(!w->begun);
    w->begun = 1;
    char *text;
    size_t length;
    lam_status status = lam_json_text(&text, &length, w->header, JSON_COMPACT);
    if (status != LAM_OK)
        return no_memory(w);
    const size_t padded = (length + 7) / 8 * 8; /* the data begins aligned */
    unsigned char prefix[PREFIX];
    lam_put_little(prefix, padded, PREFIX);

    if (padded > MAX_HEADER)
        status = lam_fail(LAM_ERR_ARG, "%s: header of %zu bytes, at most %d are allowed", w->path,
                          padded, MAX_HEADER);
    if (status == LAM_OK && !w->in_memory)
        status = lam_outfile_open(&w->file, w->path);
    if (status == LAM_OK)
        status = put(w, prefix, PREFIX);
    if (status == LAM_OK)
        status = put(w, text, length);
    if (status == LAM_OK)
        status = put(w, "       ", padded - length);
    free(text);
    return status;
}

lam_status lam_st_writer_data(lam_st_writer *w, const void *data, size_t bytes)
{
    assert(w->begun);
    if (bytes > w->declared - w->written)
        return lam_fail(LAM_ERR_ARG, "%s: more than the %zu bytes of data declared", w->path,
                        w->declared);
    w->written += bytes;
    return put(w, data, bytes);
}

/* The checksum; then everything that was declared must be there. */
static lam_status complete(lam_st_writer *w)
{
    const uint32_t crc = w->crc;
    if (w->sealed)
        LAM_TRY(lam_st_writer_data(w, &crc, sizeof crc));
    return w->written == w->declared
               ? LAM_OK
               : lam_fail(LAM_ERR_ARG, "%s: %zu bytes of data, %zu were declared", w->path,
                          w->written, w->declared);
}

lam_status lam_st_writer_finish(lam_st_writer *w)
{
    assert(w->file);
    lam_status status = complete(w);
    if (status == LAM_OK) {
        status = lam_outfile_finish(w->file);
        w->file = NULL; /* freed, whatever it returned */
    }
    lam_st_writer_abort(w);
    return status;
}

lam_status lam_st_writer_take(lam_st_writer *w, char **bytes, size_t *size)
{
    assert(w->in_memory && w->begun);
    const lam_status status = complete(w);
    *bytes = status == LAM_OK ? w->bytes : NULL;
    *size = status == LAM_OK ? w->size : 0;
    if (status == LAM_OK)
        w->bytes = NULL;
    lam_st_writer_abort(w);
    return status;
}

lam_status lam_st_writer_end(lam_st_writer *w, lam_status status)
{
    if (status == LAM_OK)
        return lam_st_writer_finish(w);
    lam_st_writer_abort(w);
    return status;
}

void lam_st_writer_abort(lam_st_writer *w)
{
    if (!w)
        return;
    lam_outfile_abort(w->file);
    json_decref(w->header);
    free(w->bytes);
    free(w->path);
    free(w);
}
