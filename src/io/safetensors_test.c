/* safetensors_test.c -- well-formed files open, and everything else is refused with a reason. */
#include "io/safetensors.h"

#include "core/file.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file: eight bytes of length, the header, `data` zero bytes.  Freed by the caller. */
static unsigned char *assemble(const char *header, size_t data, size_t *size)
{
    const size_t length = strlen(header);
    unsigned char *const file = calloc(1, 8 + length + data);
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 8; i++)
        file[i] = (unsigned char)(length >> 8 * i);
    memcpy(file + 8, header, length);
    *size = 8 + length + data;
    return file;
}

/* Text without NULs that an entry of the tables below expands to. */
#define ENTRY(name, dtype, shape, begin, end)                                                      \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end \
    "]}"

static const struct {
    const char *what, *header;
    size_t data;
} good[] = {
    {"no tensors", "{}", 0},
    {"only metadata", "{\"__metadata__\":{\"a\":\"b\"}}", 0},
    {"a scalar", "{" ENTRY("x", "F64", "[]", 0, 8) "}", 8},
    {"padding after the header", "{" ENTRY("x", "U8", "[3]", 0, 3) "}     ", 3},
    {"tensors in another order than their data",
     "{" ENTRY("a", "U8", "[3]", 2, 5) "," ENTRY("b", "U8", "[2]", 0, 2) "}", 5},
    /* clang-format off */
    {"empty tensors at the start, between and at the end",
     "{" ENTRY("z", "F32", "[0]", 0, 0) "," ENTRY("b", "U8", "[2]", 0, 2) ","
     ENTRY("y", "F32", "[4,0]", 2, 2) "," ENTRY("d", "U8", "[1]", 2, 3) ","
     ENTRY("a", "U8", "[0]", 3, 3) "}", 3},
    /* clang-format on */
    {"only empty tensors",
     "{" ENTRY("a", "F32", "[0]", 0, 0) "," ENTRY("b", "I8", "[0,9]", 0, 0) "}", 0},
    {"keys we do not know",
     "{\"x\":{\"dtype\":\"U8\",\"note\":[1],\"shape\":[1],\"data_offsets\":[0,1]}}", 1},
    {"eight dimensions", "{" ENTRY("x", "U8", "[1,1,1,1,1,1,1,2]", 0, 2) "}", 2},
};

