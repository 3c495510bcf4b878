/* figure_test.c -- files say what the figure holds, and drawings are well-formed whatever it holds. */
#include "draw/figure.h"

#include "core/file.h"
#include "draw/svg.h"
#include "io/json.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double steps[] = {100, 200, 300, 400}, loss[] = {3, 2.5, NAN, 2.125};
static const double low[] = {2.9, 2.4, 0, 2}, high[] = {3.1, 2.6, 0, 2.25};
static const double few[] = {150, 400}, dev[] = {2.75, 2.25}, z[] = {0.5, 1, NAN, -0.25, 0, 1e-3};

static const lam_series series[] = {
    {.name = "LaMemo, train", .n = 4, .x = steps, .y = loss, .low = low, .high = high},
    {.name = "</svg><script>", .n = 2, .x = few, .y = dev, .dashed = true, .colour = 5}};
static const lam_figure lines = {.id = "loss",
                                 .title = "Loss",
                                 .caption = "Of <both>.",
                                 .x = {.label = "step"},
                                 .y = {.label = "nats", .scale = LAM_SCALE_LOG},
                                 .n_series = 2,
                                 .series = series};
static const lam_figure heat = {.id = "heat",
                                .title = "Heat",
                                .kind = LAM_FIGURE_HEAT,
                                .x = {.label = "slot", .min = -3, .max = -1},
                                .y = {.label = "layer"},
                                .rows = 2,
                                .cols = 3,
                                .z = z,
                                .z_label = "alpha"};
static const lam_figure *const all[] = {&lines, &heat};

/* Every tag is closed in order, and nothing but our own elements appears. */
static void check_xml(const char *svg)
{
    static const char *const known[] = {"svg", "style", "rect", "path", "text", "g", NULL};
    const char *open[16];
    int depth = 0;
    for (const char *at = strchr(svg, '<'); at; at = strchr(at, '<')) {
        const char *end = strchr(at, '>');
        ck_assert_ptr_nonnull(end);
        const int closing = at[1] == '/', i0 = 1 + closing;
        int k = 0;
        const size_t length = strcspn(at + i0, " />");
        while (known[k] && (strlen(known[k]) != length || strncmp(at + i0, known[k], length) != 0))
            k++;
        ck_assert_msg(known[k] != NULL, "%.20s", at);
        if (closing)
            ck_assert_msg(depth > 0 && open[--depth] == known[k], "%.20s", at);
        else if (end[-1] != '/')
            open[depth++] = known[k];
        ck_assert_int_lt(depth, 16);
        at = end;
    }
    ck_assert_int_eq(depth, 0);
    ck_assert_ptr_null(strstr(svg, "nan"));
    ck_assert_ptr_null(strstr(svg, "inf\""));
}

START_TEST(csv_joins_series_over_their_x)
{
    lam_text t = {0};
    lam_figure_csv(&t, &lines);
    ck_assert_str_eq(t.data, "step,\"LaMemo, train\",\"LaMemo, train low\",\"LaMemo, train "
                             "high\",</svg><script>\n"
                             "100,3,2.9,3.1,\n150,,,,2.75\n200,2.5,2.4,2.6,\n300,,0,0,\n"
                             "400,2.125,2,2.25,2.25\n");
    lam_text_free(&t);
    lam_figure_csv(&t, &heat);
    ck_assert_str_eq(t.data,
                     "layer,slot,alpha\n0,-3,0.5\n0,-2,1\n0,-1,\n1,-3,-0.25\n1,-2,0\n1,-1,0.001\n");
    lam_text_free(&t);
}
END_TEST

START_TEST(json_holds_everything)
{
    json_t *root;
    lam_text t = {0};
    lam_figure_json(&t, &lines, LAM_FOR_FILE);
    ck_assert_int_eq(lam_json_parse(&root, "lines", t.data, t.size), LAM_OK);
    json_t *first = json_array_get(json_object_get(root, "series"), 0);
    json_t *second = json_array_get(json_object_get(root, "series"), 1);
    ck_assert_str_eq(json_string_value(json_object_get(second, "name")), "</svg><script>");
    ck_assert_int_eq(json_integer_value(json_object_get(second, "colour")), 4);
    ck_assert(json_is_null(json_array_get(json_object_get(first, "y"), 2)));
    ck_assert_double_eq(json_number_value(json_array_get(json_object_get(first, "high"), 3)), 2.25);
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(root, "y"), "scale")),
                     "log");
    json_decref(root);
    lam_text_free(&t);
    lam_figure_json(&t, &heat, LAM_FOR_PAGE);
    ck_assert_int_eq(lam_json_parse(&root, "figure", t.data, t.size), LAM_OK);
    json_decref(root);
    lam_text_free(&t);
}
END_TEST

