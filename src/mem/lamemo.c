/* lamemo.c -- LaMemo: a memory that keeps looking at what comes after it (Eq. 7-12).
 *
 * A slot keeps its context C and log-denominator per head and layer: the paused state of an online softmax.
 * In every segment it resumes over the newest keys on its right (look-ahead attention, Eq. 9) and the
 * two are interpolated by their denominators (Eq. 10-11).  Old C, old log s and the stored embeddings
 * are constants; everything else has gradient, also the memory rows of the layers above the first.
 *
 * The last layer's refreshed rows feed nothing: it needs neither look-ahead nor state, unless
 * s->full asks for what the traces contain.
 *
 * refresh_from = R, beyond the paper: the layers below R are Transformer-XL's, their own inputs are kept and are constant
 * keys; layer R keeps its inputs as well, and from there memory rows climb as they do from the embeddings where R = 0.
 *
 * refresh_every = K, beyond the paper: a segment refreshes the memory only if more than (K - 1) tgt_len tokens were read
 * since the last one that did, with equal segments every K-th one; prev counts these tokens.  The other segments are
 * Transformer-XL's: the inputs of every layer are kept, and are constant keys.  C and log s wait meanwhile, and the next
 * look-ahead covers all that they have not seen.
 *
 * Ablations: alpha = 0 (no interpolation) keeps only C<-; alpha = 1 (no look-ahead) keeps only C->. */
#include "mem/causal.h"
#include "mem/fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What alpha of Eq. 11 is. */
typedef enum alpha_kind {
    LEARNED, /* the paper's */
    ZERO,    /* ablation "no interpolation": only what look-ahead finds */
    ONE      /* ablation "no look-ahead": only what was known; equals Transformer-XL */
} alpha_kind;

/* Which keys are new to a memory slot (Eq. 7; docs/equations.md says why two). */
typedef enum window_kind {
    PREVIOUS, /* the previous segment's tokens, shifted by one: each key seen once */
    CURRENT   /* the authors' code */
} window_kind;

typedef struct lamemo {
    double interp_eps; /* eps of Eq. 11, relative to the larger sum */
    alpha_kind alpha;
    window_kind window;
    int refresh_from;  /* the lowest layer whose memory rows are refreshed; n_layer: none */
    int refresh_every; /* segments from one refresh to the next */
} lamemo;

static const char *const alpha_names[] = {"learned", "zero", "one", NULL};
static const char *const window_names[] = {"previous", "current", NULL};

static const lam_mem_field fields[] = {
    {LAM_WORD_FIELD(lamemo, alpha, alpha_names), .value = "learned", .option = "alpha",
     .help = "Alpha of the interpolation (Eq. 10-11): learned as in the paper; zero keeps only "
             "what look-ahead "
             "finds (no interpolation), one only the old context (no look-ahead)."},
    {LAM_WORD_FIELD(lamemo, window, window_names), .value = "previous", .option = "window",
     .help = "Keys that a memory slot looks ahead to (Eq. 7): as many of the newest ones as the "
             "previous segment had, "
             "so that a slot meets every later key exactly once, or as many as the current one has "
             "(the authors' "
             "code). The same for segments of equal length."},
    {LAM_FIELD(lamemo, interp_eps, REAL), .value = "1e-6", .max = 1, .option = "interp-eps",
     .help = "Epsilon in the denominator of alpha (Eq. 11), relative to the larger sum."},
    {LAM_FIELD(lamemo, refresh_from, INT), .max = LAM_MAX_LAYERS, .option = "refresh-from",
     .help = "Refresh the memory (look-ahead) in layer N, counted from 0, and above; below it the "
             "memory is Transformer-XL's. 0: in all layers, as in the paper; the number of layers: "
             "in none. Not in the paper."},
    {LAM_FIELD(lamemo, refresh_every, INT), .value = "1", .min = 1, .max = 1000,
     .option = "refresh-every",
     .help = "Refresh the memory in every N-th segment; between these it is Transformer-XL's. "
             "Segments of another "
             "length than tgt-len refresh it once more than (N - 1) * tgt-len tokens were read "
             "since the last time. 1: "
             "in every segment, as in the paper. Not in the paper."},
    {.json = {0}}};

extern const lam_mem_ops lam_mem_lamemo;

