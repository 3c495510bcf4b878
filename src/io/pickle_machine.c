/* pickle_machine.c -- see pickle_machine.h. */
#include "io/pickle_machine.h"

#include "core/little.h"

#include <string.h>

lam_status lam_pm_bad(const lam_pm *m, const char *what)
{
    return lam_fail(LAM_ERR_FORMAT, "%s: pickle, byte %zu: %s", m->p->label, m->op_at, what);
}

/* ---- arguments in the stream ---- */

lam_status lam_pm_take(lam_pm *m, size_t n, const unsigned char **out)
{
    *out = NULL;
    if (n > m->size - m->at)
        return lam_pm_bad(m, "it ends too early");
    *out = m->data + m->at;
    m->at += n;
    return LAM_OK;
}

lam_status lam_pm_uint(lam_pm *m, int width, uint64_t *out)
{
    const unsigned char *b;
    *out = 0;
    LAM_TRY(lam_pm_take(m, (size_t)width, &b));
    *out = lam_little(b, width);
    return LAM_OK;
}

lam_status lam_pm_line(lam_pm *m, lam_py_text *out)
{
    const unsigned char *start = m->data + m->at;
    const unsigned char *end = memchr(start, '\n', m->size - m->at);
    if (!end)
        return lam_pm_bad(m, "a line without an end");
    *out = (lam_py_text){(const char *)start, (size_t)(end - start)};
    m->at += out->n + 1;
    return LAM_OK;
}

/* ---- the stack ---- */

lam_status lam_pm_push(lam_pm *m, lam_py *node)
{
    if (m->stack.n >= LAM_PICKLE_MAX_STACK)
        return lam_pm_bad(m, "nested too deeply");
    return lam_py_push(m->p, &m->stack, node);
}

lam_status lam_pm_new(lam_pm *m, lam_py_kind kind, lam_py **out)
{
    LAM_TRY(lam_py_new(m->p, kind, out)); /* NULL on failure */
    return lam_pm_push(m, *out);
}

size_t lam_pm_ground(const lam_pm *m)
{
    return m->n_marks > 0 ? m->marks[m->n_marks - 1] : 0;
}

lam_status lam_pm_pop(lam_pm *m, lam_py **out)
{
    *out = NULL;
    if (m->stack.n <= lam_pm_ground(m))
        return lam_pm_bad(m, "takes from an empty stack");
    *out = m->stack.v[--m->stack.n];
    return LAM_OK;
}

lam_status lam_pm_top(const lam_pm *m, lam_py **out)
{
    *out = NULL;
    if (m->stack.n <= lam_pm_ground(m))
        return lam_pm_bad(m, "looks at an empty stack");
    *out = m->stack.v[m->stack.n - 1];
    return LAM_OK;
}

lam_status lam_pm_pop_mark(lam_pm *m, size_t *height)
{
    *height = 0;
    if (m->n_marks == 0)
        return lam_pm_bad(m, "no mark on the stack");
    *height = m->marks[--m->n_marks];
    return LAM_OK;
}

/* ---- the memo ---- */

lam_status lam_pm_put(lam_pm *m, uint64_t index)
{
    lam_py *node;
    LAM_TRY(lam_pm_top(m, &node));
    if (index >= m->size) /* each entry takes a byte to make, and Python counts from 0 */
        return lam_pm_bad(m, "a memo number larger than the pickle");
    while (m->memo.n <= index)
        LAM_TRY(lam_py_push(m->p, &m->memo, NULL));
    m->memo.v[index] = node;
    return LAM_OK;
}
