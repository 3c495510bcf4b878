/* train_session.c -- see train_session.h. */
#include "cli/train_session.h"

#include "core/file.h"
#include "core/log.h"
#include "data/utf8.h"
#include "model/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds to what is wrong with the checkpoint what is left of the run. */
static lam_status cannot_go_on(const lam_train_session *s, lam_status status)
{
    if (status != LAM_ERR_FORMAT && status != LAM_ERR_IO)
        return status;
    const char *const so = status == LAM_ERR_IO ? "without it the run" : "the run";
    if (!s->found.best)
        return lam_fail(status, "%s; %s cannot go on: --overwrite begins anew", lam_error(), so);
    return lam_fail(status,
                    "%s; %s cannot go on, but another one can begin with its best model: "
                    "--init-from %s/best",
                    lam_error(), so, s->o->out);
}

/* Is there a run to go on with, and may we? */
static lam_status look_at_folder(lam_train_session *s)
{
    const lam_train_options *o = s->o;
    if (!o->out)
        return lam_fail(LAM_ERR_ARG, "--out is missing: where is the run to be kept?");
    if (o->resume && o->overwrite)
        return lam_fail(LAM_ERR_ARG, "--resume and --overwrite contradict each other");
    LAM_TRY(lam_path_join(s->last, sizeof s->last, o->out, "last"));
    LAM_TRY(lam_run_look(&s->found, o->out));
    const lam_run_found *const f = &s->found;
    if ((f->last || f->best || f->records) && !o->resume && !o->overwrite)
        return lam_fail(LAM_ERR_ARG,
                        "%s: there is a run already; --resume goes on with it, "
                        "--overwrite throws it away",
                        o->out);
    if (o->resume && !f->last && f->best)
        return lam_fail(LAM_ERR_ARG,
                        "%s: there is best, but no last to go on from; another run can begin with "
                        "it: --init-from %s/best",
                        o->out, o->out);
    if (!o->resume || !f->last)
        return lam_runlog_look_at_events(o->out);
    LAM_TRY(lam_runlog_open(&s->log, o->out)); /* whoever trains here may be exchanging names */
    LAM_TRY(cannot_go_on(s, lam_checkpoint_peek(s->last, &s->then)));
    s->resumed = 1;
    return LAM_OK;
}

static lam_status open_corpus(lam_train_session *s)
{
    char path[PATH_MAX];
    size_t size;
    const char *dir = s->o->data ? s->o->data : s->resumed ? s->then.corpus.path : "";
    if (*dir == '\0')
        return lam_fail(LAM_ERR_ARG, "--data is missing: which corpus? (lamemo prepare makes one)");
    const lam_status status = lam_corpus_open(&s->corpus, dir, LAM_CORPUS_VERIFY);
    if (status != LAM_OK && !s->o->data)
        return lam_fail(status, "%s; if the run's corpus is elsewhere now, --data says where",
                        lam_error());
    LAM_TRY(status);
    if (!realpath(dir, s->data)) /* a resumed run may stand in another folder */
        snprintf(s->data, sizeof s->data, "%s", dir);
    LAM_TRY(lam_path_join(path, sizeof path, dir, "vocab.json"));
    return lam_file_load(&s->vocab, &size, path, 1 << 30);
}

/* The configuration of a model that is to learn from the corpus. */
static lam_status config_of(lam_train_session *s, const char *dir)
{
    const int n_token = s->corpus->info.vocab_size;
    LAM_TRY(lam_folder_config(&s->cfg, dir));
    if (s->cfg.n_token != n_token)
        return lam_fail(LAM_ERR_ARG, "%s: a vocabulary of %d, the model in %s has one of %d",
                        s->data, n_token, dir, s->cfg.n_token);
    return LAM_OK;
}

/* A model goes on with the symbols it knows; counts may be those of another text. */
static lam_status same_vocabulary(const lam_train_session *s)
{
    char path[PATH_MAX];
    lam_vocab *vocab;
    LAM_TRY(lam_folder_vocab(path, sizeof path, s->from));
    if (!lam_path_exists(path)) {
        lam_log(LAM_LOG_WARN, "%s: no vocab.json; its types are taken to be those of %s", s->from,
                s->data);
        return LAM_OK;
    }
    LAM_TRY(lam_vocab_load(&vocab, path));
    const int same = lam_vocab_same(vocab, s->corpus->vocab, s->data) == LAM_OK &&
                     lam_vocab_alike(vocab, s->corpus->vocab);
    lam_vocab_free(vocab);
    return same ? LAM_OK
                : lam_fail(LAM_ERR_ARG,
                           "%s: another vocabulary than that of the model in %s: "
                           "lamemo prepare --vocab-from %s takes the model's",
                           s->data, s->from, s->o->init_from);
}

