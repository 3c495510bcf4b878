/* documents_test.c -- lines, files and JSON lines as documents; what is refused. */
#include "data/documents.h"

#include "support/alloc.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

/* What came out: text, and | where a document ended. */
typedef struct seen {
    char text[512];
    size_t n;
} seen;

static lam_status note(void *user, const void *bytes, size_t n)
{
    seen *s = user;
    memcpy(s->text + s->n, bytes, n);
    s->n += n;
    return LAM_OK;
}

static lam_status note_end(void *user)
{
    return note(user, "|", 1);
}

/* Reads `text` as two files that are cut after every `step` bytes. */
static lam_status read_all(seen *out, lam_document_kind kind, lam_text_kind text_kind,
                           const char *const *texts, int files, size_t step)
{
    lam_documents *d;
    *out = (seen){0};
    LAM_TRY(lam_documents_create(&d, &(lam_documents_options){.kind = kind,
                                                              .text = text_kind,
                                                              .field = "text",
                                                              .put = note,
                                                              .end = note_end,
                                                              .user = out}));
    lam_status status = LAM_OK;
    for (int f = 0; f < files && status == LAM_OK; f++) {
        const size_t n = strlen(texts[f]);
        lam_documents_start(d, "in.txt");
        for (size_t at = 0; at < n && status == LAM_OK; at += step)
            status = lam_documents_feed(d, texts[f] + at, n - at < step ? n - at : step);
        if (status == LAM_OK)
            status = lam_documents_finish(d);
    }
    lam_documents_free(d);
    return status;
}

static void check(lam_document_kind kind, lam_text_kind text_kind, const char *const *texts,
                  int files, const char *want)
{
    for (size_t step = 1; step < 70; step += 3) {
        seen got;
        must(read_all(&got, kind, text_kind, texts, files, step));
        ck_assert_uint_eq(got.n, strlen(want));
        ck_assert_mem_eq(got.text, want, got.n);
    }
}

START_TEST(documents_are_lines_files_or_fields)
{
    static const char *const plain[] = {"one\ntwo three\n\n\nfour", "", "five\n"};
    check(LAM_DOCUMENTS_LINES, LAM_BYTES, plain, 3, "one|two three|four|five|");
    check(LAM_DOCUMENTS_FILES, LAM_BPE, plain, 3, "one\ntwo three\n\n\nfour|five\n|");
    check(LAM_DOCUMENTS_FILES, LAM_WORDS, plain, 3, "one two three   four|five |");
    static const char *const json[] = {
        "{\"text\": \"a\\nb\", \"id\": 3}\n\n{\"id\": 4, \"text\": \"\"}\n"
        " \t\r\n{\"text\": \"\\u00e9\\\"\"}",
        "{\"text\":\"last\"}\r\n"};
    check(LAM_DOCUMENTS_JSON, LAM_CHARS, json, 2, "a\nb|\xc3\xa9\"|last|");
    check(LAM_DOCUMENTS_JSON, LAM_WORDS, json, 2, "a b|\xc3\xa9\"|last|");
}
END_TEST

START_TEST(what_is_no_document_is_refused_by_its_line)
{
    static const struct {
        const char *text, *says;
        lam_document_kind kind;
        lam_text_kind text_kind;
    } bad[] = {{"{\"text\":\"a\"}\n{\"text\": 4}", "line 2 has no field \"text\"",
                LAM_DOCUMENTS_JSON, LAM_BYTES},
               {"{\"body\":\"a\"}", "--json-field", LAM_DOCUMENTS_JSON, LAM_BPE},
               {"\n\n[1]\n", "line 3 is no JSON object", LAM_DOCUMENTS_JSON, LAM_BYTES},
               {"plain text\n", "in.txt: line 1", LAM_DOCUMENTS_JSON, LAM_BYTES},
               {"{\"text\":\"a\"", "line 1", LAM_DOCUMENTS_JSON, LAM_BYTES},
               {"a\nb\x1e"
                "c\n",
                "line 2 has U+001E", LAM_DOCUMENTS_LINES, LAM_BYTES},
               {"{\"text\":\"a\\u001e\"}", "line 1 has U+001E", LAM_DOCUMENTS_JSON, LAM_CHARS}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        seen got;
        ck_assert_int_eq(read_all(&got, bad[i].kind, bad[i].text_kind, &bad[i].text, 1, 64),
                         LAM_ERR_FORMAT);
        ck_assert_msg(strstr(lam_error(), bad[i].says) != NULL, "'%s' lacks '%s'", lam_error(),
                      bad[i].says);
        ck_assert_ptr_nonnull(strstr(lam_error(), "in.txt"));
    }
    static const char *const text[] = {"a\x1e"
                                       "b"}; /* other kinds have another separator */
    check(LAM_DOCUMENTS_LINES, LAM_BPE, text, 1,
          "a\x1e"
          "b|");
}
END_TEST

START_TEST(without_memory_it_fails_cleanly)
{
    static const char *const json[] = {"{\"text\": \"some text\"}\n{\"text\": \"more\"}\n"};
    for (long n = 1; test_alloc_fail(n); n++) {
        seen got;
        const lam_status status = read_all(&got, LAM_DOCUMENTS_JSON, LAM_BYTES, json, 1, 7);
        ck_assert_int_eq(status == LAM_OK, !test_alloc_stop());
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, documents_are_lines_files_or_fields);
    tcase_add_test(tests, what_is_no_document_is_refused_by_its_line);
    tcase_add_test(tests, without_memory_it_fails_cleanly);
    return test_run("data/documents", tests);
}
