/* torchfile.h -- reads files of PyTorch's torch.save: a zip archive with one pickle and the tensors' bytes.
 *
 * Since PyTorch 1.6 such a file holds NAME/data.pkl and NAME/data/KEY for each storage. The pickle is read
 * without executing anything (pickle.h). A tensor is a call in it that names storage, offset, sizes and
 * strides; it becomes a view once all of these have been checked against the storage. Refused: the older
 * format (a bare pickle) and big-endian files. Memory is bounded in proportion to the file's size on disk:
 * see zip.h for decompression and pickle.h for the pickle. */
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
