/* opcases_attn.c -- attention: every mode, edge and optional part, forward and backward.
 *
 * The options of a case (positional keys, biases, dropout, layouts, gradients) are drawn at random;
 * the shapes and the geometry come from the lists at the end. */
#include "support/opcase.h"

#include <math.h>

static void call_fwd(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->attn_fwd(dev, op);
}

static void call_bwd(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->attn_bwd(dev, op);
}

typedef struct geometry {
    int B, H, K, queries, keys;
    lam_attn_mode mode;
    int shift, reach;
    int plain;     /* 1: value is the identity, so that o shows P itself and its dropout mask */
    double spread; /* size of q and k */
    int narrow;    /* in bf16: 1 keys and values, 2 positions, 3 both */
} geometry;

static int visible(const geometry *s, int i, int j)
{
    const int past = s->shift + i - j;
    if (s->mode == LAM_CAUSAL)
        return past >= 0 && (s->reach == 0 || past < s->reach);
    return s->mode == LAM_FULL || past < 0;
}

/* Chooses r_sign, r_zero and r_rows so that visible pairs fit, with some rows that none reads. */
static void choose_rows(lam_case *c, const geometry *s, lam_attn *a)
{
    int low = 0, high = 0, any = 0;
    a->r_sign = lam_case_pick(c, 2) ? 1 : -1;
    for (int i = 0; i < s->queries; i++)
        for (int j = 0; j < s->keys; j++) {
            const int d = a->r_sign * (j - s->shift - i);
            if (!visible(s, i, j))
                continue;
            low = !any || d < low ? d : low;
            high = !any || d > high ? d : high;
            any = 1;
        }
    const int front = lam_case_pick(c, 3), back = lam_case_pick(c, 3);
    a->r_zero = front - low;
    a->r_rows = front + high - low + 1 + back;
}

/* A [H][K] vector. */
static void head_vector(lam_case *c, void *slot, const char *name, int flags, const lam_attn *a)
{
    const size_t n = (size_t)a->H * (size_t)a->K;
    lam_case_rows(c, slot, name, LAM_WIDE, flags, &(lam_layout){1, 1, n, n, n}, LAM_RANDOM);
}

static void view_as(lam_case *c, lam_view *v, const char *name, lam_class type, int flags,
                    const lam_layout *at, lam_fill fill)
{
    v->step = at->step;
    lam_case_rows(c, &v->p, name, type, flags, at, fill);
}

static void view(lam_case *c, lam_view *v, const char *name, int flags, const lam_layout *at,
                 lam_fill fill)
{
    view_as(c, v, name, LAM_ACT, flags, at, fill);
}

/* q, k and value (or their gradients) as columns of one buffer whose newest rows are the queries. */
static double *packed(lam_case *c, lam_view *const v[3], const char *name, int flags,
                      const lam_layout *at, int queries, lam_fill fill)
{
    double *p = lam_case_rows(c, &v[1]->p, name, LAM_ACT, flags, at, fill);
    const size_t width = at->width / 3, lead = (at->rows - (size_t)queries) * at->ld;
    c->slot[c->n_slots - 1].offset = width;
    lam_case_share(c, &v[0]->p, lead);
    lam_case_share(c, &v[2]->p, 2 * width);
    v[0]->step = v[1]->step = v[2]->step = at->step;
    return p;
}

typedef struct layouts {
    int packed;
    lam_layout q, k, o, lse;
} layouts;

static layouts choose_layouts(lam_case *c, const geometry *s, lam_attn *a)
{
    const int width = s->H * s->K;
    layouts l = {.packed = s->keys >= s->queries && lam_case_pick(c, 3) == 0 && !s->narrow};
    l.q = lam_case_layout(c, s->B, s->queries, width);
    l.k = lam_case_layout(c, s->B, s->keys, l.packed ? 3 * width : width);
    l.o = lam_case_layout(c, s->B, s->queries, width);
    l.lse = (lam_layout){(size_t)s->B, (size_t)s->queries, (size_t)s->H, (size_t)s->H,
                         (size_t)((s->queries + lam_case_pick(c, 3)) * s->H)};
    a->ldk = l.k.ld;
    a->ldq = l.packed ? l.k.ld : l.q.ld;
    a->ldo = l.o.ld;
    return l;
}

static void make_identity(double *value, const geometry *s, const lam_layout *at)
{
    for (size_t b = 0; b < at->blocks; b++)
        for (size_t j = 0; j < at->rows; j++)
            for (size_t x = 0; x < at->width; x++)
                value[b * at->step + j * at->ld + x] = x % (size_t)s->K == j;
}

