/* prepare_splits.c -- which of the files are train, valid and test.
 *
 * What looks like a split is used as that split or refused by its name: held-out text must not end up in training
 * because a file had an unexpected ending.  --join says that the names mean nothing. */
#include "data/prepare_int.h"

#include "core/log.h"
#include "data/split_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OR_JOIN "; --join reads all texts as one, whatever their names are"

typedef struct judging {
    lam_inputs *in;
    const lam_prepare_options *o;
    lam_split_guess *names; /* of each input */
    const lam_input *train; /* one of them, of the family that is taken; NULL: there is none */
    const char *family;
} judging;

static bool is_read(const lam_input *i)
{
    return i->kind == LAM_INPUT_TEXT || i->kind == LAM_INPUT_NAMED;
}

/* ---- selecting inputs ---- */

typedef bool keeper(const judging *j, int i);

static void release(lam_input *i)
{
    free(i->path);
    free(i->label);
    free(i->entry);
}

/* One line names what lies there and is not read. */
static void tell_unused(const judging *j, keeper *keep)
{
    enum { SHOWN = 5 };
    char line[1024] = "";
    int n = 0, folders = 0;
    for (int i = 0; i < j->in->n; i++) {
        if (keep(j, i))
            continue;
        const size_t used = strlen(line);
        if (n++ < SHOWN)
            snprintf(line + used, sizeof line - used, "%s%s", n > 1 ? ", " : "",
                     j->in->list[i].label);
        folders += j->in->list[i].kind == LAM_INPUT_FOLDER;
    }
    char others[48] = "";
    if (n > SHOWN)
        snprintf(others, sizeof others, " and %d others", n - SHOWN);
    if (n > 0)
        lam_log(LAM_LOG_INFO, "not read: %s%s%s", line, others,
                folders > 0 ? " (--recursive reads folders)" : "");
}

static void drop(judging *j, keeper *keep)
{
    int kept = 0;
    tell_unused(j, keep);
    for (int i = 0; i < j->in->n; i++) {
        if (keep(j, i)) {
            j->names[kept] = j->names[i];
            j->in->list[kept++] = j->in->list[i];
        } else {
            release(&j->in->list[i]);
        }
    }
    j->in->n = kept;
}

static bool keep_texts(const judging *j, int i)
{
    return is_read(&j->in->list[i]);
}

static bool keep_splits(const judging *j, int i)
{
    return is_read(&j->in->list[i]) && j->names[i].split < LAM_SPLITS &&
           strcmp(j->names[i].family, j->family) == 0;
}

/* ---- refusals ---- */

static lam_status refuse_empty(const judging *j)
{
    const int n = j->in->n;
    const char *folder = "";
    for (int i = 0; i < n; i++)
        if (j->in->list[i].kind == LAM_INPUT_FOLDER)
            folder = j->in->list[i].label;
    if (*folder != '\0')
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: holds no text, but folders such as %s: --recursive reads them",
                        j->o->inputs[0], folder);
    for (int i = 0; i < n; i++)
        if (lam_json_lines_name(j->in->list[i].label))
            return lam_fail(
                LAM_ERR_FORMAT,
                "%s: holds no text, but files such as %s: --json-field NAME reads JSON lines",
                j->o->inputs[0], j->in->list[i].label);
    return lam_fail(LAM_ERR_FORMAT,
                    "%s: holds no text (.txt, .tokens, .raw, also .gz, .xz, .zst)%s%s: name the "
                    "files that are text",
                    j->o->inputs[0], n > 0 ? ", but files such as " : "",
                    n > 0 ? j->in->list[0].label : "");
}

/* Anything that looks like a split beside texts that are splits must be one. */
static lam_status refuse_strange(const judging *j)
{
    for (int i = 0; i < j->in->n; i++) {
        const lam_input *in = &j->in->list[i];
        const lam_split_guess *name = &j->names[i];
        if (name->split == LAM_SPLIT_NONE && in->kind == LAM_INPUT_NAMED)
            return lam_fail(LAM_ERR_ARG, "%s is no split, though %s looks like one" OR_JOIN,
                            in->label, j->train != NULL ? j->train->label : "another");
        if (name->split == LAM_SPLIT_NONE)
            continue;
        if (name->split == LAM_SPLIT_UNCLEAR)
            return lam_fail(LAM_ERR_FORMAT,
                            "%s: the name speaks of splits, but does not say which of train, valid "
                            "and test it is: rename it" OR_JOIN,
                            in->label);
        const char *split = lam_split_name((lam_split)name->split);
        if (in->kind == LAM_INPUT_FOLDER)
            return lam_fail(
                LAM_ERR_FORMAT,
                "%s looks like the %s split, but is a folder: --recursive reads folders" OR_JOIN,
                in->label, split);
        if (in->kind == LAM_INPUT_OTHER)
            return lam_fail(LAM_ERR_FORMAT,
                            "%s looks like the %s split, but not like a text (.txt, .tokens, .raw, "
                            "also .gz, .xz, .zst): rename it" OR_JOIN,
                            in->label, split);
        if (j->train == NULL)
            return lam_fail(
                LAM_ERR_FORMAT,
                "%s looks like the %s split, but no train split is beside it: rename it" OR_JOIN,
                in->label, split);
    }
    return LAM_OK;
}

