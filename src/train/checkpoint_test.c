/* checkpoint_test.c -- a resumed run is the run; accidents: checkpoint_accident_test.c. */
#include "train/checkpoint.h"

#include "core/file.h"
#include "io/safetensors.h"
#include "support/suite.h"
#include "support/toyrun.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct kind {
    const char *device, *memory;
    lam_settings settings;
} kind;

/* Steps until an interruption and after it.  300 tokens in 4 columns are 19 batches: the runs pass the end
 * of an epoch. */
enum { BEFORE = 17, AFTER = 8 };

/* All that the recipe `fast` sets (cli/recipes.h), in groups and with attention's dropout besides. */
static void be_fast(lam_settings *s)
{
    s->recipe = 1;
    s->scheduler = LAM_SCHEDULE_LINEAR;
    s->warmup_step = BEFORE + 3;
    s->weight_decay = 0.1;
    s->clip = 1.0;
    s->batch_chunk = 2;
}

/* Every part of the state must matter in one of these: several groups, turned columns, drawn lengths,
 * rules with one moment, a schedule, a memory that grows or is emptied, documents, two devices. */
static kind kind_of(int i)
{
    static const char *const memories[] = {"none", "xl", "lamemo", "compressive carry thirds",
                                           "infinite sticky"};
    kind k = {i % 2 ? "cpu" : "ref", memories[i / 2 % 5], toyrun_settings()};
    const int variant = i / 10;
    k.settings.batch_chunk = variant == 1 || variant == 7 ? 2 : 1;
    k.settings.leaves = variant == 4 ? 4 : variant == 2 ? 1 : 0;
    k.settings.roll = variant == 1 || variant == 7;
    k.settings.varlen = variant == 2 || variant == 7;
    k.settings.mem_reset.document = variant >= 7; /* token 0 ends them */
    k.settings.half_loss = variant == 2;
    static const int rules[] = {LAM_OPTIM_ADAM, LAM_OPTIM_ADAM, LAM_OPTIM_SGD,  LAM_OPTIM_ADAGRAD,
                                LAM_OPTIM_MUON, LAM_OPTIM_MUON, LAM_OPTIM_MUON, LAM_OPTIM_ADAM};
    k.settings.optim = rules[variant];
    k.settings.mom = 0.5;
    k.settings.warmup_step = variant == 3 ? 10 : 0;
    k.settings.short_mem =
        variant >= 4 ? 2 : 0; /* grows before, after or just at the interruption */
    static const double parts[] = {0, 0, 0, 0, 0.1, 0.2, BEFORE / 100.0, 0.1};
    k.settings.short_mem_part = parts[variant];
    static const int resets[] = {0, BEFORE, 0, BEFORE - 1,
                                 0, 5,      7, 5}; /* just after it, just before */
    k.settings.mem_reset.every = resets[variant];
    static const double averages[] = {0, 1, 0, 0, 0.85, 0, 0.8, 1 - BEFORE / 100.0};
    k.settings.average = averages[variant]; /* from the beginning, just before, after, just at it */
    if (variant == 6)
        be_fast(&k.settings);
    return k;
}
enum { KINDS = 80 };

static toyrun open_kind(const kind *k)
{
    lam_config cfg = toyrun_config(k->memory);
    const int rows_alone = strcmp(cfg.memory, "none") == 0 || strcmp(cfg.memory, "xl") == 0;
    cfg.ext_len = rows_alone && k->settings.optim == LAM_OPTIM_ADAGRAD ? 3 : 0;
    cfg.dropatt = k->settings.recipe ? 0.1 : 0.0;
    return toyrun_open(k->device, &cfg, &k->settings);
}

