/* nfc_test.c -- composed, whatever the blocks; what is no text stays. */
#include "data/nfc.h"

#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

typedef struct kept {
    char *text;
    size_t n;
} kept;

static lam_status keep(void *user, const char *bytes, size_t n)
{
    kept *k = user;
    k->text = realloc(k->text, k->n + n + 1);
    ck_assert_ptr_nonnull(k->text);
    memcpy(k->text + k->n, bytes, n);
    k->n += n;
    k->text[k->n] = '\0';
    return LAM_OK;
}

static kept normalise(const char *text, size_t size, size_t step)
{
    kept k = {0};
    lam_nfc *f;
    must(lam_nfc_create(&f, keep, &k));
    for (size_t at = 0; at < size; at += step)
        must(lam_nfc_feed(f, text + at, size - at < step ? size - at : step));
    must(lam_nfc_finish(f));
    lam_nfc_free(f);
    return k;
}

START_TEST(marks_are_composed)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"plain", "plain"},
        {"e\xcc\x81", "\xc3\xa9"},                                /* e + acute */
        {"a\xcc\xa3\xcc\x82", "\xe1\xba\xad"},                    /* two marks */
        {"a\xcc\x82\xcc\xa3", "\xe1\xba\xad"},                    /* in the other order */
        {"\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", "\xed\x95\x9c"}, /* jamos */
        {"\xe2\x84\xab", "\xc3\x85"},                             /* Angstrom sign */
        {"e\xff\xcc\x81", "e\xff\xcc\x81"},                       /* not across what is no text */
        {"\xff"
         "e\xcc\x81\xfe\xe2\x82",
         "\xff\xc3\xa9\xfe\xe2\x82"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t step = 1; step < 12; step += 5) {
            kept k = normalise(cases[i].text, strlen(cases[i].text), step);
            ck_assert_str_eq(k.text, cases[i].want);
            free(k.text);
        }
}
END_TEST

/* Around a full block of 64 KiB: the mark, the second jamo or half a character comes in the next. */
START_TEST(blocks_do_not_show)
{
    enum { BLOCK = 1 << 16 };
    static const char *const ends[] = {"e\xcc\x81", "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab",
                                       "\xe6\x97\xa5\xe3\x82\x99", "\xf0\x9f\x98\x80\xcc\x81"};
    const char *end = ends[_i];
    const size_t n = strlen(end);
    kept alone = normalise(end, n, n);
    for (size_t before = BLOCK - n - 1; before <= BLOCK; before++) {
        char *text = malloc(before + n);
        memset(text, 'x', before);
        memcpy(text + before, end, n);
        kept k = normalise(text, before + n, 1000);
        ck_assert_uint_eq(k.n, before + alone.n);
        ck_assert_mem_eq(k.text, text, before);
        ck_assert_mem_eq(k.text + before, alone.text, alone.n);
        free(k.text);
        free(text);
    }
    free(alone.text);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, marks_are_composed);
    tcase_add_loop_test(tests, blocks_do_not_show, 0, 4);
    return test_run("data/nfc", tests);
}
