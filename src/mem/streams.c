/* streams.c -- streams that remember different amounts: one is emptied where a document ends, the others go on.
 *
 * The rows in front of a segment are as many in all streams, and a stream's own are the newest of them: attention is
 * told how many (lam_segment.valid).  That is all that most mechanisms need.  What one does besides to rows that left
 * the newest M, and when, depends on how many rows a stream has; such work is done for one stream after the other, on
 * a view of the segment and of the state in which there is no other stream and no padding. */
#include "mem/mem.h"

/* Which of its layer's slots a slot is. */
static int number_in_layer(const lam_mem *mem, int i)
{
    int number = 0;
    while (number < i && mem->slots[i - number - 1].layer == mem->slots[i].layer)
        number++;
    return number;
}

/* From here on every stream has numbers of its own. */
static void set_apart(lam_mem *mem)
{
    if (mem->apart)
        return;
    mem->apart = 1;
    for (int b = 0; b < mem->B; b++) {
        lam_mem_stream *stream = &mem->streams[b];
        *stream = (lam_mem_stream){.m = mem->m, .seen = mem->seen};
        for (int i = 0; i < mem->n_slots; i++)
            if (mem->slots[i].own)
                stream->n[number_in_layer(mem, i)] = mem->slots[i].n;
    }
}

void lam_mem_forget(lam_mem *mem, int stream)
{
    int others = 0;
    set_apart(mem);
    mem->streams[stream] = (lam_mem_stream){0};
    for (int b = 0; b < mem->B; b++)
        others |= mem->streams[b].seen > 0;
    if (!others)
        lam_mem_reset(mem);
}

int lam_mem_valid(const lam_mem *mem, int stream)
{
    int rows = 0;
    for (int i = 0; i < mem->n_slots && mem->slots[i].layer == 0; i++)
        if (mem->slots[i].front)
            rows += mem->slots[i].own ? mem->streams[stream].n[number_in_layer(mem, i)]
                                      : mem->streams[stream].m;
    return rows;
}

/* Rows of a stream in this segment that are no padding. */
static int rows_of(const lam_segment *s, int stream)
{
    return s->rows ? s->rows[stream] : s->n;
}

int lam_mem_differs(const lam_segment *s)
{
    int differs = s->mem->apart;
    for (int b = 0; s->rows && b < s->B; b++)
        differs |= s->rows[b] != s->n;
    return differs;
}

/* ---- operations on one stream ---- */

typedef struct view {
    lam_mem mem;
    lam_segment segment;
} view;

/* Its slots hold the stream's rows and nothing else; they stand in mem->view until the next view is made. */
static void view_mem(lam_mem *out, const lam_mem *mem, int stream)
{
    const lam_mem_stream *own = &mem->streams[stream];
    *out = *mem;
    out->B = 1;
    out->apart = 0;
    out->slots = mem->view;
    if (mem->apart) {
        out->m = own->m;
        out->seen = own->seen;
    }
    for (int i = 0; i < mem->n_slots; i++) {
        lam_slot *slot = &out->slots[i];
        *slot = mem->slots[i];
        slot->rows = lam_at(mem->dev, slot->type, slot->rows,
                            (size_t)stream * (size_t)slot->cap * (size_t)slot->width);
        if (mem->apart)
            slot->n = slot->own ? own->n[number_in_layer(mem, i)] : own->m;
    }
}

static void view_of(view *out, const lam_segment *s, int stream)
{
    const size_t aux = (size_t)s->cfg->n_layer * (size_t)s->N * (size_t)s->cfg->n_head;
    view_mem(&out->mem, s->mem, stream);
    out->segment = *s;
    out->segment.mem = &out->mem;
    out->segment.B = 1;
    out->segment.stream = stream;
    out->segment.n = rows_of(s, stream);
    out->segment.rows = NULL;
    out->segment.valid = NULL;
    out->segment.out =
        lam_at(s->dev, LAM_ACT, s->out, (size_t)stream * (size_t)s->n * (size_t)s->dims.D);
    if (s->aux)
        out->segment.aux = lam_at(s->dev, LAM_WIDE, s->aux, (size_t)stream * aux);
}

