/* page_test.c -- a page is whole, small, needs nothing from outside, and shows any bytes without obeying. */
#include "draw/page.h"

#include "core/file.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char evil[] = "</script><img src=x onerror=alert(1)>";
static const double x[] = {1, 2, 3}, y[] = {3, 1, 2};
static const lam_series series = {.name = evil, .n = 3, .x = x, .y = y};
static const lam_figure figure = {.id = "curve",
                                  .title = evil,
                                  .caption = evil,
                                  .x = {.label = evil},
                                  .y = {.label = evil},
                                  .n_series = 1,
                                  .series = &series};
static const lam_column columns[] = {{.name = evil, .note = evil}};
static const lam_cell cells[] = {{evil, 0}};
static const lam_table table = {.id = "table",
                                .title = evil,
                                .caption = evil,
                                .rows = 1,
                                .cols = 1,
                                .columns = columns,
                                .cells = cells};

/* "é" in two tokens, an orphaned byte, NUL, a newline, and the worst. */
static const lam_token tokens[] = {{"\xc3", 1}, {"\xa9", 1}, {"\xff", 1},
                                   {"\0", 1},   {"a\n", 2},  {evil, sizeof evil - 1}};
static const double bits[] = {1, 2, 4, NAN, 0, 8}, gain[] = {-1, -2, 4, 0, 0, NAN};
static const lam_measure measures[] = {{.name = evil, .values = bits, .limit = 8},
                                       {.name = "gain", .values = gain, .diverging = true}};
static const lam_coloured coloured = {
    .id = "tokens", .title = evil, .n = 6, .tokens = tokens, .n_measures = 2, .measures = measures};
static const char *const words[] = {evil, "b"};
static const lam_texts texts = {.id = "texts",
                                .title = "Texts",
                                .prompt = evil,
                                .n = 2,
                                .names = words,
                                .texts = words,
                                .notes = words};

static lam_status build(const char *path, const lam_page_options *options)
{
    lam_page *page;
    LAM_TRY(lam_page_create(&page, options));
    lam_page_heading(page, "first", evil);
    lam_page_text(page, "One.\n\nTwo <b>.\n\n\n");
    lam_status status = lam_page_figure(page, &figure);
    if (status == LAM_OK)
        status = lam_page_table(page, &table);
    if (status == LAM_OK)
        status = lam_page_tokens(page, &coloured);
    if (status == LAM_OK)
        status = lam_page_texts(page, &texts);
    if (status == LAM_OK)
        status = lam_page_save(page, path);
    lam_page_free(page);
    return status;
}

static char *built(const lam_page_options *options)
{
    char *html;
    size_t size;
    const char *path = test_temp_path("page.html");
    ck_assert_msg(build(path, options) == LAM_OK, "%s", lam_error());
    ck_assert_int_eq(lam_file_load(&html, &size, path, 1 << 24), LAM_OK);
    ck_assert_uint_eq(strlen(html), size);
    return html;
}

START_TEST(text_from_outside_is_shown_and_not_obeyed)
{
    char *html = built(&(lam_page_options){.title = evil, .subtitle = evil});
    ck_assert_ptr_null(strstr(html, "<img"));
    ck_assert_ptr_nonnull(strstr(html, "<p>One.</p>\n<p>Two &lt;b&gt;.</p>\n"));
    /* Scripts end where we end them: as many ends as beginnings. */
    int open = 0, close = 0;
    for (const char *at = html; (at = strstr(at, "<script")); at++)
        open++;
    for (const char *at = html; (at = strstr(at, "</script")); at++)
        close++;
    ck_assert_int_eq(open, close);
    free(html);
}
END_TEST

START_TEST(tokens_of_one_character_are_one)
{
    char *html = built(&(lam_page_options){.title = "T"});
    ck_assert_ptr_nonnull(strstr(html, "<span class=t3>\xc3\xa9</span><span class=t4>\\xff</span>"
                                       "<span>\\x00</span><span>a\xe2\x86\xb5\n</span>"
                                       "<span class=t8>&lt;/script&gt;"));
    ck_assert_ptr_nonnull(strstr(html, "\"values\":[3,4,null,0,8]"));
    ck_assert_ptr_nonnull(
        strstr(html, "\"diverging\":true,\"limit\":2,\"values\":[-3,4,0,0,null]"));
    free(html);
}
END_TEST

START_TEST(nothing_is_fetched)
{
    char *html = built(&(lam_page_options){.title = "T"});
    ck_assert_ptr_nonnull(strstr(html, "default-src 'none'"));
    ck_assert_ptr_null(strstr(html, " src=\""));
    ck_assert_ptr_null(strstr(html, "@import"));
    ck_assert_ptr_null(strstr(html, "url("));
    free(html);
}
END_TEST