START_TEST(drawings_are_well_formed)
{
    for (int k = 0; k < 4; k++) {
        lam_text t = {0};
        lam_figure_svg(&t, all[k / 2], k % 2 ? LAM_FOR_FILE : LAM_FOR_PAGE);
        ck_assert_int_eq(lam_text_status(&t, "svg"), LAM_OK);
        check_xml(t.data);
        ck_assert_int_eq(strstr(t.data, "<style>") != NULL, k % 2);
        lam_text_free(&t);
    }
}
END_TEST

START_TEST(curves_pass_through_their_points)
{
    const double x[] = {0, 1, 2}, y[] = {1, 0, 1};
    const lam_series s = {.name = "v", .n = 3, .x = x, .y = y};
    const lam_figure f = {
        .id = "v", .title = "V", .y = {.min = 0, .max = 1}, .n_series = 1, .series = &s};
    lam_text t = {0};
    double p[6];
    lam_figure_svg(&t, &f, LAM_FOR_PAGE);
    const char *line = strstr(t.data, "<path class=\"line s0\" d=\"M");
    ck_assert_ptr_nonnull(line);
    ck_assert_int_eq(sscanf(line, "<path class=\"line s0\" d=\"M%lf %lfL%lf %lfL%lf %lf", &p[0],
                            &p[1], &p[2], &p[3], &p[4], &p[5]),
                     6);
    ck_assert_double_eq_tol(p[2], (p[0] + p[4]) / 2, 0.11); /* the middle, at the bottom */
    ck_assert_double_eq_tol(p[1], p[5], 1e-9);
    ck_assert_double_gt(p[3], p[1] + 200);
    lam_text_free(&t);
}
END_TEST

START_TEST(nothing_to_show_is_no_crime)
{
    const double nan[] = {NAN, INFINITY, -1};
    const lam_series s[] = {{.name = "", .n = 0}, {.name = "x", .n = 3, .x = nan, .y = nan}};
    for (int k = 0; k < 9; k++) {
        const lam_figure f = {.id = "e",
                              .title = "",
                              .kind = (lam_figure_kind)(k / 3),
                              .x = {.scale = k % 2 ? LAM_SCALE_LOG : LAM_SCALE_LINEAR},
                              .y = {.scale = LAM_SCALE_LOG},
                              .n_series = k % 3,
                              .series = s,
                              .rows = k % 3,
                              .cols = k % 3 ? 1 : 0,
                              .z = nan};
        lam_text t = {0};
        lam_figure_svg(&t, &f, LAM_FOR_FILE);
        check_xml(t.data);
        lam_figure_csv(&t, &f);
        lam_figure_json(&t, &f, LAM_FOR_FILE);
        ck_assert_int_eq(lam_text_status(&t, "empty"), LAM_OK);
        lam_text_free(&t);
    }
}
END_TEST

static void check_file(const char *dir, const char *name, const char *begins)
{
    char path[512], *text;
    size_t size;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_assert_msg(lam_file_load(&text, &size, path, 1 << 24) == LAM_OK, "%s", lam_error());
    ck_assert_msg(strncmp(text, begins, strlen(begins)) == 0, "%s", name);
    free(text);
}

START_TEST(a_figure_is_three_files)
{
    const char *dir = test_temp_path("figures");
    for (int k = 0; k < 2; k++)
        ck_assert_msg(lam_figure_save(all[k], dir) == LAM_OK, "%s", lam_error());
    check_file(dir, "heat.svg", "<svg ");
    check_file(dir, "loss.csv", "step,");
    check_file(dir, "heat.json", "{\"id\":\"heat\"");
}
END_TEST