static lam_status settle_options(lam_train_session *s)
{
    const int64_t tokens = s->corpus->info.tokens[LAM_TRAIN];
    if (!s->resumed && !s->o->init_from)
        return lam_train_fresh(&s->cfg, &s->settings, s->args, s->corpus->info.vocab_size, tokens);
    if (s->resumed) {
        s->settings = s->then.settings;
        LAM_TRY(config_of(s, s->last));
        return lam_train_resumed(&s->cfg, &s->settings, s->args, tokens);
    }
    LAM_TRY(lam_folder_find(s->from, sizeof s->from, s->o->init_from));
    LAM_TRY(same_vocabulary(s));
    LAM_TRY(config_of(s, s->from));
    return lam_train_from(&s->cfg, &s->settings, s->args, tokens);
}

/* Makes the folder ours for as long as we train.  What was seen in it at first may no longer be so. */
static lam_status take_folder(lam_train_session *s)
{
    const char *const dir = s->o->out;
    lam_run_found now;
    LAM_TRY(lam_dir_make(dir));
    LAM_TRY(lam_runlog_open(&s->log, dir));
    LAM_TRY(lam_run_look(&now, dir));
    if (s->o->overwrite) /* before its records: a checkpoint without them would be gone on with */
        return lam_run_remove(dir);
    if (now.last != s->found.last || now.best != s->found.best || now.records != s->found.records)
        return lam_fail(LAM_ERR_IO, "%s: another process has trained here meanwhile", dir);
    return LAM_OK;
}

/* The corpus's path goes into the state, so that --resume needs no --data.  The state is JSON. */
static lam_status note_corpus(lam_train_session *s)
{
    lam_corpus_mark *mark = &s->trainer->state.corpus;
    if (!lam_utf8_valid(s->data, strlen(s->data))) {
        lam_log(LAM_LOG_WARN, "%s: not UTF-8, so --resume will ask for --data again", s->data);
        return LAM_OK;
    }
    if ((size_t)snprintf(mark->path, sizeof mark->path, "%s", s->data) >= sizeof mark->path)
        return lam_fail(LAM_ERR_ARG, "%s: path longer than %zu bytes", s->data, sizeof mark->path);
    return LAM_OK;
}

lam_run_options lam_train_run_options(const lam_train_session *s)
{
    const lam_tokens *split = s->corpus->split;
    return (lam_run_options){.dir = s->o->out,
                             .metric = s->corpus->info.metric,
                             .vocab = s->vocab,
                             .valid = split[LAM_VALID].count > 0 ? &split[LAM_VALID] : NULL,
                             .test = split[LAM_TEST].count > 0 && !s->o->no_test ? &split[LAM_TEST]
                                                                                 : NULL};
}

static lam_status open_run(lam_train_session *s)
{
    LAM_TRY(lam_device_open(&s->dev, &s->o->device));
    if (s->resumed)
        LAM_TRY(cannot_go_on(s, lam_folder_check(s->last, &s->cfg, s->dev)));
    else if (*s->from)
        LAM_TRY(lam_folder_check(s->from, &s->cfg, s->dev));
    LAM_TRY(lam_model_create(&s->model, &s->cfg, s->dev));
    LAM_TRY(lam_trainer_create(&s->trainer, s->model, &s->corpus->split[LAM_TRAIN], &s->settings));
    LAM_TRY(note_corpus(s));
    if (s->resumed)
        LAM_TRY(cannot_go_on(s, lam_trainer_resume(s->trainer, s->last)));
    else if (*s->from)
        LAM_TRY(lam_folder_adopt(s->model, s->from));
    else
        LAM_TRY(lam_model_init(s->model, (uint64_t)s->settings.seed));
    const lam_run_options options = lam_train_run_options(s);
    LAM_TRY(lam_run_check(s->trainer, &options));
    /* From here on the folder changes. */
    if (!s->log)
        LAM_TRY(take_folder(s));
    return lam_runlog_begin(s->log, s->resumed ? &s->then.marks : NULL);
}

lam_status lam_train_open(lam_train_session *s, const lam_args *args)
{
    *s = (lam_train_session){.o = args->options, .args = args};
    LAM_TRY(look_at_folder(s));
    LAM_TRY(open_corpus(s));
    LAM_TRY(settle_options(s));
    return open_run(s);
}

void lam_train_close(lam_train_session *s)
{
    lam_runlog_close(s->log);
    lam_trainer_free(s->trainer);
    lam_model_free(s->model);
    if (s->dev)
        s->dev->ops->close(s->dev);
    free(s->vocab);
    lam_corpus_close(s->corpus);
    lam_train_state_free(&s->then);
}
