/* safetensors.h -- reading and writing the safetensors format.
 *
 * 8 bytes little-endian header length, a JSON header {name: {dtype, shape, data_offsets}}, an
 * optional "__metadata__" object of strings, then the data.  Readers get views into a mapping; every
 * offset is checked before a view exists: no overlap, no hole, no bytes left over, size equal to
 * shape times element size, header at most 100 MB, no duplicate name. */
#ifndef LAM_IO_SAFETENSORS_H
#define LAM_IO_SAFETENSORS_H

#include "core/status.h"
#include "core/tensor.h"

typedef struct lam_safetensors lam_safetensors;

typedef struct lam_st_tensor {
    const char *name;
    lam_dtype dtype;
    lam_shape shape;
    const void *data; /* borrowed from the mapping; may be unaligned for its type */
    size_t bytes;
} lam_st_tensor;

lam_status lam_st_open(lam_safetensors **out, const char *path);
/* Same checks on bytes in memory (kept by the caller); `label` is used in messages. */
lam_status lam_st_parse(lam_safetensors **out, const char *label, const void *data, size_t size);
/* The weights of a folder: DIR/model.safetensors, or the files behind DIR/model.safetensors.index.json, whose
 * "weight_map" says which file beside it holds which tensor.  Every tensor must be where the map says, and no file may
 * hold one that it does not name. */
lam_status lam_st_open_folder(lam_safetensors **out, const char *dir);
void lam_st_close(lam_safetensors *st); /* NULL is fine */

int lam_st_count(const lam_safetensors *st);
const lam_st_tensor *lam_st_at(const lam_safetensors *st, int i);
const lam_st_tensor *lam_st_find(const lam_safetensors *st, const char *name); /* NULL: absent */
/* A metadata string, or NULL.  Borrowed. */
const char *lam_st_meta(const lam_safetensors *st, const char *key);
const char *lam_st_path(const lam_safetensors *st);
/* Does the file that was opened end with the checksum of lam_st_writer_seal()?  LAM_ERR_FORMAT: it has none, or
 * is damaged. */
lam_status lam_st_check_seal(const lam_safetensors *st);

/* Copies tensor `name` into dst as `dtype`, converting.  Fails if absent or if its number of
 * elements is not n. */
lam_status lam_st_read(const lam_safetensors *st, const char *name, void *dst, lam_dtype dtype,
                       size_t n);

/* Writing: declare all tensors and metadata, then begin() writes the header, then data() is called
 * once per tensor in declared order with exactly its bytes (in as many pieces as wished), then
 * finish().  The file appears under its name only at finish(). */
typedef struct lam_st_writer lam_st_writer;

lam_status lam_st_writer_create(lam_st_writer **out, const char *path);
/* The same into memory: `label` stands for the path in messages, and lam_st_writer_take() for finish(). */
lam_status lam_st_writer_create_memory(lam_st_writer **out, const char *label);
/* *bytes is the caller's (free); frees w, whatever it returns. */
lam_status lam_st_writer_take(lam_st_writer *w, char **bytes, size_t *size);
lam_status lam_st_writer_meta(lam_st_writer *w, const char *key, const char *value);
lam_status lam_st_writer_add(lam_st_writer *w, const char *name, lam_dtype dtype,
                             const lam_shape *shape);
/* After the last tensor was declared: one more comes last, LAM_ST_SEAL, U32, which finish() writes: zlib's CRC-32
 * of all bytes of the file before it, the header's too. */
#define LAM_ST_SEAL "crc32"
lam_status lam_st_writer_seal(lam_st_writer *w);
lam_status lam_st_writer_begin(lam_st_writer *w);
lam_status lam_st_writer_data(lam_st_writer *w, const void *data, size_t bytes);
lam_status lam_st_writer_finish(lam_st_writer *w); /* frees w, whatever it returns */
void lam_st_writer_abort(lam_st_writer *w);        /* frees w, leaves no file; NULL is fine */
/* Finishes what was written with this status, where it is LAM_OK, else aborts and returns it. */
lam_status lam_st_writer_end(lam_st_writer *w, lam_status status);

#endif