START_TEST(a_resumed_run_is_the_uninterrupted_one_bit_for_bit)
{
    const kind k = kind_of(_i);
    double whole[BEFORE + AFTER], parts[AFTER];
    const char *dir = test_temp_path("resumed");
    toyrun a = open_kind(&k), b = open_kind(&k), c = open_kind(&k);
    toyrun_steps(&a, BEFORE + AFTER, whole);
    toyrun_steps(&b, BEFORE, NULL);
    must(lam_trainer_save(b.trainer, dir, NULL));
    must(lam_trainer_resume(c.trainer, dir));
    ck_assert_int_eq(c.trainer->state.step, BEFORE);
    ck_assert(toyrun_equal(&b, &c));
    toyrun_steps(&c, AFTER, parts);
    for (int i = 0; i < AFTER; i++)
        ck_assert_msg(parts[i] == whole[BEFORE + i], "kind %d: step %d: loss %.17g, not %.17g", _i,
                      BEFORE + i + 1, parts[i], whole[BEFORE + i]);
    ck_assert(toyrun_equal(&a, &c));
    toyrun_close(&a);
    toyrun_close(&b);
    toyrun_close(&c);
}
END_TEST

/* As if the checkpoint came from a time without checksums, or somebody had changed it on purpose. */
static void unseal(const char *dir)
{
    char path[PATH_MAX];
    must(lam_path_join(path, sizeof path, dir, "CRC32SUMS"));
    ck_assert_int_eq(remove(path), 0);
}

/* Rewrites the moments with a v, of sevens, of Muon's matrices too, as older checkpoints have one. */
static void age_moments(const toyrun *r, const char *path)
{
    const lam_params *p = &r->model->params;
    lam_safetensors *st;
    lam_st_writer *w;
    char name[LAM_NAME_MAX + 16];
    double sevens[1024];
    for (size_t k = 0; k < sizeof sevens / sizeof *sevens; k++)
        sevens[k] = 7.0;
    must(lam_st_open(&st, path));
    must(lam_st_writer_create(&w, path));
    for (int i = 0; i < lam_st_count(st); i++)
        must(lam_st_writer_add(w, lam_st_at(st, i)->name, lam_st_at(st, i)->dtype,
                               &lam_st_at(st, i)->shape));
    for (int i = 0; i < p->n; i++) {
        const lam_shape shape = lam_param_shape(&p->list[i]);
        snprintf(name, sizeof name, "v.%s", p->list[i].name);
        ck_assert(lam_param_is_hidden(&p->list[i]) == !lam_st_find(st, name));
        if (lam_param_is_hidden(&p->list[i]))
            must(lam_st_writer_add(w, name, LAM_F64, &shape));
    }
    must(lam_st_writer_begin(w));
    for (int i = 0; i < lam_st_count(st); i++)
        must(lam_st_writer_data(w, lam_st_at(st, i)->data,
                                lam_shape_count(&lam_st_at(st, i)->shape) *
                                    lam_dtype_size(lam_st_at(st, i)->dtype)));
    for (int i = 0; i < p->n; i++) {
        const size_t n = lam_param_count(&p->list[i]);
        ck_assert_uint_le(n, sizeof sevens / sizeof *sevens);
        if (lam_param_is_hidden(&p->list[i]))
            must(lam_st_writer_data(w, sevens, n * sizeof *sevens));
    }
    must(lam_st_writer_finish(w));
    lam_st_close(st);
}

