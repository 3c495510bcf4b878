/* train_options_test.c -- the table says what the library does, and presets give way to the user alone. */
#include "cli/train_options.h"

#include "cli/commands.h"
#include "mem/fields.h"
#include "model/configure.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

enum { WORDS = 32 };

typedef struct parsed {
    lam_args args;
    lam_train_options options;
    char text[WORDS][64];
    char *argv[WORDS];
} parsed;

static void parse(parsed *p, const char *line)
{
    int argc = 0;
    char copy[1024];
    memset(p, 0, sizeof *p);
    snprintf(copy, sizeof copy, "train %s", line);
    for (char *save, *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        snprintf(p->text[argc], sizeof p->text[argc], "%s", word);
        p->argv[argc] = p->text[argc];
        argc++;
    }
    lam_args_parse(&p->args, &p->options, &lam_command_train, argc, p->argv);
}

static void fresh(const char *line, lam_config *cfg, lam_settings *s)
{
    static parsed p;
    parse(&p, line);
    must(lam_train_fresh(cfg, s, &p.args, 256, 0));
}

START_TEST(defaults_of_the_table_are_the_librarys)
{
    lam_config cfg, preset;
    lam_settings s, defaults;
    fresh("--recipe paper", &cfg, &s);
    must(lam_config_preset(&preset, "tiny", "lamemo"));
    must(lam_config_same(&cfg, &preset, "defaults"));
    lam_settings_defaults(&defaults);
    lam_settings_preset(&defaults, "tiny");
    json_t *a = lam_settings_print(&s), *b = lam_settings_print(&defaults);
    const char *name;
    json_t *value;
    json_object_foreach(a, name, value)
        ck_assert_msg(json_equal(value, json_object_get(b, name)), "%s", name);
    json_decref(a);
    json_decref(b);
}
END_TEST

START_TEST(what_the_user_wrote_overrides_the_preset)
{
    lam_config cfg;
    lam_settings s;
    fresh("--recipe paper --preset small --n_layer 3 --d_model 64 --batch_size 5 --lr 0.5 "
          "--pre_lnorm --not_tied "
          "--scheduler dev_perf --init uniform --alpha zero --mem_reset 50",
          &cfg, &s);
    ck_assert_int_eq(cfg.n_layer, 3);
    ck_assert_int_eq(cfg.d_model, 64);
    ck_assert_int_eq(cfg.d_embed, 64); /* follows d_model */
    ck_assert_int_eq(cfg.d_inner, 1024);
    ck_assert_int_eq(cfg.pre_lnorm, 1);
    ck_assert_int_eq(cfg.tie_weight, 0);
    ck_assert_int_eq(cfg.init_uniform, 1);
    ck_assert_double_eq(lam_fields_value(&cfg, "alpha"), 1); /* zero */
    ck_assert_int_eq(s.batch_size, 5);
    ck_assert_int_eq(s.mem_reset.every, 50);
    ck_assert_int_eq(s.scheduler, LAM_SCHEDULE_DEV_PERF);
    ck_assert(s.lr == 0.5 && s.clip == 0.25 && s.max_step == 20000);
}
END_TEST

START_TEST(a_recipe_gives_way_to_what_the_user_wrote)
{
    static parsed p;
    lam_config cfg, before;
    lam_settings s, paper;
    fresh("--recipe paper", &cfg, &paper);
    fresh("--preset small --recipe fast --lr 0.5 --dropout 0.3", &cfg, &s);
    ck_assert_str_eq(lam_recipe_names[s.recipe], "fast");
    ck_assert_str_eq(lam_optim_names[s.optim], "muon");
    ck_assert(s.lr == 0.5 && cfg.dropout == 0.3);
    ck_assert(s.weight_decay != paper.weight_decay);
    ck_assert_int_eq(cfg.n_layer, 6); /* the preset's */
    /* On resuming, the run's recipe counts, also where the preset is written again. */
    before = cfg;
    parse(&p, "--resume --preset small --dropout 0.3");
    must(lam_train_resumed(&cfg, &s, &p.args, 0));
    must(lam_config_same(&cfg, &before, "resumed"));
    ck_assert(s.lr == 0.5 && s.optim == LAM_OPTIM_MUON);
    parse(&p, "--resume --recipe fast");
    must(lam_train_resumed(&cfg, &s, &p.args, 0));
    ck_assert(s.lr == 0.5);
}
END_TEST