/* What both directions read. */
static void add_inputs(lam_case *c, const geometry *s, lam_attn *a, layouts *l)
{
    *a = (lam_attn){.B = s->B,
                    .H = s->H,
                    .K = s->K,
                    .queries = s->queries,
                    .keys = s->keys,
                    .mode = s->mode,
                    .shift = s->shift,
                    .reach = s->reach,
                    .scale = 1.0 / sqrt(s->K),
                    .kv_class = s->narrow & 1 ? LAM_HALF : LAM_ACT,
                    .r_class = s->narrow & 2 ? LAM_HALF : LAM_ACT};
    *l = choose_layouts(c, s, a);
    if (s->plain)
        l->packed = 0, l->k = lam_case_layout(c, s->B, s->keys, s->H * s->K), a->ldk = l->k.ld,
        a->ldq = l->q.ld;
    if (lam_case_pick(c, 2) || s->plain)
        a->drop = lam_case_drop(c, 0.1 + 0.2 * lam_case_pick(c, 4));
    if (l->packed) {
        lam_view *const v[3] = {&a->q, &a->k, &a->value};
        packed(c, v, "qkv", LAM_READ, &l->k, s->queries, LAM_RANDOM);
    } else {
        view(c, &a->q, "q", LAM_READ, &l->q, LAM_RANDOM);
        view_as(c, &a->k, "k", a->kv_class, LAM_READ, &l->k, LAM_RANDOM);
        view_as(c, &a->value, "value", a->kv_class, LAM_READ, &l->k, LAM_RANDOM);
        if (s->plain)
            make_identity(c->buffer[c->n_buffers - 1].first, s, &l->k);
    }
    for (size_t i = 0; i < c->buffer[0].count; i++)
        if (c->buffer[0].first[i] != LAM_GUARD && s->spread != 0.0)
            c->buffer[0].first[i] *= s->spread;

    const int positions = lam_case_pick(c, 4); /* 0: none; 1: with rbias */
    if (lam_case_pick(c, 4))
        head_vector(c, &a->u, "u", LAM_SUMMED, a);
    if (positions == 0)
        return;
    choose_rows(c, s, a);
    const lam_layout at = lam_case_layout(c, 1, a->r_rows, s->H * s->K);
    a->ldr = at.ld;
    lam_case_rows(c, &a->r, "r", a->r_class, LAM_READ, &at, LAM_RANDOM);
    if (lam_case_pick(c, 4))
        head_vector(c, &a->v, "v", LAM_SUMMED, a);
    const size_t H = (size_t)s->H, rows = (size_t)a->r_rows;
    if (positions == 1)
        lam_case_rows(c, &a->rbias, "rbias", LAM_WIDE, LAM_READ,
                      &(lam_layout){1, rows, H, H, rows * H}, LAM_RANDOM);
}

static void add_outputs(lam_case *c, const geometry *s, lam_attn *a, const layouts *l, int flags)
{
    a->o.step = l->o.step;
    a->lse.step = l->lse.step;
    lam_case_rows(c, &a->o.p, "o", LAM_ACT, flags | (s->plain && flags ? LAM_SAME_ZEROS : 0), &l->o,
                  LAM_NAN);
    lam_case_rows(c, &a->lse.p, "lse", LAM_WIDE, flags, &l->lse, LAM_NAN);
    c->work = (lam_work){.B = s->B,
                         .H = s->H,
                         .K = s->K,
                         .queries = s->queries,
                         .keys = s->keys,
                         .r_rows = a->r_rows,
                         .rows = s->B * (s->queries > s->keys ? s->queries : s->keys),
                         .width = s->H * s->K,
                         .narrow = s->narrow != 0};
}

