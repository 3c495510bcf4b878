/* pickle_test.c -- pickles become plain values, and nothing in them has an effect. */
#include "io/pickle.h"

#include "core/file.h"
#include "support/alloc.h"
#include "support/suite.h"
#include "support/torchlike.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PICKLE(text)  (text), sizeof(text) - 1
#define ALLOWED(size) (LAM_PICKLE_FLOOR + 64 * (size))

static lam_pickle *parse(const void *data, size_t n)
{
    lam_pickle *p;
    ck_assert_msg(lam_pickle_parse(&p, "input", data, n, ALLOWED(n)) == LAM_OK, "%s", lam_error());
    return p;
}

static void refuse(const void *data, size_t n, lam_status code, const char *why)
{
    lam_pickle *p;
    ck_assert_int_eq(lam_pickle_parse(&p, "input", data, n, ALLOWED(n)), code);
    ck_assert_ptr_null(p);
    ck_assert_msg(strncmp(lam_error(), "input: ", 7) == 0 && strstr(lam_error(), why), "%s",
                  lam_error());
}

/* [None, True, False, 7, 300, -2, 2**40, -1 (LONG1), 0 (LONG1), 1.5, "h\xc3\xa9", b"ab"] */
START_TEST(every_plain_value_is_read)
{
    lam_pickle *p = parse(PICKLE("\x80\x02](N\x88\x89K\x07M\x2c\x01J\xfe\xff\xff\xff"
                                 "\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x01\xff\x8a\x00"
                                 "G\x3f\xf8\x00\x00\x00\x00\x00\x00X\x03\x00\x00\x00h\xc3\xa9"
                                 "C\x02"
                                 "abe."));
    const lam_py *root = lam_pickle_root(p);
    const int64_t integers[] = {7, 300, -2, (int64_t)1 << 40, -1, 0};
    ck_assert(lam_py_is(root, LAM_PY_LIST));
    ck_assert_uint_eq(root->as.list.n, 12);
    ck_assert(lam_py_is(lam_py_item(root, 0), LAM_PY_NONE));
    ck_assert_int_eq(lam_py_item(root, 1)->as.integer, 1);
    ck_assert_int_eq(lam_py_item(root, 2)->as.integer, 0);
    for (size_t i = 0; i < 6; i++) {
        ck_assert(lam_py_is(lam_py_item(root, 3 + i), LAM_PY_INT));
        ck_assert_int_eq(lam_py_item(root, 3 + i)->as.integer, integers[i]);
    }
    ck_assert_double_eq(lam_py_item(root, 9)->as.real, 1.5);
    ck_assert(lam_py_text_is(lam_py_item(root, 10), "h\xc3\xa9"));
    ck_assert(lam_py_is(lam_py_item(root, 11), LAM_PY_BYTES));
    ck_assert_ptr_null(lam_py_item(root, 12));
    lam_pickle_free(p);
}
END_TEST

START_TEST(dictionaries_of_every_kind_are_asked_alike)
{
    pk p = {0};
    pk_raw(&p, "\x80\x02(", 3);
    pk_raw(&p, "}(", 2); /* a plain one, in which "a" is set twice */
    pk_text(&p, "a");
    pk_int(&p, 1);
    pk_text(&p, "a");
    pk_int(&p, 2);
    pk_op(&p, 'u');
    pk_ordered_dict(&p);
    pk_text(&p, "a");
    pk_int(&p, 3);
    pk_op(&p, 'u');
    pk_global(&p, "collections", "Counter");
    pk_op(&p, '}');
    pk_text(&p, "a");
    pk_int(&p, 4);
    pk_raw(&p, "s\x85R", 3); /* SETITEM, TUPLE1, REDUCE */
    pk_raw(&p, "t.", 2);
    lam_pickle *tree = parse(p.p, p.n);
    const lam_py *root = lam_pickle_root(tree);
    for (size_t i = 0; i < 3; i++) {
        const lam_py *value = lam_py_get(lam_py_item(root, i), "a");
        ck_assert(lam_py_is(value, LAM_PY_INT));
        ck_assert_int_eq(value->as.integer, (int)i + 2);
        ck_assert_ptr_null(lam_py_get(lam_py_item(root, i), "b"));
    }
    ck_assert(lam_py_made_by(lam_py_item(root, 1), "collections", "OrderedDict"));
    ck_assert_ptr_null(lam_py_get(NULL, "a"));
    ck_assert_ptr_null(lam_py_get(lam_py_get(lam_py_item(root, 0), "a"), "a"));
    lam_pickle_free(tree);
    pk_free(&p);
}
END_TEST

/* Instances keep class name and state: NEWOBJ and BUILD of protocol 2, and the opcodes of protocol 4
 * (frame, short text, memoize, stack global, sets). */
