/* import_hf_test.c -- folders as Hugging Face saved its TransfoXL: other prefixes, sizes under other names, biases of
 * attention in every layer, shared by all or each layer's own. */
#include "convert/import.h"

#include "core/file.h"
#include "io/safetensors.h"
#include "model/folder.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 2, CLUSTERS = 2, HEADS = 2, WIDTH = 4, D = 8, INNER = 12, TOKENS = 11, MOST = 64 };

typedef struct tensor {
    char name[96];
    int rows, cols; /* cols 0: a vector */
    float scale;    /* makes tensors differ */
} tensor;

typedef struct source {
    tensor list[MOST];
    int n;
} source;

static void add(source *s, const char *name, int rows, int cols, float scale)
{
    ck_assert_int_lt(s->n, MOST);
    tensor *t = &s->list[s->n++];
    *t = (tensor){.rows = rows, .cols = cols, .scale = scale};
    snprintf(t->name, sizeof t->name, "%s", name);
}

static void add_layer(source *s, int l, int untied)
{
    static const struct {
        const char *name;
        int rows, cols;
    } parts[] = {{"dec_attn.qkv_net.weight", 3 * HEADS * WIDTH, D},
                 {"dec_attn.r_net.weight", HEADS * WIDTH, D},
                 {"dec_attn.o_net.weight", D, HEADS * WIDTH},
                 {"dec_attn.layer_norm.weight", D, 0},
                 {"dec_attn.layer_norm.bias", D, 0},
                 {"pos_ff.CoreNet.0.weight", INNER, D},
                 {"pos_ff.CoreNet.0.bias", INNER, 0},
                 {"pos_ff.CoreNet.3.weight", D, INNER},
                 {"pos_ff.CoreNet.3.bias", D, 0},
                 {"pos_ff.layer_norm.weight", D, 0},
                 {"pos_ff.layer_norm.bias", D, 0}};
    char name[96];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(name, sizeof name, "transformer.layers.%d.%s", l, parts[i].name);
        add(s, name, parts[i].rows, parts[i].cols, 0.01f * (float)(l + 1));
    }
    snprintf(name, sizeof name, "transformer.layers.%d.dec_attn.r_w_bias", l);
    add(s, name, HEADS, WIDTH, untied ? 0.1f * (float)(l + 1) : 0.1f);
    snprintf(name, sizeof name, "transformer.layers.%d.dec_attn.r_r_bias", l);
    add(s, name, HEADS, WIDTH, untied ? 0.2f * (float)(l + 1) : 0.2f);
}

static source transfo_xl(int untied)
{
    source s = {.n = 0};
    add(&s, "transformer.word_emb.emb_layers.0.weight", TOKENS, D, 0.03f);
    add(&s, "crit.out_layers.0.weight", TOKENS, D, 0.03f); /* tied: a copy */
    add(&s, "crit.out_layers.0.bias", TOKENS, 0, 0.01f);
    add(&s, "crit.cluster_weight", CLUSTERS, D, 0.05f);
    add(&s, "crit.cluster_bias", CLUSTERS, 0, 0.07f);
    if (!untied) {
        add(&s, "transformer.r_w_bias", HEADS, WIDTH, 0.1f);
        add(&s, "transformer.r_r_bias", HEADS, WIDTH, 0.2f);
    }
    for (int l = 0; l < LAYERS; l++)
        add_layer(&s, l, untied);
    return s;
}

static size_t count(const tensor *t)
{
    return (size_t)t->rows * (size_t)(t->cols ? t->cols : 1);
}

static float element(const tensor *t, size_t i)
{
    return t->scale * (float)((i * 7 + 3) % 13) - t->scale;
}

static void write_weights(const char *path, const source *s)
{
    lam_st_writer *w;
    must(lam_st_writer_create(&w, path));
    for (int i = 0; i < s->n; i++) {
        const tensor *t = &s->list[i];
        const lam_shape shape = {t->cols ? 2 : 1, {t->rows, t->cols}};
        must(lam_st_writer_add(w, t->name, LAM_F32, &shape));
    }
    must(lam_st_writer_begin(w));
    for (int i = 0; i < s->n; i++) {
        float data[1024];
        ck_assert_uint_le(count(&s->list[i]), 1024);
        for (size_t k = 0; k < count(&s->list[i]); k++)
            data[k] = element(&s->list[i], k);
        must(lam_st_writer_data(w, data, count(&s->list[i]) * sizeof *data));
    }
    must(lam_st_writer_finish(w));
}

