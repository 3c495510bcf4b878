/* palette_test.c -- every colour can be read on its ground, and no two curves look alike. */
#include "draw/palette.h"

#include "support/suite.h"

#include <math.h>
#include <string.h>

static double luminance(lam_rgb c)
{
    const double v[3] = {c.r / 255.0, c.g / 255.0, c.b / 255.0};
    double lin[3];
    for (int i = 0; i < 3; i++)
        lin[i] = v[i] <= 0.04045 ? v[i] / 12.92 : pow((v[i] + 0.055) / 1.055, 2.4);
    return 0.2126 * lin[0] + 0.7152 * lin[1] + 0.0722 * lin[2];
}

/* As WCAG 2 defines it: 1 to 21. */
static double contrast(lam_rgb a, lam_rgb b)
{
    const double x = luminance(a), y = luminance(b);
    return (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
}

START_TEST(text_and_curves_stand_out_on_both_grounds)
{
    for (int t = 0; t < LAM_THEMES; t++) {
        const lam_rgb ground = lam_colour_paint((lam_theme)t, LAM_PAINT_GROUND);
        for (int i = 0; i < LAM_COLOURS_ALL; i++)
            ck_assert_msg(contrast(lam_colour_series((lam_theme)t, i), ground) >= 4.5,
                          "series %d of theme %d", i, t);
        for (int paint = LAM_PAINT_INK; paint <= LAM_PAINT_SOFT; paint++)
            ck_assert_double_ge(contrast(lam_colour_paint((lam_theme)t, (lam_paint)paint), ground),
                                4.5);
        ck_assert_double_ge(contrast(lam_colour_paint((lam_theme)t, LAM_PAINT_LINE), ground), 3.0);
    }
}
END_TEST

START_TEST(the_ink_is_readable_on_every_token)
{
    for (int t = 0; t < LAM_THEMES; t++)
        for (int step = -LAM_TOKEN_STEPS; step <= LAM_TOKEN_STEPS; step++)
            ck_assert_msg(contrast(lam_colour_token((lam_theme)t, step),
                                   lam_colour_paint((lam_theme)t, LAM_PAINT_INK)) >= 4.5,
                          "step %d of theme %d", step, t);
}
END_TEST

START_TEST(a_ramp_leads_evenly_away_from_its_ground)
{
    for (int t = 0; t < LAM_THEMES; t++) {
        const lam_rgb ground = lam_colour_paint((lam_theme)t, LAM_PAINT_GROUND);
        double before = 0;
        for (int i = 0; i <= 16; i++) {
            const double now = contrast(lam_colour_ramp((lam_theme)t, i / 16.0), ground);
            ck_assert_msg(now > before, "theme %d, step %d", t, i);
            before = now;
        }
        ck_assert_double_ge(before, 10);
        const lam_rgb end = lam_colour_ramp((lam_theme)t, 1),
                      past = lam_colour_ramp((lam_theme)t, 7);
        ck_assert_mem_eq(&end, &past, sizeof end);
    }
}
END_TEST

START_TEST(the_style_sheet_names_them_all)
{
    lam_text css = {0};
    lam_palette_css(&css, LAM_THEME_DARK);
    ck_assert_ptr_nonnull(strstr(css.data, "--ground:#14171c;"));
    ck_assert_ptr_nonnull(strstr(css.data, "--s15:#"));
    ck_assert_ptr_nonnull(strstr(css.data, "--u8:#145c96;"));
    ck_assert_ptr_nonnull(strstr(css.data, "--h31:#"));
    lam_text_free(&css);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, text_and_curves_stand_out_on_both_grounds);
    tcase_add_test(tests, the_ink_is_readable_on_every_token);
    tcase_add_test(tests, a_ramp_leads_evenly_away_from_its_ground);
    tcase_add_test(tests, the_style_sheet_names_them_all);
    return test_run("draw/palette", tests);
}
