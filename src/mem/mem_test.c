/* mem_test.c -- every memory of the list says what others ask for, and is found by its name. */
#include "mem/mem.h"

#include "support/suite.h"

#include <string.h>

START_TEST(a_memory_of_the_list_is_complete)
{
    int n = 0;
    for (; lam_mem_all[n]; n++) {
        const lam_mem_ops *mem = lam_mem_all[n], *found;
        ck_assert_str_eq(mem->name, lam_mem_names[n]);
        must(lam_mem_find(&found, mem->name));
        ck_assert_ptr_eq(found, mem);
        ck_assert_msg(mem->title && mem->attn_types && mem->attn_types[0] >= 0 && mem->cost &&
                          mem->slots && mem->attend_fwd && mem->attend_bwd,
                      "%s lacks something that every memory has", mem->name);
        ck_assert_int_eq(mem->beyond != NULL, mem->beyond_name != NULL);
        ck_assert_int_eq(mem->paper.role == LAM_COMPARED || mem->paper.role == LAM_BASELINE,
                         mem->paper.claim != NULL);
    }
    ck_assert_ptr_null(lam_mem_names[n]);
}
END_TEST

START_TEST(a_name_that_is_not_there_is_answered_by_those_that_are)
{
    const lam_mem_ops *mem;
    char all[LAM_MEMORY_TEXT];
    ck_assert_int_eq(lam_mem_find(&mem, "magic"), LAM_ERR_ARG);
    ck_assert_ptr_null(mem);
    ck_assert_ptr_nonnull(strstr(lam_error(), lam_mem_having(all, 0)));
    for (int i = 0; lam_mem_names[i]; i++)
        ck_assert_ptr_nonnull(strstr(all, lam_mem_names[i]));
}
END_TEST

START_TEST(memories_are_found_by_what_they_are_like)
{
    char text[LAM_MEMORY_TEXT];
    ck_assert_str_eq(lam_mem_having(text, LAM_EXTENDS), "none, xl");
    ck_assert_str_eq(lam_mem_having(text, LAM_EXTENDS | LAM_REMEMBERS), "xl");
    ck_assert_str_eq(lam_mem_having(text, LAM_CLIPS_APART), "compressive");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, a_memory_of_the_list_is_complete);
    tcase_add_test(tests, a_name_that_is_not_there_is_answered_by_those_that_are);
    tcase_add_test(tests, memories_are_found_by_what_they_are_like);
    return test_run("mem/mem", tests);
}