/* On two devices: the reference one keeps its weights in the same file. */
START_TEST(muons_matrices_have_no_square_and_one_in_an_older_file_does_not_matter)
{
    const kind k = kind_of(40 + 4 + _i);
    const char *dir = test_temp_path("older");
    char path[PATH_MAX];
    toyrun a = open_kind(&k), b = open_kind(&k);
    toyrun_steps(&a, BEFORE, NULL);
    must(lam_trainer_save(a.trainer, dir, NULL));
    must(lam_path_join(path, sizeof path, dir, "optimizer.safetensors"));
    age_moments(&a, path); /* it looks at what is there, too */
    unseal(dir);
    must(lam_trainer_resume(b.trainer, dir));
    ck_assert(toyrun_equal(&a, &b));
    toyrun_steps(&a, AFTER, NULL);
    toyrun_steps(&b, AFTER, NULL);
    ck_assert(toyrun_equal(&a, &b));
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

START_TEST(every_field_of_the_state_comes_back)
{
    const kind k = kind_of(10 + 4);
    const char *dir = test_temp_path("fields");
    toyrun a = open_kind(&k), b = open_kind(&k);
    lam_train_state *s = &a.trainer->state;
    toyrun_steps(&a, 3, NULL);
    s->plateau = (lam_plateau){0.25, 1.5, 3};
    s->best_loss = 1.0 / 3.0;
    s->best_step = 2;
    s->eval_step = 3;
    s->elapsed = 12.5;
    s->log_nll = 1e30 / 3.0; /* a run that went wild */
    s->log_tokens = 99;
    s->log_aux = 0.7;
    s->marks = (lam_log_marks){1, 2, 3, "events.out.tfevents.1.x"};
    must(lam_trainer_save(a.trainer, dir, NULL));
    must(lam_trainer_resume(b.trainer, dir));
    const lam_train_state *t = &b.trainer->state;
    ck_assert_int_eq(t->step, 3);
    ck_assert_int_eq(memcmp(&t->position, &s->position, sizeof s->position), 0);
    ck_assert_int_eq(t->n_shifts, s->n_shifts);
    ck_assert_int_eq(memcmp(t->shifts, s->shifts, (size_t)s->n_shifts * sizeof *s->shifts), 0);
    ck_assert(t->plateau.factor == 0.25 && t->plateau.best == 1.5 && t->plateau.bad == 3);
    ck_assert(t->best_loss == 1.0 / 3.0 && t->best_step == 2 && t->eval_step == 3);
    ck_assert(t->elapsed == 12.5 && t->log_nll == 1e30 / 3.0 && t->log_tokens == 99 &&
              t->log_aux == 0.7);
    ck_assert(t->marks.metrics == 1 && t->marks.log == 2 && t->marks.events == 3);
    ck_assert_str_eq(t->marks.events_name, "events.out.tfevents.1.x");
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

/* What the file says instead of a number, and what is said to that. */
static const struct {
    const char *object, *key; /* object NULL: the root */
    double value;
    const char *message;
} impossible[] = {
    {NULL, "step", -1, "step is -1, must be 0 to 1e+15"},
    {NULL, "eval_step", 4, "eval_step is 4, must be 0 to 3"},
    {NULL, "elapsed", -0.5, "elapsed is -0.5, must be 0 to 1e+15"},
    {"best", "step", -3, "best.step is -3, must be 0 to 3"},
    {"plateau", "factor", -1, "plateau.factor is -1, must be 0 to 1"},
    {"plateau", "bad", -1, "plateau.bad is -1, must be 0 to 1e+15"},
    {"logged", "tokens", -1, "logged.tokens is -1, must be 0 to 1e+15"},
    {"files", "metrics", -7, "files.metrics is -7, must be 0 to 1e+15"},
    {"param_steps", "r_w_bias", 9.2e18, "param_steps of r_w_bias must be 0 to 1e+15"},
    {"settings", "batch_size", 1 << 20, "position.shifts has 4 numbers, batch_size is 1048576"},
    {"position", "row", 1e6, "the saved row 1000000 is not in a column of 75 tokens"},
};

START_TEST(a_state_that_cannot_be_is_refused_by_name)
{
    const kind k = kind_of(4);
    const char *dir = test_temp_path("impossible"), *key = impossible[_i].key;
    char path[PATH_MAX];
    toyrun a = open_kind(&k), b = open_kind(&k);
    toyrun_steps(&a, 3, NULL);
    must(lam_trainer_save(a.trainer, dir, NULL));
    must(lam_path_join(path, sizeof path, dir, "training_state.json"));
    json_t *root = json_load_file(path, 0, NULL);
    json_t *object = impossible[_i].object ? json_object_get(root, impossible[_i].object) : root;
    ck_assert_ptr_nonnull(json_object_get(object, key));
    const double value = impossible[_i].value;
    json_object_set_new(object, key,
                        json_is_real(json_object_get(object, key))
                            ? json_real(value)
                            : json_integer((json_int_t)value));
    ck_assert_int_eq(json_dump_file(root, path, 0), 0);
    json_decref(root);
    unseal(dir);
    ck_assert_int_eq(lam_trainer_resume(b.trainer, dir), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), impossible[_i].message) != NULL, "%s", lam_error());
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

START_TEST(a_checkpoint_without_checksums_resumes)
{
    const kind k = kind_of(4);
    const char *dir = test_temp_path("unsealed");
    toyrun a = open_kind(&k), b = open_kind(&k);
    toyrun_steps(&a, 3, NULL);
    must(lam_trainer_save(a.trainer, dir, NULL));
    unseal(dir);
    must(lam_trainer_resume(b.trainer, dir));
    ck_assert(toyrun_equal(&a, &b));
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

/* Of weights, moments and memories, where no checksum tells it. */
START_TEST(a_number_that_is_not_finite_is_refused_by_name)
{
    static const char *const files[] = {"model.safetensors", "optimizer.safetensors",
                                        "memory.safetensors"};
    static const double bad[] = {NAN, INFINITY, NAN};
    const kind k = kind_of(5); /* on cpu, all in float32 */
    const char *dir = test_temp_path("wild");
    char path[PATH_MAX], *bytes;
    size_t size;
    toyrun a = open_kind(&k), b = open_kind(&k);
    toyrun_steps(&a, 3, NULL);
    must(lam_trainer_save(a.trainer, dir, NULL));
    unseal(dir);
    must(lam_path_join(path, sizeof path, dir, files[_i]));
    must(lam_file_load(&bytes, &size, path, 1 << 24));
    lam_convert(bytes + size - sizeof(float), LAM_F32, &bad[_i], LAM_F64, 1);
    must(lam_file_save(path, bytes, size));
    free(bytes);
    ck_assert_int_eq(lam_trainer_resume(b.trainer, dir), LAM_ERR_FORMAT);
    ck_assert_msg(strncmp(lam_error(), path, strlen(path)) == 0 &&
                      strstr(lam_error(), "is not finite") != NULL,
                  "%s", lam_error());
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

START_TEST(another_run_is_refused_by_name)
{
    const char *dir = test_temp_path("another");
    kind k = kind_of(4);
    toyrun a = open_kind(&k);
    must(lam_trainer_save(a.trainer, dir, NULL));
    toyrun_close(&a);

    kind other = k;
    other.settings.batch_size = 8;
    toyrun b = open_kind(&other);
    ck_assert_int_eq(lam_trainer_resume(b.trainer, dir), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "batch_size 8: the run was begun with 4");
    toyrun_close(&b);

    other = k;
    other.settings.optim = LAM_OPTIM_SGD;
    b = open_kind(&other);
    ck_assert_int_eq(lam_trainer_resume(b.trainer, dir), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "optim sgd: the run was begun with adam");
    toyrun_close(&b);

    other = k;
    other.memory = "xl";
    b = open_kind(&other);
    ck_assert_int_eq(lam_trainer_resume(b.trainer, dir), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "another configuration"));
    toyrun_close(&b);

    b = open_kind(&k);
    b.trainer->state.corpus.crc++;
    ck_assert_int_eq(lam_trainer_resume(b.trainer, dir), LAM_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lam_error(), "another corpus"));
    toyrun_close(&b);
}
END_TEST

int main(void)
{
    test_temp_in_memory();
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_loop_test(tests, a_resumed_run_is_the_uninterrupted_one_bit_for_bit, 0, KINDS);
    tcase_add_loop_test(
        tests, muons_matrices_have_no_square_and_one_in_an_older_file_does_not_matter, 0, 2);
    tcase_add_test(tests, every_field_of_the_state_comes_back);
    tcase_add_loop_test(tests, a_state_that_cannot_be_is_refused_by_name, 0,
                        (int)(sizeof impossible / sizeof *impossible));
    tcase_add_test(tests, a_checkpoint_without_checksums_resumes);
    tcase_add_loop_test(tests, a_number_that_is_not_finite_is_refused_by_name, 0, 3);
    tcase_add_test(tests, another_run_is_refused_by_name);
    return test_run("train/checkpoint", tests);
}