START_TEST(files_lie_beside_the_page)
{
    const char *dir = test_temp_path("files");
    const char *const names[] = {"files/curve.svg", "files/curve.csv", "files/curve.json",
                                 "files/table.csv", "files/table.json"};
    free(built(&(lam_page_options){.title = "T", .files = dir}));
    for (int i = 0; i < 5; i++)
        ck_assert_msg(lam_path_exists(test_temp_path(names[i])), "%s", names[i]);
}
END_TEST

/* Five figures of twenty runs with 100,000 records each, a map of 12 x 8 heads by 512 slots for two models, and a
 * text of 10,000 tokens in three measures. */
START_TEST(a_large_analysis_stays_below_three_megabytes)
{
    enum { N = 100000, RUNS = 20, CELLS = 96 * 512, TEXT = 10000 };
    static double x0[N], y0[N], z[CELLS];
    static lam_token letters[TEXT];
    static const char *const ids[] = {"a", "b", "c", "d", "e"};
    lam_rng rng = test_rng(2);
    lam_series curves[RUNS];
    lam_page *page;
    for (int i = 0; i < N; i++) {
        x0[i] = 100.0 * i;
        y0[i] = 3 + lam_rng_normal(&rng);
    }
    for (int i = 0; i < CELLS; i++)
        z[i] = sin(0.01 * (i % 512)) + 0.02 * lam_rng_normal(&rng);
    for (int i = 0; i < TEXT; i++)
        letters[i] = (lam_token){"e", 1};
    for (int i = 0; i < RUNS; i++)
        curves[i] = (lam_series){.name = "a run", .n = N, .x = x0, .y = y0, .low = y0, .high = y0};
    const lam_measure three[] = {{.name = "a", .values = y0},
                                 {.name = "b", .values = y0},
                                 {.name = "c", .values = y0, .diverging = true}};
    ck_assert_int_eq(lam_page_create(&page, &(lam_page_options){.title = "Large"}), LAM_OK);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(lam_page_figure(page, &(lam_figure){.id = ids[i],
                                                             .title = "F",
                                                             .n_series = i < 2 ? RUNS : 4,
                                                             .series = curves}),
                         LAM_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(lam_page_figure(page, &(lam_figure){.id = i ? "h" : "g",
                                                             .title = "H",
                                                             .kind = LAM_FIGURE_HEAT,
                                                             .rows = 96,
                                                             .cols = 512,
                                                             .z = z}),
                         LAM_OK);
    ck_assert_int_eq(lam_page_tokens(page, &(lam_coloured){.id = "t",
                                                           .title = "T",
                                                           .n = TEXT,
                                                           .tokens = letters,
                                                           .n_measures = 3,
                                                           .measures = three}),
                     LAM_OK);
    const char *path = test_temp_path("large.html");
    ck_assert_int_eq(lam_page_save(page, path), LAM_OK);
    lam_page_free(page);
    lam_map map;
    ck_assert_int_eq(lam_map_open(&map, path), LAM_OK);
    fprintf(stderr, "%zu bytes\n", map.size);
    ck_assert_uint_lt(map.size, 3000000);
    lam_map_close(&map);
}
END_TEST

START_TEST(a_page_of_ours_makes_the_files_beside_it_ours)
{
    const char *const path = test_temp_path("own/report.html"), *const dir = test_temp_path("own");
    lam_page *page;
    must(lam_page_may_save(path, dir));
    must(lam_dir_make(dir));
    must(lam_file_save(test_temp_path("own/train.csv"), "1,2", 3));
    ck_assert_int_eq(lam_page_may_save(path, dir), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "own: holds train.csv and is not a report folder"));
    must(lam_page_create(&page, &(lam_page_options){.title = "T"}));
    must(lam_page_begin(page, path)); /* as a process that dies before its end leaves it */
    must(lam_page_may_save(path, dir));
    lam_page_free(page);
    must(lam_file_save(path, "<html>mine", 10));
    ck_assert_int_eq(lam_page_may_save(path, dir), LAM_ERR_IO);
}
END_TEST

START_TEST(without_memory_there_is_no_page)
{
    const char *path = test_temp_path("starved.html");
    long failures = 0;
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = build(path, &(lam_page_options){.title = "T", .subtitle = "S"});
        const int failed = test_alloc_stop();
        ck_assert_int_eq(status, failed ? LAM_ERR_MEMORY : LAM_OK);
        ck_assert_int_eq(lam_path_exists(path), !failed);
        failures += failed;
    }
    ck_assert_int_ge(failures, 10);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, text_from_outside_is_shown_and_not_obeyed);
    tcase_add_test(tests, tokens_of_one_character_are_one);
    tcase_add_test(tests, nothing_is_fetched);
    tcase_add_test(tests, files_lie_beside_the_page);
    tcase_add_test(tests, a_large_analysis_stays_below_three_megabytes);
    tcase_add_test(tests, a_page_of_ours_makes_the_files_beside_it_ours);
    tcase_add_test(tests, without_memory_there_is_no_page);
    return test_run("draw/page", tests);
}
