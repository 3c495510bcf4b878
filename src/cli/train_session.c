/* train_session.c -- see train_session.h. */
#include "cli/train_session.h"

#include "cli/ranks.h"
#include "core/file.h"
#include "core/log.h"
#include "data/utf8.h"
#include "model/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds to what is wrong with the checkpoint the way out. */
static lam_status cannot_resume(const lam_train_session *s, lam_status status)
{
    if (status != LAM_ERR_FORMAT && status != LAM_ERR_IO)
        return status;
    if (!s->found.best)
        return lam_fail(status, "cannot resume: %s; start over with --overwrite", lam_error());
    return lam_fail(
        status, "cannot resume: %s; a new run can start from the best model: --init-from %s/best",
        lam_error(), s->o->out);
}

/* Is there a run to resume, and may we? */
static lam_status look_at_folder(lam_train_session *s)
{
    const lam_train_options *o = s->o;
    if (!o->out)
        return lam_fail(LAM_ERR_ARG, "--out is missing: the folder for the run");
    if (o->resume && o->overwrite)
        return lam_fail(LAM_ERR_ARG, "--resume and --overwrite contradict each other");
    LAM_TRY(lam_path_join(s->last, sizeof s->last, o->out, "last"));
    LAM_TRY(lam_run_look(&s->found, o->out));
    const lam_run_found *const f = &s->found;
    if ((f->last || f->best || f->records) && !o->resume && !o->overwrite)
        return lam_fail(LAM_ERR_ARG,
                        "%s holds a run already: --resume continues it, --overwrite deletes it",
                        o->out);
    if (o->resume && !f->last && f->best)
        return lam_fail(LAM_ERR_ARG,
                        "cannot resume: %s has a best model, but no checkpoint last; a new run can "
                        "start from it: --init-from %s/best",
                        o->out, o->out);
    if (!o->resume || !f->last)
        return lam_runlog_look_at_events(o->out);
    if (lam_comm_rank(s->comm) == 0)
        LAM_TRY(lam_runlog_open(&s->log, o->out)); /* whoever trains here may be exchanging names */
    LAM_TRY(cannot_resume(s, lam_checkpoint_peek(s->last, &s->then)));
    s->resumed = 1;
    return LAM_OK;
}