START_TEST(fast_is_the_default_unless_another_optimiser_is_chosen)
{
    static const struct {
        const char *line;
        lam_recipe recipe;
    } rows[] = {{"", LAM_RECIPE_FAST},
                {"--optim muon", LAM_RECIPE_FAST},
                {"--optim adam", LAM_RECIPE_PAPER},
                {"--optim sgd --mom 0.9", LAM_RECIPE_PAPER},
                {"--recipe fast --optim adam", LAM_RECIPE_FAST},
                {"--recipe paper", LAM_RECIPE_PAPER}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        lam_config cfg;
        lam_settings s;
        fresh(rows[i].line, &cfg, &s);
        ck_assert_msg(s.recipe == (int)rows[i].recipe, "train %s", rows[i].line);
    }
}
END_TEST

START_TEST(epochs_are_counted_in_steps)
{
    static parsed p;
    lam_config cfg;
    lam_settings s;
    parse(&p, "--recipe paper --epochs 2.5 --batch_size 10 --tgt_len 20");
    must(lam_train_fresh(&cfg, &s, &p.args, 256, 10001)); /* 50.005 steps an epoch */
    ck_assert_int_eq(s.max_step, 126);
    parse(&p, "--resume --epochs 4");
    must(lam_train_resumed(&cfg, &s, &p.args, 10001));
    ck_assert_int_eq(s.max_step, 201);
    parse(&p, "--epochs 2 --max_step 5");
    ck_assert_int_eq(lam_train_fresh(&cfg, &s, &p.args, 256, 10001), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "--epochs and --max-step contradict each other: both say how "
                                  "long the run is");
}
END_TEST

START_TEST(settings_are_checked_with_what_the_recipe_fits)
{
    lam_config cfg;
    lam_settings s;
    fresh("--preset tiny --recipe fast --eta_min 0.0005", &cfg, &s); /* above the paper's rate */
    ck_assert(s.eta_min == 0.0005 && s.lr > 0.0005);
}
END_TEST

/* training_state.json and the command line call a setting the same, and both have the same default. */
START_TEST(every_setting_is_an_option_of_its_name)
{
    lam_settings plain, s;
    lam_config cfg;
    const char *key;
    json_t *value;
    fresh("--recipe paper", &cfg, &s);
    lam_settings_defaults(&plain);
    lam_settings_preset(&plain, "tiny");
    json_t *then = lam_settings_print(&plain), *now = lam_settings_print(&s);
    json_object_foreach(then, key, value) {
        char name[64];
        snprintf(name, sizeof name, "%s", key);
        for (char *c = name; *c; c++)
            *c = *c == '_' ? '-' : *c;
        const lam_option *row = lam_train_table;
        while (row->help && (!row->name || strcmp(row->name, name) != 0))
            row++;
        ck_assert_msg(row->help != NULL, "there is no option --%s", name);
        ck_assert_msg(json_equal(value, json_object_get(now, key)), "the defaults of %s", key);
    }
    json_decref(then);
    json_decref(now);
}
END_TEST

static void on_text(const char *line, int64_t tokens, lam_config *cfg)
{
    static parsed p;
    lam_settings s;
    parse(&p, line);
    must(lam_train_fresh(cfg, &s, &p.args, 256, tokens));
}

