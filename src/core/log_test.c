/* log_test.c -- lines of the wanted levels reach the sink, whole and in order. */
#include "core/log.h"

#include "support/suite.h"

#include <stdio.h>
#include <string.h>

typedef struct seen {
    int lines;
    lam_log_level level;
    char last[4096];
} seen;

static void remember(lam_log_level level, const char *line, void *user)
{
    seen *const s = user;
    s->lines++;
    s->level = level;
    snprintf(s->last, sizeof s->last, "%s", line);
}

START_TEST(lines_up_to_the_level_are_delivered)
{
    for (int level = LAM_LOG_ERROR; level <= LAM_LOG_DEBUG; level++) {
        seen s = {0};
        lam_log_set_sink(remember, &s);
        lam_log_set_level((lam_log_level)level);
        for (int line = LAM_LOG_ERROR; line <= LAM_LOG_DEBUG; line++)
            lam_log((lam_log_level)line, "line %d", line);
        ck_assert_int_eq(s.lines, level + 1);
        ck_assert_int_eq((int)s.level, level);
        ck_assert_int_eq(s.last[5], '0' + level);
    }
}
END_TEST

START_TEST(info_is_the_default_and_debug_is_silent)
{
    seen s = {0};
    lam_log_set_sink(remember, &s);
    lam_log(LAM_LOG_DEBUG, "hidden");
    ck_assert_int_eq(s.lines, 0);
    lam_log(LAM_LOG_INFO, "shown %d", 3);
    ck_assert_str_eq(s.last, "shown 3");
}
END_TEST

START_TEST(long_lines_are_cut_not_overrun)
{
    seen s = {0};
    char text[4000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    lam_log_set_sink(remember, &s);
    lam_log(LAM_LOG_INFO, "%s", text);
    ck_assert_uint_gt(strlen(s.last), 1000);
    ck_assert_uint_lt(strlen(s.last), sizeof text - 1);
}
END_TEST

START_TEST(null_restores_stderr)
{
    seen s = {0};
    char line[64] = "";
    FILE *const catch = tmpfile();
    ck_assert_ptr_nonnull(catch);
    lam_log_set_sink(remember, &s);
    lam_log_set_sink(NULL, NULL);
    FILE *const real = stderr;
    stderr = catch;
    lam_log(LAM_LOG_WARN, "careful");
    stderr = real;
    rewind(catch);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, catch));
    fclose(catch);
    ck_assert_str_eq(line, "warning: careful\n");
    ck_assert_int_eq(s.lines, 0);
}
END_TEST

START_TEST(a_line_stays_a_line)
{
    seen s = {0};
    lam_log_set_sink(remember, &s);
    lam_log(LAM_LOG_WARN, "tensor %s", "a\n\x1b[2J\xc2\x9b");
    ck_assert_str_eq(s.last, "tensor a\\x0a\\x1b[2J\\u009b");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, lines_up_to_the_level_are_delivered);
    tcase_add_test(tests, info_is_the_default_and_debug_is_silent);
    tcase_add_test(tests, a_line_stays_a_line);
    tcase_add_test(tests, long_lines_are_cut_not_overrun);
    tcase_add_test(tests, null_restores_stderr);
    return test_run("core/log", tests);
}