static const struct {
    const char *what, *header;
    size_t data;
    const char *reason; /* words that the message must hold */
} bad[] = {
    {"an empty header", "", 0, "not JSON"},
    {"a list", "[]", 0, "not a JSON object"},
    {"a number", "7", 0, "not a JSON object"},
    {"bad JSON", "{\"x\":", 0, "not JSON"},
    {"text after the object", "{}x", 0, "not JSON"},
    {"bad UTF-8", "{" ENTRY("\xff\xfe", "U8", "[1]", 0, 1) "}", 1, "not JSON"},
    {"a name with a NUL", "{" ENTRY("a\\u0000b", "U8", "[1]", 0, 1) "}", 1, "not JSON"},
    {"a name twice", "{" ENTRY("x", "U8", "[1]", 0, 1) "," ENTRY("x", "U8", "[1]", 1, 2) "}", 2,
     "duplicate"},
    {"metadata not an object", "{\"__metadata__\":[]}", 0, "__metadata__"},
    {"metadata not strings", "{\"__metadata__\":{\"n\":3}}", 0, "not a string"},
    {"an entry not an object", "{\"x\":3}", 0, "tensor x"},
    {"no dtype", "{\"x\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "dtype"},
    {"an unknown dtype", "{" ENTRY("x", "F8_E4M3", "[1]", 0, 1) "}", 1, "F8_E4M3"},
    {"a dtype in lower case", "{" ENTRY("x", "f32", "[1]", 0, 4) "}", 4, "f32"},
    {"no shape", "{\"x\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "shape"},
    {"a shape that is a number", "{" ENTRY("x", "U8", "1", 0, 1) "}", 1, "shape"},
    {"a negative dimension", "{" ENTRY("x", "U8", "[-1]", 0, 1) "}", 1, "dimension 0"},
    {"two negative dimensions", "{" ENTRY("x", "U8", "[-1,-1]", 0, 1) "}", 1, "dimension 0"},
    {"a fraction as dimension", "{" ENTRY("x", "U8", "[1.0]", 0, 1) "}", 1, "dimension 0"},
    {"nine dimensions", "{" ENTRY("x", "U8", "[1,1,1,1,1,1,1,1,1]", 0, 1) "}", 1, "shape"},
    {"a shape whose product overflows", "{" ENTRY("x", "U8", "[4294967296,4294967296]", 0, 1) "}",
     1, "do not hold"},
    {"a shape whose product wraps to 1",
     "{" ENTRY("x", "U8", "[4294967297,4294967295,4294967297]", 0, 1) "}", 1, "do not hold"},
    {"a shape whose bytes overflow", "{" ENTRY("x", "F64", "[2305843009213693952]", 0, 0) "}", 0,
     "do not hold"},
    {"a number beyond 64 bits", "{" ENTRY("x", "U8", "[99999999999999999999]", 0, 1) "}", 1,
     "not JSON"},
    {"no offsets", "{\"x\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "data_offsets"},
    {"one offset", "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1,
     "data_offsets"},
    {"three offsets", "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}", 1,
     "data_offsets"},
    {"offsets that are strings",
     "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[\"0\",\"1\"]}}", 1, "data_offsets"},
    {"a negative offset", "{" ENTRY("x", "U8", "[2]", -1, 1) "}", 1, "bytes -1 to 1"},
    {"offsets the wrong way round", "{" ENTRY("x", "U8", "[1]", 1, 0) "}", 1, "bytes 1 to 0"},
    {"data past the end of the file", "{" ENTRY("x", "U8", "[2]", 0, 2) "}", 1, "bytes 0 to 2"},
    {"more bytes than the shape", "{" ENTRY("x", "F32", "[1]", 0, 8) "}", 8, "do not hold"},
    {"fewer bytes than the shape", "{" ENTRY("x", "F32", "[2]", 0, 4) "}", 4, "do not hold"},
    {"an overlap", "{" ENTRY("a", "U8", "[2]", 0, 2) "," ENTRY("b", "U8", "[2]", 1, 3) "}", 3,
     "overlap"},
    {"the same bytes twice",
     "{" ENTRY("a", "U8", "[2]", 0, 2) "," ENTRY("b", "U8", "[2]", 0, 2) "}", 2, "overlap"},
    {"an empty tensor inside another",
     "{" ENTRY("a", "U8", "[2]", 0, 2) "," ENTRY("b", "U8", "[0]", 1, 1) "}", 2, "overlap"},
    {"a hole at the start", "{" ENTRY("a", "U8", "[2]", 1, 3) "}", 3, "hole"},
    {"a hole between", "{" ENTRY("a", "U8", "[1]", 0, 1) "," ENTRY("b", "U8", "[1]", 2, 3) "}", 3,
     "hole"},
    {"bytes left over", "{" ENTRY("a", "U8", "[1]", 0, 1) "}", 3, "2 bytes after"},
    {"bytes without any tensor", "{}", 1, "1 bytes after"},
};

START_TEST(a_well_formed_header_is_accepted)
{
    size_t size;
    unsigned char *const file = assemble(good[_i].header, good[_i].data, &size);
    lam_safetensors *st;
    ck_assert_msg(lam_st_parse(&st, "label", file, size) == LAM_OK, "%s: %s", good[_i].what,
                  lam_error());
    size_t total = 0;
    for (int i = 0; i < lam_st_count(st); i++) {
        const lam_st_tensor *const t = lam_st_at(st, i);
        ck_assert_ptr_eq(lam_st_find(st, t->name), t);
        total += t->bytes;
    }
    ck_assert_uint_eq(total, good[_i].data);
    ck_assert_str_eq(lam_st_path(st), "label");
    lam_st_close(st);
    free(file);
}
END_TEST

START_TEST(a_malformed_header_is_refused_with_a_reason)
{
    size_t size;
    unsigned char *const file = assemble(bad[_i].header, bad[_i].data, &size);
    lam_safetensors *st = (lam_safetensors *)1;
    ck_assert_msg(lam_st_parse(&st, "the-file", file, size) == LAM_ERR_FORMAT, "accepted: %s",
                  bad[_i].what);
    ck_assert_ptr_null(st);
    ck_assert_msg(strncmp(lam_error(), "the-file: ", 10) == 0, "%s", lam_error());
    ck_assert_msg(strstr(lam_error(), bad[_i].reason) != NULL, "%s: '%s' does not say '%s'",
                  bad[_i].what, lam_error(), bad[_i].reason);
    free(file);
}
END_TEST

START_TEST(every_truncation_is_refused)
{
    size_t size;
    unsigned char *const file = assemble("{" ENTRY("x", "F32", "[2]", 0, 8) "}", 8, &size);
    lam_safetensors *st;
    for (size_t shorter = 0; shorter < size; shorter++) {
        unsigned char *const copy = malloc(shorter + 1); /* exact, so that ASan sees the end */
        unsigned char *const end = copy + 1;
        memcpy(end, file, shorter);
        ck_assert_int_eq(lam_st_parse(&st, "cut", end, shorter), LAM_ERR_FORMAT);
        free(copy);
    }
    ck_assert_int_eq(lam_st_parse(&st, "whole", file, size), LAM_OK);
    lam_st_close(st);
    free(file);
}
END_TEST

START_TEST(a_huge_header_length_is_refused)
{
    unsigned char file[32] = {0};
    lam_safetensors *st;
    const uint64_t lengths[] = {25, 100000001, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 7};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        for (int i = 0; i < 8; i++)
            file[i] = (unsigned char)(lengths[k] >> 8 * i);
        ck_assert_int_eq(lam_st_parse(&st, "huge", file, sizeof file), LAM_ERR_FORMAT);
        ck_assert_ptr_nonnull(strstr(lam_error(), "huge: not safetensors: header of"));
    }
}
END_TEST

START_TEST(a_header_over_100_mb_is_refused_unread)
{
    const size_t length = 100000001, size = 8 + length;
    unsigned char *const file = calloc(1, size); /* zero pages, never touched */
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 8; i++)
        file[i] = (unsigned char)(length >> 8 * i);
    lam_safetensors *st;
    ck_assert_int_eq(lam_st_parse(&st, "large", file, size), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "large: not safetensors: header of 100000001 bytes"));
    free(file);
}
END_TEST