static void add_gradients(lam_case *c, const geometry *s, lam_attn *a, const layouts *l)
{
    a->kv_add = lam_case_pick(c, 2);
    const lam_fill kv = a->kv_add ? LAM_RANDOM : LAM_NAN;
    view(c, &a->d_o, "d_o", LAM_READ, &l->o, LAM_RANDOM);
    if (lam_case_pick(c, 2)) {
        a->dlse.step = l->lse.step;
        lam_case_rows(c, &a->dlse.p, "dlse", LAM_WIDE, LAM_READ, &l->lse, LAM_RANDOM);
    }
    if (l->packed) {
        lam_view *const v[3] = {&a->dq, &a->dk, &a->dvalue};
        double *p = packed(c, v, "dqkv", LAM_WRITTEN, &l->k, s->queries, kv);
        const size_t lead = l->k.rows - (size_t)s->queries;
        for (size_t b = 0; b < l->k.blocks; b++) /* older rows have no query */
            for (size_t i = 0; i < lead * l->k.ld; i++)
                if (i % l->k.ld < l->k.width / 3)
                    p[b * l->k.step + i] = LAM_GUARD;
    } else {
        view(c, &a->dq, "dq", LAM_WRITTEN, &l->q, LAM_NAN);
        view(c, &a->dk, "dk", LAM_WRITTEN, &l->k, kv);
        view(c, &a->dvalue, "dvalue", LAM_WRITTEN, &l->k, kv);
    }
    const size_t width = (size_t)(s->H * s->K), rows = (size_t)a->r_rows, H = (size_t)s->H;
    int has_r = 0, has_u = 0, has_v = 0, has_bias = 0;
    for (int i = 0; i < c->n_slots; i++) {
        has_r |= c->slot[i].pointer == (void *)&a->r;
        has_u |= c->slot[i].pointer == (void *)&a->u;
        has_v |= c->slot[i].pointer == (void *)&a->v;
        has_bias |= c->slot[i].pointer == (void *)&a->rbias;
    }
    if (has_r)
        lam_case_rows(c, &a->dr, "dr", LAM_ACT, LAM_WRITTEN,
                      &(lam_layout){1, rows, width, a->ldr, rows * a->ldr}, LAM_NAN);
    if (has_u)
        head_vector(c, &a->du, "du", LAM_WRITTEN, a);
    if (has_v)
        head_vector(c, &a->dv, "dv", LAM_WRITTEN, a);
    if (has_bias)
        lam_case_rows(c, &a->drbias, "drbias", LAM_WIDE, LAM_WRITTEN,
                      &(lam_layout){1, rows, H, H, rows * H}, LAM_RANDOM);
}

static void name_case(lam_case *c, const char *op, const geometry *s, const lam_attn *a, int pack)
{
    static const char *const mode[] = {"causal", "ahead", "full"};
    char parts[128] = "";
    size_t n = 0;
    for (int i = 0; i < c->n_buffers && n + 12 < sizeof parts; i++)
        n += (size_t)snprintf(parts + n, sizeof parts - n, " %s", c->buffer[i].name);
    lam_case_name(c,
                  "%s %s B=%d H=%d K=%d queries=%d keys=%d shift=%d reach=%d r=%d*%d%+d drop=%g "
                  "packed=%d narrow=%d:%s",
                  op, mode[s->mode], s->B, s->H, s->K, s->queries, s->keys, s->shift, s->reach,
                  a->r_rows, a->r_sign, a->r_zero, a->drop.p, pack, s->narrow, parts);
}

static void attn_one(lam_case_run *run, geometry s, int backward)
{
    lam_attn a = {0};
    layouts l;
    lam_case c = lam_case_start(run, backward ? call_bwd : call_fwd, &a, backward ? 3.0 : 2.0);
    c.mixed = 1;
    s.K = (int)lam_case_pad(&c, (size_t)s.K);
    add_inputs(&c, &s, &a, &l);
    add_outputs(&c, &s, &a, &l, backward ? LAM_READ : LAM_WRITTEN);
    if (backward) {
        lam_case_prepare(&c, call_fwd);
        add_gradients(&c, &s, &a, &l);
    }
    name_case(&c, backward ? "attn_bwd" : "attn_fwd", &s, &a, l.packed);
    lam_case_check(&c);
}

