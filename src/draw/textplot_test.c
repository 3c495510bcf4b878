/* textplot_test.c -- a plot in letters stays in its frame and says nothing a terminal would obey. */
#include "draw/textplot.h"

#include "support/alloc.h"
#include "support/suite.h"

#include <math.h>
#include <string.h>

static const double x[] = {0, 10, 20, 30}, falling[] = {4, 3, 2, 1}, rising[] = {1, 2, NAN, 4};
static const lam_series series[] = {{.name = "down", .n = 4, .x = x, .y = falling},
                                    {.name = "\033[31mup", .n = 4, .x = x, .y = rising}};
static const lam_figure figure = {.id = "f",
                                  .title = "T",
                                  .x = {.label = "step"},
                                  .y = {.label = "y"},
                                  .n_series = 2,
                                  .series = series};

START_TEST(ascii_draws_curves_with_names_at_their_ends)
{
    lam_text t = {0};
    lam_figure_text(&t, &figure, &(lam_textplot){.width = 46, .height = 11});
    ck_assert_str_eq(t.data, "T, y\n"
                             "4 |****                           o o ?[31mup\n"
                             "  |   *****\n"
                             "  |       *****\n"
                             "  |            *****\n"
                             "  |                ****\n"
                             "2 |       oooo         *****\n"
                             "  |   ooooo                *****\n"
                             "  |oooo                        **** * down\n"
                             "  +--------------------------------\n"
                             "   0                  20  step\n");
    lam_text_free(&t);
}
END_TEST

START_TEST(every_line_fits_and_colours_end)
{
    for (int k = 0; k < 8; k++) {
        const lam_textplot how = {
            .width = 40 + 37 * k, .height = 5 + 4 * k, .utf8 = k % 2, .colour = k % 3 == 0};
        lam_text t = {0};
        lam_figure_text(&t, &figure, &how);
        int width = 0, lines = 0;
        bool in_colour = false;
        for (const char *s = t.data; *s; s++) {
            if (*s == '\033') {
                ck_assert(how.colour);
                in_colour = strncmp(s, "\033[0m", 4) != 0;
                s = strchr(s, 'm');
                continue;
            }
            width += ((unsigned char)*s & 0xc0) != 0x80;
            if (*s == '\n') {
                ck_assert_int_le(width - 1, how.width > 40 ? how.width : 40);
                ck_assert(!in_colour);
                width = 0;
                lines++;
            }
        }
        ck_assert_int_eq(lines, how.height > 8 ? how.height : 8);
        lam_text_free(&t);
    }
}
END_TEST

START_TEST(nothing_to_draw_is_a_frame)
{
    lam_text t = {0};
    const lam_series none = {.name = "none", .n = 0};
    lam_figure_text(&t, &(lam_figure){.id = "e", .title = "E", .n_series = 1, .series = &none},
                    &(lam_textplot){.width = 60, .height = 10, .utf8 = true});
    ck_assert_ptr_nonnull(strstr(t.data, "E\n"));
    lam_text_free(&t);
}
END_TEST

START_TEST(a_lack_of_memory_is_told)
{
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_text t = {0};
        lam_figure_text(&t, &figure, &(lam_textplot){.width = 80, .height = 20});
        const int failed = test_alloc_stop();
        ck_assert_int_eq(lam_text_status(&t, "plot"), failed ? LAM_ERR_MEMORY : LAM_OK);
        lam_text_free(&t);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, ascii_draws_curves_with_names_at_their_ends);
    tcase_add_test(tests, every_line_fits_and_colours_end);
    tcase_add_test(tests, nothing_to_draw_is_a_frame);
    tcase_add_test(tests, a_lack_of_memory_is_told);
    return test_run("draw/textplot", tests);
}