START_TEST(deep_nesting_is_refused_not_followed)
{
    enum { DEPTH = 100000 };
    char *const header = malloc(DEPTH + 1);
    memset(header, '[', DEPTH);
    header[DEPTH] = '\0';
    size_t size;
    unsigned char *const file = assemble(header, 0, &size);
    lam_safetensors *st;
    ck_assert_int_eq(lam_st_parse(&st, "deep", file, size), LAM_ERR_FORMAT);
    free(file);
    free(header);
}
END_TEST

START_TEST(tensors_are_listed_in_the_order_of_their_data)
{
    size_t size;
    unsigned char *const file = assemble(
        "{" ENTRY("a", "U8", "[1]", 2, 3) "," ENTRY("c", "I16", "[1]", 0, 2) "}", 3, &size);
    lam_safetensors *st;
    memcpy(file + size - 3, "\x01\x02\x03", 3);
    ck_assert_int_eq(lam_st_parse(&st, "x", file, size), LAM_OK);
    ck_assert_int_eq(lam_st_count(st), 2);
    ck_assert_str_eq(lam_st_at(st, 0)->name, "c");
    ck_assert_str_eq(lam_st_at(st, 1)->name, "a");
    ck_assert_int_eq((int)lam_st_at(st, 0)->dtype, LAM_I16);
    ck_assert_int_eq(*(const unsigned char *)lam_st_at(st, 1)->data, 3);
    lam_st_close(st);
    free(file);
}
END_TEST