static lamemo fields_of(const lam_config *cfg)
{
    lamemo own;
    lam_fields_get(&own, sizeof own, cfg, &lam_mem_lamemo);
    return own;
}

static int rests(const lam_config *cfg, const lam_mem *mem)
{
    const int every = fields_of(cfg).refresh_every;
    return every > 1 && mem->prev <= (every - 1) * cfg->tgt_len;
}

/* Of a layer: look-ahead's contexts and log-denominators, and what interpolation made of them. */
typedef struct layer_buffers {
    void *c_new;           /* ACT [B][M][HK] */
    void *lse_new, *alpha; /* WIDE [B][M][H] */
} layer_buffers;

typedef struct shared_buffers {
    void *dc_new, *dlse_new; /* like c_new, lse_new */
} shared_buffers;

static layer_buffers *buffers_of(const lam_segment *s, int layer)
{
    return s->layer[layer].own;
}

static void layout(lam_segment *s, lam_arena *arena)
{
    const size_t slots = (size_t)s->B * (size_t)s->M, HK = (size_t)s->dims.HK;
    const size_t H = (size_t)s->cfg->n_head;
    const int from = fields_of(s->cfg).refresh_from;
    shared_buffers *shared = s->own;
    for (int l = from; l < s->cfg->n_layer; l++) {
        layer_buffers *b = buffers_of(s, l);
        if (l > from && !s->train && !s->full) { /* read at once, and by backward */
            b->c_new = buffers_of(s, from)->c_new;
            b->lse_new = buffers_of(s, from)->lse_new;
        } else {
            b->c_new = lam_mem_take(s, arena, LAM_ACT, slots * HK);
            b->lse_new = lam_mem_take(s, arena, LAM_WIDE, slots * H);
        }
        b->alpha = lam_mem_take(s, arena, LAM_WIDE, slots * H);
    }
    shared->dc_new = lam_mem_take(s, arena, LAM_ACT, s->train ? slots * HK : 0);
    shared->dlse_new = lam_mem_take(s, arena, LAM_WIDE, s->train ? slots * H : 0);
}

static int implied(const lam_config *cfg)
{
    return lam_attn_looks_ahead(cfg->attn_type);
}

static lam_status resolve(lam_config *cfg)
{
    const lamemo own = fields_of(cfg);
    if (cfg->mem_len <= 0)
        return lam_fail(LAM_ERR_ARG, "config: memory lamemo needs mem_len above 0");
    if (own.refresh_from > cfg->n_layer)
        return lam_fail(LAM_ERR_ARG,
                        "config: refresh_from %d, must be 0 to the number of layers, %d",
                        own.refresh_from, cfg->n_layer);
    if (own.refresh_every > 1 && own.window == CURRENT)
        return lam_fail(LAM_ERR_ARG,
                        "config: refresh_every %d needs window previous: a slot would never meet "
                        "the keys of segments that do not refresh it",
                        own.refresh_every);
    if ((double)(own.refresh_every - 1) * cfg->tgt_len >= LAM_MAX_LEN)
        return lam_fail(LAM_ERR_ARG,
                        "config: refresh_every %d times tgt_len %d must be below %d tokens",
                        own.refresh_every, cfg->tgt_len, LAM_MAX_LEN);
    return LAM_OK;
}

static int slots(const lam_mem *mem, const lam_config *cfg, int full, lam_slot *out)
{
    const lamemo own = fields_of(cfg);
    const int from = own.refresh_from;
    int n = 0;
    (void)mem;
    for (int l = 0; l < cfg->n_layer; l++) {
        if (l <= from || own.refresh_every > 1)
            out[n++] = (lam_slot){.name = "x", .source = LAM_FROM_X, .layer = l, .front = 1};
        if (l >= from && (full || l < cfg->n_layer - 1)) {
            out[n++] = (lam_slot){.name = "c", .source = LAM_FROM_C, .layer = l};
            out[n++] = (lam_slot){.name = "lse", .source = LAM_FROM_LSE, .layer = l};
        }
    }
    return n;
}

static lam_status check(const lam_config *cfg, int N, int M)
{
    (void)cfg, (void)N;
    return M > 0 ? LAM_OK : lam_fail(LAM_ERR_ARG, "memory lamemo needs a memory length above 0");
}

static int leads(const lam_config *cfg, int layer)
{
    return layer >= fields_of(cfg).refresh_from && layer < cfg->n_layer - 1;
}

