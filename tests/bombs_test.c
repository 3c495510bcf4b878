/* bombs_test.c -- small PyTorch files that describe, or unpack to, more than any checkpoint of their size are refused
 * before the memory is taken, and those that would be looked through without end are refused before that.
 *
 * Each is one of a family: what it would take grows with its length, the limit with the file's. */
#include "convert/import.h"

#include "core/file.h"
#include "io/zip.h"
#include "support/alloc.h"
#include "support/suite.h"
#include "support/torchlike.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MB = 1000000, MOST = 64 * MB }; /* what each may take; without limits it is 100 MB or more */

static void repeat(pk *p, const char *bytes, size_t n, size_t times)
{
    for (size_t i = 0; i < times; i++)
        pk_raw(p, bytes, n);
}

/* Imports an archive of this pickle, and of n storages of zeros, deflated.  The import is refused; `why` is in the
 * message. */
static void refuse(pk *p, int storages, size_t each, const char *why)
{
    static const char *const names[] = {"a/data/0", "a/data/1", "a/data/2"};
    const char *path = test_temp_path("bomb.pt");
    void *zeros = calloc(each + 1, 1);
    zip_part parts[4] = {{"a/data.pkl", p->p, p->n, 1}};
    for (int i = 0; i < storages; i++)
        parts[1 + i] = (zip_part){names[i], zeros, each, 1};
    zip_write(path, parts, 1 + storages);
    free(zeros);
    pk_free(p);
    lam_import_result r;
    const lam_import_options o = {
        .source = path, .out = test_temp_path("out"), .tgt_len = 4, .mem_len = 4};
    test_alloc_measure();
    const lam_status status = lam_import(&o, &r);
    const size_t peak = test_alloc_peak();
    ck_assert_int_eq(status, LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), why), "%s", lam_error());
    ck_assert_msg(peak < MOST, "%zu bytes", peak);
    ck_assert(!lam_path_exists(o.out));
}

/* Four bytes make a call of None and throw it away. */
START_TEST(objects_that_are_thrown_away)
{
    pk p = {0};
    pk_raw(&p, "\x80\x02", 2);
    repeat(&p, "N)R0", 4, MB);
    pk_raw(&p, "N.", 2);
    refuse(&p, 0, 0, "its pickle describes objects");
}
END_TEST

/* A byte makes another reference to what is on the stack, and a list takes them all. */
START_TEST(references_by_the_million)
{
    pk p = {0};
    pk_raw(&p, "\x80\x02]", 3);
    for (int i = 0; i < 16; i++) {
        pk_raw(&p, "(N", 2);
        repeat(&p, "2222222222", 10, MB / 10);
        pk_op(&p, 'e');
    }
    pk_op(&p, '.');
    refuse(&p, 0, 0, "its pickle describes objects");
}
END_TEST

START_TEST(tuples_in_tuples)
{
    pk p = {0};
    pk_raw(&p, "\x80\x02N", 3);
    repeat(&p, "\x85\x85\x85\x85", 4, MB);
    pk_op(&p, '.');
    refuse(&p, 0, 0, "its pickle describes objects");
}
END_TEST

/* One number that makes room for all before it. */
START_TEST(a_memo_of_nothing)
{
    pk p = {0};
    pk_raw(&p, "\x80\x02(", 3);
    repeat(&p, "N0N0", 4, 4 * MB);
    pk_raw(&p, "Nr\x00\x00\xf0\x00t.", 8); /* entry 15,728,640 */
    refuse(&p, 0, 0, "its pickle describes objects");
}
END_TEST

START_TEST(a_pickle_larger_than_the_archive_allows)
{
    pk p = {0};
    pk_raw(&p, "\x80\x02N", 3);
    repeat(&p, "0N0N0N0N", 8, 16 * MB);
    pk_op(&p, '.');
    refuse(&p, 0, 0, "data.pkl unpacks to 128000004 bytes");
}
END_TEST

static void put_tensor(pk *p, const char *name, const char *key, int64_t count, int64_t size)
{
    pk_text(p, name);
    pk_tensor(p, &(pk_tensor_at){"FloatStorage", key, count, 0, 1, {size}, {1}});
}