/* As TransfoXLConfig writes it, untie_r included, which says nothing about the biases that are there. */
static const char *save(const source *s)
{
    static const char config[] =
        "{\"model_type\": \"transfo-xl\", \"architectures\": [\"TransfoXLLMHeadModel\"],\n"
        " \"vocab_size\": 11, \"cutoffs\": [4, 7], \"d_model\": 8, \"d_embed\": 8, \"n_head\": 2,\n"
        " \"d_head\": 4, \"d_inner\": 12, \"div_val\": 1, \"n_layer\": 2, \"mem_len\": 6,\n"
        " \"clamp_len\": 5, \"same_length\": true, \"attn_type\": 0, \"adaptive\": true,\n"
        " \"sample_softmax\": -1, \"pre_lnorm\": false, \"tie_projs\": [false, true, true],\n"
        " \"proj_share_all_but_first\": true, \"untie_r\": true, \"init\": \"normal\",\n"
        " \"dropout\": 0.1, \"dropatt\": 0.0, \"layer_norm_epsilon\": 1e-05}\n";
    static char dir[4096];
    char path[4200];
    snprintf(dir, sizeof dir, "%s", test_temp_path("hf"));
    lam_dir_remove(dir);
    must(lam_dir_make(dir));
    snprintf(path, sizeof path, "%s/config.json", dir);
    must(lam_file_save(path, config, sizeof config - 1));
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    write_weights(path, s);
    return dir;
}

static lam_import_options request(const char *dir)
{
    return (lam_import_options){
        .source = dir, .out = test_temp_path("model"), .tgt_len = 4, .mem_len = -1, .replace = 1};
}

/* Every tensor of the source that is one of the model's, in its own values. */
static int same_tensors(const char *dir, const source *s)
{
    lam_safetensors *st;
    int same = 0;
    must(lam_st_open_folder(&st, dir));
    for (int i = 0; i < s->n; i++) {
        const tensor *t = &s->list[i];
        const char *const prefix = "transformer.";
        const char *name = strstr(t->name, prefix) ? t->name + strlen(prefix) : t->name;
        if (!lam_st_find(st, name))
            continue;
        float data[1024];
        must(lam_st_read(st, name, data, LAM_F32, count(t)));
        /* Their first cluster is our last one: the rows are turned round. */
        const size_t cols = (size_t)(t->cols ? t->cols : 1);
        const int turned = strstr(name, "cluster") != NULL;
        for (size_t k = 0; k < count(t); k++) {
            const size_t from = turned ? ((size_t)t->rows - 1 - k / cols) * cols + k % cols : k;
            ck_assert_msg(data[k] == element(t, from), "%s[%zu]", name, k);
        }
        same++;
    }
    ck_assert_int_eq(same, lam_st_count(st));
    lam_st_close(st);
    return same;
}

START_TEST(a_folder_of_hugging_face_becomes_its_model)
{
    const int untied = _i;
    const source s = transfo_xl(untied);
    const lam_import_options o = request(save(&s));
    lam_import_result r;
    lam_config cfg;
    must(lam_import(&o, &r));
    must(lam_folder_config(&cfg, o.out));
    ck_assert_int_eq(cfg.untie_r, untied);
    ck_assert_int_eq(cfg.n_token, TOKENS);
    ck_assert_int_eq(cfg.tgt_len, 4);
    ck_assert_int_eq(cfg.mem_len, 6);
    ck_assert_int_eq(cfg.clamp_len, 5);
    ck_assert_int_eq(cfg.same_length, 1);
    ck_assert_str_eq(r.memory, "xl");
    /* Left out: the tied weight, and in every layer the copies of shared biases. */
    ck_assert_int_eq(r.left_out, untied ? 1 : 1 + 2 * LAYERS);
    ck_assert_int_eq(same_tensors(o.out, &s), r.tensors);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    source s = transfo_xl(0);
    lam_import_result r;
    for (int i = 0; i < s.n; i++) /* one layer's copy of a shared bias differs */
        if (strstr(s.list[i].name, "layers.1.dec_attn.r_r_bias"))
            s.list[i].scale = 3.0f;
    lam_import_options o = request(save(&s));
    o.out = test_temp_path("refused");
    ck_assert_int_eq(lam_import(&o, &r), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "should be tied to r_r_bias"), "%s", lam_error());
    s = transfo_xl(1);
    s.n--; /* the last layer has no r_r_bias */
    o.source = save(&s);
    ck_assert_int_eq(lam_import(&o, &r), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "layers.1.dec_attn.r_r_bias is missing"), "%s", lam_error());
    ck_assert(!lam_path_exists(o.out));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_loop_test(tests, a_folder_of_hugging_face_becomes_its_model, 0, 2);
    tcase_add_test(tests, what_does_not_fit_is_refused);
    return test_run("convert/import_hf", tests);
}