/* The slot with the contexts of a layer that is refreshed; that with their log-denominators follows. */
static const lam_slot *contexts_of(const lam_segment *s, int layer)
{
    const lamemo own = fields_of(s->cfg);
    const int per_layer = own.refresh_every > 1 ? 3 : 2;
    return &s->mem->slots[own.refresh_from + 1 + per_layer * (layer - own.refresh_from)];
}

/* Do memory rows have contexts in this layer, and are they dealt with in this call: refreshed, or kept as they are? */
static int has_contexts(const lam_segment *s, int layer)
{
    const int full = s->full && layer >= fields_of(s->cfg).refresh_from;
    return s->ctx > 0 && s->first == 0 && (leads(s->cfg, layer) || full);
}

/* Eq. 7-9: slot i sees the keys j > i among the newest ones.  The window ends at the first token of the
 * current segment and is as long as the previous segment, so every slot meets every later key
 * once; the authors' code takes the current segment's length. */
static lam_attn ahead_attn(const lam_segment *s, int layer)
{
    const lam_layer_rows *rows = &s->layer[layer];
    const int window = fields_of(s->cfg).window == CURRENT ? s->T - s->ctx : s->mem->prev;
    const int oldest = s->ctx - window + 1 > 1 ? s->ctx - window + 1 : 1;
    const size_t HK = (size_t)s->dims.HK, H = (size_t)s->cfg->n_head;
    lam_attn a = lam_attn_base(s, LAM_SITE_ATTN_AHEAD, layer);
    a.mode = s->cfg->attn_type == LAM_ATTN_LAMEMO_FULL ? LAM_FULL : LAM_AHEAD;
    a.queries = s->ctx;
    a.keys = s->ctx - oldest + 1;
    a.shift = -oldest;
    a.valid = s->valid; /* a slot that is not valid itself reads what it likes: nobody reads it */
    a.past = s->ctx - oldest;
    a.q = lam_qkv_view(s, layer, LAM_Q, 0);
    a.k = lam_qkv_view(s, layer, LAM_K, oldest);
    a.value = lam_qkv_view(s, layer, LAM_V, oldest);
    a.k_scale = lam_kv_scale(s, layer, LAM_K, oldest);
    a.value_scale = lam_kv_scale(s, layer, LAM_V, oldest);
    if (fields_of(s->cfg).alpha == ZERO) { /* C<-> is C<- */
        a.o = lam_row_view(s, LAM_ACT, rows->c, s->dims.HK, 0);
        a.lse = lam_row_view(s, LAM_WIDE, rows->lse, s->cfg->n_head, 0);
    } else {
        a.o = (lam_view){buffers_of(s, layer)->c_new, (size_t)s->M * HK};
        a.lse = (lam_view){buffers_of(s, layer)->lse_new, (size_t)s->M * H};
    }
    lam_pos_ahead(s->pos, layer, &a);
    return a;
}

static lam_interp interpolation(const lam_segment *s, int layer)
{
    const lam_layer_rows *rows = &s->layer[layer];
    const layer_buffers *b = buffers_of(s, layer);
    const lam_slot *c_old = contexts_of(s, layer), *lse_old = c_old + 1;
    const size_t HK = (size_t)s->dims.HK, H = (size_t)s->cfg->n_head, M = (size_t)s->M;
    return (lam_interp){.B = s->B,
                        .rows = s->ctx,
                        .H = s->cfg->n_head,
                        .K = s->dims.K,
                        .eps = fields_of(s->cfg).interp_eps,
                        .c_old = {c_old->rows, M * HK},
                        .c_new = {b->c_new, M * HK},
                        .c_out = lam_row_view(s, LAM_ACT, rows->c, s->dims.HK, 0),
                        .lse_old = {lse_old->rows, M * H},
                        .lse_new = {b->lse_new, M * H},
                        .lse_out = lam_row_view(s, LAM_WIDE, rows->lse, s->cfg->n_head, 0),
                        .alpha = {b->alpha, M * H}};
}

