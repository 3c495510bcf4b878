/* input.c -- see input.h. */
#include "cli/input.h"

#include "cli/spelling.h"
#include "convert/vocabulary.h"
#include "core/file.h"
#include "core/grow.h"
#include "core/log.h"
#include "data/instream.h"
#include "data/plaintext.h"
#include "io/json.h"
#include "model/folder.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const size_t LIMIT = (size_t)1 << 30;

/* A whole file as people have it: without its byte order mark, with LF, in UTF-8 where a mark says that it is not. */
static lam_status load(char **text, size_t *size, const char *path)
{
    char *bytes;
    size_t n;
    LAM_TRY(lam_instream_load(&bytes, &n, path, LIMIT));
    const lam_status status = lam_plaintext_all(
        text, size, bytes, n,
        &(lam_plaintext_options){.name = strcmp(path, "-") == 0 ? "standard input" : path,
                                 .encoding = LAM_ENCODING_MARKED});
    free(bytes);
    return status;
}

lam_status lam_prompt_read(char **text, size_t *size, const char *argument)
{
    *text = NULL;
    *size = 0;
    if (strcmp(argument, "-") == 0)
        return load(text, size, argument);
    if (strcmp(argument, "@") == 0)
        return lam_fail(LAM_ERR_ARG, "'@' needs a file name after it");
    if (argument[0] == '@')
        return load(text, size, argument + 1);
    *text = strdup(argument);
    *size = *text ? strlen(argument) : 0;
    return *text ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "prompt: no memory");
}

lam_status lam_prompt_blame(lam_status status, const char *argument)
{
    if (status != LAM_ERR_FORMAT || (argument[0] != '@' && strcmp(argument, "-") != 0))
        return status;
    return lam_fail(status, "%s: %s", argument[0] == '@' ? argument + 1 : "standard input",
                    lam_error());
}

/* ---- several texts ---- */

/* Takes `text`, which is freed on failure. */
static lam_status add(lam_texts *t, char *text, size_t size, const char *name, bool from_file)
{
    char *const own = strdup(name);
    if (!own || !text ||
        lam_grow(&t->v, &t->room, (size_t)t->n + 1, sizeof *t->v, "texts") != LAM_OK) {
        free(own);
        free(text);
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d texts", t->n + 1);
    }
    t->v[t->n++] = (lam_given_text){text, own, size, from_file};
    return LAM_OK;
}

void lam_texts_free(lam_texts *t)
{
    for (int i = 0; i < t->n; i++) {
        free(t->v[i].text);
        free(t->v[i].name);
    }
    free(t->v);
    *t = (lam_texts){0};
}

/* "story.txt" is more likely a file whose @ was forgotten than a text. */
static lam_status check_name(const char *argument)
{
    struct stat st;
    const char *const dot = strrchr(argument, '.');
    if (stat(argument, &st) == 0 && S_ISREG(st.st_mode))
        return lam_fail(LAM_ERR_ARG,
                        "'%s' is a file: @%s takes the text in it (the name itself as a text: echo "
                        "it to lamemo and write -)",
                        argument, argument);
    if (dot && dot > argument && !strpbrk(argument, " \n") && isalpha((unsigned char)dot[1]) &&
        strlen(dot) <= 5)
        lam_log(LAM_LOG_WARN, "'%s' is taken as a text; a file would be @%s", argument, argument);
    return LAM_OK;
}

lam_status lam_texts_add(lam_texts *t, const char *argument)
{
    char *text = NULL;
    size_t size = 0;
    const bool from_file = argument[0] == '@' || strcmp(argument, "-") == 0;
    if (!from_file)
        LAM_TRY(check_name(argument));
    LAM_TRY(lam_prompt_read(&text, &size, argument));
    return add(t, text, size,
               argument[0] == '@' ? argument + 1
               : from_file        ? "standard input"
                                  : argument,
               from_file);
}

static lam_status add_json(lam_texts *t, const char *name, const char *line, size_t size,
                           const char *key)
{
    json_t *root = NULL;
    LAM_TRY(lam_json_parse(&root, name, line, size));
    const json_t *const value = json_is_object(root) ? json_object_get(root, key) : root;
    lam_status status;
    if (json_is_string(value))
        status = add(t, strdup(json_string_value(value)), json_string_length(value), name, true);
    else
        status = lam_fail(LAM_ERR_FORMAT, "%s: neither a string nor an object with a string \"%s\"",
                          name, key);
    json_decref(root);
    return status;
}

static lam_status add_lines(lam_texts *t, const char *path, const char *key, const char *all)
{
    const char *const end = strrchr(path, '.');
    const bool json = end && strcmp(end, ".jsonl") == 0;
    char name[PATH_MAX + 16];
    int number = 1;
    for (const char *line = all; *line; number++) {
        const size_t whole = strcspn(line, "\n");
        const size_t size = whole - (whole > 0 && line[whole - 1] == '\r');
        snprintf(name, sizeof name, "%s:%d", strcmp(path, "-") == 0 ? "standard input" : path,
                 number);
        if (size > 0 && json)
            LAM_TRY(add_json(t, name, line, size, key));
        else if (size > 0)
            LAM_TRY(add(t, strndup(line, size), size, name, true));
        line += whole + (line[whole] == '\n');
    }
    return LAM_OK;
}

