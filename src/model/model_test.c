/* model_test.c -- parameter counts of the published configurations, and how parameters begin. */
#include "model/model.h"

#include "mem/fields.h"
#include "model/configure.h"
#include "support/suite.h"
#include "support/toy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Counts without any memory for the numbers: a device that has only types. */
static size_t count_of(const char *preset, const char *memory, int attn_type, int pad)
{
    lam_dev bare = {.act = LAM_F32, .wide = LAM_F32, .pad = pad};
    lam_config cfg;
    lam_model model;
    ck_assert_msg(lam_config_preset(&cfg, preset, memory) == LAM_OK, "%s", lam_error());
    cfg.attn_type = attn_type;
    ck_assert(lam_model_declare(&model, &cfg, &bare) == LAM_OK);
    const size_t n = lam_model_count(&model);
    lam_model_undeclare(&model);
    return n;
}

START_TEST(published_models_have_their_number_of_parameters)
{
    const struct {
        const char *preset, *memory;
        int attn_type;
        size_t count;
    } rows[] = {
        {"wt103-base", "none", 0, 151106305},
        {"wt103-base", "xl", 0, 151106305},
        {"wt103-adaptive", "xl", 0, 151107538},
        {"wt103-base", "lamemo", 3, 151106715},
        {"wt103-base", "lamemo", 33, 151106715},
        {"wt103-adaptive", "lamemo", 3, 151107948},
        {"wt103-base", "lamemo", 31, 151106305},
        {"wt103-base", "lamemo", 32, 151107125},
        {"enwik8-base", "xl", 0, 41055436},
        {"enwik8-base", "lamemo", 3, 41055948},
        {"enwik8-base", "lamemo", 32, 41056460},
        {"text8-base", "xl", 0, 40964635},
        {"text8-base", "lamemo", 3, 40965147},
        {"wt103-base", "compressive", 0, 161871265},
        {"wt103-adaptive", "compressive", 0, 161872498},
        {"wt103-base", "infinite", 0, 167255265},
        {"wt103-adaptive", "infinite", 0, 167256498},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int pad = 1; pad <= 16; pad += 15)
            ck_assert_uint_eq(count_of(rows[i].preset, rows[i].memory, rows[i].attn_type, pad),
                              rows[i].count);
}
END_TEST

START_TEST(shared_projections_leave_gate_and_weights)
{
    lam_dev bare = {.act = LAM_F32, .wide = LAM_F32, .pad = 16};
    lam_config cfg;
    lam_model model;
    ck_assert(lam_config_preset(&cfg, "wt103-base", "infinite") == LAM_OK);
    must(lam_fields_set(&cfg, "ltm_share_proj", "1"));
    ck_assert(lam_model_declare(&model, &cfg, &bare) == LAM_OK);
    ck_assert_uint_eq(lam_model_count(&model), 159186465);
    lam_model_undeclare(&model);
}
END_TEST

typedef struct moments {
    double mean, std, most;
} moments;

static moments moments_of(const lam_params *p, const char *name)
{
    const int i = lam_params_find(p, name);
    ck_assert_msg(i >= 0, "no parameter %s", name);
    const size_t n = lam_param_count(&p->list[i]);
    double *host = malloc(n * sizeof *host);
    moments m = {0};
    ck_assert(lam_params_get(p, p->master, i, host) == LAM_OK);
    for (size_t k = 0; k < n; k++) {
        m.mean += host[k] / (double)n;
        m.most = fmax(m.most, fabs(host[k]));
    }
    for (size_t k = 0; k < n; k++)
        m.std += (host[k] - m.mean) * (host[k] - m.mean) / (double)n;
    m.std = sqrt(m.std);
    free(host);
    return m;
}