START_TEST(a_text_read_many_times_gets_dropout_from_the_fast_recipe)
{
    static parsed p;
    lam_config cfg, before;
    lam_settings s;
    /* Reads 80,000 tokens; the layer has 10 * (4 * 10 + 2 * 30) weights. */
    const char *run = "--recipe fast --batch_size 10 --tgt_len 20 --max_step 400 --n_layer 1 "
                      "--d_model 10 --n_head 1 --d_head 10 --d_inner 30";
    static const struct {
        int64_t tokens;
        double dropout;
    } rows[] = {{0, 0.0}, {3543, 0.0}, {3542, 0.05}, {1736, 0.05}, {1735, 0.1}, {1, 0.1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        on_text(run, rows[i].tokens, &cfg);
        ck_assert_double_eq(cfg.dropout, rows[i].dropout);
    }
    /* A written one stays, the clock does not say how often it is read, and the paper's recipe fits nothing. */
    on_text("--recipe fast --dropout 0 --max_step 4000", 100, &cfg);
    ck_assert(cfg.dropout == 0.0);
    on_text("--recipe fast --scheduler_time 10", 100, &cfg);
    ck_assert(cfg.dropout == 0.0);
    on_text("--preset tiny", 100, &cfg);
    ck_assert(cfg.dropout == 0.1);
    /* Resumed, it is the run's. */
    parse(&p, run);
    must(lam_train_fresh(&cfg, &s, &p.args, 256, 3000));
    before = cfg;
    parse(&p, "--resume --preset tiny --batch_size 10 --tgt_len 20 --max_step 800 --n_layer 1 "
              "--d_model 10 --n_head 1 --d_head 10 --d_inner 30");
    must(lam_train_resumed(&cfg, &s, &p.args, 0));
    must(lam_config_same(&cfg, &before, "resumed"));
    parse(&p, "--resume --dropout 0.1");
    ck_assert_int_eq(lam_train_resumed(&cfg, &s, &p.args, 0), LAM_ERR_ARG);
}
END_TEST

START_TEST(the_fast_recipe_fits_the_model)
{
    lam_config cfg;
    lam_settings s;
    fresh("--recipe fast --d_model 512 --mem_len 512 --max_step 2000", &cfg, &s);
    ck_assert_double_eq_tol(s.lr, 0.0014, 5e-5);
    fresh("--recipe fast --d_model 512 --mem_len 512 --max_step 16000", &cfg, &s);
    ck_assert_double_eq_tol(s.lr, 0.0007, 3e-5); /* half of it for eight times as long */
    ck_assert_int_eq(s.short_mem, 32);
    ck_assert_int_eq(s.warmup_step, 100);
    fresh("--recipe fast --d_model 64 --mem_len 48 --max_step 150", &cfg, &s);
    ck_assert_double_eq_tol(s.lr, 0.011, 5e-4);
    ck_assert_int_eq(s.short_mem, 3);
    ck_assert_int_eq(s.warmup_step, 15);
    /* What is written stays, 0 too; a run by the clock has no number of steps. */
    fresh("--recipe fast --lr 0.5 --short_mem 0 --warmup_step 0", &cfg, &s);
    ck_assert(s.lr == 0.5 && s.short_mem == 0 && s.warmup_step == 0);
    fresh("--recipe fast --memory none --scheduler_time 10", &cfg, &s);
    ck_assert(s.short_mem == 0 && s.warmup_step == 100);
    ck_assert_double_eq_tol(s.lr, 0.7 / cfg.d_model, 1e-9);
    fresh("--recipe paper", &cfg, &s);
    ck_assert(s.lr == 0.00025 && s.short_mem == 0 && s.warmup_step == 0);
}
END_TEST

START_TEST(attn_type_and_memory_settle_each_other)
{
    lam_config cfg;
    lam_settings s;
    fresh("--attn_type 0", &cfg, &s);
    ck_assert_str_eq(cfg.memory, "xl");
    fresh("--attn_type 0 --mem_len 0", &cfg, &s);
    ck_assert_str_eq(cfg.memory, "none");
    fresh("--attn_type 32", &cfg, &s);
    ck_assert_str_eq(cfg.memory, "lamemo");
    ck_assert_int_eq(cfg.attn_type, 32);
    fresh("--memory none", &cfg, &s);
    ck_assert_int_eq(cfg.mem_len, 0);
    static parsed p;
    parse(&p, "--memory lamemo --attn_type 0");
    ck_assert_int_eq(lam_train_fresh(&cfg, &s, &p.args, 256, 0), LAM_ERR_ARG);
}
END_TEST

START_TEST(adaptive_cuts_by_the_size_of_the_vocabulary)
{
    static const struct {
        int V, first, last;
    } rows[] = {{267735, 20000, 200000}, {793471, 60000, 640000}, {10000, 750, 7500}};
    static parsed p;
    lam_config cfg;
    lam_settings s;
    parse(&p, "--adaptive --div_val 2");
    for (int i = 0; i < 3; i++) {
        must(lam_train_fresh(&cfg, &s, &p.args, rows[i].V, 0));
        ck_assert_int_eq(cfg.n_cutoffs, 3);
        ck_assert_int_eq(cfg.cutoffs[0], rows[i].first);
        ck_assert_int_eq(cfg.cutoffs[2], rows[i].last);
        ck_assert_int_eq(cfg.div_val, 2);
    }
    ck_assert_int_eq(lam_train_fresh(&cfg, &s, &p.args, 256, 0), LAM_ERR_ARG);
    parse(&p, "--cutoffs 10,50");
    must(lam_train_fresh(&cfg, &s, &p.args, 256, 0));
    ck_assert(cfg.n_cutoffs == 2 && cfg.cutoffs[0] == 10 && cfg.cutoffs[1] == 50);
}
END_TEST

START_TEST(cutoffs_of_a_preset_fit_any_vocabulary)
{
    static const struct {
        int V, n, first, last;
    } rows[] = {
        {267735, 3, 20000, 200000}, {33278, 3, 2495, 24957}, {1000, 3, 75, 750}, {256, 0, 0, 0}};
    static parsed p;
    lam_config cfg, again;
    lam_settings s;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        parse(&p, "--preset wt103-adaptive");
        must(lam_train_fresh(&cfg, &s, &p.args, rows[i].V, 0));
        ck_assert_int_eq(cfg.n_cutoffs, rows[i].n);
        ck_assert_int_eq(cfg.cutoffs[0], rows[i].first);
        ck_assert_int_eq(cfg.cutoffs[2], rows[i].last);
        ck_assert_int_eq(lam_shape_cut(&cfg, &p.args), rows[i].V != 267735);
        again = cfg;
        parse(&p, "--resume --preset wt103-adaptive");
        must(lam_train_resumed(&again, &s, &p.args, 0));
    }
    /* What the user writes is an order. */
    parse(&p, "--preset wt103-adaptive --cutoffs 300");
    ck_assert_int_eq(lam_train_fresh(&cfg, &s, &p.args, 256, 0), LAM_ERR_ARG);
    parse(&p, "--preset wt103-adaptive --adaptive");
    ck_assert_int_eq(lam_train_fresh(&cfg, &s, &p.args, 256, 0), LAM_ERR_ARG);
}
END_TEST