/* The slot's context is what it was: alpha = 1, or the segment does not refresh it. */
static void keep_old(const lam_segment *s, int layer)
{
    const lam_interp i = interpolation(s, layer);
    const size_t m = (size_t)s->ctx;
    s->dev->ops->copy(s->dev, &(lam_copy){s->B, m * (size_t)s->dims.HK, LAM_ACT, i.c_old, i.c_out});
    s->dev->ops->copy(
        s->dev, &(lam_copy){s->B, m * (size_t)s->cfg->n_head, LAM_WIDE, i.lse_old, i.lse_out});
}

static void attend_fwd(const lam_segment *s, int layer)
{
    const int contexts = has_contexts(s, layer);
    const int keeps = fields_of(s->cfg).alpha == ONE || rests(s->cfg, s->mem);
    lam_causal_fwd(s, layer, contexts && !keeps);
    if (contexts && keeps)
        keep_old(s, layer);
    if (!contexts || keeps)
        return;
    const lam_attn a = ahead_attn(s, layer);
    s->dev->ops->attn_fwd(s->dev, &a);
    if (fields_of(s->cfg).alpha == LEARNED) {
        const lam_interp i = interpolation(s, layer);
        s->dev->ops->interp_fwd(s->dev, &i);
    }
}

/* forward was  C<-, log s<- = attend ahead(q, k, v)  and  C<-> = alpha C-> + (1 - alpha) C<-  with alpha a function of log s<-
 * (Eq. 9-11); C-> and log s-> are constants.  Adds to dqkv, after the causal attention's gradient wrote it. */
static void ahead_bwd(const lam_segment *s, int layer)
{
    lam_attn a = ahead_attn(s, layer);
    a.d_o = lam_row_view(s, LAM_ACT, s->dc, s->dims.HK, 0);
    if (fields_of(s->cfg).alpha == LEARNED) {
        const shared_buffers *shared = s->own;
        lam_interp i = interpolation(s, layer);
        i.dc_out = a.d_o;
        i.dc_new = (lam_view){shared->dc_new, (size_t)s->M * (size_t)s->dims.HK};
        i.dlse_new = (lam_view){shared->dlse_new, (size_t)s->M * (size_t)s->cfg->n_head};
        s->dev->ops->interp_bwd(s->dev, &i);
        a.d_o = i.dc_new;
        a.dlse = i.dlse_new;
    }
    const int oldest = -a.shift;
    a.dq = lam_dqkv_view(s, LAM_Q, 0);
    a.dk = lam_dqkv_view(s, LAM_K, oldest);
    a.dvalue = lam_dqkv_view(s, LAM_V, oldest);
    a.kv_add = 1;
    lam_pos_ahead_grad(s->pos, layer, &a);
    s->dev->ops->attn_bwd(s->dev, &a);
    lam_pos_ahead_done(s->pos, layer);
}

/* forward was  [q k v] = x W^T,  C-> by causal attention,  C<-> by look-ahead and interpolation: the last two add to dqkv
 * before it goes through the projections; where nothing was refreshed, memory rows had no queries. */
static void attend_bwd(const lam_segment *s, int layer)
{
    const int ahead = s->ctx > 0 && leads(s->cfg, layer) && fields_of(s->cfg).alpha != ONE &&
                      !rests(s->cfg, s->mem);
    lam_causal_bwd(s, layer);
    if (ahead)
        ahead_bwd(s, layer);
    lam_project_bwd(s, layer, ahead ? 0 : s->ctx);
}

/* Keys seen by a memory slot, averaged over the M slots: the newest min(N, M) keys, the newest slots fewer. */
static double ahead_keys(double N, double M)
{
    const double W = N < M ? N : M;
    return M > 0.0 ? (W * (M - W + 1.0) + W * (W - 1.0) / 2.0) / M : 0.0;
}

/* The mean over K segments, one of which refreshes. */
static void spread_cost(lam_mem_cost *c, const lam_config *cfg)
{
    const double share = 1.0 / fields_of(cfg).refresh_every;
    lam_mem_cost keys = {0};
    lam_cost_keys(&keys, cfg);
    c->memory = share * c->memory + (1.0 - share) * keys.memory;
    c->constant = share * c->constant + (1.0 - share) * keys.constant;
    c->unused *= share;
    c->look_ahead *= share;
    c->attention *= share;
}

/* Where rows are refreshed, every slot goes through the whole layer; the last one needs only keys and values of them, as
 * do the layers below and all layers of a segment that refreshes nothing. */