/* B, H, K, queries, keys, mode, shift, reach, plain, spread, narrow */
static const geometry special[] = {
    {2, 2, 16, 33, 33, LAM_CAUSAL, 0, 0, 0, 0, 0},   /* empty memory */
    {2, 3, 20, 31, 44, LAM_CAUSAL, 13, 0, 0, 0, 0},  /* M < N */
    {1, 2, 41, 17, 70, LAM_CAUSAL, 53, 0, 0, 0, 0},  /* M > N */
    {3, 2, 32, 1, 65, LAM_CAUSAL, 64, 0, 0, 0, 0},   /* one query, decoding */
    {2, 1, 8, 1, 1, LAM_CAUSAL, 0, 0, 0, 0, 0},      /* one pair */
    {1, 10, 41, 15, 30, LAM_CAUSAL, 15, 0, 0, 0, 0}, /* heads of 41 */
    {2, 2, 16, 40, 20, LAM_CAUSAL, -11, 0, 0, 0, 0}, /* the first queries see nothing */
    {2, 2, 16, 20, 40, LAM_CAUSAL, 5, 0, 0, 0, 0},   /* the newest keys are seen by none */
    {2, 2, 16, 33, 66, LAM_CAUSAL, 33, 1, 0, 0, 0},  /* reach: only itself */
    {1, 2, 16, 33, 66, LAM_CAUSAL, 33, 17, 0, 0, 0},
    {2, 1, 24, 20, 52, LAM_CAUSAL, 32, 32, 0, 0, 0},
    {1, 1, 16, 20, 52, LAM_CAUSAL, 32, 500, 0, 0, 0},
    {1, 2, 16, 70, 10, LAM_CAUSAL, 0, 8, 0, 0, 0},  /* the last queries are past all keys */
    {2, 2, 32, 64, 64, LAM_AHEAD, -1, 0, 0, 0, 0},  /* LaMemo, M = N: keys 1 .. M */
    {2, 2, 32, 96, 32, LAM_AHEAD, -65, 0, 0, 0, 0}, /* LaMemo, M > N: the newest N keys */
    {1, 4, 16, 20, 20, LAM_AHEAD, -1, 0, 0, 0, 0},  /* LaMemo, M < N: keys 1 .. M */
    {2, 2, 16, 33, 1, LAM_AHEAD, -33, 0, 0, 0, 0},  /* LaMemo with one new token */
    {2, 2, 16, 17, 17, LAM_AHEAD, 0, 0, 0, 0, 0},   /* the last query sees nothing */
    {1, 2, 16, 40, 30, LAM_AHEAD, 7, 0, 0, 0, 0},   /* many see nothing */
    {2, 2, 8, 9, 5, LAM_AHEAD, 5, 0, 0, 0, 0},      /* none sees anything */
    {1, 1, 8, 9, 5, LAM_CAUSAL, -9, 0, 0, 0, 0},    /* none sees anything */
    {2, 2, 16, 45, 31, LAM_FULL, -20, 0, 0, 0, 0},  /* attn_type 33 */
    {1, 3, 16, 8, 129, LAM_FULL, 0, 0, 0, 0, 0},
    {2, 2, 32, 33, 32, LAM_FULL, 3, 0, 1, 0, 0}, /* P itself and its mask */
    {2, 3, 40, 17, 37, LAM_CAUSAL, 20, 0, 1, 0, 0},
    {1, 2, 64, 64, 64, LAM_AHEAD, -1, 0, 1, 0, 0},
    {2, 1, 16, 130, 15, LAM_FULL, 3, 0, 1, 0, 0},
    {1, 2, 16, 33, 49, LAM_CAUSAL, 16, 0, 0, 12, 0}, /* large scores */
    {1, 2, 16, 33, 49, LAM_AHEAD, -9, 0, 0, 12, 0},
    {1, 1, 128, 30, 60, LAM_CAUSAL, 30, 0, 0, 0, 0}, /* wide heads */
    {1, 1, 160, 17, 33, LAM_CAUSAL, 16, 0, 0, 0, 0},
    {1, 1, 64, 257, 300, LAM_CAUSAL, 43, 0, 0, 0, 0}, /* several tiles each way */
    {1, 1, 64, 300, 200, LAM_AHEAD, -101, 0, 0, 0, 0},
    {3, 2, 64, 130, 261, LAM_CAUSAL, 131, 0, 0, 0, 0}, /* and several streams and heads */
    {2, 3, 32, 200, 330, LAM_CAUSAL, 130, 0, 0, 0, 0},
    {5, 2, 48, 150, 150, LAM_AHEAD, -1, 0, 0, 0, 0},
    {1, 2, 32, 260, 390, LAM_CAUSAL, 130, 100, 0, 0, 0}, /* reach over tiles */
    {1, 2, 64, 100, 210, LAM_FULL, -20, 0, 0, 0, 0},
    {2, 1, 32, 250, 70, LAM_AHEAD, 3, 0, 0, 0, 0}, /* the last tiles see nothing */
};

/* A geometry with the given sizes and the rest drawn, small enough for the naive loops. */
static geometry draw(lam_case *c, int queries, int keys)
{
    static const int width[] = {1, 5, 8, 16, 20, 32, 41, 64, 65, 96, 128};
    geometry s = {.queries = queries, .keys = keys};
    s.mode = (lam_attn_mode)lam_case_pick(c, 3);
    s.K = width[lam_case_pick(c, 11)];
    while (s.K > 8 && queries * keys * s.K > 400000)
        s.K = width[lam_case_pick(c, 11)];
    const int room = 400000 / (queries * keys * s.K);
    s.B = 1 + (room > 1 ? lam_case_pick(c, room < 3 ? room : 3) : 0);
    s.H = 1 + (room / s.B > 1 ? lam_case_pick(c, room / s.B < 4 ? room / s.B : 4) : 0);
    switch (lam_case_pick(c, 3)) {
    case 0: /* as the models do it */
        s.shift =
            s.mode == LAM_AHEAD ? (queries >= keys ? keys - queries - 1 : -1) : keys - queries;
        break;
    case 1:
        s.shift = lam_case_pick(c, queries + keys) - queries;
        break;
    default:
        s.shift = 0;
    }
    if (s.mode == LAM_CAUSAL && lam_case_pick(c, 3) == 0)
        s.reach = 1 + lam_case_pick(c, keys + 3);
    return s;
}