lam_status lam_texts_add_lines(lam_texts *t, const char *path, const char *key)
{
    char *all = NULL;
    size_t size = 0;
    const int before = t->n;
    LAM_TRY(lam_instream_load(&all, &size, path, LIMIT));
    lam_status status = LAM_OK;
    if (strlen(all) != size)
        status = lam_fail(LAM_ERR_FORMAT, "%s: has a zero byte in a line", path);
    if (status == LAM_OK)
        status = add_lines(t, path, key, all);
    if (status == LAM_OK && t->n == before)
        status = lam_fail(LAM_ERR_FORMAT, "%s: no line has a text", path);
    free(all);
    return status;
}

/* ---- escapes ---- */

/* The byte that the escape after a backslash means, and how many characters it has; 0: none. */
static size_t escape(char *out, const char *text)
{
    static const char letters[] = "ntr\\", bytes[] = "\n\t\r\\";
    const char *const at = *text ? strchr(letters, *text) : NULL;
    if (at) {
        *out = bytes[at - letters];
        return 1;
    }
    if (*text == 'x' && isxdigit((unsigned char)text[1]) && isxdigit((unsigned char)text[2])) {
        const char digits[] = {text[1], text[2], '\0'};
        *out = (char)strtol(digits, NULL, 16);
        return *out ? 3 : 0;
    }
    return 0;
}

lam_status lam_unescape(char *text, const char *label)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        *to = *from++;
        if (*to != '\\')
            continue;
        const size_t n = escape(to, from);
        if (n == 0)
            return lam_fail(LAM_ERR_ARG,
                            "%s: after a backslash there is n, t, r, xHH or another backslash",
                            label);
        from += n;
    }
    *to = '\0';
    return LAM_OK;
}

/* ---- the model ---- */

static bool is_model(const char *word)
{
    char folder[PATH_MAX];
    return lam_folder_find(folder, sizeof folder, word) == LAM_OK;
}

lam_status lam_model_required(const lam_args *args, const char *model)
{
    static const char *const boxed[] = {LAM_BOXED, NULL};
    char folder[PATH_MAX];
    if (model && !lam_path_exists(model) && !lam_boxed_find(folder, sizeof folder, model) &&
        lam_boxed_find(folder, sizeof folder, LAM_BOXED) && lam_closest(model, boxed))
        return lam_fail(LAM_ERR_IO, "%s: there is no such model; did you mean " LAM_BOXED "?",
                        model);
    if (model)
        return LAM_OK;
    if (args->n_operands > 0 && is_model(args->operands[0]))
        return lam_fail(LAM_ERR_ARG, "--model is missing: write --model %s", args->operands[0]);
    if (lam_boxed_find(folder, sizeof folder, LAM_BOXED))
        return lam_fail(LAM_ERR_ARG, "--model is missing: a folder, or " LAM_BOXED
                                     ", the model that comes with lamemo");
    return lam_fail(LAM_ERR_ARG, "--model is missing");
}

lam_status lam_model_remembers(const lam_model *model, int mem_len)
{
    if (mem_len > 0 && !lam_mem_has(model->mem, LAM_REMEMBERS))
        return lam_fail(LAM_ERR_ARG, "--mem-len %d: memory %s has none to be longer", mem_len,
                        model->cfg.memory);
    return LAM_OK;
}

/* ---- a vocabulary ---- */

lam_status lam_vocab_option(lam_vocab **out, const char *from, const char *pattern)
{
    char path[PATH_MAX];
    *out = NULL;
    if (lam_path_exists(from) && !lam_path_is_folder(from))
        return lam_vocabulary_load(out, from, pattern);
    if (pattern != NULL)
        return lam_fail(LAM_ERR_ARG, "--pattern: the vocabulary of %s has its own, or none", from);
    LAM_TRY(lam_path_join(path, sizeof path, from, "corpus.json"));
    if (lam_path_exists(path)) {
        LAM_TRY(lam_path_join(path, sizeof path, from, "vocab.json"));
        return lam_vocab_load(out, path);
    }
    const lam_status status = lam_folder_vocab(path, sizeof path, from);
    if (status == LAM_ERR_FORMAT)
        return lam_fail(status, "%s; nor a corpus folder: it has no corpus.json", lam_error());
    LAM_TRY(status);
    lam_config cfg;
    LAM_TRY(lam_folder_config(&cfg, from));
    LAM_TRY(lam_vocab_load(out, path));
    const lam_status fits = lam_vocab_fits(*out, path, cfg.n_token);
    if (fits != LAM_OK) {
        lam_vocab_free(*out);
        *out = NULL;
    }
    return fits;
}

/* ---- what does not belong there ---- */

const char *lam_stray(char *out, size_t size, const lam_args *args)
{
    const char *const word = args->operands[args->command->operands_max];
    const char *const end = strrchr(word, '.');
    const lam_option *const table = args->table.rows;
    const int model = lam_option_row(table, "model"), data = lam_option_row(table, "data");
    const bool text =
        (lam_path_exists(word) && !lam_path_is_folder(word)) || (end && strcmp(end, ".txt") == 0);
    const int n = snprintf(out, size, "unexpected argument '%s'", word);
    const size_t used = (size_t)n < size ? (size_t)n : size - 1;
    if (model >= 0 && is_model(word) && !args->given[model])
        snprintf(out + used, size - used, ": a model is given as --model %s", word);
    else if (model >= 0 && table[model].type == LAM_OPT_STRINGS && is_model(word))
        snprintf(out + used, size - used,
                 ": models are joined by commas, or --model is written before each");
    else if (data >= 0 && model < 0 && text)
        snprintf(
            out + used, size - used,
            ": a text is prepared first: lamemo prepare --out DIR %s, then lamemo %s --data DIR",
            word, args->command->name);
    else
        snprintf(out + used, size - used, " (perhaps an option's name is missing before it)");
    return out;
}
