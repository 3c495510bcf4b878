/* options_test.c -- do the tables parse what they promise, and refuse the rest? */
#include "cli/options.h"
#include "cli/spelling.h"
#include "cli/term.h"

#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct opts {
    bool flag, other;
    int layers, kind;
    int64_t seed;
    double rate;
    const char *text, *dir;
    lam_int_list lengths;
    lam_string_list files;
} opts;

static const char *const kinds[] = {"none", "xl", "lamemo", NULL};

static const lam_option table[] = {
    {.help = "Group"},
    {"flag", 'f', NULL, LAM_OPT_FLAG, offsetof(opts, flag), .help = "f"},
    {"n-layer", 'l', "N", LAM_OPT_INT, offsetof(opts, layers), "4", .min = 1, .max = 256,
     .aliases = "layers depth", .help = "l"},
    {"seed", 0, "N", LAM_OPT_INT64, offsetof(opts, seed), "1111", .help = "s"},
    {"lr", 0, "X", LAM_OPT_DOUBLE, offsetof(opts, rate), "2.5e-4", .max = 1, .help = "r"},
    {"prompt", 'p', "TEXT", LAM_OPT_STRING, offsetof(opts, text), .help = "t"},
    {"out", 'o', "DIR", LAM_OPT_PATH, offsetof(opts, dir), .help = "d"},
    {"memory", 0, "KIND", LAM_OPT_CHOICE, offsetof(opts, kind), "xl", .choices = kinds,
     .help = "k"},
    {"mem-len", 0, "N,...", LAM_OPT_INTS, offsetof(opts, lengths), "64", .max = 1048576,
     .help = "m"},
    {"file", 0, "FILE", LAM_OPT_STRINGS, offsetof(opts, files), .help = "f"},
    {"other", 0, NULL, LAM_OPT_FLAG, offsetof(opts, other), .help = "o"},
    {0},
};

static lam_status nothing(const lam_args *args)
{
    (void)args;
    return LAM_OK;
}

static const lam_command command = {.name = "toy",
                                    .summary = "s",
                                    .operands = "FILE...",
                                    .operands_min = 0,
                                    .operands_max = 2,
                                    .description = "d",
                                    .options = table,
                                    .options_size = sizeof(opts),
                                    .run = nothing};

enum { WORDS_MAX = 160 };
static char *words[WORDS_MAX];
static lam_args args;
static opts o;

/* Parses the words of `line` (split at blanks). */
static void parse_line(const char *line)
{
    static char copy[4096];
    int n = 0;
    snprintf(copy, sizeof copy, "toy %s", line);
    for (char *w = strtok(copy, " "); w != NULL; w = strtok(NULL, " "))
        words[n++] = w;
    words[n] = NULL;
    memset(&o, 0, sizeof o);
    lam_args_parse(&args, &o, &command, n, words);
}

START_TEST(defaults_come_from_the_table)
{
    parse_line("");
    ck_assert(!o.flag);
    ck_assert_int_eq(o.layers, 4);
    ck_assert_int_eq(o.seed, 1111);
    ck_assert_double_eq(o.rate, 2.5e-4);
    ck_assert_int_eq(o.kind, 1);
    ck_assert_int_eq(o.lengths.n, 1);
    ck_assert_int_eq(o.lengths.v[0], 64);
    ck_assert_ptr_null(o.text);
    ck_assert(!lam_option_given(&args, "n-layer"));
}
END_TEST

START_TEST(every_type_is_stored)
{
    parse_line("-f -l 7 --seed=-9007199254740993 --lr 0.5 -p hello -o dir --memory lamemo "
               "--mem-len 1,22,333 --file a --file b one two");
    ck_assert(o.flag);
    ck_assert_int_eq(o.layers, 7);
    ck_assert_int_eq(o.seed, -9007199254740993LL);
    ck_assert_double_eq(o.rate, 0.5);
    ck_assert_str_eq(o.text, "hello");
    ck_assert_str_eq(o.dir, "dir");
    ck_assert_int_eq(o.kind, 2);
    ck_assert_int_eq(o.lengths.n, 3);
    ck_assert_int_eq(o.lengths.v[2], 333);
    ck_assert_int_eq(o.files.n, 2);
    ck_assert_str_eq(o.files.v[1], "b");
    ck_assert_int_eq(args.n_operands, 2);
    ck_assert_str_eq(args.operands[0], "one");
    ck_assert(lam_option_given(&args, "n-layer"));
}
END_TEST

