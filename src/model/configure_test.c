/* config_test.c -- presets, JSON and refusals. */
#include "model/configure.h"

#include "mem/fields.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(every_preset_survives_json)
{
    for (int p = 0; lam_preset_name(p); p++)
        for (int i = 0; lam_mem_names[i]; i++) {
            lam_config a, b;
            char *json = NULL;
            ck_assert_msg(lam_config_preset(&a, lam_preset_name(p), lam_mem_names[i]) == LAM_OK,
                          "%s", lam_error());
            must(lam_fields_set(&a, "alpha", "zero"));
            must(lam_fields_set(&a, "window", "current"));
            must(lam_fields_set(&a, "interp_eps", "0.1"));
            ck_assert(lam_config_print(&json, &a) == LAM_OK);
            ck_assert_msg(lam_config_parse(&b, json, "text") == LAM_OK, "%s", lam_error());
            ck_assert_mem_eq(&a, &b, sizeof a);
            free(json);
        }
}
END_TEST

START_TEST(the_list_of_presets_is_the_table_of_presets)
{
    char list[256] = "";
    for (int p = 0; lam_preset_name(p); p++) {
        const char *const between = p == 0 ? "" : lam_preset_name(p + 1) ? ", " : " or ";
        strcat(strcat(list, between), lam_preset_name(p));
    }
    ck_assert_str_eq(list, LAM_PRESET_LIST);
}
END_TEST

START_TEST(the_authors_spelling_is_enough)
{
    lam_config cfg;
    const char *sizes = "\"n_token\": 19, \"n_layer\": 3, \"n_head\": 2, \"d_model\": 16, "
                        "\"d_head\": 8, \"d_inner\": 24, \"tgt_len\": 5";
    char json[512];
    const struct {
        const char *more, *memory;
    } rows[] = {{"\"mem_len\": 5, \"attn_type\": 0", "xl"},
                {"\"mem_len\": 0, \"attn_type\": 0", "none"},
                {"\"mem_len\": 5, \"attn_type\": 33", "lamemo"}};
    for (int i = 0; i < 3; i++) {
        snprintf(json, sizeof json, "{%s, %s, \"lr\": 0.1, \"unknown\": [1]}", sizes, rows[i].more);
        ck_assert_msg(lam_config_parse(&cfg, json, "trace") == LAM_OK, "%s", lam_error());
        ck_assert_str_eq(cfg.memory, rows[i].memory);
        ck_assert_int_eq(cfg.d_embed, 16);
    }
}
END_TEST

static void refused(const char *json, const char *what)
{
    lam_config cfg;
    ck_assert_msg(lam_config_parse(&cfg, json, "file.json") != LAM_OK, "accepted: %s", json);
    ck_assert_msg(strstr(lam_error(), what) != NULL, "'%s' does not name %s", lam_error(), what);
    ck_assert_msg(strncmp(lam_error(), "file.json: ", 11) == 0, "'%s': which file?", lam_error());
}

