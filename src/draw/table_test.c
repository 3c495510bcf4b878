/* table_test.c -- one table, four ways to read it. */
#include "draw/table.h"

#include "io/json.h"
#include "support/suite.h"

#include <math.h>
#include <string.h>

static const lam_column columns[] = {
    {.name = "run"}, {.name = "parameters"}, {.name = "bpc", .decimals = 4, .note = "dev"}};
static const lam_cell cells[] = {{"a, <b>", 0}, {NULL, 88982818}, {NULL, 1.37665},
                                 {"x", 0},      {NULL, -1234},    {NULL, NAN}};
static const lam_table table = {
    .id = "t", .title = "T", .rows = 2, .cols = 3, .columns = columns, .cells = cells};

START_TEST(text_is_aligned)
{
    lam_text t = {0};
    lam_table_text(&t, &table);
    ck_assert_str_eq(t.data, "run     parameters     bpc\n"
                             "                       dev\n"
                             "a, <b>  88,982,818  1.3766\n"
                             "x           -1,234\n");
    lam_text_free(&t);
}
END_TEST

START_TEST(a_narrow_terminal_gets_the_columns_in_blocks)
{
    lam_text t = {0};
    lam_table_within(&t, &table, 20);
    ck_assert_str_eq(t.data, "run     parameters\n"
                             "a, <b>  88,982,818\n"
                             "x           -1,234\n"
                             "\n"
                             "run        bpc\n"
                             "           dev\n"
                             "a, <b>  1.3766\n"
                             "x\n");
    lam_text_free(&t);
    lam_table_within(&t, &table, 1); /* wider than asked for, but nothing is lost */
    ck_assert_ptr_nonnull(strstr(t.data, "88,982,818"));
    ck_assert_ptr_nonnull(strstr(t.data, "1.3766"));
    lam_text_free(&t);
}
END_TEST

START_TEST(markdown_is_a_table)
{
    lam_text t = {0};
    lam_table_markdown(&t, &table);
    ck_assert_str_eq(t.data, "| run | parameters | bpc |\n|---|---:|---:|\n"
                             "| a, <b> | 88,982,818 | 1.3766 |\n| x | -1,234 |  |\n");
    lam_text_free(&t);
}
END_TEST

START_TEST(files_have_full_numbers)
{
    lam_text t = {0};
    lam_table_csv(&t, &table);
    ck_assert_str_eq(t.data, "run,parameters,bpc\n\"a, <b>\",88982818,1.37665\nx,-1234,\n");
    lam_text_free(&t);
    lam_table_json(&t, &table);
    json_t *root;
    ck_assert_int_eq(lam_json_parse(&root, "table", t.data, t.size), LAM_OK);
    ck_assert_double_eq(json_number_value(json_object_get(json_array_get(root, 0), "bpc")),
                        1.37665);
    ck_assert(json_is_null(json_object_get(json_array_get(root, 1), "bpc")));
    json_decref(root);
    lam_text_free(&t);
}
END_TEST

START_TEST(html_names_rows_and_columns)
{
    lam_text t = {0};
    lam_table_html(&t, &table);
    ck_assert_ptr_nonnull(
        strstr(t.data, "<th scope=\"col\" class=\"right brief\">bpc<small>dev</small></th>"));
    ck_assert_ptr_nonnull(
        strstr(t.data, "<th scope=\"row\">a, &lt;b&gt;</th><td class=\"number\">88,982,818</td>"));
    lam_text_free(&t);
}
END_TEST

START_TEST(an_error_stands_behind_its_number)
{
    static const lam_column with[] = {{.name = "run"},
                                      {.name = "bpc", .decimals = 2},
                                      {.name = "error", .decimals = 3, .error = true}};
    static const lam_cell values[] = {{"a", 0}, {NULL, 1.5}, {NULL, 0.25},
                                      {"b", 0}, {NULL, 2},   {NULL, NAN}};
    const lam_table t = {
        .id = "e", .title = "E", .rows = 2, .cols = 3, .columns = with, .cells = values};
    lam_text text = {0};
    lam_table_html(&text, &t);
    ck_assert_ptr_nonnull(strstr(text.data, "bpc</th></tr>"));
    ck_assert_ptr_nonnull(strstr(text.data, ">1.50 \xc2\xb1 0.250</td></tr>"));
    ck_assert_ptr_nonnull(strstr(text.data, ">2.00</td></tr>"));
    lam_text_free(&text);
    lam_table_csv(&text, &t);
    ck_assert_str_eq(text.data, "run,bpc,error\na,1.5,0.25\nb,2,\n");
    lam_text_free(&text);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, text_is_aligned);
    tcase_add_test(tests, a_narrow_terminal_gets_the_columns_in_blocks);
    tcase_add_test(tests, markdown_is_a_table);
    tcase_add_test(tests, files_have_full_numbers);
    tcase_add_test(tests, html_names_rows_and_columns);
    tcase_add_test(tests, an_error_stands_behind_its_number);
    return test_run("draw/table", tests);
}
