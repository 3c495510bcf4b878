/* json_field_test.c -- every kind of field comes back as it went, and nothing else is taken for it. */
#include "io/json_field.h"

#include "support/suite.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct thing {
    int count, on, way;
    bool off;
    int64_t seed;
    double rate;
    lam_json_reals list;
} thing;

static const char *const ways[] = {"walk", "ride", NULL};

static const lam_json_field fields[] = {
    {"count", LAM_JSON_INT, offsetof(thing, count), NULL},
    {"seed", LAM_JSON_LONG, offsetof(thing, seed), NULL},
    {"rate", LAM_JSON_REAL, offsetof(thing, rate), NULL},
    {"on", LAM_JSON_BOOL, offsetof(thing, on), NULL},
    {"way", LAM_JSON_WORD, offsetof(thing, way), ways},
    {"off", LAM_JSON_FLAG, offsetof(thing, off), NULL},
    {"list", LAM_JSON_REALS, offsetof(thing, list), NULL},
};
enum { FIELDS = sizeof fields / sizeof *fields };

static lam_status read_text(thing *to, const char *text)
{
    json_t *json;
    must(lam_json_parse(&json, "text", text, strlen(text)));
    lam_status status = LAM_OK;
    for (int i = 0; i < FIELDS && status == LAM_OK; i++)
        status = lam_json_take(to, &fields[i], json, "FILE");
    json_decref(json);
    return status;
}

START_TEST(every_kind_comes_back)
{
    const thing it = {.count = -(1 << 30),
                      .on = 1,
                      .way = 1,
                      .off = true,
                      .seed = INT64_MIN,
                      .rate = 1.0 / 3.0,
                      .list = {.n = 2, .v = {0.1, -2.0}}};
    thing back = {0};
    json_t *json = json_object();
    for (int i = 0; i < FIELDS; i++)
        ck_assert_int_eq(lam_json_put(json, &fields[i], &it), 0);
    ck_assert(json_is_true(json_object_get(json, "on")));
    ck_assert_str_eq(json_string_value(json_object_get(json, "way")), "ride");
    for (int i = 0; i < FIELDS; i++)
        must(lam_json_take(&back, &fields[i], json, "FILE"));
    ck_assert_int_eq(back.count, it.count);
    ck_assert_int_eq(back.on, it.on);
    ck_assert_int_eq(back.way, it.way);
    ck_assert(back.seed == it.seed && back.rate == it.rate && back.off == it.off);
    ck_assert(back.list.n == 2 && back.list.v[0] == 0.1 && back.list.v[1] == -2.0);
    json_decref(json);
}
END_TEST

START_TEST(what_is_missing_stays_as_it_is)
{
    thing it = {.count = 7, .on = 1, .way = 1, .seed = 8, .rate = 0.5};
    must(read_text(&it, "{\"other\": [], \"count\": 1073741824, \"rate\": 2}"));
    ck_assert_int_eq(it.count, 1 << 30);
    ck_assert(it.rate == 2.0); /* an integer is a number too */
    ck_assert(it.on == 1 && it.way == 1 && it.seed == 8);
}
END_TEST

START_TEST(another_kind_is_refused_with_what_it_must_be)
{
    static const char *const cases[][2] = {
        {"{\"count\": 1.0}", "FILE: count must be an integer"},
        {"{\"count\": 1073741825}", "FILE: count is too large"},
        {"{\"count\": -1073741825}", "FILE: count is too large"},
        {"{\"seed\": \"1\"}", "FILE: seed must be an integer"},
        {"{\"rate\": \"1\"}", "FILE: rate must be a number"},
        {"{\"rate\": null}", "FILE: rate must be a number"},
        {"{\"on\": 1}", "FILE: on must be true or false"},
        {"{\"off\": 0}", "FILE: off must be true or false"},
        {"{\"list\": 0.5}", "FILE: list must be a list of 1 to 8 numbers"},
        {"{\"list\": []}", "FILE: list must be a list of 1 to 8 numbers"},
        {"{\"list\": [0.5, true]}", "FILE: list[1] must be a number"},
        {"{\"way\": 0}", "FILE: way must be \"walk\" or another known word"},
        {"{\"way\": \"wal\"}", "FILE: way must be \"walk\" or another known word"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thing it = {.count = 7, .on = 1, .way = 1, .seed = 8, .rate = 0.5};
        ck_assert_int_eq(read_text(&it, cases[i][0]), LAM_ERR_FORMAT);
        ck_assert_str_eq(lam_error(), cases[i][1]);
        ck_assert(it.count == 7 && it.on == 1 && it.way == 1 && it.seed == 8 && it.rate == 0.5);
    }
}
END_TEST

START_TEST(text_sets_every_kind_but_nothing_else)
{
    static const struct {
        const char *name, *text;
        double value; /* NaN: it cannot be that */
    } cases[] = {
        {.name = "count", .text = "12", .value = 12},
        {.name = "count", .text = "12x", .value = NAN},
        {.name = "count", .text = "", .value = NAN},
        {.name = "seed", .text = "-5", .value = -5},
        {.name = "rate", .text = "1e-6", .value = 1e-6},
        {.name = "rate", .text = "fast", .value = NAN},
        {.name = "on", .text = "1", .value = 1},
        {.name = "off", .text = "2", .value = 1},
        {.name = "way", .text = "ride", .value = 1},
        {.name = "way", .text = "rid", .value = NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thing it = {0};
        const lam_json_field *f = fields;
        while (strcmp(f->name, cases[i].name) != 0)
            f++;
        const int set = lam_field_set(&it, f, cases[i].text);
        ck_assert_msg(set == !isnan(cases[i].value), "%s %s", f->name, cases[i].text);
        ck_assert(!set || lam_field_number(&it, f) == cases[i].value);
        ck_assert(!set || f->kind == LAM_JSON_REAL ||
                  lam_field_whole(&it, f) == (int64_t)cases[i].value);
    }
    const lam_json_field *const list = &fields[FIELDS - 1];
    thing it = {0};
    ck_assert(lam_field_set(&it, list, "0.1 0.3"));
    ck_assert(lam_field_list(&it, list).n == 2 && lam_field_list(&it, list).v[1] == 0.3);
    ck_assert(!lam_field_set(&it, list, "0.1 x") && !lam_field_set(&it, list, ""));
    ck_assert(!lam_field_set(&it, list, "1 2 3 4 5 6 7 8 9"));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, every_kind_comes_back);
    tcase_add_test(tests, what_is_missing_stays_as_it_is);
    tcase_add_test(tests, another_kind_is_refused_with_what_it_must_be);
    tcase_add_test(tests, text_sets_every_kind_but_nothing_else);
    return test_run("io/json_field", tests);
}
