/* spelling_test.c -- fields of the library become options, other words stay what they are. */
#include "cli/spelling.h"

#include "cli/commands.h"
#include "cli/train_options.h"
#include "support/suite.h"

#include <string.h>

static const struct {
    const char *message, *spelled;
} rows[] = {
    {"batch_size 8: the run was begun with 4", "--batch-size 8: the run was begun with 4"},
    {"optim sgd: the run was begun with adam", "--optim sgd: the run was begun with adam"},
    {"batch_size 4 cannot be divided into batch_chunk 3 equal parts",
     "--batch-size 4 cannot be divided into --batch-chunk 3 equal parts"},
    {"eval_tgt_len 17 is above tgt_len + mem_len = 16",
     "--eval-tgt-len 17 is above --tgt-len + --mem-len = 16"},
    {"config: d_model is 15, must be even", "--d-model is 15, must be even"},
    {"weights: set max_memory to allow it", "weights: set --max-memory to allow it"},
    /* no names, or none that are sure to be */
    {"the memory is of no use: clip it, or roll the data",
     "the memory is of no use: clip it, or roll the data"},
    {"out: there is a run already", "out: there is a run already"},
    {"batch_size: there is a run already", "batch_size: there is a run already"},
    {"runs/mem_len is no folder", "runs/mem_len is no folder"},
    {"--mem_len 3 and mem-len 3", "--mem_len 3 and mem-len 3"},
    {"not_an_option 3  and  no mem_len", "not_an_option 3  and  no mem_len"},
    {"", ""},
};

START_TEST(names_of_fields_become_options)
{
    char text[256];
    ck_assert_str_eq(lam_spell_options(text, sizeof text, rows[_i].message, lam_train_table),
                     rows[_i].spelled);
}
END_TEST

START_TEST(what_does_not_fit_is_cut)
{
    char text[32];
    const char *const whole = "batch_size 8 is above tgt_len 4";
    for (size_t size = 1; size <= sizeof text; size++) {
        memset(text, 'x', sizeof text);
        lam_spell_options(text, size, whole, lam_train_table);
        ck_assert_uint_eq(strlen(text), size - 1);
        ck_assert_int_eq(strncmp(text, "--batch-size 8 is above --tgt-len 4", size - 1), 0);
    }
}
END_TEST

/* The names that all commands have together. */
static void list_names(const char *names[1024])
{
    static lam_option_table tables[32];
    int n = 0;
    for (int i = 0; lam_commands[i]; i++) {
        lam_options_list(&tables[i], lam_commands[i]);
        for (const lam_option *o = tables[i].rows; o->help && n < 1023; o++)
            if (o->name)
                names[n++] = o->name;
    }
    names[n] = NULL;
}

START_TEST(names_from_elsewhere_lead_to_options_that_exist)
{
    static const char *const none[] = {"json", NULL};
    static const struct {
        const char *word, *here;
    } known[] = {{"bs", "batch-size"},
                 {"model-size", "preset"},
                 {"num-layers", "n-layer"},
                 {"heads", "n-head"},
                 {"hidden-size", "d-model"},
                 {"intermediate-size", "d-inner"},
                 {"block-size", "tgt-len"},
                 {"mem-size", "mem-len"},
                 {"steps", "max-step"},
                 {"epoch", "epochs"},
                 {"optimizer", "optim"},
                 {"lr-scheduler", "scheduler"},
                 {"warmup", "warmup-step"},
                 {"wd", "weight-decay"},
                 {"max-grad-norm", "clip"},
                 {"grad-accum", "batch-chunk"},
                 {"eval-every", "eval-interval"},
                 {"save-steps", "save-interval"},
                 {"logging-steps", "log-interval"},
                 {"sample-every", "sample-interval"},
                 {"early-stopping", "early-stop"},
                 {"checkpoint", "init-from"},
                 {"model-path", "model"},
                 {"continue", "resume"},
                 {"output-dir", "out"},
                 {"dataset", "data"},
                 {"gpu", "device cuda"},
                 {"no-cuda", "device cpu"},
                 {"num-workers", "threads"},
                 {"fp16", "precision"},
                 {"random-seed", "seed"},
                 {"max-new-tokens", "tokens"},
                 {"num-samples", "samples"},
                 {"repetition-penalty", "repeat-penalty"},
                 {"stop-sequence", "stop"}};
    const char *names[1024];
    list_names(names);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *here = lam_brought(known[i].word, names);
        ck_assert_msg(here && strcmp(here, known[i].here) == 0, "%s", known[i].word);
        ck_assert_ptr_null(lam_brought(known[i].word, none));
    }
    ck_assert_ptr_null(lam_brought("frobnicate", names));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, names_of_fields_become_options, 0,
                        (int)(sizeof rows / sizeof *rows));
    tcase_add_test(tests, what_does_not_fit_is_cut);
    tcase_add_test(tests, names_from_elsewhere_lead_to_options_that_exist);
    return test_run("cli/spelling", tests);
}
