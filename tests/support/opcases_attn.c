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
    int past;      /* of the first keys some streams have only a part, or none */
    int tiled; /* 1: positional keys, and nothing that a back-end's tiles may leave to plain loops */
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
    if (!s->tiled && (lam_case_pick(c, 2) || s->plain))
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

    const int positions = s->tiled ? 2 : lam_case_pick(c, 4); /* 0: none; 1: with rbias */
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

/* Streams with none, all, some or one of the first `past` keys, and one that claims more than there are. */
static void add_valid(lam_case *c, const geometry *s, lam_attn *a)
{
    if (s->past == 0)
        return;
    double *valid = lam_case_buf(c, &a->valid, "valid", LAM_INT, LAM_READ, (size_t)s->B);
    const double kinds[] = {0, s->past, lam_case_pick(c, s->past), 1, s->past + 3};
    const int first = lam_case_pick(c, 5);
    a->past = s->past;
    for (int b = 0; b < s->B; b++)
        valid[b] = kinds[(first + b) % 5];
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
                  "packed=%d narrow=%d past=%d:%s",
                  op, mode[s->mode], s->B, s->H, s->K, s->queries, s->keys, s->shift, s->reach,
                  a->r_rows, a->r_sign, a->r_zero, a->drop.p, pack, s->narrow, s->past, parts);
}

static void attn_one(lam_case_run *run, geometry s, int backward)
{
    lam_attn a = {0};
    layouts l;
    lam_case c = lam_case_start(run, backward ? call_bwd : call_fwd, &a, backward ? 3.0 : 2.0);
    c.mixed = 1;
    s.K = (int)lam_case_pad(&c, (size_t)s.K);
    add_inputs(&c, &s, &a, &l);
    add_valid(&c, &s, &a);
    add_outputs(&c, &s, &a, &l, backward ? LAM_READ : LAM_WRITTEN);
    if (backward) {
        lam_case_prepare(&c, call_fwd);
        add_gradients(&c, &s, &a, &l);
    }
    name_case(&c, backward ? "attn_bwd" : "attn_fwd", &s, &a, l.packed);
    lam_case_check(&c);
}

