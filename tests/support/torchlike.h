/* torchlike.h -- writes zip archives and pickles as PyTorch does, byte by byte, for tests.
 *
 *     pk p = {0};
 *     pk_raw(&p, "\x80\x02}(", 4);                 PROTO 2, an empty dict, a mark
 *     pk_text(&p, "w");
 *     pk_tensor(&p, &(pk_tensor_at){"FloatStorage", "0", 6, 0, 2, {2, 3}, {3, 1}});
 *     pk_raw(&p, "u.", 2);                         SETITEMS, STOP
 *
 * All functions abort the program when memory or the disk fails. */
#ifndef TEST_TORCHLIKE_H
#define TEST_TORCHLIKE_H

#include <stddef.h>
#include <stdint.h>

/* A pickle that grows. */
typedef struct pk {
    unsigned char *p;
    size_t n, room;
} pk;

void pk_raw(pk *p, const void *bytes, size_t n);
void pk_op(pk *p, int opcode);
void pk_text(pk *p, const char *text);
void pk_int(pk *p, int64_t value);
void pk_bool(pk *p, int value);
void pk_float(pk *p, double value);
void pk_global(pk *p, const char *module, const char *name);
/* Leaves an OrderedDict and a mark: pairs follow, then SETITEMS ("u"). */
void pk_ordered_dict(pk *p);

typedef struct pk_tensor_at {
    const char *storage, *key; /* "FloatStorage", "0" */
    int64_t count, offset;     /* of the storage; of the tensor in it */
    int rank;
    int64_t size[4], stride[4];
} pk_tensor_at;
void pk_tensor(pk *p, const pk_tensor_at *t);
void pk_free(pk *p);

/* One file of an archive. */
typedef struct zip_part {
    const char *name;
    const void *data;
    size_t size;
    int deflate;
} zip_part;
void zip_write(const char *path, const zip_part *parts, int n);

#endif