START_TEST(small_tensors_in_large_storages)
{
    enum { EACH = 30 * MB };
    pk p = {0};
    pk_raw(&p, "\x80\x02}(", 4);
    put_tensor(&p, "a", "0", EACH / 4, 4);
    put_tensor(&p, "b", "1", EACH / 4, 4);
    put_tensor(&p, "c", "2", EACH / 4, 4);
    pk_raw(&p, "u.", 2);
    refuse(&p, 3, EACH, "a/data/1 unpacks to 30000000 bytes");
}
END_TEST

/* 8,000 names for one storage: a model of 16 GB. */
START_TEST(many_tensors_in_one_storage)
{
    enum { EACH = 2 * MB };
    pk p = {0};
    pk_raw(&p, "\x80\x02}(", 4);
    for (int i = 0; i < 8000; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        put_tensor(&p, name, "0", EACH / 4, EACH / 4);
    }
    pk_raw(&p, "u.", 2);
    refuse(&p, 1, EACH, "64 times those of the file");
}
END_TEST

/* A module, with an empty slot for a parameter a thousand times, that holds another twice, which holds ... */
START_TEST(a_thicket_of_modules)
{
    pk p = {0};
    pk_raw(&p, "\x80\x02", 2);
    for (int depth = 0; depth < 16; depth++) {
        pk_raw(&p, "cm\nM\n)\x81}(", 9);
        pk_text(&p, "_parameters");
        if (depth == 0) {
            pk_raw(&p, "}q\1(", 4);
            for (int i = 0; i < 1000; i++)
                pk_raw(&p, "NN", 2);
            pk_op(&p, 'u');
        } else {
            pk_raw(&p, "h\1", 2);
        }
        pk_text(&p, "_modules");
        pk_op(&p, '}');
        if (depth > 0) { /* the one before, under two names */
            pk_op(&p, '(');
            for (int i = 0; i < 2; i++) {
                pk_text(&p, i ? "b" : "a");
                pk_raw(&p, "h\2", 2);
            }
            pk_op(&p, 'u');
        }
        pk_raw(&p, depth < 15 ? "ubq\0020" : "ub",
               depth < 15 ? 5 : 2); /* kept, and off the stack */
    }
    pk_op(&p, '.');
    refuse(&p, 0, 0, "more than 1048576 entries");
}
END_TEST

/* {"a": a tensor, <key>: <value>}, which is enough of a model to look for the rest. */
static pk with_tensor(void)
{
    pk p = {0};
    pk_raw(&p, "\x80\x02}(", 4);
    pk_text(&p, "model_state");
    pk_raw(&p, "}(", 2);
    put_tensor(&p, "a", "0", 1, 1);
    pk_op(&p, 'u');
    return p;
}

START_TEST(a_configuration_without_end)
{
    pk p = with_tensor();
    pk_text(&p, "model_config");
    pk_raw(&p, "}(N](K\1K\1K\1K\1eq\1", 16); /* one list, over and over */
    repeat(&p, "h\1h\1", 4, MB / 2);
    pk_raw(&p, "uu.", 3);
    refuse(&p, 1, 4, "a configuration of 500001 entries");
}
END_TEST

/* The vocabulary of `n` references to one text of `length` bytes. */
static pk with_vocabulary(size_t n, size_t length)
{
    pk p = with_tensor();
    char *text = calloc(length + 1, 1);
    memset(text, 'x', length);
    pk_text(&p, "vocab");
    pk_raw(&p, "cm\nV\n)\x81}", 8);
    pk_text(&p, "idx2sym");
    pk_raw(&p, "](", 2);
    pk_text(&p, text);
    repeat(&p, "2", 1, n);
    pk_raw(&p, "esbu.", 5);
    free(text);
    return p;
}

START_TEST(a_vocabulary_of_one_symbol)
{
    pk few = with_vocabulary(1000, 100000), many = with_vocabulary(MB / 2, 1);
    refuse(&few, 1, 4, "repeats its symbols");
    refuse(&many, 1, 4, "a vocabulary of 500001 symbols");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, objects_that_are_thrown_away);
    tcase_add_test(tests, references_by_the_million);
    tcase_add_test(tests, tuples_in_tuples);
    tcase_add_test(tests, a_memo_of_nothing);
    tcase_add_test(tests, a_pickle_larger_than_the_archive_allows);
    tcase_add_test(tests, small_tensors_in_large_storages);
    tcase_add_test(tests, many_tensors_in_one_storage);
    tcase_add_test(tests, a_thicket_of_modules);
    tcase_add_test(tests, a_configuration_without_end);
    tcase_add_test(tests, a_vocabulary_of_one_symbol);
    return test_run("bombs", tests);
}