START_TEST(an_option_of_another_memory_is_refused)
{
    static const struct {
        const char *line, *option;
    } rows[] = {{"--memory xl --ltm_basis 8", "--ltm-basis"},
                {"--memory lamemo --rate 2", "--rate"},
                {"--attn_type 0 --alpha zero", "--alpha"},
                {"--memory xl --clip_together", "--clip-together"}};
    static const char *const fine[] = {
        "--memory infinite --ltm_basis 8", "--memory xl --ext_len 4",
        "--memory lamemo --ext_len 0",     "--memory none --mem_len 8",
        "--memory none --recipe fast",     "--attn_type 31 --alpha zero"};
    static parsed p;
    lam_config cfg;
    lam_settings s;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        parse(&p, rows[i].line);
        ck_assert_int_eq(lam_train_fresh(&cfg, &s, &p.args, 256, 0), LAM_ERR_ARG);
        ck_assert_msg(strstr(lam_error(), rows[i].option) == lam_error(), "%s", lam_error());
    }
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        fresh(fine[i], &cfg, &s);
}
END_TEST

START_TEST(a_resumed_run_keeps_what_the_user_did_not_write)
{
    static parsed p;
    lam_config cfg, before;
    lam_settings s;
    fresh("--recipe paper --preset small --memory xl --n_layer 3 --lr 0.5 --batch_size 5", &cfg,
          &s);
    before = cfg;
    parse(&p, "--resume --max_step 77");
    must(lam_train_resumed(&cfg, &s, &p.args, 0));
    must(lam_config_same(&cfg, &before, "resumed"));
    ck_assert(s.max_step == 77 && s.lr == 0.5 && s.batch_size == 5);
    /* The same words once more, or a part of them, are no contradiction. */
    parse(&p, "--resume --preset small --memory xl --n_layer 3 --lr 0.25");
    must(lam_train_resumed(&cfg, &s, &p.args, 0));
    ck_assert(s.lr == 0.25);
    parse(&p, "--resume --n_layer 4");
    ck_assert_int_eq(lam_train_resumed(&cfg, &s, &p.args, 0), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "--n-layer 4: the run was begun with 3");
    parse(&p, "--resume --dropout 0.2");
    ck_assert_int_eq(lam_train_resumed(&cfg, &s, &p.args, 0), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "--dropout 0.2: the run was begun with 0.1");
    parse(&p, "--resume --d_embed -1"); /* written so, it follows d_model: no contradiction */
    must(lam_train_resumed(&cfg, &s, &p.args, 0));
    parse(&p, "--resume --pre_lnorm");
    ck_assert_int_eq(lam_train_resumed(&cfg, &s, &p.args, 0), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "\"pre_lnorm\": false, not \"pre_lnorm\": true"));
    parse(&p, "--resume --memory lamemo");
    ck_assert_int_eq(lam_train_resumed(&cfg, &s, &p.args, 0), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "--memory lamemo: the run was begun with xl");
}
END_TEST

