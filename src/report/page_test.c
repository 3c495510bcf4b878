/* page_test.c -- a page is whole, small, needs nothing from outside, and shows any bytes without obeying. */
#include "report/page.h"

#include "core/file.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <math.h>
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
static const lam_column columns[] = {{evil, 0, evil}};
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
static const lam_measure measures[] = {
    {.name = evil, .values = bits, .limit = 8},
    {.name = "gain", .values = gain, .ramp = LAM_RAMP_DIVERGING}};
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
    tcase_add_test(tests, without_memory_there_is_no_page);
    return test_run("report/page", tests);
}