static void attn_list(lam_case_run *run, int backward)
{
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        for (int again = 0; again < 2; again++)
            attn_one(run, special[i], backward);
    lam_case sizes = lam_case_start(run, NULL, NULL, 0.0);
    for (int e = 0; e < lam_case_n_edges; e++) {
        attn_one(run, draw(&sizes, lam_case_edges[e], lam_case_edge(&sizes, 129)), backward);
        attn_one(run, draw(&sizes, lam_case_edge(&sizes, 129), lam_case_edges[e]), backward);
    }
}

static void call_profile(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->profile(dev, op);
}

static void call_profile_fwd(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->attn_fwd(dev, &((const lam_profile *)op)->attn);
}

static void profile_one(lam_case_run *run, geometry s)
{
    lam_profile a = {0};
    layouts l;
    lam_case c = lam_case_start(run, call_profile, &a, 2.0);
    s.K = (int)lam_case_pad(&c, (size_t)s.K);
    add_inputs(&c, &s, &a.attn, &l);
    add_outputs(&c, &s, &a.attn, &l, LAM_READ);
    lam_case_prepare(&c, call_profile_fwd);
    const size_t rows = (size_t)s.B * (size_t)s.queries * (size_t)s.H;
    a.interval = 1 + lam_case_pick(&c, 7);
    a.bins = 1 + lam_case_pick(&c, 2 + s.keys / a.interval);
    for (int k = 0; k < LAM_CUTS; k++)
        a.cut[k] = lam_case_pick(&c, s.keys + 1);
    const size_t bins = (size_t)a.bins, stats = LAM_PROFILE_STATS;
    lam_case_rows(&c, &a.peak, "peak", LAM_WIDE, LAM_WRITTEN,
                  &(lam_layout){1, rows, bins, bins, rows * bins}, LAM_NAN);
    lam_case_rows(&c, &a.stats, "stats", LAM_WIDE, LAM_WRITTEN,
                  &(lam_layout){1, rows, stats, stats, rows * stats}, LAM_NAN);
    name_case(&c, "profile", &s, &a.attn, l.packed);
    lam_case_check(&c);
}

/* Causal, and every key on the left of the last query exists. */
void lam_cases_profile(lam_case_run *run)
{
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (special[i].mode == LAM_CAUSAL &&
            special[i].shift + special[i].queries <= special[i].keys)
            profile_one(run, special[i]);
    lam_case sizes = lam_case_start(run, NULL, NULL, 0.0);
    for (int e = 0; e < lam_case_n_edges; e++) {
        const int queries = lam_case_edges[e], memory = lam_case_edge(&sizes, 129);
        geometry s = draw(&sizes, queries, queries + memory);
        s.mode = LAM_CAUSAL;
        s.shift = memory;
        profile_one(run, s);
    }
    profile_one(run,
                (geometry){1, 1, 16, 70, 1100, LAM_CAUSAL, 1030, 0, 0, 0, 0}); /* three chunks */
}

void lam_cases_attn_fwd(lam_case_run *run)
{
    attn_list(run, 0);
}

void lam_cases_attn_bwd(lam_case_run *run)
{
    attn_list(run, 1);
}

/* Forward only: nothing is trained on caches.  Few queries and many go different ways. */
void lam_cases_attn_narrow(lam_case_run *run)
{
    if (!run->dev->narrow)
        return;
    lam_case sizes = lam_case_start(run, NULL, NULL, 0.0);
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        geometry s = special[i];
        s.narrow = 1 + lam_case_pick(&sizes, 3);
        attn_one(run, s, 0);
    }
    for (int e = 0; e < lam_case_n_edges; e++)
        for (int queries = 1; queries <= 3; queries++) {
            geometry s = draw(&sizes, queries, lam_case_edges[e]);
            s.narrow = 1 + lam_case_pick(&sizes, 3);
            attn_one(run, s, 0);
        }
}