/* B, H, K, queries, keys, mode */
static const geometry special[] = {
    {2, 2, 16, 33, 33, LAM_CAUSAL, .shift = 0},              /* empty memory */
    {2, 3, 20, 31, 44, LAM_CAUSAL, .shift = 13},             /* M < N */
    {1, 2, 41, 17, 70, LAM_CAUSAL, .shift = 53},             /* M > N */
    {3, 2, 32, 1, 65, LAM_CAUSAL, .shift = 64},              /* one query, decoding */
    {2, 1, 8, 1, 1, LAM_CAUSAL, .shift = 0},                 /* one pair */
    {1, 10, 41, 15, 30, LAM_CAUSAL, .shift = 15},            /* heads of 41 */
    {2, 2, 16, 40, 20, LAM_CAUSAL, .shift = -11},            /* the first queries see nothing */
    {2, 2, 16, 20, 40, LAM_CAUSAL, .shift = 5},              /* the newest keys are seen by none */
    {2, 2, 16, 33, 66, LAM_CAUSAL, .shift = 33, .reach = 1}, /* reach: only itself */
    {1, 2, 16, 33, 66, LAM_CAUSAL, .shift = 33, .reach = 17},
    {2, 1, 24, 20, 52, LAM_CAUSAL, .shift = 32, .reach = 32},
    {1, 1, 16, 20, 52, LAM_CAUSAL, .shift = 32, .reach = 500},
    {1, 2, 16, 70, 10, LAM_CAUSAL, .shift = 0, .reach = 8}, /* the last queries are past all keys */
    {2, 2, 32, 64, 64, LAM_AHEAD, .shift = -1},             /* LaMemo, M = N: keys 1 .. M */
    {2, 2, 32, 96, 32, LAM_AHEAD, .shift = -65},            /* LaMemo, M > N: the newest N keys */
    {1, 4, 16, 20, 20, LAM_AHEAD, .shift = -1},             /* LaMemo, M < N: keys 1 .. M */
    {2, 2, 16, 33, 1, LAM_AHEAD, .shift = -33},             /* LaMemo with one new token */
    {2, 2, 16, 17, 17, LAM_AHEAD, .shift = 0},              /* the last query sees nothing */
    {1, 2, 16, 40, 30, LAM_AHEAD, .shift = 7},              /* many see nothing */
    {2, 2, 8, 9, 5, LAM_AHEAD, .shift = 5},                 /* none sees anything */
    {1, 1, 8, 9, 5, LAM_CAUSAL, .shift = -9},               /* none sees anything */
    {2, 2, 16, 45, 31, LAM_FULL, .shift = -20},             /* attn_type 33 */
    {1, 3, 16, 8, 129, LAM_FULL, .shift = 0},
    {2, 2, 32, 33, 32, LAM_FULL, .shift = 3, .plain = 1}, /* P itself and its mask */
    {2, 3, 40, 17, 37, LAM_CAUSAL, .shift = 20, .plain = 1},
    {1, 2, 64, 64, 64, LAM_AHEAD, .shift = -1, .plain = 1},
    {2, 1, 16, 130, 15, LAM_FULL, .shift = 3, .plain = 1},
    {1, 2, 16, 33, 49, LAM_CAUSAL, .shift = 16, .spread = 12}, /* large scores */
    {1, 2, 16, 33, 49, LAM_AHEAD, .shift = -9, .spread = 12},
    {1, 1, 128, 30, 60, LAM_CAUSAL, .shift = 30}, /* wide heads */
    {1, 1, 160, 17, 33, LAM_CAUSAL, .shift = 16},
    {1, 1, 64, 257, 300, LAM_CAUSAL, .shift = 43}, /* several tiles each way */
    {1, 1, 64, 300, 200, LAM_AHEAD, .shift = -101},
    {3, 2, 64, 130, 261, LAM_CAUSAL, .shift = 131}, /* and several streams and heads */
    {2, 3, 32, 200, 330, LAM_CAUSAL, .shift = 130},
    {5, 2, 48, 150, 150, LAM_AHEAD, .shift = -1},
    {1, 2, 32, 260, 390, LAM_CAUSAL, .shift = 130, .reach = 100}, /* reach over tiles */
    {1, 2, 64, 100, 210, LAM_FULL, .shift = -20},
    {2, 1, 32, 250, 70, LAM_AHEAD, .shift = 3}, /* the last tiles see nothing */
    {5, 2, 16, 33, 66, LAM_CAUSAL, .shift = 33,
     .past = 33}, /* streams remember different amounts */
    {5, 1, 41, 1, 65, LAM_CAUSAL, .shift = 64, .past = 64},
    {4, 1, 32, 2, 70, LAM_CAUSAL, .shift = 68, .past = 64},
    {3, 2, 24, 20, 52, LAM_CAUSAL, .shift = 32, .reach = 32,
     .past = 32},                                            /* and a reach beside it */
    {5, 1, 32, 64, 64, LAM_AHEAD, .shift = -1, .past = 63},  /* LaMemo, M = N */
    {3, 2, 16, 96, 32, LAM_AHEAD, .shift = -65, .past = 31}, /* LaMemo, M > N */
    {3, 2, 16, 45, 31, LAM_FULL, .shift = -20, .past = 30},
    {4, 1, 64, 130, 258, LAM_CAUSAL, .shift = 128, .past = 128}, /* whole tiles are not valid */
    {3, 1, 64, 65, 194, LAM_CAUSAL, .shift = 129, .past = 129},
    {3, 1, 48, 150, 151, LAM_AHEAD, .shift = -1, .past = 150},
    {3, 1, 32, 17, 600, LAM_CAUSAL, .shift = 583, .past = 583}, /* and whole chunks */
    {2, 1, 80, 33, 161, LAM_CAUSAL, .shift = 128, .past = 128},
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
    if (lam_case_pick(c, 3) == 0)
        s.past = 1 + lam_case_pick(c, keys);
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

static void call_attn_stats(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->attn_stats(dev, op);
}

static void call_attn_stats_fwd(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->attn_fwd(dev, &((const lam_attn_stats *)op)->attn);
}

static void attn_stats_one(lam_case_run *run, geometry s)
{
    lam_attn_stats a = {0};
    layouts l;
    lam_case c = lam_case_start(run, call_attn_stats, &a, 2.0);
    s.K = (int)lam_case_pad(&c, (size_t)s.K);
    add_inputs(&c, &s, &a.attn, &l);
    add_outputs(&c, &s, &a.attn, &l, LAM_READ);
    lam_case_prepare(&c, call_attn_stats_fwd);
    const size_t rows = (size_t)s.B * (size_t)s.queries * (size_t)s.H;
    a.interval = 1 + lam_case_pick(&c, 7);
    a.bins = 1 + lam_case_pick(&c, 2 + s.keys / a.interval);
    for (int k = 0; k < LAM_CUTS; k++)
        a.cut[k] = lam_case_pick(&c, s.keys + 1);
    const size_t bins = (size_t)a.bins, stats = LAM_ATTN_STATS;
    lam_case_rows(&c, &a.peak, "peak", LAM_WIDE, LAM_WRITTEN,
                  &(lam_layout){1, rows, bins, bins, rows * bins}, LAM_NAN);
    lam_case_rows(&c, &a.stats, "stats", LAM_WIDE, LAM_WRITTEN,
                  &(lam_layout){1, rows, stats, stats, rows * stats}, LAM_NAN);
    name_case(&c, "attn_stats", &s, &a.attn, l.packed);
    lam_case_check(&c);
}

/* Causal, and every key on the left of the last query exists. */
void lam_cases_attn_stats(lam_case_run *run)
{
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (special[i].mode == LAM_CAUSAL &&
            special[i].shift + special[i].queries <= special[i].keys)
            attn_stats_one(run, special[i]);
    lam_case sizes = lam_case_start(run, NULL, NULL, 0.0);
    for (int e = 0; e < lam_case_n_edges; e++) {
        const int queries = lam_case_edges[e], memory = lam_case_edge(&sizes, 129);
        geometry s = draw(&sizes, queries, queries + memory);
        s.mode = LAM_CAUSAL;
        s.shift = memory;
        attn_stats_one(run, s);
    }
    attn_stats_one(run,
                   (geometry){1, 1, 16, 70, 1100, LAM_CAUSAL, .shift = 1030}); /* three chunks */
}

void lam_cases_attn_fwd(lam_case_run *run)
{
    attn_list(run, 0);
}

void lam_cases_attn_bwd(lam_case_run *run)
{
    attn_list(run, 1);
}

/* Tiles of 64 x 64 pairs, three a block: queries, keys and distances around their edges, walks of one tile and of many. */
void lam_cases_attn_tiles(lam_case_run *run)
{
    static const geometry list[] = {
        {1, 1, 64, 64, 64, LAM_CAUSAL, .shift = 0}, /* empty memory: one tile, its band half used */
        {1, 2, 64, 192, 192, LAM_CAUSAL, .shift = 0},
        {1, 1, 32, 65, 129, LAM_CAUSAL, .shift = 64},
        {2, 1, 48, 63, 127, LAM_CAUSAL, .shift = 64},
        {1, 1, 64, 193, 321, LAM_CAUSAL, .shift = 128},
        {1, 1, 32, 191, 450, LAM_CAUSAL, .shift = 259}, /* M > N */
        {1, 2, 48, 256, 320, LAM_CAUSAL, .shift = 64},  /* M < N */
        {3, 1, 64, 70, 134, LAM_CAUSAL, .shift = 64},
        {1, 1, 64, 385, 514, LAM_CAUSAL, .shift = 129}, /* three blocks, the last with one query */
        {1, 1, 64, 64, 900, LAM_CAUSAL, .shift = 836},
        {1, 1, 32, 20, 700, LAM_CAUSAL, .shift = 680},
        {1, 1, 64, 100, 400, LAM_CAUSAL, .shift = 300, .reach = 65},
        {1, 1, 32, 130, 500, LAM_CAUSAL, .shift = 370, .reach = 64},
        {1, 1, 48, 200, 70, LAM_CAUSAL, .shift = -130}, /* blocks of queries that see nothing */
        {1, 2, 64, 192, 192, LAM_AHEAD, .shift = -1},
        {2, 1, 64, 65, 65, LAM_AHEAD, .shift = -1},
        {1, 1, 64, 64, 64, LAM_AHEAD, .shift = 0},
        {1, 1, 48, 256, 128, LAM_AHEAD, .shift = -129}, /* M > N */
        {1, 1, 32, 300, 321, LAM_AHEAD, .shift = 20},
        {1, 1, 32, 193, 65, LAM_FULL, .shift = -20},
        {1, 2, 64, 128, 256, LAM_FULL, .shift = 63},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (int backward = 0; backward < 2; backward++) {
            geometry s = list[i];
            s.tiled = 1;
            attn_one(run, s, backward);
        }
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