START_TEST(without_memory_nothing_is_half_written)
{
    const char *dir = test_temp_path("starved");
    long failures = 0;
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = lam_figure_save(&lines, dir);
        const int failed = test_alloc_stop();
        ck_assert_int_eq(status, failed ? LAM_ERR_MEMORY : LAM_OK);
        failures += failed;
    }
    ck_assert_int_ge(failures, 5);
}
END_TEST

START_TEST(an_axis_that_counts_has_no_numbers_between)
{
    const double layers[] = {1, 2, 3}, places[] = {1, 2.25, 3};
    lam_series one = {.name = "a", .n = 3, .x = layers, .y = steps};
    const lam_figure f = {
        .id = "f", .title = "F", .x = {.label = "layer"}, .n_series = 1, .series = &one};
    lam_text free = {0}, whole = {0}, two = {0};
    lam_figure_svg(&whole, &f, LAM_FOR_FILE);
    one.n = 2;
    lam_figure_svg(&two, &f, LAM_FOR_FILE);
    one.n = 3;
    one.x = places;
    lam_figure_svg(&free, &f, LAM_FOR_FILE);
    ck_assert_ptr_nonnull(strstr(free.data, ">1.5<"));
    ck_assert_ptr_null(strstr(whole.data, ">1.5<"));
    ck_assert_ptr_nonnull(strstr(whole.data, ">2<"));
    ck_assert_ptr_nonnull(strstr(two.data, ">2<"));
    ck_assert_ptr_null(strstr(two.data, ">1.2<"));
    lam_text_free(&free);
    lam_text_free(&whole);
    lam_text_free(&two);
}
END_TEST

/* Ten curves that end in one point above all others: every name has a line of its own, within the drawing. */
START_TEST(names_keep_apart_and_inside)
{
    enum { N = 10 };
    const double x[] = {0, 1}, y[] = {0, 1}, early[] = {0, 0.5};
    lam_series s[N];
    for (int k = 0; k < N; k++)
        s[k] = (lam_series){.name = "curve", .n = 2, .x = k == 3 ? early : x, .y = y};
    for (int ordered = 0; ordered < 2; ordered++) {
        const lam_figure f = {.id = "n",
                              .title = "N",
                              .y = {.max = 1},
                              .n_series = N,
                              .series = s,
                              .ordered = ordered == 1};
        lam_text t = {0};
        double before = 0, top, height;
        int n = 0;
        lam_figure_svg(&t, &f, LAM_FOR_FILE);
        check_xml(t.data);
        const char *at = strstr(t.data, "<rect class=\"frame\"");
        ck_assert_int_eq(
            sscanf(at, "<rect class=\"frame\" x=\"%*f\" y=\"%lf\" width=\"%*f\" height=\"%lf", &top,
                   &height),
            2);
        for (at = t.data; (at = strstr(at, "class=\"name f")) != NULL; at++, n++) {
            double here;
            while (strncmp(at, " y=\"", 4) != 0)
                at--;
            ck_assert_int_eq(sscanf(at, " y=\"%lf\"", &here), 1);
            ck_assert_msg(here > top && here < top + height + 8, "name %d at %g", n, here);
            ck_assert_msg(here - before > 15.9, "name %d at %g after %g", n, here, before);
            before = here;
            at = strstr(at, "class=\"name f");
        }
        ck_assert_int_eq(n, N);
        ck_assert_int_eq(strstr(t.data, "class=\"lead") != NULL, ordered == 0);
        ck_assert_int_eq(strstr(t.data, "line s15") != NULL, ordered == 1);
        lam_text_free(&t);
    }
}
END_TEST