START_TEST(wrong_configurations_are_named)
{
    refused("[]", "file.json");
    refused("{", "file.json");
    refused("{\"n_token\": \"a\"}", "n_token");
    refused("{\"n_token\": 99999999999}", "n_token");
    refused("{\"cutoffs\": 3}", "cutoffs");
    refused("{\"cutoffs\": [0]}", "cutoffs");
    refused("{\"cutoffs\": [1,2,3,4,5,6,7,8,9]}", "cutoffs");
    refused("{\"alpha\": \"half\"}", "alpha");
    refused("{\"memory\": \"a name that is too long\"}", "memory");
    refused("{}", "n_token");
    const char *base =
        "\"n_layer\": 1, \"n_head\": 1, \"d_head\": 2, \"d_inner\": 4, \"tgt_len\": 2";
    const struct {
        const char *more, *what;
    } rows[] = {
        {"\"n_token\": 4, \"d_model\": 3", "d_model"},
        {"\"n_token\": 4, \"d_model\": 4, \"dropout\": 1.0", "dropout"},
        {"\"n_token\": 4, \"d_model\": 4, \"cutoffs\": [2, 2]", "cutoff"},
        {"\"n_token\": 4, \"d_model\": 4, \"cutoffs\": [4]", "cutoff"},
        {"\"n_token\": 4, \"d_model\": 4, \"cutoffs\": [2], \"div_val\": 9", "div_val"},
        {"\"n_token\": 4, \"d_model\": 4, \"attn_type\": 3", "mem_len"},
        {"\"n_token\": 4, \"d_model\": 4, \"attn_type\": 7", "attn_type"},
        {"\"n_token\": 4, \"d_model\": 4, \"memory\": \"xl\", \"attn_type\": 3", "attn_type"},
        {"\"n_token\": 4, \"d_model\": 4, \"mem_len\": -1", "mem_len"},
        {"\"n_token\": 4, \"d_model\": 4, \"ext_len\": -1", "ext_len"},
        {"\"n_token\": 4, \"d_model\": 4, \"ext_len\": 2, \"attn_type\": 2", "ext_len 2"},
        {"\"n_token\": 4, \"d_model\": 4, \"ext_len\": 2, \"attn_type\": 3, \"mem_len\": 4",
         "ext_len 2 has no meaning for memory lamemo"},
        {"\"n_token\": 4, \"d_model\": 4, \"interp_eps\": -1", "interp_eps"},
        {"\"n_token\": 4, \"d_model\": 4, \"memory\": \"compressive\"", "cmem_len"},
        {"\"n_token\": 4, \"d_model\": 4, \"memory\": \"compressive\", \"cmem_len\": 2, \"rate\": "
         "0",
         "rate"},
        {"\"n_token\": 4, \"d_model\": 4, \"memory\": \"compressive\", \"cmem_len\": 2, "
         "\"aux_weight\": -1",
         "aux_weight"},
        {"\"n_token\": 4, \"d_model\": 4, \"memory\": \"compressive\", \"attn_type\": 1",
         "attn_type"},
        {"\"n_token\": 4, \"d_model\": 4, \"remainder\": \"lose\"", "remainder"},
        {"\"n_token\": 4, \"d_model\": 4, \"mem_len\": 2, \"attn_type\": 2", "attn_type"},
        {"\"n_token\": 4, \"d_model\": 4, \"memory\": \"infinite\"", "ltm_basis"},
        {"\"n_token\": 4, \"d_model\": 4, \"memory\": \"infinite\", \"ltm_basis\": 3", "ltm_basis"},
        {"\"n_token\": 4, \"d_model\": 4, \"memory\": \"infinite\", \"ltm_basis\": 4, \"ltm_tau\": "
         "1.5",
         "ltm_tau"},
        {"\"n_token\": 4, \"d_model\": 4, \"memory\": \"infinite\", \"ltm_widths\": []",
         "ltm_widths"},
        {"\"n_token\": 4, \"d_model\": 4, \"memory\": \"infinite\", \"ltm_widths\": [\"a\"]",
         "ltm_widths"},
        {"\"n_token\": 4, \"d_model\": 4, \"memory\": \"infinite\", \"mem_len\": 4, "
         "\"ltm_widths\": [0]",
         "ltm_widths"},
        {"\"n_token\": 4, \"d_model\": 4, \"memory\": \"infinite\", \"ltm_sticky\": true",
         "ltm_sticky"},
        {"\"n_token\": 4, \"d_model\": 4, \"init_uniform\": true, \"init_out\": \"zero\"",
         "init_out"},
        {"\"n_token\": 4, \"d_model\": 4, \"init_out\": \"one\"", "init_out"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char json[512];
        snprintf(json, sizeof json, "{%s, %s}", base, rows[i].more);
        refused(json, rows[i].what);
    }
    lam_config cfg;
    ck_assert(lam_config_preset(&cfg, "huge", "xl") == LAM_ERR_ARG);
}
END_TEST

START_TEST(clusters_divide_the_vocabulary)
{
    lam_config cfg;
    ck_assert(lam_config_preset(&cfg, "wt103-adaptive", "xl") == LAM_OK);
    int next = 0;
    for (int i = 0; i <= cfg.n_cutoffs; i++) {
        const lam_cluster c = lam_config_cluster(&cfg, i);
        ck_assert_int_eq(c.first, next);
        ck_assert_int_eq(c.width, 410);
        next += c.count;
    }
    ck_assert_int_eq(next, 267735);
    cfg.div_val = 4;
    ck_assert_int_eq(lam_config_cluster(&cfg, 2).width, 410 / 4 / 4);
}
END_TEST

/* No length grows, no short one shrinks, and one that the tokens fill stays. */
START_TEST(a_length_is_fitted_to_the_tokens_there_are)
{
    static const struct {
        int length, most, fitted;
    } rows[] = {{9000, 6000, 6000}, /* beyond the tokens */
                {9000, 20, LAM_FIT_LEAST},
                {6000, 6000, 6000},
                {4000, 6000, 4000},
                {40, 20, 40},
                {LAM_FIT_LEAST, 1, LAM_FIT_LEAST},
                {0, 60, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_int_eq(lam_length_fit(rows[i].length, rows[i].most), rows[i].fitted);
    ck_assert_int_eq(lam_length_fit(9000, INT64_MAX), 9000);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, every_preset_survives_json);
    tcase_add_test(tests, the_list_of_presets_is_the_table_of_presets);
    tcase_add_test(tests, the_authors_spelling_is_enough);
    tcase_add_test(tests, wrong_configurations_are_named);
    tcase_add_test(tests, clusters_divide_the_vocabulary);
    tcase_add_test(tests, a_length_is_fitted_to_the_tokens_there_are);
    return test_run("model/configure", tests);
}