START_TEST(reading_converts_from_any_address_and_checks_the_count)
{
    size_t size; /* the F32 lies at an odd offset behind one byte */
    unsigned char *const file = assemble(
        "{" ENTRY("u", "U8", "[1]", 0, 1) "," ENTRY("x", "F32", "[1,2]", 1, 9) "}", 8 + 1, &size);
    const float values[2] = {1.5f, -2.25f};
    memcpy(file + size - 8, values, 8);
    lam_safetensors *st;
    ck_assert_int_eq(lam_st_parse(&st, "odd", file, size), LAM_OK);
    double got[3] = {0, 0, 77};
    ck_assert_int_eq(lam_st_read(st, "x", got, LAM_F64, 2), LAM_OK);
    ck_assert(got[0] == 1.5 && got[1] == -2.25 && got[2] == 77);
    ck_assert_int_eq(lam_st_read(st, "x", got, LAM_F64, 3), LAM_ERR_FORMAT);
    ck_assert_str_eq(lam_error(), "odd: tensor x is [1, 2], 3 elements expected");
    ck_assert_int_eq(lam_st_read(st, "y", got, LAM_F64, 2), LAM_ERR_FORMAT);
    ck_assert_str_eq(lam_error(), "odd: no tensor y");
    lam_st_close(st);
    free(file);
}
END_TEST

START_TEST(metadata_is_found_by_key)
{
    size_t size;
    unsigned char *const file =
        assemble("{\"__metadata__\":{\"format\":\"pt\",\"\":\"\\u00e9\"}}", 0, &size);
    lam_safetensors *st;
    ck_assert_int_eq(lam_st_parse(&st, "x", file, size), LAM_OK);
    ck_assert_str_eq(lam_st_meta(st, "format"), "pt");
    ck_assert_str_eq(lam_st_meta(st, ""), "\xc3\xa9");
    ck_assert_ptr_null(lam_st_meta(st, "absent"));
    ck_assert_ptr_null(lam_st_find(st, "__metadata__"));
    ck_assert_int_eq(lam_st_count(st), 0);
    lam_st_close(st);
    free(file);
}
END_TEST

START_TEST(the_reference_traces_open)
{
    lam_safetensors *st;
    ck_assert_msg(lam_st_open(&st, "tests/golden/lamemo.safetensors") == LAM_OK, "%s", lam_error());
    ck_assert_str_eq(lam_st_meta(st, "segments"), "4");
    const lam_st_tensor *const tokens = lam_st_find(st, "tokens");
    ck_assert_ptr_nonnull(tokens);
    const lam_shape shape = {2, {2, 21}};
    ck_assert(lam_shape_equal(&tokens->shape, &shape));
    lam_st_close(st);
    lam_st_close(NULL);
    ck_assert_int_eq(lam_st_open(&st, "tests/golden/README.md"), LAM_ERR_FORMAT);
    ck_assert_int_eq(lam_st_open(&st, "tests/golden/missing"), LAM_ERR_IO);
    ck_assert_ptr_null(st);
}
END_TEST

/* Some of jansson's are reported as bad JSON (json_test.c); nothing leaks and nothing opens. */
START_TEST(every_failing_allocation_is_a_failure)
{
    size_t size;
    unsigned char *const file =
        assemble("{\"__metadata__\":{\"a\":\"b\"}," ENTRY("x", "U8", "[1]", 0, 1) "}", 1, &size);
    lam_safetensors *st;
    long failures = 0;
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = lam_st_parse(&st, "x", file, size);
        const int failed = test_alloc_stop();
        ck_assert(failed ? status == LAM_ERR_MEMORY || status == LAM_ERR_FORMAT : status == LAM_OK);
        ck_assert_int_eq(st == NULL, failed);
        failures += status == LAM_ERR_MEMORY;
        lam_st_close(st);
    }
    ck_assert_int_ge(failures, 10);
    free(file);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, a_well_formed_header_is_accepted, 0,
                        (int)(sizeof good / sizeof *good));
    tcase_add_loop_test(tests, a_malformed_header_is_refused_with_a_reason, 0,
                        (int)(sizeof bad / sizeof *bad));
    tcase_add_test(tests, every_truncation_is_refused);
    tcase_add_test(tests, a_huge_header_length_is_refused);
    tcase_add_test(tests, a_header_over_100_mb_is_refused_unread);
    tcase_add_test(tests, deep_nesting_is_refused_not_followed);
    tcase_add_test(tests, tensors_are_listed_in_the_order_of_their_data);
    tcase_add_test(tests, reading_converts_from_any_address_and_checks_the_count);
    tcase_add_test(tests, metadata_is_found_by_key);
    tcase_add_test(tests, the_reference_traces_open);
    tcase_add_test(tests, every_failing_allocation_is_a_failure);
    return test_run("io/safetensors", tests);
}