START_TEST(initialisation_follows_the_specification)
{
    lam_config cfg = toy_config("lamemo", 32, 8, 8);
    cfg.n_token = 300;
    cfg.n_head = 4;
    cfg.d_head = 40;
    cfg.d_model = 160;
    cfg.d_inner = 200;
    cfg.n_cutoffs = 1;
    cfg.cutoffs[0] = 200;
    cfg.div_val = 2;
    toy t = toy_open("ref", &cfg, &(lam_stack_options){.B = 1, .N = 8, .M = 8}, 1);
    const lam_params *p = &t.model->params;
    ck_assert(lam_model_init(t.model, 1111) == LAM_OK);

    const char *const normal[] = {
        "layers.0.dec_attn.q_net.weight",   "layers.1.dec_attn.kv_net.weight",
        "layers.0.dec_attn.r_net.weight",   "layers.0.dec_attn.o_net.weight",
        "layers.0.pos_ff.CoreNet.0.weight", "layers.0.pos_ff.CoreNet.3.weight",
        "word_emb.emb_layers.0.weight",     "word_emb.emb_layers.1.weight"};
    for (size_t i = 0; i < sizeof normal / sizeof *normal; i++) {
        const moments m = moments_of(p, normal[i]);
        ck_assert_double_eq_tol(m.std, 0.02, 1e-3);
        ck_assert_double_eq_tol(m.mean, 0.0, 1e-3);
    }
    ck_assert_double_eq_tol(moments_of(p, "word_emb.emb_projs.1").std, 0.01, 1e-3);
    ck_assert_double_eq_tol(moments_of(p, "crit.out_projs.0").std, 0.01, 1e-3);
    ck_assert_double_eq_tol(moments_of(p, "layers.0.dec_attn.layer_norm.weight").mean, 1.0, 0.01);
    ck_assert_double_eq_tol(moments_of(p, "layers.0.dec_attn.layer_norm.weight").std, 0.02, 5e-3);
    ck_assert_double_eq_tol(moments_of(p, "r_w_bias").std, 0.02, 4e-3);
    ck_assert_double_eq(moments_of(p, "layers.0.pos_ff.CoreNet.0.bias").most, 0.0);
    ck_assert_double_eq(moments_of(p, "crit.out_layers.0.bias").most, 0.0);
    /* v- and u- keep PyTorch's Xavier-uniform over [H, e] */
    const double limit = sqrt(6.0 / (4 + 40));
    const char *const future[] = {"r_r_bias_future", "r_w_bias_future"};
    for (int i = 0; i < 2; i++) {
        const moments m = moments_of(p, future[i]);
        ck_assert_double_le(m.most, limit);
        ck_assert_double_gt(m.most, 0.9 * limit);
        ck_assert_double_eq_tol(m.std, limit / sqrt(3.0), 0.1 * limit);
    }
    toy_close(&t);
}
END_TEST

START_TEST(what_writes_into_the_residual_stream_may_begin_smaller)
{
    static const double want[] = {0.02, 0.02 / 2.8284271247461903, 0.0}; /* of 4 layers */
    const char *const out[] = {"layers.3.dec_attn.o_net.weight",
                               "layers.0.pos_ff.CoreNet.3.weight"};
    lam_config cfg = toy_config("lamemo", 3, 8, 8);
    cfg.n_layer = 4;
    cfg.n_head = 4;
    cfg.d_head = 40;
    cfg.d_model = 160;
    cfg.d_inner = 200;
    cfg.init_out = (lam_init_out)_i;
    toy t = toy_open("ref", &cfg, &(lam_stack_options){.B = 1, .N = 8, .M = 8}, 1);
    const lam_params *p = &t.model->params;
    ck_assert(lam_model_init(t.model, 1111) == LAM_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_double_eq_tol(moments_of(p, out[i]).std, want[_i], 0.05 * want[_i] + 1e-12);
    ck_assert_double_eq_tol(moments_of(p, "layers.0.pos_ff.CoreNet.0.weight").std, 0.02, 1e-3);
    ck_assert_double_eq_tol(moments_of(p, "layers.3.dec_attn.r_net.weight").std, 0.02, 1e-3);
    toy_close(&t);
}
END_TEST

START_TEST(one_seed_gives_the_same_start_on_every_device)
{
    const lam_config cfg = toy_config("lamemo", 3, 4, 4);
    const lam_stack_options opt = {.B = 1, .N = 4, .M = 4};
    toy a = toy_open("ref", &cfg, &opt, 1), b = toy_open("cpu", &cfg, &opt, 1);
    ck_assert(lam_model_init(a.model, 5) == LAM_OK && lam_model_init(b.model, 5) == LAM_OK);
    for (int i = 0; i < a.model->params.n; i++) {
        double x[512], y[512];
        const size_t n = lam_param_count(&a.model->params.list[i]);
        ck_assert_uint_le(n, 512);
        ck_assert(lam_params_get(&a.model->params, a.model->params.master, i, x) == LAM_OK);
        ck_assert(lam_params_get(&b.model->params, b.model->params.master, i, y) == LAM_OK);
        ck_assert_mem_eq(x, y, n * sizeof *x);
    }
    toy_close(&a);
    toy_close(&b);
}
END_TEST

/* ref16 keeps rounded weights beside the masters, in doubles too. */
START_TEST(a_copy_of_the_weights_counts)
{
    const lam_config cfg = toy_config("lamemo", 3, 4, 4);
    const lam_stack_options opt = {.B = 1, .N = 4, .M = 4};
    toy a = toy_open("ref", &cfg, &opt, 1), b = toy_open("ref16", &cfg, &opt, 1);
    ck_assert_ptr_eq(a.model->params.weight, a.model->params.master);
    ck_assert_ptr_ne(b.model->params.weight, b.model->params.master);
    ck_assert_uint_eq(lam_params_bytes(&b.model->params), 2 * lam_params_bytes(&a.model->params));
    toy_close(&a);
    toy_close(&b);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, published_models_have_their_number_of_parameters);
    tcase_add_test(tests, shared_projections_leave_gate_and_weights);
    tcase_add_test(tests, initialisation_follows_the_specification);
    tcase_add_loop_test(tests, what_writes_into_the_residual_stream_may_begin_smaller, 0, 3);
    tcase_add_test(tests, one_seed_gives_the_same_start_on_every_device);
    tcase_add_test(tests, a_copy_of_the_weights_counts);
    return test_run("model/model", tests);
}