typedef struct part {
    const char *label;
    size_t stem; /* without packing and kind */
    const lam_split_guess *name;
} part;

static int by_stem(const void *pa, const void *pb)
{
    const part *a = pa, *b = pb;
    if (a->name->split != b->name->split)
        return a->name->split < b->name->split ? -1 : 1;
    const int order = strncmp(a->label, b->label, a->stem < b->stem ? a->stem : b->stem);
    return order != 0 ? order : (a->stem > b->stem) - (a->stem < b->stem);
}

/* Files of one split are parts of it, which differ in their numbers. */
static lam_status refuse_twice(const judging *j)
{
    const int n = j->in->n;
    lam_status status = LAM_OK;
    part *parts = calloc((size_t)n + 1, sizeof *parts);
    if (parts == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d file names", n);
    for (int i = 0; i < n; i++) {
        const char *label = j->in->list[i].label, *slash = strrchr(label, '/');
        const size_t folders = slash != NULL ? (size_t)(slash - label) + 1 : 0;
        parts[i] = (part){label, folders + lam_text_stem(label + folders), &j->names[i]};
    }
    qsort(parts, (size_t)n, sizeof *parts, by_stem);
    for (int i = 1; i < n && status == LAM_OK; i++) {
        const part *a = &parts[i - 1], *b = &parts[i];
        if (a->name->split == b->name->split &&
            (by_stem(a, b) == 0 || strcasecmp(a->name->word, b->name->word) != 0))
            status = lam_fail(LAM_ERR_FORMAT, "%s and %s are both the %s split: remove one" OR_JOIN,
                              a->label, b->label, lam_split_name((lam_split)a->name->split));
    }
    free(parts);
    return status;
}

/* ---- finding the splits ---- */

/* A train split, of a published name if there is one: the folder of Penn Treebank holds its characters, too. */
static void choose_family(judging *j)
{
    static const char *const preferred[] = {"wiki.|", "ptb.|", "|"};
    for (size_t k = 0; k <= sizeof preferred / sizeof *preferred && j->train == NULL; k++)
        for (int i = 0; i < j->in->n && j->train == NULL; i++)
            if (is_read(&j->in->list[i]) && j->names[i].split == LAM_TRAIN &&
                (k == sizeof preferred / sizeof *preferred ||
                 strcmp(j->names[i].family, preferred[k]) == 0)) {
                j->train = &j->in->list[i];
                j->family = j->names[i].family;
            }
}

static bool is_known(const char *family)
{
    return strcmp(family, "wiki.|") == 0 || strcmp(family, "ptb.|") == 0;
}

static lam_status refuse_mixed(const judging *j)
{
    for (int i = 0; i < j->in->n; i++) {
        if (!is_read(&j->in->list[i]) || j->names[i].split >= LAM_SPLITS ||
            strcmp(j->names[i].family, j->family) == 0)
            continue;
        if (is_known(j->family) && j->in->list[i].kind == LAM_INPUT_TEXT)
            continue;
        return lam_fail(
            LAM_ERR_FORMAT,
            "%s and %s look like splits of two different texts: name the files of one" OR_JOIN,
            j->train->label, j->in->list[i].label);
    }
    return LAM_OK;
}

static int by_split(const void *pa, const void *pb)
{
    const lam_input *a = pa, *b = pb;
    return a->split != b->split ? (a->split > b->split ? 1 : -1) : (a->order > b->order ? 1 : -1);
}

static lam_status take_splits(judging *j)
{
    LAM_TRY(refuse_strange(j));
    LAM_TRY(refuse_mixed(j));
    if (j->o->cut)
        return lam_fail(LAM_ERR_ARG, "%s has splits of its own: %s, ..." OR_JOIN, j->o->inputs[0],
                        j->train->label);
    char family[LAM_FAMILY_MAX];
    snprintf(family, sizeof family, "%s", j->family);
    j->family = family;
    drop(j, keep_splits);
    LAM_TRY(refuse_twice(j));
    for (int i = 0; i < j->in->n; i++) {
        j->in->list[i].split = (lam_split)j->names[i].split;
        j->in->list[i].order = i;
    }
    qsort(j->in->list, (size_t)j->in->n, sizeof *j->in->list, by_split);
    j->in->is_split = true;
    return LAM_OK;
}

/* Texts of which none is held out can be joined: they are cut afterwards. */
static bool all_train(const judging *j)
{
    for (int i = 0; i < j->in->n; i++)
        if (j->names[i].split != LAM_TRAIN &&
            (is_read(&j->in->list[i]) || j->names[i].split != LAM_SPLIT_NONE))
            return false;
    return true;
}

/* ---- names that end with the name of a split ---- */

typedef struct ending {
    lam_split_guess guess;
    int input;
} ending;

static int by_family(const void *pa, const void *pb)
{
    const ending *a = pa, *b = pb;
    const int order = strcmp(a->guess.family, b->guess.family);
    return order != 0 ? order
                      : (a->guess.split > b->guess.split) - (a->guess.split < b->guess.split);
}

/* Takes those that another file has with another split's word in its place; returns whether there are any. */
static bool take_pairs(judging *j, ending *list, int n)
{
    bool found = false;
    qsort(list, (size_t)n, sizeof *list, by_family);
    for (int from = 0, to; from < n; from = to) {
        for (to = from; to < n && strcmp(list[to].guess.family, list[from].guess.family) == 0;)
            to++;
        if (list[from].guess.split == list[to - 1].guess.split)
            continue;
        for (int i = from; i < to; i++)
            j->names[list[i].input] = list[i].guess;
        found = true;
    }
    return found;
}

/* No name says in a word of its own what it is: wikitrain.txt beside wikitest.txt says it all the same. */
static lam_status judge_endings(judging *j, bool *found)
{
    *found = false;
    ending *list = calloc((size_t)j->in->n, sizeof *list);
    if (list == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d file names", j->in->n);
    for (int number = 0, n = 1; n > 0 && !*found; number++) {
        n = 0;
        for (int i = 0; i < j->in->n; i++) {
            list[n] = (ending){lam_split_ending_of(j->in->list[i].label, number), i};
            n += list[n].guess.split != LAM_SPLIT_NONE;
        }
        *found = take_pairs(j, list, n);
    }
    free(list);
    return LAM_OK;
}

static lam_status judge(judging *j)
{
    int texts = 0, splits = 0, named = 0;
    for (int i = 0; i < j->in->n; i++) {
        j->names[i] = lam_split_guess_of(j->in->list[i].label);
        texts += is_read(&j->in->list[i]);
        named += j->in->list[i].kind == LAM_INPUT_NAMED;
        splits += is_read(&j->in->list[i]) && j->names[i].split != LAM_SPLIT_NONE;
    }
    if (texts == 0)
        return refuse_empty(j);
    const bool one = j->in->n == 1 && named == 1; /* the user names one text: it is cut */
    bool endings = false;
    if (splits == 0)
        LAM_TRY(judge_endings(j, &endings));
    if ((splits == 0 && !endings) || j->o->join || one || all_train(j)) {
        drop(j, keep_texts);
        return LAM_OK;
    }
    choose_family(j);
    return take_splits(j);
}

/* A published corpus needs all three, under their names or in their order. */
static lam_status need_three(judging *j)
{
    const char *name = j->o->published->name;
    bool has[LAM_SPLITS] = {false};
    if (!j->in->is_split && j->in->n == LAM_SPLITS && j->o->n_inputs == LAM_SPLITS) {
        for (int i = 0; i < LAM_SPLITS; i++)
            j->in->list[i].split = (lam_split)i;
        j->in->is_split = true;
    }
    for (int i = 0; i < j->in->n && j->in->is_split; i++)
        has[j->in->list[i].split] = true;
    if (has[LAM_TRAIN] && has[LAM_VALID] && has[LAM_TEST])
        return LAM_OK;
    return lam_fail(LAM_ERR_FORMAT,
                    "%s: %s needs its three splits: a folder or zip archive with "
                    "wiki.{train,valid,test}.tokens, ptb.{train,valid,test}.txt or "
                    "{train,valid,test}.txt, or three files",
                    j->o->inputs[0], name);
}

lam_status lam_inputs_judge(lam_inputs *in, const lam_prepare_options *o)
{
    judging j = {.in = in, .o = o, .names = calloc((size_t)in->n + 1, sizeof *j.names)};
    if (j.names == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d file names", in->n);
    lam_status status = judge(&j);
    if (status == LAM_OK && o->published != NULL && o->published->split == NULL)
        status = need_three(&j);
    if (status == LAM_OK && o->published != NULL && o->published->split != NULL && in->n != 1)
        status = lam_fail(LAM_ERR_ARG, "%s is one file, not %d", o->published->name, in->n);
    free(j.names);
    return status;
}