START_TEST(a_run_from_a_model_keeps_its_sizes)
{
    static parsed p;
    lam_config cfg, model;
    lam_settings s;
    fresh("--preset small --n_layer 3 --dropout 0.3", &model, &s);
    cfg = model;
    parse(&p, "--init-from x --tgt_len 16 --mem_len 48 --recipe fast --lr 0.5");
    must(lam_train_from(&cfg, &s, &p.args, 0));
    ck_assert(cfg.tgt_len == 16 && cfg.mem_len == 48 && cfg.n_layer == 3);
    ck_assert(cfg.dropout != 0.3); /* the recipe's */
    ck_assert(s.lr == 0.5 && s.optim == LAM_OPTIM_MUON);
    ck_assert_int_eq(s.short_mem, 0); /* it has learned to use its memory */
    parse(&p, "--init-from x --recipe fast --max_step 500");
    must(lam_train_from(&cfg, &s, &p.args, 0));
    ck_assert_double_eq_tol(s.lr, 0.3 / 256, 1e-9);
    cfg = model;
    parse(&p, "--init-from x --recipe paper");
    must(lam_train_from(&cfg, &s, &p.args, 0));
    must(lam_config_same(&cfg, &model, "unchanged"));
    parse(&p, "--init-from x --d_inner 8");
    ck_assert_int_eq(lam_train_from(&cfg, &s, &p.args, 0), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "--d-inner 8: the model of --init-from has 1024");
    cfg = model;
    parse(&p, "--init-from x --pre_lnorm");
    ck_assert_int_eq(lam_train_from(&cfg, &s, &p.args, 0), LAM_ERR_FORMAT);
    /* The infinity-former has a weight for each basis function; its blocks are a length. */
    fresh("--memory infinite --tgt_len 16 --mem_len 48", &model, &s);
    cfg = model;
    parse(&p, "--init-from x --tgt_len 8 --mem_len 1");
    must(lam_train_from(&cfg, &s, &p.args, 0));
    ck_assert(cfg.mem_len == 1 && lam_fields_value(&cfg, "ltm_basis") == 48 &&
              lam_fields_value(&cfg, "ltm_block") == 8);
    parse(&p, "--init-from x --ltm_basis 12");
    ck_assert_int_eq(lam_train_from(&cfg, &s, &p.args, 0), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "--ltm-basis 12: the model of --init-from has 48");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, defaults_of_the_table_are_the_librarys);
    tcase_add_test(tests, what_the_user_wrote_overrides_the_preset);
    tcase_add_test(tests, a_recipe_gives_way_to_what_the_user_wrote);
    tcase_add_test(tests, fast_is_the_default_unless_another_optimiser_is_chosen);
    tcase_add_test(tests, epochs_are_counted_in_steps);
    tcase_add_test(tests, settings_are_checked_with_what_the_recipe_fits);
    tcase_add_test(tests, every_setting_is_an_option_of_its_name);
    tcase_add_test(tests, the_fast_recipe_fits_the_model);
    tcase_add_test(tests, a_text_read_many_times_gets_dropout_from_the_fast_recipe);
    tcase_add_test(tests, attn_type_and_memory_settle_each_other);
    tcase_add_test(tests, adaptive_cuts_by_the_size_of_the_vocabulary);
    tcase_add_test(tests, cutoffs_of_a_preset_fit_any_vocabulary);
    tcase_add_test(tests, an_option_of_another_memory_is_refused);
    tcase_add_test(tests, a_run_from_a_model_keeps_its_sizes);
    tcase_add_test(tests, a_resumed_run_keeps_what_the_user_did_not_write);
    return test_run("cli/train_options", tests);
}
