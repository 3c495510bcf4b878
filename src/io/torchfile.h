/* torchfile.h -- files of PyTorch's torch.save: a zip archive of one pickle and the tensors' bytes.
 *
 * Since version 1.6 such a file holds NAME/data.pkl and, for each storage, NAME/data/KEY.  The pickle is
 * read without running anything (pickle.h); a tensor is a call in it that names its storage, offset,
 * sizes and strides, and becomes a view once all of these were checked against the bytes that are
 * there.  Refused: the older format (a bare pickle), big-endian files.  Memory is bounded by the file's size,
 * packed as it is: see zip.h for what is unpacked and pickle.h for what the pickle describes. */
#ifndef LAM_IO_TORCHFILE_H
#define LAM_IO_TORCHFILE_H

#include "io/pickle.h"
#include "io/strided.h"

typedef struct lam_torch lam_torch;

lam_status lam_torch_open(lam_torch **out, const char *path);
/* The same on bytes in memory (kept); `label` is used in messages. */
lam_status lam_torch_parse(lam_torch **out, const char *label, const void *data, size_t size);
void lam_torch_close(lam_torch *t); /* NULL is fine */

const char *lam_torch_label(const lam_torch *t);
size_t lam_torch_size(const lam_torch *t);    /* bytes of the file */
size_t lam_torch_pickled(const lam_torch *t); /* bytes of its pickle, unpacked */
/* What was saved; lives as long as the file is open. */
const lam_py *lam_torch_root(const lam_torch *t);

/* Is this node a tensor or a parameter? */
int lam_torch_is_tensor(const lam_py *node);
/* Its elements; `name` is used in messages.  The view is valid until close. */
lam_status lam_torch_tensor(lam_torch *t, const lam_py *node, const char *name, lam_strided *out);

#endif