START_TEST(a_file_says_what_was_found)
{
    static const char words[] =
        "a finding <of> more words than a line of the drawing can hold, so "
        "that it goes on in a second one and, going on and on, ends in "
        "three dots before everything is said that could be said of it, were there "
        "room for all of that";
    const lam_figure plain = {.id = "f", .title = "F"};
    lam_figure f = plain;
    lam_text file = {0}, page = {0};
    f.finding = words;
    lam_figure_svg(&file, &f, LAM_FOR_FILE);
    lam_figure_svg(&page, &f, LAM_FOR_PAGE);
    check_xml(file.data);
    ck_assert_ptr_nonnull(strstr(file.data, ">a finding &lt;of&gt; more"));
    ck_assert_ptr_nonnull(strstr(file.data, "\xe2\x80\xa6</text>"));
    ck_assert_ptr_null(strstr(page.data, "class=\"finding\"")); /* stands above it */
    ck_assert_double_eq(lam_figure_height(&f, LAM_FOR_PAGE),
                        lam_figure_height(&plain, LAM_FOR_PAGE));
    ck_assert_double_gt(lam_figure_height(&f, LAM_FOR_FILE),
                        lam_figure_height(&plain, LAM_FOR_FILE) + 30);
    lam_text_free(&file);
    lam_text_free(&page);
}
END_TEST

START_TEST(few_points_are_numbered_themselves)
{
    const double x[] = {64, 128, 192}, odd[] = {64, 128.5, 192};
    lam_series s = {.name = "a", .n = 3, .x = x, .y = x};
    const lam_figure f = {
        .id = "f", .title = "F", .x = {.at_points = true}, .n_series = 1, .series = &s};
    for (int k = 0; k < 2; k++) {
        lam_text t = {0};
        s.x = k ? odd : x;
        lam_figure_svg(&t, &f, LAM_FOR_FILE);
        ck_assert_int_eq(strstr(t.data, "text-anchor=\"middle\">128<") != NULL, k == 0);
        ck_assert_int_eq(strstr(t.data, "text-anchor=\"middle\">100<") != NULL, k == 1);
        lam_text_free(&t);
    }
}
END_TEST

START_TEST(what_is_cut_off_is_not_drawn)
{
    const double x[] = {1, 2, 3, 4}, y[] = {9, 2, 1, 1.5};
    const lam_series s = {.name = "a", .n = 4, .x = x, .y = y};
    for (int cut = 0; cut < 2; cut++) {
        const lam_axis axis = {.min = cut ? 1 : 0, .max = cut ? 2 : 0, .cut = cut == 1};
        const lam_figure f = {.id = "f", .title = "F", .y = axis, .n_series = 1, .series = &s};
        lam_text t = {0};
        int points = 0;
        lam_figure_svg(&t, &f, LAM_FOR_FILE);
        const char *at = strstr(t.data, "<path class=\"line s0\"");
        for (const char *end = strchr(at, '>'); at < end; at++)
            points += *at == 'L' || *at == 'M';
        ck_assert_int_eq(points, cut ? 3 : 4);
        lam_text_free(&t);
    }
}
END_TEST

START_TEST(a_heat_map_may_be_logarithmic)
{
    const double weights[] = {0.001, 0.01, 0.1, 0};
    const lam_figure f = {.id = "f",
                          .title = "F",
                          .kind = LAM_FIGURE_HEAT,
                          .rows = 1,
                          .cols = 4,
                          .z = weights,
                          .z_scale = LAM_SCALE_LOG};
    lam_text t = {0};
    lam_figure_svg(&t, &f, LAM_FOR_FILE);
    check_xml(t.data);
    ck_assert_ptr_nonnull(strstr(t.data, "M1 0h1v1h-1")); /* a shade of its own */
    ck_assert_ptr_null(strstr(t.data, "M3 0h"));          /* nothing is a gap */
    ck_assert_ptr_nonnull(strstr(t.data, "class=\"tick\">0.01</text>"));
    lam_text_free(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, names_keep_apart_and_inside);
    tcase_add_test(tests, a_file_says_what_was_found);
    tcase_add_test(tests, few_points_are_numbered_themselves);
    tcase_add_test(tests, what_is_cut_off_is_not_drawn);
    tcase_add_test(tests, a_heat_map_may_be_logarithmic);
    tcase_add_test(tests, an_axis_that_counts_has_no_numbers_between);
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, csv_joins_series_over_their_x);
    tcase_add_test(tests, json_holds_everything);
    tcase_add_test(tests, drawings_are_well_formed);
    tcase_add_test(tests, curves_pass_through_their_points);
    tcase_add_test(tests, nothing_to_show_is_no_crime);
    tcase_add_test(tests, a_figure_is_three_files);
    tcase_add_test(tests, without_memory_nothing_is_half_written);
    return test_run("draw/figure", tests);
}