START_TEST(instances_are_opaque_and_show_their_attributes)
{
    lam_pickle *p = parse(PICKLE("\x80\x02"
                                 "cutils.vocabulary\nVocab\n)\x81q\x00}X\x07\x00\x00\x00idx2sym"
                                 "](X\x01\x00\x00\x00xX\x01\x00\x00\x00yesb."));
    const lam_py *list = lam_py_attr(lam_pickle_root(p), "idx2sym");
    ck_assert(lam_py_made_by(lam_pickle_root(p), "utils.vocabulary", "Vocab"));
    ck_assert(lam_py_made_by(lam_pickle_root(p), NULL, "Vocab"));
    ck_assert(!lam_py_made_by(lam_pickle_root(p), NULL, "vocab"));
    ck_assert(lam_py_text_is(lam_py_item(list, 1), "y"));
    lam_pickle_free(p);

    p = parse(PICKLE("\x80\x04\x95\x18\x00\x00\x00\x00\x00\x00\x00\x8c\x01m\x94\x8c\x01"
                     "C\x94\x93\x94)\x81\x94}\x94\x8c\x01s\x94\x8f\x94(K\x01\x90sb."));
    ck_assert(lam_py_made_by(lam_pickle_root(p), "m", "C"));
    ck_assert(lam_py_is(lam_py_attr(lam_pickle_root(p), "s"), LAM_PY_SET));
    lam_pickle_free(p);
}
END_TEST

START_TEST(calls_are_never_made)
{
    const char *witness = test_temp_path("witness");
    char command[8192];
    static const char *const ways[][2] = {
        {"os", "system"}, {"posix", "system"}, {"builtins", "eval"}, {"subprocess", "Popen"}};
    snprintf(command, sizeof command, "touch %s", witness);
    for (size_t i = 0; i < 4; i++) {
        pk p = {0};
        pk_raw(&p, "\x80\x02", 2);
        pk_global(&p, ways[i][0], ways[i][1]);
        pk_text(&p, command);
        pk_raw(&p, "\x85R.", 3);
        lam_pickle *tree = parse(p.p, p.n);
        ck_assert(lam_py_made_by(lam_pickle_root(tree), ways[i][0], ways[i][1]));
        ck_assert(lam_py_text_is(lam_py_item(lam_pickle_root(tree)->as.object->args, 0), command));
        lam_pickle_free(tree);
        pk_free(&p);
    }
    /* The same in protocol 0, whose text opcodes are not read at all. */
    refuse(PICKLE("cos\nsystem\n(S'true'\ntR."), LAM_ERR_UNSUPPORTED, "opcode 0x53");
    ck_assert(!lam_path_exists(witness));
}
END_TEST

START_TEST(cycles_are_read_and_freed)
{
    /* l = []; l.append(l); and d = {}; d["d"] = d */
    lam_pickle *p = parse(PICKLE("\x80\x02]q\x00h\x00"
                                 "a."));
    const lam_py *root = lam_pickle_root(p);
    ck_assert_ptr_eq(lam_py_item(lam_py_item(root, 0), 0), root);
    lam_pickle_free(p);
    p = parse(PICKLE("\x80\x02}q\x01X\x01\x00\x00\x00"
                     "dh\x01s."));
    root = lam_pickle_root(p);
    ck_assert_ptr_eq(lam_py_get(lam_py_get(root, "d"), "d"), root);
    lam_pickle_free(p);
}
END_TEST

START_TEST(depth_costs_nothing_or_is_refused)
{
    enum { DEEP = 900000, TOO_DEEP = 3000000 };
    char *text = malloc(2 * TOO_DEEP + 3);
    memcpy(text, "\x80\x02", 2);
    memset(text + 2, ']', DEEP); /* DEEP lists, each in the one before */
    memset(text + 2 + DEEP, 'a', DEEP - 1);
    text[2 + 2 * DEEP - 1] = '.';
    lam_pickle *p = parse(text, 2 + 2 * DEEP);
    const lam_py *node = lam_pickle_root(p);
    size_t depth = 0;
    for (; node; node = lam_py_item(node, 0))
        depth++;
    ck_assert_uint_eq(depth, DEEP);
    lam_pickle_free(p);

    memset(text + 2, ']', TOO_DEEP);
    refuse(text, 2 + TOO_DEEP, LAM_ERR_FORMAT, "nested too deeply");
    memset(text + 2, '(', TOO_DEEP);
    refuse(text, 2 + TOO_DEEP, LAM_ERR_FORMAT, "nested too deeply");
    free(text);
}
END_TEST