START_TEST(underscores_aliases_and_abbreviations_are_accepted)
{
    parse_line("--n_layer 9");
    ck_assert_int_eq(o.layers, 9);
    parse_line("--n_layer=10");
    ck_assert_int_eq(o.layers, 10);
    parse_line("--depth 11");
    ck_assert_int_eq(o.layers, 11);
    parse_line("--mem_l 12");
    ck_assert_int_eq(o.lengths.v[0], 12);
}
END_TEST

START_TEST(values_and_operands_keep_their_underscores)
{
    parse_line("--prompt --a_b");
    ck_assert_str_eq(o.text, "--a_b");
    parse_line("-p --a_b");
    ck_assert_str_eq(o.text, "--a_b");
    parse_line("--prompt=c_d e_f -- --g_h");
    ck_assert_str_eq(o.text, "c_d");
    ck_assert_str_eq(args.operands[0], "e_f");
    ck_assert_str_eq(args.operands[1], "--g_h");
}
END_TEST

START_TEST(common_options_work_everywhere)
{
    parse_line("-q -v");
    ck_assert(args.quiet && args.verbose);
    ck_assert_int_eq(args.max_memory, 0);
    parse_line("--max_memory 2k");
    ck_assert_int_eq(args.max_memory, 2000);
}
END_TEST

/* Each of these is wrong usage: exit 2. */
static const char *const wrong[] = {"--n-layer abc",
                                    "--max-memory 2X",
                                    "--n-layer 0",
                                    "--n-layer 257",
                                    "--n-layer 4x",
                                    "--n-layer=",
                                    "--n-layer 1e2",
                                    "--seed 9223372036854775808",
                                    "--lr nan",
                                    "--lr inf",
                                    "--lr 1.5",
                                    "--lr 0.5x",
                                    "--lr 0x1p-3",
                                    "--lr 1e-999",
                                    "--lr 1e999",
                                    "--lr=\t0.5",
                                    "--n-layer=\t4",
                                    "--n-layer 0x10",
                                    "--n-layer +-4",
                                    "--max-memory 0x2G",
                                    "--memory xxl",
                                    "--mem-len 1,,2",
                                    "--mem-len 1,",
                                    "--mem-len 1048577",
                                    "--out=",
                                    "--flag=1",
                                    "--n-layer",
                                    "--unknown",
                                    "-z",
                                    "a b c"};

START_TEST(wrong_usage_exits_with_2)
{
    parse_line(wrong[_i]);
}
END_TEST

START_TEST(help_exits_with_0)
{
    parse_line("--help");
}
END_TEST

START_TEST(messages_name_the_option_the_value_and_the_limits)
{
    opts x;
    ck_assert_int_eq(lam_option_set(&table[8], &x, "abc"), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "--mem-len: 'abc' is not an integer between 0 and 1048576");
    ck_assert_int_eq(lam_option_set(&table[8], &x, "1,1000000000000000000000000000000000000064"),
                     LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "--mem-len: '1000000000000000000000000000000000000064' is not an "
                                  "integer between 0 and 1048576");
    ck_assert_int_eq(lam_option_set(&table[3], &x, "9223372036854775808"), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "--seed: '9223372036854775808' is not an integer between "
                                  "-9223372036854775808 and 9223372036854775807");
    ck_assert_int_eq(lam_option_set(&table[4], &x, "2"), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "--lr: '2' is not a number between 0 and 1");
    ck_assert_int_eq(lam_option_set(&table[7], &x, "xxl"), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(),
                     "--memory: 'xxl' is not one of none, xl, lamemo; did you mean xl?");
}
END_TEST

START_TEST(integers_are_read_whole_up_to_their_limits)
{
    opts x = {0};
    must(lam_option_set(&table[3], &x, "9223372036854775807"));
    ck_assert(x.seed == INT64_MAX);
    must(lam_option_set(&table[3], &x, "-9223372036854775808"));
    ck_assert(x.seed == INT64_MIN);
    must(lam_option_set(&table[8], &x, "1048576,00000000000000000000000000000000000064,0"));
    ck_assert_int_eq(x.lengths.n, 3);
    ck_assert_int_eq(x.lengths.v[0], 1048576);
    ck_assert_int_eq(x.lengths.v[1], 64);
    ck_assert_int_eq(x.lengths.v[2], 0);
    must(lam_option_set(&table[4], &x, "-0"));
    ck_assert(x.rate == 0.0 && !signbit(x.rate));
    must(lam_option_set(&table[4], &x, "+.5"));
    ck_assert(x.rate == 0.5);
}
END_TEST

