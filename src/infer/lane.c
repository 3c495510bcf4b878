/* lane.c -- one running text: its memory on the device, and its segment in its stream of the batch.
 *
 * All lanes share one stack in which segments begin.  A lane that is selected has lent its memory to it, by address,
 * as groups of a batch do when training (train/group_memory.c), and the rows of its stream (model/batch.c).  There a
 * segment stays while other lanes are selected; `live` says whether it is there.  A text that comes from rest has only
 * its memory and the tokens of its segment, which are computed again. */
#include "infer/scheduler_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int shares_stack(const lam_scheduler *s)
{
    return s->batch != NULL;
}

lam_status lam_lane_open(lam_scheduler *s, lam_lane *lane)
{
    const lam_config *cfg = lam_stack_segment(s->one->stack)->cfg;
    lane->stream = (int)(lane - s->lanes);
    lane->open = calloc((size_t)s->o.segment, sizeof *lane->open);
    if (!lane->open)
        return lam_fail(LAM_ERR_MEMORY, "lane: no memory for segments of %d tokens", s->o.segment);
    if (!shares_stack(s))
        return lam_stack_create(
            &lane->stack, s->engine->model,
            &(lam_stack_options){.B = 1, .N = s->o.segment, .M = s->o.mem_len, .dev = s->o.dev});
    lam_arena arena = {0};
    lane->stack = s->one->stack;
    lane->mem = *lam_stack_mem(lane->stack);
    lane->mem.slots = calloc(2 * lam_mem_max_slots(cfg), sizeof *lane->mem.slots);
    lane->mem.streams = calloc(1, sizeof *lane->mem.streams);
    if (!lane->mem.slots || !lane->mem.streams)
        return lam_fail(LAM_ERR_MEMORY, "lane: no memory");
    lane->mem.view = lane->mem.slots + lam_mem_max_slots(cfg);
    lam_mem_layout(&lane->mem, cfg, 0, &arena);
    lam_dev *dev = lane->mem.dev;
    LAM_TRY(dev->ops->alloc(dev, &lane->base, arena.used + LAM_ALIGN));
    arena = (lam_arena){.base = lane->base, .size = arena.used};
    lam_mem_layout(&lane->mem, cfg, 0, &arena);
    return LAM_OK;
}

void lam_lane_close(lam_scheduler *s, lam_lane *lane)
{
    lam_past_drop(lane->past);
    free(lane->open);
    if (!lane->stack)
        return;
    lam_dev *dev = lam_stack_segment(lane->stack)->dev;
    dev->ops->free_graphs(dev, lane->graphs);
    if (!shares_stack(s)) {
        lam_stack_free(lane->stack);
        return;
    }
    if (lane->base)
        dev->ops->release(dev, lane->base);
    free(lane->mem.slots);
    free(lane->mem.streams);
}

void lam_lane_select(lam_scheduler *s, lam_lane *lane)
{
    if (!shares_stack(s) || s->selected == lane)
        return;
    lam_mem *mem = lam_stack_mem(s->one->stack);
    *(s->selected ? &s->selected->mem : &s->home) = *mem;
    *mem = lane ? lane->mem : s->home;
    lam_stack_sit(s->one->stack, lane ? s->batch : NULL, lane ? lane->stream : 0);
    s->selected = lane;
}

lam_mem *lam_lane_mem(lam_scheduler *s, lam_lane *lane)
{
    return !shares_stack(s) || s->selected == lane ? lam_stack_mem(lane->stack) : &lane->mem;
}

/* ---- loading and saving timelines ---- */

lam_status lam_lane_load(lam_scheduler *s, lam_lane *lane, const lam_timeline *text)
{
    assert(text->segment <= s->o.segment);
    lam_lane_leave(s, lane);
    lane->length = text->length;
    lane->segment = text->segment;
    lane->forgets = text->forgets;
    lane->done = text->done;
    memcpy(lane->open, text->open, (size_t)text->done * sizeof *lane->open);
    lam_past_drop(lane->past);
    lane->past = lam_past_share(text->past);
    lane->changed = 0;
    return lam_past_put(text->past, lam_lane_mem(s, lane));
}

lam_status lam_lane_past(lam_scheduler *s, lam_lane *lane, lam_past **out)
{
    *out = NULL;
    if (lane->changed) {
        const lam_mem *mem = lam_lane_mem(s, lane);
        lam_past *now = NULL;
        if (mem->seen > 0) /* else nothing is remembered */
            LAM_TRY(lam_past_take(&now, mem));
        lam_past_drop(lane->past);
        lane->past = now;
        lane->changed = 0;
    }
    *out = lane->past;
    return LAM_OK;
}

lam_status lam_lane_save(lam_scheduler *s, lam_lane *lane, lam_timeline *text)
{
    lam_past *past;
    LAM_TRY(lam_lane_past(s, lane, &past));
    lam_past_drop(text->past);
    text->past = lam_past_share(past);
    text->length = lane->length;
    text->done = lane->done;
    memcpy(text->open, lane->open, (size_t)lane->done * sizeof *lane->open);
    return LAM_OK;
}

/* ---- computing in the stack ---- */

/* The stream's rows hold as much of the segment as was computed. */
static void settle(lam_scheduler *s, lam_lane *lane)
{
    lane->live = 1;
    if (shares_stack(s))
        lam_stack_join(s->batch, lane->stack);
}

void lam_lane_hold(lam_scheduler *s, lam_lane *lane)
{
    lam_lane_select(s, lane);
    if (lane->live) {
        if (shares_stack(s))
            lam_stack_resume(lane->stack, lane->segment, lane->done);
        return;
    }
    lam_stack_begin(lane->stack, lane->segment, (lam_stack_dropout){0});
    if (lane->done == 0)
        return;
    lam_stack_set_scored(lane->stack, 1); /* only what follows can be asked */
    lam_stack_forward(lane->stack, lane->open, lane->done);
    settle(s, lane);
}

void lam_lane_commit(lam_scheduler *s, lam_lane *lane)
{
    lam_lane_hold(s, lane);
    lam_stack_commit(lane->stack);
    if (lane->forgets)
        lam_mem_reset(lam_stack_mem(lane->stack));
    lam_lane_leave(s, lane);
    lane->changed = 1;
    lane->done = 0;
}

void lam_lane_feed(lam_scheduler *s, lam_lane *lane, const int32_t *tokens, int n)
{
    assert(!lane->joined && lane->done + n <= lane->segment);
    if (lane->done == 0 && n == 1) {
        lam_lane_select(s, lane);
        lam_stack_begin_token(lane->stack, lane->segment, tokens, &lane->graphs);
    } else {
        lam_lane_hold(s, lane);
        lam_stack_set_scored(lane->stack, 0);
        lam_stack_forward(lane->stack, tokens, n);
    }
    settle(s, lane);
    memcpy(lane->open + lane->done, tokens, (size_t)n * sizeof *tokens);
    lane->done += n;
    lane->length += n;
}

int lam_lane_cost(lam_scheduler *s, lam_lane *lane, int n)
{
    const int full = lane->done == lane->segment;
    const int begins = full || !lane->live;
    return n + (begins ? lam_mem_context(lam_lane_mem(s, lane)) : 0) +
           (!full && !lane->live ? lane->done : 0);
}

/* ---- computing in the batch ---- */

void lam_lane_leave(lam_scheduler *s, lam_lane *lane)
{
    lane->live = lane->joined = 0;
    if (shares_stack(s))
        lam_stack_drop(s->batch, lane->stream);
}

void lam_lane_went(lam_lane *lane, int32_t token)
{
    lane->open[lane->done++] = token;
    lane->length++;
}
