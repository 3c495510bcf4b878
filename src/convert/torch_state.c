/* torch_state.c -- where the parameters are in what somebody gave to torch.save.
 *
 * The authors of LaMemo save a dictionary with a state_dict under "model_state"; those of Transformer-XL
 * save the whole module; others save a state_dict alone, or under other names. */
#include "convert/tensors.h"

#include <string.h>

/* A module may hold another twice, and so on: without a count, 16 deep can be without end. */
enum { MAX_DEPTH = 16, MAX_MODULES = 1 << 14 };

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

/* Adds the entries of a mapping that are tensors; others (None, _metadata) are no parameters. */
static lam_status add_mapping(lam_tensors *all, lam_torch *file, const lam_py *mapping,
                              const char *prefix)
{
    char name[LAM_TENSOR_NAME_MAX];
    const lam_py_list *pairs = lam_py_pairs(mapping);
    for (size_t i = 0; pairs && i + 1 < pairs->n; i += 2) {
        lam_strided t;
        if (!lam_torch_is_tensor(pairs->v[i + 1]))
            continue;
        LAM_TRY(full_name(name, all, prefix, pairs->v[i]));
        LAM_TRY(lam_torch_tensor(file, pairs->v[i + 1], name, &t));
        LAM_TRY(lam_tensors_add(all, name, &t));
    }
    return LAM_OK;
}

static lam_status add_module(lam_tensors *all, lam_torch *file, const lam_py *module,
                             const char *prefix, int depth, int *seen)
{
    char name[LAM_TENSOR_NAME_MAX];
    if (depth > MAX_DEPTH || ++*seen > MAX_MODULES)
        return lam_fail(LAM_ERR_FORMAT, "%s: modules more than %d deep, or more than %d",
                        all->label, MAX_DEPTH, MAX_MODULES);
    LAM_TRY(add_mapping(all, file, lam_py_attr(module, "_parameters"), prefix));
    LAM_TRY(add_mapping(all, file, lam_py_attr(module, "_buffers"), prefix));
    const lam_py_list *pairs = lam_py_pairs(lam_py_attr(module, "_modules"));
    for (size_t i = 0; pairs && i + 1 < pairs->n; i += 2) {
        LAM_TRY(full_name(name, all, prefix, pairs->v[i]));
        const size_t n = strlen(name);
        if (n + 1 >= sizeof name)
            return lam_fail(LAM_ERR_FORMAT, "%s: the name of a module is too long", all->label);
        strcpy(name + n, ".");
        LAM_TRY(add_module(all, file, pairs->v[i + 1], name, depth + 1, seen));
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
    const lam_py *holder = find_holder(lam_torch_root(file));
    *module = NULL;
    if (!holder)
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: no state_dict of tensors and no module found in it (looked for "
                        "model_state, state_dict, model, ...)",
                        all->label);
    if (!is_module(holder))
        return add_mapping(all, file, holder, "");
    /* DataParallel and its kind hold the model as their module "module". */
    const lam_py *inner = lam_py_get(lam_py_attr(holder, "_modules"), "module");
    *module = is_module(inner) ? inner : holder;
    int seen = 0;
    return add_module(all, file, *module, "", 0, &seen);
}
