/* layer_test.c -- a layer's parameters: the names, shapes and order of files, and which begin smaller. */
#include "nn/layer.h"

#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const lam_config toy = {
    .n_layer = 8, .n_head = 2, .d_head = 3, .d_model = 10, .d_inner = 14, .init_std = 0.02};

/* "NAME ROWSxCOLUMNS", of a vector "NAME ROWS", without what all names begin with. */
static const char *line_of(char text[128], const lam_param *p)
{
    const lam_shape shape = lam_param_shape(p);
    const char *name = p->name + strlen("layers.5.");
    ck_assert(strncmp(p->name, "layers.5.", 9) == 0);
    if (shape.rank == 2)
        snprintf(text, 128, "%s %dx%d", name, (int)shape.dim[0], (int)shape.dim[1]);
    else
        snprintf(text, 128, "%s %d", name, (int)shape.dim[0]);
    return text;
}

static lam_layer_params declare(lam_params *p, const lam_config *cfg)
{
    const lam_dev dev = {.pad = 4};
    lam_layer_params ids = {0};
    *p = (lam_params){0};
    lam_layer_declare(&ids, p, cfg, &dev, 5);
    return ids;
}

static const char *const after[] = {"dec_attn.o_net.weight 10x6",  "dec_attn.layer_norm.weight 10",
                                    "dec_attn.layer_norm.bias 10", "pos_ff.CoreNet.0.weight 14x10",
                                    "pos_ff.CoreNet.0.bias 14",    "pos_ff.CoreNet.3.weight 10x14",
                                    "pos_ff.CoreNet.3.bias 10",    "pos_ff.layer_norm.weight 10",
                                    "pos_ff.layer_norm.bias 10"};
enum { AFTER = sizeof after / sizeof *after };

/* What stands before the rest depends on how rows are projected and what distances are. */
static const struct {
    int attn_type;
    const char *before[3];
} modules[] = {
    {.attn_type = LAM_ATTN_XL,
     .before = {"dec_attn.qkv_net.weight 18x10", "dec_attn.r_net.weight 6x10"}},
    {.attn_type = LAM_ATTN_LEARNED, .before = {"dec_attn.qkv_net.weight 18x10"}},
    {.attn_type = LAM_ATTN_ABSOLUTE,
     .before = {"dec_attn.q_net.weight 6x10", "dec_attn.kv_net.weight 12x10"}},
    {.attn_type = LAM_ATTN_LAMEMO,
     .before = {"dec_attn.q_net.weight 6x10", "dec_attn.kv_net.weight 12x10",
                "dec_attn.r_net.weight 6x10"}},
};
enum { MODULES = sizeof modules / sizeof *modules };

START_TEST(names_and_shapes_are_those_of_the_modules)
{
    lam_config cfg = toy;
    lam_params p;
    char text[128];
    cfg.attn_type = modules[_i].attn_type;
    const lam_layer_params ids = declare(&p, &cfg);
    int n = 0;
    for (; n < 3 && modules[_i].before[n]; n++)
        ck_assert_str_eq(line_of(text, &p.list[n]), modules[_i].before[n]);
    ck_assert_int_eq(p.n, n + AFTER);
    for (int i = 0; i < AFTER; i++)
        ck_assert_str_eq(line_of(text, &p.list[n + i]), after[i]);
    ck_assert_int_eq(ids.qkv, 0);
    ck_assert_int_eq(ids.o_net, n);
    ck_assert_int_eq(ids.r_net, strstr(p.list[n - 1].name, "r_net") ? n - 1 : -1);
    ck_assert_str_eq(line_of(text, &p.list[ids.w2]), "pos_ff.CoreNet.3.weight 10x14");
    ck_assert_str_eq(line_of(text, &p.list[ids.norm2_shift]), "pos_ff.layer_norm.bias 10");
    lam_params_free(&p);
}
END_TEST

/* One product computes q, k and v, in whichever parameters files have them. */
START_TEST(projections_are_three_matrices_in_one_place)
{
    lam_config cfg = toy;
    lam_params p;
    cfg.attn_type = modules[_i].attn_type;
    const lam_layer_params ids = declare(&p, &cfg);
    const lam_param *q = &p.list[ids.qkv];
    int maps = q->maps;
    size_t stored = q->stored;
    if (strstr(q->name, ".q_net")) {
        ck_assert_int_eq(q[1].joined, 1);
        ck_assert_uint_eq(q[1].offset, q->offset + q->stored);
        maps += q[1].maps;
        stored += q[1].stored;
    }
    ck_assert_int_eq(maps, 3);
    ck_assert_uint_eq(stored, 3 * 2 * 4 * 12); /* heads of 3 stored as 4, rows of 10 as 12 */
    int hidden = 0;
    for (int i = 0; i < p.n; i++)
        hidden += lam_param_is_hidden(&p.list[i]) ? p.list[i].maps : 0;
    ck_assert_int_eq(hidden, 3 + 3 + (ids.r_net >= 0)); /* W_o, W_1, W_2 */
    lam_params_free(&p);
}
END_TEST

START_TEST(what_writes_into_the_residual_stream_begins_as_asked)
{
    static const struct {
        lam_init_out init_out;
        double scale;
    } cases[] = {{.init_out = LAM_INIT_OUT_SAME, .scale = 0.02},
                 {.init_out = LAM_INIT_OUT_DEPTH, .scale = 0.02 / 4.0}, /* sqrt(2 * 8) */
                 {.init_out = LAM_INIT_OUT_ZERO, .scale = 0.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lam_config cfg = toy;
        lam_params p;
        cfg.init_out = cases[i].init_out;
        const lam_layer_params ids = declare(&p, &cfg);
        ck_assert_double_eq_tol(p.list[ids.o_net].scale, cases[i].scale, 1e-15);
        ck_assert_double_eq_tol(p.list[ids.w2].scale, cases[i].scale, 1e-15);
        ck_assert_double_eq(p.list[ids.w1].scale, 0.02);
        ck_assert_double_eq(p.list[ids.qkv].scale, 0.02);
        lam_params_free(&p);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, names_and_shapes_are_those_of_the_modules, 0, MODULES);
    tcase_add_loop_test(tests, projections_are_three_matrices_in_one_place, 0, MODULES);
    tcase_add_test(tests, what_writes_into_the_residual_stream_begins_as_asked);
    return test_run("nn/layer", tests);
}