START_TEST(huge_counts_are_refused_before_memory_is_taken)
{
    refuse(PICKLE("\x80\x02X\xff\xff\xff\xff."), LAM_ERR_FORMAT, "ends too early");
    refuse(PICKLE("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), LAM_ERR_FORMAT, "too early");
    refuse(PICKLE("\x80\x02\x8b\xff\xff\xff\x7f."), LAM_ERR_FORMAT, "ends too early");
    refuse(PICKLE("\x80\x02]r\xff\xff\xff\xff."), LAM_ERR_FORMAT, "memo number");
    refuse(PICKLE("\x80\x02j\x00\x00\x00\x00."), LAM_ERR_FORMAT, "never put");
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    refuse(PICKLE(""), LAM_ERR_FORMAT, "without a stop");
    refuse(PICKLE("\x80\x01."), LAM_ERR_UNSUPPORTED, "protocol 1");
    refuse(PICKLE("\x80\x06."), LAM_ERR_UNSUPPORTED, "protocol 6");
    refuse(PICKLE("\x80\x02."), LAM_ERR_FORMAT, "empty stack");
    refuse(PICKLE("\x80\x02NN."), LAM_ERR_FORMAT, "left on the stack");
    refuse(PICKLE("\x80\x02N(."), LAM_ERR_FORMAT, "empty stack");
    refuse(PICKLE("\x80\x02N.N"), LAM_ERR_FORMAT, "stops before its end");
    refuse(PICKLE("\x80\x02Nt."), LAM_ERR_FORMAT, "no mark");
    refuse(PICKLE("\x80\x02NNa."), LAM_ERR_FORMAT, "no such container");
    refuse(PICKLE("\x80\x02}(Nu."), LAM_ERR_FORMAT, "no such container");
    refuse(PICKLE("\x80\x02(Nd."), LAM_ERR_FORMAT, "key without a value");
    refuse(PICKLE("\x80\x02(Ne."), LAM_ERR_FORMAT, "no container");
    refuse(PICKLE("\x80\x02NN\x81."), LAM_ERR_FORMAT, "no tuple");
    refuse(PICKLE("\x80\x02NNb."), LAM_ERR_FORMAT, "state");
    refuse(PICKLE("\x80\x02NN\x93."), LAM_ERR_FORMAT, "no text");
    refuse(PICKLE("\x80\x02"
                  "cmodule"),
           LAM_ERR_FORMAT, "line without an end");
    refuse(PICKLE("\x80\x02\x82\x01."), LAM_ERR_UNSUPPORTED, "opcode 0x82"); /* EXT1 */
}
END_TEST

START_TEST(random_programs_are_harmless)
{
    static const char opcodes[] = "(.012BCGJKMNQRTUXabcde}hjl]qrst)u\x80\x81\x85\x86\x87\x88\x89"
                                  "\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\n";
    lam_rng rng = test_rng(3);
    long whole = 0;
    for (int round = 0; round < 200000; round++) {
        unsigned char text[40];
        const size_t n = 1 + lam_rng_below(&rng, sizeof text);
        for (size_t i = 0; i < n; i++)
            text[i] = lam_rng_below(&rng, 4) == 0
                          ? (unsigned char)lam_rng_below(&rng, 4)
                          : (unsigned char)opcodes[lam_rng_below(&rng, sizeof opcodes - 1)];
        text[n - 1] = '.';
        lam_pickle *p;
        whole += lam_pickle_parse(&p, "input", text, n, ALLOWED(n)) == LAM_OK;
        lam_pickle_free(p);
    }
    ck_assert_int_gt(whole, 100); /* and not all of them fail at once */
}
END_TEST

START_TEST(no_failing_allocation_goes_unnoticed)
{
    pk p = {0};
    long failures = 0;
    pk_raw(&p, "\x80\x02", 2);
    pk_ordered_dict(&p);
    for (int i = 0; i < 3; i++) {
        pk_text(&p, "w");
        pk_tensor(&p, &(pk_tensor_at){"FloatStorage", "0", 6, 0, 2, {2, 3}, {3, 1}});
    }
    pk_raw(&p, "uq\x07.", 4);
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_pickle *tree;
        const lam_status status = lam_pickle_parse(&tree, "input", p.p, p.n, ALLOWED(p.n));
        const int failed = test_alloc_end(status);
        failures += failed;
        lam_pickle_free(tree);
    }
    ck_assert_int_ge(failures, 10);
    pk_free(&p);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, every_plain_value_is_read);
    tcase_add_test(tests, dictionaries_of_every_kind_are_asked_alike);
    tcase_add_test(tests, instances_are_opaque_and_show_their_attributes);
    tcase_add_test(tests, calls_are_never_made);
    tcase_add_test(tests, cycles_are_read_and_freed);
    tcase_add_test(tests, depth_costs_nothing_or_is_refused);
    tcase_add_test(tests, huge_counts_are_refused_before_memory_is_taken);
    tcase_add_test(tests, what_makes_no_sense_is_refused);
    tcase_add_test(tests, random_programs_are_harmless);
    tcase_add_test(tests, no_failing_allocation_goes_unnoticed);
    return test_run("io/pickle", tests);
}