void lam_mem_each(const lam_segment *s, int layer, void (*part)(const lam_segment *s, int layer))
{
    if (!lam_mem_differs(s)) {
        part(s, layer);
        return;
    }
    for (int b = 0; b < s->B; b++)
        if (rows_of(s, b) > 0) {
            view v;
            view_of(&v, s, b);
            part(&v.segment, layer);
        }
}

/* ---- export and import ---- */

/* The stream's rows are the last ones of those in front. */
void lam_mem_load_streams(const lam_segment *s, const lam_slot *slot, lam_view to)
{
    const lam_mem *mem = s->mem;
    const size_t width = (size_t)slot->width;
    const int k = number_in_layer(mem, (int)(slot - mem->slots));
    for (int b = 0; b < mem->B; b++) {
        const int n = mem->streams[b].n[k];
        const size_t from = (size_t)b * (size_t)slot->cap * width;
        const size_t at = (size_t)b * to.step + (size_t)(slot->n - n) * width;
        if (n > 0)
            s->dev->ops->copy(s->dev,
                              &(lam_copy){.blocks = 1,
                                          .count = (size_t)n * width,
                                          .type = slot->type,
                                          .in = {lam_at(s->dev, slot->type, slot->rows, from), 0},
                                          .out = {lam_at(s->dev, slot->type, to.p, at), 0}});
    }
}

/* What the mechanism left in a view's slots. */
static void take_counts(lam_mem *mem, const lam_mem *from, int stream)
{
    for (int i = 0; i < mem->n_slots; i++)
        if (mem->slots[i].own)
            mem->streams[stream].n[number_in_layer(mem, i)] = from->slots[i].n;
}

/* Own slots are as long as the longest stream's; those in front never become shorter, so that segments stay equally
 * long. */
static void resolve_lengths(lam_mem *mem)
{
    for (int i = 0; i < mem->n_slots; i++) {
        lam_slot *slot = &mem->slots[i];
        const int k = number_in_layer(mem, i);
        if (!slot->own)
            continue;
        slot->n = slot->front ? slot->n : 0;
        for (int b = 0; b < mem->B; b++)
            slot->n = mem->streams[b].n[k] > slot->n ? mem->streams[b].n[k] : slot->n;
    }
}

void lam_mem_commit_streams(lam_mem *mem, const lam_segment *s, int done)
{
    set_apart(mem);
    for (int b = 0; b < mem->B; b++) {
        lam_mem_stream *stream = &mem->streams[b];
        const int rows = s->rows ? s->rows[b] : done, most = stream->m + rows;
        if (rows < done) { /* a document ended: what stands in its place is padding */
            *stream = (lam_mem_stream){0};
            continue;
        }
        if (mem->ops->commit) {
            view v;
            view_of(&v, s, b);
            mem->ops->commit(&v.mem, &v.segment, rows);
            take_counts(mem, &v.mem, b);
        }
        stream->m = most < mem->M ? most : mem->M;
        stream->seen += rows;
    }
    resolve_lengths(mem);
}

lam_status lam_mem_resolve_streams(const lam_mem *mem, const char *label)
{
    for (int b = 0; mem->apart && b < mem->B; b++) {
        int fits = mem->streams[b].m <= mem->m;
        for (int i = 0; i < mem->n_slots; i++)
            fits &=
                !mem->slots[i].own || mem->streams[b].n[number_in_layer(mem, i)] <= mem->slots[i].n;
        if (!fits)
            return lam_fail(LAM_ERR_FORMAT, "%s: stream %d has more rows than were saved", label,
                            b);
    }
    return LAM_OK;
}
