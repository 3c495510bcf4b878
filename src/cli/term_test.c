/* term_test.c -- a terminal gets colour and one live line; a file gets neither. */
#include "cli/term.h"

#include "core/log.h"
#include "support/suite.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int master;

/* Makes stderr a terminal of 40 columns, or a file. */
static void stderr_to_terminal(void)
{
    const struct winsize size = {.ws_row = 10, .ws_col = 40};
    master = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    ck_assert(slave >= 0 && ioctl(slave, TIOCSWINSZ, &size) == 0);
    ck_assert_int_ge(dup2(slave, STDERR_FILENO), 0);
    fcntl(master, F_SETFL, O_NONBLOCK);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
}

/* What came, which ends with `end`: the kernel may hand it over in pieces. */
static const char *terminal_got(const char *end)
{
    static char text[4096];
    size_t have = 0;
    struct pollfd wait = {.fd = master, .events = POLLIN};
    fflush(stderr);
    do {
        const ssize_t n = read(master, text + have, sizeof text - 1 - have);
        have += n > 0 ? (size_t)n : 0;
        text[have] = '\0';
    } while ((have < strlen(end) || strcmp(text + have - strlen(end), end) != 0) &&
             poll(&wait, 1, 5000) > 0);
    return text;
}

START_TEST(colour_is_for_terminals_that_want_it)
{
    stderr_to_terminal();
    ck_assert(lam_term_is_tty(stderr));
    ck_assert_int_eq(lam_term_width(stderr), 40);
    ck_assert_str_eq(lam_term_style(stderr, LAM_STYLE_BOLD), "\033[1m");
    setenv("NO_COLOR", "1", 1);
    ck_assert_str_eq(lam_term_style(stderr, LAM_STYLE_BOLD), "");
    setenv("NO_COLOR", "", 1); /* empty is unset: no-color.org */
    ck_assert_str_eq(lam_term_style(stderr, LAM_STYLE_BOLD), "\033[1m");
    setenv("TERM", "dumb", 1);
    ck_assert_str_eq(lam_term_style(stderr, LAM_STYLE_BOLD), "");

    FILE *file = tmpfile();
    setenv("TERM", "xterm", 1);
    ck_assert_str_eq(lam_term_style(file, LAM_STYLE_BOLD), "");
    ck_assert_int_eq(lam_term_width(file), 80);
    fclose(file);
}
END_TEST

START_TEST(the_live_line_is_cut_cleared_and_kept_apart)
{
    lam_progress p;
    stderr_to_terminal();
    lam_progress_open(&p, false);
    lam_progress_show(&p, "too early");
    ck_assert_str_eq(terminal_got(""), "");
    p.last -= 1; /* a second ago */
    lam_progress_show(&p, "%s", "0123456789012345678901234567890123456789 too long");
    ck_assert_str_eq(terminal_got("\033[K"), "\r012345678901234567890123456789012345678\033[K");
    lam_log(LAM_LOG_WARN, "careful");
    ck_assert_str_eq(terminal_got("\n"), "\r\033[Kwarning: careful\r\n");
    lam_progress_close(&p);
    ck_assert_str_eq(terminal_got(""), "");
}
END_TEST

START_TEST(long_log_lines_break_at_words_on_a_terminal)
{
    stderr_to_terminal(); /* of 40 columns */
    lam_term_log();
    lam_log(LAM_LOG_INFO, "%s", "short");
    ck_assert_str_eq(terminal_got("\n"), "short\r\n");
    lam_log(LAM_LOG_WARN,
            "a warm-up of 100 steps in a run of 50 steps: the learning rate stays low");
    ck_assert_str_eq(terminal_got("low\r\n"), "warning: a warm-up of 100 steps in a run\r\n"
                                              "  of 50 steps: the learning rate stays\r\n"
                                              "  low\r\n");
    lam_log(LAM_LOG_INFO,
            "01234567890123456789012345678901234567890123456789 x"); /* no blank to break at */
    ck_assert_str_eq(terminal_got("x\r\n"),
                     "0123456789012345678901234567890123456789\r\n  0123456789 x\r\n");
    lam_log_set_sink(NULL, NULL);
}
END_TEST

START_TEST(quiet_is_quiet)
{
    lam_progress p;
    stderr_to_terminal();
    lam_progress_open(&p, true);
    p.last -= 1000;
    ck_assert(!lam_progress_due(&p));
    lam_progress_show(&p, "never");
    lam_progress_close(&p);
    ck_assert_str_eq(terminal_got(""), "");
}
END_TEST

/* 2, 4, 8, ... 60, 60 seconds between lines. */
START_TEST(a_log_file_gets_fewer_and_fewer_lines)
{
    lam_progress p;
    const char *path = test_temp_path("log");
    char text[1024];
    ck_assert_ptr_nonnull(freopen(path, "w+", stderr));
    lam_progress_open(&p, false);
    double now = 0, shown[16] = {0};
    int n = 0;
    for (; now < 300; now += 1) { /* time passes by moving the last line back */
        p.last -= 1;
        if (lam_progress_due(&p) && n < 16)
            shown[n++] = now;
        lam_progress_show(&p, "at %g", now);
    }
    lam_progress_close(&p);
    ck_assert_int_ge(n, 7);
    ck_assert_int_le(n, 10);
    for (int i = 2; i < n; i++)
        ck_assert_double_ge(shown[i] - shown[i - 1], shown[i - 1] - shown[i - 2] - 1);
    rewind(stderr);
    const size_t size = fread(text, 1, sizeof text - 1, stderr);
    text[size] = '\0';
    ck_assert_ptr_null(strchr(text, '\033'));
    ck_assert_ptr_null(strchr(text, '\r'));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, colour_is_for_terminals_that_want_it);
    tcase_add_test(tests, the_live_line_is_cut_cleared_and_kept_apart);
    tcase_add_test(tests, long_log_lines_break_at_words_on_a_terminal);
    tcase_add_test(tests, quiet_is_quiet);
    tcase_add_test(tests, a_log_file_gets_fewer_and_fewer_lines);
    return test_run("cli/term", tests);
}