static void cost(lam_mem_cost *out, const lam_config *cfg)
{
    const double D = cfg->d_model, HK = lam_cost_heads(cfg), F = cfg->d_inner;
    const double N = cfg->tgt_len, M = cfg->mem_len, R = fields_of(cfg).refresh_from;
    const double refreshed = cfg->n_layer - R, climbing = refreshed > 0.0 ? refreshed - 1.0 : 0.0;
    const double one_ahead = 3.0 * HK * ahead_keys(N, M) * M / N;
    out->memory = (refreshed * (4.0 * D * HK + 2.0 * D * F) + R * 2.0 * D * HK) * M / N;
    out->unused = (refreshed - climbing) * M / N * (2.0 * D * HK + 2.0 * D * F);
    out->look_ahead = refreshed * one_ahead;
    out->attention = climbing * one_ahead;
    /* keys and values of the layers up to R, and the queries of R's rows where they climb */
    out->constant = M * D * HK * (climbing > 0.0 ? 2.0 * R + 3.0 : 2.0 * cfg->n_layer);
    out->positions = M;
    if (fields_of(cfg).refresh_every > 1)
        spread_cost(out, cfg);
}

/* Appends a part of the description. */
static void tell(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void tell(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    const int begun = used > 0;
    va_list args;
    if (begun)
        snprintf(text + used, size - used, ", ");
    const size_t at = strlen(text);
    va_start(args, format);
    vsnprintf(text + at, size - at, format, args);
    va_end(args);
}

static void details(char *text, size_t size, const lam_config *cfg)
{
    const lamemo o = fields_of(cfg);
    *text = '\0';
    if (o.alpha != LEARNED)
        tell(text, size, "alpha %s", alpha_names[o.alpha]);
    if (o.window != PREVIOUS)
        tell(text, size, "window %s", window_names[o.window]);
    if (o.refresh_from > 0)
        tell(text, size, "refresh from layer %d", o.refresh_from);
    if (o.refresh_every > 1)
        tell(text, size, "refresh every %d segments", o.refresh_every);
}

static const char *not_in_torch(const lam_config *cfg)
{
    const lamemo own = fields_of(cfg);
    return own.refresh_from > 0 ? "refresh_from" : own.refresh_every > 1 ? "refresh_every" : NULL;
}

static const char *lacks_alpha(const lam_config *cfg)
{
    const alpha_kind kind = fields_of(cfg).alpha;
    return kind == ZERO                              ? "it was made with alpha = 0"
           : kind == ONE                             ? "it was made with alpha = 1"
           : leads(cfg, fields_of(cfg).refresh_from) ? NULL
                                                     : "its memory rows are not refreshed";
}

static const void *alpha(const lam_segment *s, int layer)
{
    /* below refresh_from it is NULL: structs are zeroed */
    return rests(s->cfg, s->mem) ? NULL : buffers_of(s, layer)->alpha;
}

/* Table 3. */
static const lam_ablation ablations[] = {{"no-interpolation", "alpha=zero"},
                                         {"no-look-ahead", "alpha=one"},
                                         {"xl-encoding", "attn-type=31"},
                                         {0}};

const lam_mem_ops lam_mem_lamemo = {
    .name = "lamemo",
    .title = "LaMemo",
    .paper = {.role = LAM_SUBJECT, .parameters = 151, .macs = 191},
    .traits = LAM_REMEMBERS | LAM_CACHED | LAM_REPEATS | LAM_IN_INTEGERS | LAM_IN_TORCH,
    .attn_types = (const int[]){LAM_ATTN_LAMEMO, LAM_ATTN_LAMEMO_XL, LAM_ATTN_LAMEMO_BOTH,
                                LAM_ATTN_LAMEMO_FULL, -1},
    .cost = cost,
    .fields = fields,
    .options = "LaMemo's memory",
    .in_every_file = 1,
    .implied = implied,
    .resolve = resolve,
    .slots = slots,
    .attend_fwd = attend_fwd,
    .attend_bwd = attend_bwd,
    .check = check,
    .leads = leads,
    .rests = rests,
    .layer_size = sizeof(layer_buffers),
    .shared_size = sizeof(shared_buffers),
    .layout = layout,
    .details = details,
    .ablations = ablations,
    .not_in_torch = not_in_torch,
    .lacks_alpha = lacks_alpha,
    .alpha = alpha,
};
