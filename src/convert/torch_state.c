/* torch_state.c -- finds the parameters in the object that was given to torch.save.
 *
 * The authors of LaMemo save a dictionary with a state_dict under "model_state"; those of Transformer-XL
 * save the whole module; others save a bare state_dict, or one under another key. */
#include "convert/tensors.h"

#include "core/size.h"

#include <string.h>

/* A module may hold another twice, and so on: without a count of all that was looked at, 16 deep can be without end.
 * Layers may share their storage, but not so many that a small file becomes a large model. */
enum { MAX_DEPTH = 16, MAX_SEEN = 1 << 20, MAX_SHARED = 64, MIN_SHARED = 1 << 25 };

typedef struct walk {
    lam_tensors *all;
    lam_torch *file;
    size_t seen;  /* entries of modules and mappings */
    size_t bytes; /* of all tensors */
} walk;

/* The name of an entry behind a prefix; LAM_ERR_FORMAT if it is no name. */
static lam_status full_name(char out[LAM_TENSOR_NAME_MAX], const lam_tensors *all,
                            const char *prefix, const lam_py *key)
{
    const size_t n = strlen(prefix);
    if (!lam_py_is(key, LAM_PY_TEXT) || memchr(key->as.text.s, '\0', key->as.text.n) ||
        n + key->as.text.n >= LAM_TENSOR_NAME_MAX)
        return lam_fail(LAM_ERR_FORMAT, "%s: a name under '%s' is no text of at most %d bytes",
                        all->label, prefix, LAM_TENSOR_NAME_MAX - 1);
    memcpy(out, prefix, n);
    memcpy(out + n, key->as.text.s, key->as.text.n);
    out[n + key->as.text.n] = '\0';
    return LAM_OK;
}

static lam_status see(walk *w, const lam_py *node)
{
    const lam_py_list *pairs = lam_py_pairs(node);
    w->seen += pairs ? pairs->n : 0;
    if (w->seen <= MAX_SEEN)
        return LAM_OK;
    return lam_fail(LAM_ERR_FORMAT, "%s: a model of more than %d entries", w->all->label, MAX_SEEN);
}

static lam_status add_tensor(walk *w, const lam_py *node, const char *name)
{
    lam_strided t;
    size_t most;
    LAM_TRY(lam_torch_tensor(w->file, node, name, &t));
    lam_size_muladd(&w->bytes, lam_shape_count(&t.shape), lam_dtype_size(t.dtype), w->bytes);
    lam_size_muladd(&most, lam_torch_size(w->file), MAX_SHARED, MIN_SHARED);
    if (w->bytes > most)
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: tensor %s: with it the tensors have more than %zu bytes, %d times "
                        "those of the file",
                        w->all->label, name, most, MAX_SHARED);
    return lam_tensors_add(w->all, name, &t);
}

/* Adds the entries of a mapping that are tensors; others (None, _metadata) are no parameters. */
static lam_status add_mapping(walk *w, const lam_py *mapping, const char *prefix)
{
    char name[LAM_TENSOR_NAME_MAX];
    const lam_py_list *pairs = lam_py_pairs(mapping);
    LAM_TRY(see(w, mapping));
    for (size_t i = 0; pairs && i + 1 < pairs->n; i += 2) {
        if (!lam_torch_is_tensor(pairs->v[i + 1]))
            continue;
        LAM_TRY(full_name(name, w->all, prefix, pairs->v[i]));
        LAM_TRY(add_tensor(w, pairs->v[i + 1], name));
    }
    return LAM_OK;
}

static lam_status add_module(walk *w, const lam_py *module, const char *prefix, int depth)
{
    char name[LAM_TENSOR_NAME_MAX];
    const lam_py *state = lam_py_is(module, LAM_PY_OBJECT) ? module->as.object->state : NULL;
    if (depth > MAX_DEPTH)
        return lam_fail(LAM_ERR_FORMAT, "%s: modules more than %d deep", w->all->label, MAX_DEPTH);
    LAM_TRY(see(w, state));
    LAM_TRY(add_mapping(w, lam_py_attr(module, "_parameters"), prefix));
    LAM_TRY(add_mapping(w, lam_py_attr(module, "_buffers"), prefix));
    const lam_py_list *pairs = lam_py_pairs(lam_py_attr(module, "_modules"));
    LAM_TRY(see(w, lam_py_attr(module, "_modules")));
    for (size_t i = 0; pairs && i + 1 < pairs->n; i += 2) {
        LAM_TRY(full_name(name, w->all, prefix, pairs->v[i]));
        const size_t n = strlen(name);
        if (n + 1 >= sizeof name)
            return lam_fail(LAM_ERR_FORMAT, "%s: the name of a module is too long", w->all->label);
        strcpy(name + n, ".");
        LAM_TRY(add_module(w, pairs->v[i + 1], name, depth + 1));
    }
    return LAM_OK;
}

static int is_module(const lam_py *node)
{
    return lam_py_attr(node, "_parameters") && lam_py_attr(node, "_modules");
}

static int holds_tensors(const lam_py *node)
{
    const lam_py_list *pairs = lam_py_pairs(node);
    for (size_t i = 1; pairs && i < pairs->n; i += 2)
        if (lam_torch_is_tensor(pairs->v[i]))
            return 1;
    return 0;
}

/* What holds the parameters: a mapping or a module.  NULL: nothing we know. */
static const lam_py *find_holder(const lam_py *root)
{
    static const char *const names[] = {"model_state", "state_dict", "model_state_dict",
                                        "model",       "net",        "module"};
    if (is_module(root) || holds_tensors(root))
        return root;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const lam_py *node = lam_py_get(root, names[i]);
        if (is_module(node) || holds_tensors(node))
            return node;
    }
    return NULL;
}

lam_status lam_tensors_from_torch(lam_tensors *all, lam_torch *file, const lam_py **module)
{
    walk w = {.all = all, .file = file};
    const lam_py *holder = find_holder(lam_torch_root(file));
    *module = NULL;
    if (!holder)
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: no state_dict of tensors and no module found in it (looked for "
                        "model_state, state_dict, model, ...)",
                        all->label);
    if (!is_module(holder))
        return add_mapping(&w, holder, "");
    /* DataParallel and its kind hold the model as their module "module". */
    const lam_py *inner = lam_py_get(lam_py_attr(holder, "_modules"), "module");
    *module = is_module(inner) ? inner : holder;
    return add_module(&w, *module, "", 0);
}