static lam_status open_corpus(lam_train_session *s)
{
    char path[PATH_MAX];
    size_t size;
    const char *dir = s->o->data ? s->o->data : s->resumed ? s->then.corpus.path : "";
    if (*dir == '\0')
        return lam_fail(LAM_ERR_ARG, "--data is missing: a corpus folder, made by lamemo prepare");
    const lam_status status = lam_corpus_open(&s->corpus, dir, LAM_CORPUS_VERIFY);
    if (status != LAM_OK && !s->o->data)
        return lam_fail(status, "%s; if the run's corpus has moved, give its folder with --data",
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
        return lam_fail(
            LAM_ERR_ARG,
            "%s: a vocabulary of %d, the model in %s has one of %d: pass the corpus it was trained "
            "on, or fine-tune it (--init-from) on a text made by lamemo prepare --vocab-from",
            s->data, n_token, dir, s->cfg.n_token);
    return LAM_OK;
}

/* A fine-tuned model keeps its vocabulary; counts may be those of another text. */
static lam_status same_vocabulary(const lam_train_session *s)
{
    char path[PATH_MAX];
    lam_vocab *vocab;
    LAM_TRY(lam_folder_vocab(path, sizeof path, s->from));
    if (!lam_path_exists(path)) {
        lam_log(LAM_LOG_WARN, "%s: no vocab.json; its vocabulary is taken to be that of %s",
                s->from, s->data);
        return LAM_OK;
    }
    LAM_TRY(lam_vocab_load(&vocab, path));
    const int same = lam_vocab_same(vocab, s->corpus->vocab, s->data) == LAM_OK &&
                     lam_vocab_alike(vocab, s->corpus->vocab);
    const lam_vocab *text = s->corpus->vocab;
    const lam_status status =
        same ? LAM_OK
             : lam_fail(LAM_ERR_ARG,
                        "%s: another vocabulary than that of the model in %s (%s, %d tokens; the "
                        "model's: %s, %d): lamemo prepare --vocab-from %s takes the model's",
                        s->data, s->from, lam_text_kind_name(lam_vocab_kind(text)),
                        lam_vocab_size(text), lam_text_kind_name(lam_vocab_kind(vocab)),
                        lam_vocab_size(vocab), s->o->init_from);
    lam_vocab_free(vocab);
    return status;
}

/* A new run of several processes has as many leaves, if the user has not said how many. */
static lam_status resolve_leaves(lam_train_session *s)
{
    const int ranks = lam_comm_size(s->comm);
    if (ranks == 1)
        return LAM_OK;
    if (s->settings.leaves == 0 && s->resumed)
        return lam_fail(
            LAM_ERR_ARG,
            "%d processes: the run was begun without --leaves, so one process alone can resume it",
            ranks);
    if (s->settings.leaves == 0)
        s->settings.leaves = ranks;
    return lam_settings_check(&s->settings);
}

static lam_status resolve_options(lam_train_session *s)
{
    const int64_t tokens = s->corpus ? s->corpus->info.tokens[LAM_TRAIN] : 0;
    const int n_token = s->corpus ? s->corpus->info.vocab_size : 0;
    if (!s->resumed && !s->o->init_from)
        return lam_train_fresh(&s->cfg, &s->settings, s->args, n_token, tokens);
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
        return lam_fail(LAM_ERR_IO, "%s: another process has started to train here", dir);
    return LAM_OK;
}

/* The corpus's path goes into the state, so that --resume needs no --data.  The state is JSON. */
static lam_status note_corpus(lam_train_session *s)
{
    lam_corpus_mark *mark = &s->trainer->state.corpus;
    if (!lam_utf8_valid(s->data, strlen(s->data))) {
        lam_log(LAM_LOG_WARN, "%s: the path is not UTF-8, so --resume will need --data", s->data);
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
    lam_device_options device = s->o->device;
    const lam_share share = {.comm = s->comm,
                             .reduce = (lam_reduce)s->o->reduce,
                             .zero = s->o->zero,
                             .overlap = !s->o->no_overlap};
    device.threads = lam_ranks_threads(s->comm, device.threads);
    device.card = lam_comm_local_rank(s->comm);
    LAM_TRY(lam_device_open(&s->dev, &device));
    if (s->resumed)
        LAM_TRY(cannot_resume(s, lam_folder_check(s->last, &s->cfg, s->dev)));
    else if (*s->from)
        LAM_TRY(lam_folder_check(s->from, &s->cfg, s->dev));
    LAM_TRY(lam_model_create(&s->model, &s->cfg, s->dev));
    LAM_TRY(lam_trainer_create(&s->trainer, s->model, &s->corpus->split[LAM_TRAIN], &s->settings,
                               &share));
    LAM_TRY(note_corpus(s));
    if (s->resumed)
        LAM_TRY(cannot_resume(s, lam_trainer_resume(s->trainer, s->last)));
    else if (*s->from)
        LAM_TRY(lam_folder_adopt(s->model, s->from));
    else
        LAM_TRY(lam_model_init(s->model, (uint64_t)s->settings.seed));
    const lam_run_options options = lam_train_run_options(s);
    return lam_run_check(s->trainer, &options);
}

/* Do all ranks train the same model on the same text? */
static lam_status compare_ranks(const lam_train_session *s)
{
    const lam_train_state *t = &s->trainer->state;
    const int64_t mine[] = {t->corpus.tokens, t->corpus.crc, t->step,
                            (int64_t)s->model->params.total, t->settings.seed};
    static const char *const names[] = {"tokens of the corpus", "checksum of the corpus", "step",
                                        "parameters", "seed"};
    enum { N = sizeof mine / sizeof *mine };
    int64_t first[N];
    memcpy(first, mine, sizeof mine);
    LAM_TRY(lam_comm_broadcast(s->comm, first, sizeof first, 0));
    for (int i = 0; i < N; i++)
        if (first[i] != mine[i])
            return lam_fail(LAM_ERR_ARG, "%s: %lld here, %lld on rank 0", names[i],
                            (long long)mine[i], (long long)first[i]);
    return LAM_OK;
}

/* From here on the folder changes. */
static lam_status begin_run(lam_train_session *s)
{
    if (lam_comm_rank(s->comm) > 0)
        return LAM_OK;
    if (!s->log)
        LAM_TRY(take_folder(s));
    return lam_runlog_begin(s->log, s->resumed ? &s->then.marks : NULL);
}

/* Is the prompt of samples one that can be read? */
static lam_status check_prompt(const lam_train_session *s)
{
    const char *const prompt = s->o->sample_prompt;
    if (!prompt || !s->corpus)
        return LAM_OK;
    if (s->settings.sample_interval == 0)
        lam_log(LAM_LOG_WARN, "--sample-prompt has no effect without --sample-interval");
    const lam_status status = lam_vocab_check(s->corpus->vocab, prompt, strlen(prompt));
    return status == LAM_OK ? LAM_OK : lam_fail(status, "--sample-prompt: %s", lam_error());
}

/* Rank 0 looks first: it may have to complete an exchange of names. */
static lam_status look_in_turn(lam_train_session *s)
{
    const int rank = lam_comm_rank(s->comm);
    LAM_TRY(lam_comm_agree(s->comm, rank == 0 ? look_at_folder(s) : LAM_OK));
    return lam_comm_agree(s->comm, rank == 0 ? LAM_OK : look_at_folder(s));
}

static lam_status decide(lam_train_session *s, const lam_train_config *c)
{
    if (!c->options.print_config || s->o->data || s->resumed || s->o->init_from)
        LAM_TRY(open_corpus(s));
    else if (lam_option_given(s->args, "epochs"))
        return lam_fail(LAM_ERR_ARG, "--epochs is counted in a text: --data is missing");
    LAM_TRY(resolve_options(s));
    LAM_TRY(resolve_leaves(s));
    LAM_TRY(check_prompt(s));
    return lam_train_config_check(c, &s->cfg);
}

lam_status lam_train_plan(lam_train_session *s, const lam_train_config *c, lam_comm *comm)
{
    *s = (lam_train_session){.o = &c->options, .args = &c->args, .comm = comm};
    if (!c->options.print_config || s->o->resume)
        LAM_TRY(look_in_turn(s));
    LAM_TRY(lam_comm_agree(comm, decide(s, c)));
    /* A random seed is random on every rank. */
    return lam_comm_broadcast(comm, &s->settings.seed, sizeof s->settings.seed, 0);
}

lam_status lam_train_open(lam_train_session *s, const lam_train_config *c, lam_comm *comm)
{
    LAM_TRY(lam_train_plan(s, c, comm));
    LAM_TRY(lam_comm_agree(comm, open_run(s)));
    LAM_TRY(lam_comm_agree(comm, compare_ranks(s)));
    return lam_comm_agree(comm, begin_run(s));
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