START_TEST(lists_have_a_maximum)
{
    opts x = {0};
    char text[4 * LAM_LIST_MAX] = "1";
    for (int i = 0; i < LAM_LIST_MAX; i++) {
        ck_assert_int_eq(lam_option_set(&table[8], &x, text), LAM_OK);
        ck_assert_int_eq(lam_option_set(&table[9], &x, "f"), LAM_OK);
        strcat(text, ",1");
    }
    ck_assert_int_eq(lam_option_set(&table[8], &x, text), LAM_ERR_ARG);
    ck_assert_int_eq(lam_option_set(&table[9], &x, "f"), LAM_ERR_ARG);
}
END_TEST

START_TEST(a_slip_finds_its_word_and_nonsense_does_not)
{
    static const char *const names[] = {"prepare", "train", "eval", NULL};
    ck_assert_str_eq(lam_closest("trian", names), "train");
    ck_assert_str_eq(lam_closest("evla", names), "eval");
    ck_assert_str_eq(lam_closest("prepar", names), "prepare");
    ck_assert_ptr_null(lam_closest("zzz", names));
    ck_assert_ptr_null(lam_closest("", names));
}
END_TEST

START_TEST(sizes_are_bytes_with_or_without_a_unit)
{
    static const struct {
        const char *text;
        int64_t bytes; /* 0: refused */
    } rows[] = {{"1", 1},
                {"65536", 65536},
                {"500M", 500000000},
                {"500MB", 500000000},
                {"1.5GiB", 3 << 29},
                {"2k", 2000},
                {"2KiB", 2048},
                {"1T", 1000000000000},
                {"0", 0},
                {"-1G", 0},
                {"", 0},
                {"G", 0},
                {"1 G", 0},
                {"1GG", 0},
                {"1x", 0},
                {"1e30", 0},
                {"nan", 0},
                {"1Bi", 0}};
    const lam_option size = {"size", 0, "SIZE", LAM_OPT_SIZE, 0, .help = "s"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t got = 0;
        const lam_status status = lam_option_set(&size, &got, rows[i].text);
        ck_assert_msg(status == (rows[i].bytes > 0 ? LAM_OK : LAM_ERR_ARG), "%s", rows[i].text);
        ck_assert_int_eq(got, rows[i].bytes);
    }
}
END_TEST

START_TEST(quantities_read_well)
{
    char t[32];
    ck_assert_str_eq(lam_format_time(t, sizeof t, 5025), "1:23:45");
    ck_assert_str_eq(lam_format_time(t, sizeof t, 7.4), "0:07");
    ck_assert_str_eq(lam_format_time(t, sizeof t, -1), "-:--");
    ck_assert_str_eq(lam_format_count(t, sizeof t, 88982818), "88,982,818");
    ck_assert_str_eq(lam_format_count(t, sizeof t, 999), "999");
    ck_assert_str_eq(lam_format_count(t, sizeof t, -1000), "-1,000");
}
END_TEST

START_TEST(a_flag_that_is_copied_leaves_its_neighbours)
{
    opts to = {.other = true};
    parse_line("--flag");
    lam_options_copy(&to, &args, 0, sizeof to, LAM_WRITTEN);
    ck_assert(to.flag && to.other);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, a_flag_that_is_copied_leaves_its_neighbours);
    tcase_add_test(tests, defaults_come_from_the_table);
    tcase_add_test(tests, every_type_is_stored);
    tcase_add_test(tests, underscores_aliases_and_abbreviations_are_accepted);
    tcase_add_test(tests, values_and_operands_keep_their_underscores);
    tcase_add_test(tests, common_options_work_everywhere);
    tcase_add_loop_exit_test(tests, wrong_usage_exits_with_2, 2, 0,
                             (int)(sizeof wrong / sizeof *wrong));
    tcase_add_exit_test(tests, help_exits_with_0, 0);
    tcase_add_test(tests, messages_name_the_option_the_value_and_the_limits);
    tcase_add_test(tests, integers_are_read_whole_up_to_their_limits);
    tcase_add_test(tests, lists_have_a_maximum);
    tcase_add_test(tests, a_slip_finds_its_word_and_nonsense_does_not);
    tcase_add_test(tests, sizes_are_bytes_with_or_without_a_unit);
    tcase_add_test(tests, quantities_read_well);
    return test_run("cli/options", tests);
}
