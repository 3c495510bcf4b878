/* pass.c -- a whole segment in one call: training and evaluation.
 *
 * Once the memory is full every segment is the same work on other numbers, and a device that records work
 * plays it (ops.h, repeat).  The key names what the operations depend on besides the stack itself.  An adaptive
 * softmax divides its rows by their targets, so that its work is never the same. */
#include "model/stack_int.h"

#include <string.h>

typedef struct job {
    lam_stack *st;
    const lam_pass *pass;
} job;

static void work(void *arg)
{
    const job *j = arg;
    const lam_pass *p = j->pass;
    lam_stack_begin(j->st, p->n, p->noise);
    lam_stack_score(j->st, p->scored);
    lam_stack_forward(j->st, p->inputs, p->n);
    lam_stack_loss(j->st, p->targets, p->grad_scale);
    if (p->grad_scale != 0.0)
        lam_stack_backward(j->st);
    if (!p->open)
        lam_stack_commit(j->st);
}

/* FNV-1a. */
static uint64_t stir(uint64_t hash, const void *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return hash;
}

static uint64_t key_of(const lam_stack *st, const lam_pass *p)
{
    const lam_mem *mem = &st->mem;
    if (st->model->cfg.n_cutoffs > 0 || !lam_mem_has(st->model->mem, LAM_REPEATS))
        return 0;
    const int numbers[] = {p->n,      p->scored,          p->open, p->noise.on, mem->m,
                           mem->prev, st->positions_ready};
    uint64_t hash = stir(14695981039346656037u, numbers, sizeof numbers);
    hash = stir(hash, &p->grad_scale, sizeof p->grad_scale);
    hash = stir(hash, &p->noise.seed, sizeof p->noise.seed);
    for (int i = 0; i < mem->n_slots; i++) { /* groups of columns have memories of their own */
        hash = stir(hash, &mem->slots[i].rows, sizeof mem->slots[i].rows);
        hash = stir(hash, &mem->slots[i].n, sizeof mem->slots[i].n);
    }
    return hash != 0 ? hash : 1;
}

void lam_stack_pass(lam_stack *st, const lam_pass *pass)
{
    job j = {st, pass};
    st->dev->ops->repeat(st->dev, &st->tape, key_of(st, pass), work, &j);
}
