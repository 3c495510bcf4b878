/* options.c -- from a table of options to argp, and what the user wrote.
 *
 * argp (glibc) knows how command lines are written: clusters of short options, --name=value,
 * abbreviations, "--".  Before it looks, '_' becomes '-' in long names, so that the option names of
 * the Transformer-XL and LaMemo scripts are accepted as they are. */
#include "cli/options.h"

#include "cli/help.h"
#include "core/printable.h"

#include <argp.h>
#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_TABLE = 256, KEY_HELP = 1024, KEY_COMMON = 2048, ARGP_MAX = 2 * LAM_OPTIONS_MAX };

const lam_option lam_common_options[] = {
    {"quiet", 'q', NULL, LAM_OPT_FLAG,
     .help = "Say only what went wrong. Answers and --json are still printed, summaries of what "
             "was written are not."},
    {"verbose", 'v', NULL, LAM_OPT_FLAG, .help = "Say more."},
    {"max-memory", 0, "SIZE", LAM_OPT_SIZE, offsetof(lam_args, max_memory),
     .shown = "what the machine has free",
     .help = "Refuse what needs more memory than SIZE (500M, 2G, 1.5GiB); on cuda, of the card."},
    {"help", 'h', NULL, LAM_OPT_FLAG, .help = "Print this help and leave."},
    {0},
};

void lam_usage_error(const lam_command *command, const char *format, ...)
{
    char text[2048], clean[4 * sizeof text];
    const char *const source = command->source;
    va_list ap;
    const int n = snprintf(text, sizeof text, "%s%s", source ? source : "", source ? ": " : "");
    const size_t used = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    va_start(ap, format);
    vsnprintf(text + used, sizeof text - used, format, ap);
    va_end(ap);
    fprintf(stderr, "lamemo %s: %s\n", command->name, lam_printable(clean, sizeof clean, text));
    if (source)
        exit(1);
    fprintf(stderr, "Try 'lamemo %s --help'.\n", command->name);
    exit(2);
}

bool lam_option_given(const lam_args *args, const char *name)
{
    const lam_option *table = args->table.rows;
    for (int i = 0; table[i].help != NULL; i++)
        if (table[i].name != NULL && strcmp(table[i].name, name) == 0)
            return args->given[i];
    assert(0 && "no such option in the table");
    return false;
}

bool lam_word_listed(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = words + strspn(words, " "); *at; at += strspn(at, " ")) {
        const size_t len = strcspn(at, " ");
        if (len == n && strncmp(at, word, n) == 0)
            return true;
        at += len;
    }
    return false;
}

void lam_options_copy(void *to, const lam_args *args, size_t part, size_t size, lam_which which)
{
    const char *from = (const char *)args->options + part;
    const lam_option *table = args->table.rows;
    for (int i = 0; table[i].help; i++) {
        const bool counts = args->given[i] || (which == LAM_WRITTEN_OR_DEFAULT && table[i].value);
        const size_t at = table[i].offset - part;
        if (counts && table[i].offset >= part && at < size)
            memcpy((char *)to + at, from + at, lam_option_size(&table[i]));
    }
}

/* ---- parsing ---- */

typedef struct parse {
    lam_args *args;
    void *options;
    struct argp_option argp[ARGP_MAX + 1];
    const char *names[ARGP_MAX + 1]; /* of argp[], for messages; ends with NULL */
    int n;
    char alias_text[1024]; /* the alias names, each with its own end */
    size_t alias_used;
} parse;

static void add_name(parse *p, const char *name, int key, const char *arg, int flags)
{
    assert(p->n < ARGP_MAX);
    p->argp[p->n] = (struct argp_option){.name = name, .key = key, .arg = arg, .flags = flags};
    p->names[p->n++] = name;
}

static void add_option(parse *p, const lam_option *o, int key)
{
    const char *arg = o->type == LAM_OPT_FLAG ? NULL : o->arg;
    assert(o->type == LAM_OPT_FLAG || o->arg != NULL);
    add_name(p, o->name, key, arg, 0);
    for (const char *s = o->aliases; s != NULL && *s != '\0';) {
        const size_t len = strcspn(s, " ");
        char *name = p->alias_text + p->alias_used;
        assert(p->alias_used + len + 1 <= sizeof p->alias_text);
        memcpy(name, s, len);
        name[len] = '\0';
        p->alias_used += len + 1;
        add_name(p, name, key, arg, OPTION_ALIAS);
        s += len + strspn(s + len, " ");
    }
}

void lam_options_list(lam_option_table *out, const lam_command *command)
{
    int n = 0;
    memset(out, 0, sizeof *out);
    for (const lam_option *o = command->options; o->help != NULL; o++) {
        assert(n < LAM_OPTIONS_MAX);
        if (o->type == LAM_OPT_MORE)
            n += o->more(out->rows + n, LAM_OPTIONS_MAX - n, o->offset);
        else
            out->rows[n++] = *o;
    }
}

static void build(parse *p)
{
    const lam_option *table = p->args->table.rows;
    for (int i = 0; table[i].help != NULL; i++) {
        if (table[i].type != LAM_OPT_GROUP && table[i].type != LAM_OPT_REST)
            add_option(p, &table[i], table[i].key != 0 ? table[i].key : KEY_TABLE + i);
        if (table[i].value != NULL &&
            lam_option_set(&table[i], p->options, table[i].value) != LAM_OK)
            assert(0 && "the default is not a legal value");
    }
    for (int i = 0; lam_common_options[i].name != NULL; i++)
        add_option(p, &lam_common_options[i],
                   lam_common_options[i].key != 0 ? lam_common_options[i].key : KEY_COMMON + i);
    add_name(p, "usage", KEY_HELP, NULL, OPTION_HIDDEN); /* argp's own messages point to it */
}

static int table_index(const lam_option *table, int key)
{
    if (key >= KEY_TABLE && key < KEY_HELP)
        return key - KEY_TABLE;
    for (int i = 0; table[i].help != NULL; i++)
        if (table[i].key != 0 && table[i].key == key)
            return i;
    return -1;
}

static error_t on_key(int key, char *text, struct argp_state *state)
{
    parse *p = state->input;
    lam_args *args = p->args;
    const lam_command *command = args->command;

    if (key == ARGP_KEY_ARGS) { /* everything that is not an option, in order */
        args->operands = state->argv + state->next;
        args->n_operands = state->argc - state->next;
        return 0;
    }
    const int i = key > 0 ? table_index(args->table.rows, key) : -1;
    if (i >= 0) {
        args->given[i] = true;
        args->text[i] = text;
        if (lam_option_set(&args->table.rows[i], p->options, text) != LAM_OK)
            lam_usage_error(command, "%s", lam_error());
        return 0;
    }
    if (key >= KEY_COMMON && key < KEY_COMMON + LAM_OPTIONS_MAX) {
        if (lam_option_set(&lam_common_options[key - KEY_COMMON], args, text) != LAM_OK)
            lam_usage_error(command, "%s", lam_error());
        return 0;
    }
    switch (key) {
    case 'q':
        args->quiet = true;
        return 0;
    case 'v':
        args->verbose = true;
        return 0;
    case 'h':
    case KEY_HELP:
        lam_help_command(stdout, command);
        exit(lam_help_end());
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Turns '_' into '-' in the name of `word` ("--name" or "--name=value"), which must begin one of
 * `names`. */
static void normalise(const lam_command *command, char *word, const char *const *names)
{
    const size_t len = strcspn(word + 2, "=");
    for (size_t i = 0; i < len; i++)
        if (word[2 + i] == '_')
            word[2 + i] = '-';
    for (int i = 0; names[i] != NULL; i++)
        if (strncmp(names[i], word + 2, len) == 0)
            return;

    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(len < 63 ? len : 63), word + 2);
    const char *near = lam_closest(name, names);
    if (near != NULL)
        lam_usage_error(command, "unknown option '--%s'; did you mean '--%s'?", name, near);
    lam_usage_error(command, "unknown option '--%s'", name);
}

/* Walks argv as argp will, only to know which words are option names and which are values. */
static void normalise_all(const parse *p, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        char *word = argv[i];
        const bool is_long = strncmp(word, "--", 2) == 0;
        if (is_long)
            normalise(p->args->command, word, p->names);
        else if (word[0] != '-' || word[1] == '\0' || word[2] != '\0')
            continue; /* an operand, "-", or "-xVALUE" */
        for (int k = 0; k < p->n && strchr(word, '=') == NULL; k++) {
            const struct argp_option *o = &p->argp[k];
            if (is_long ? strncmp(o->name, word + 2, strlen(word + 2)) == 0 : o->key == word[1]) {
                i += o->arg != NULL; /* the next word is a value, whatever it looks like */
                break;
            }
        }
    }
}

void lam_args_parse(lam_args *args, void *options, const lam_command *command, int argc,
                    char **argv)
{
    parse p = {.args = args, .options = options};
    char name[PATH_MAX];

    *args = (lam_args){.command = command, .options = options};
    lam_options_list(&args->table, command);
    build(&p);
    normalise_all(&p, argc, argv);

    const char *const source = command->source;
    snprintf(name, sizeof name, "lamemo %s%s%s", command->name, source ? ": " : "",
             source ? source : "");
    argv[0] = name; /* argp's messages begin with it */
    argp_err_exit_status = source ? 1 : 2;
    const struct argp argp = {.options = p.argp, .parser = on_key};
    if (argp_parse(&argp, argc, argv, ARGP_NO_HELP, NULL, &p) != 0)
        lam_usage_error(command, "the command line cannot be read");
    argv[0] = NULL;

    if (args->n_operands < command->operands_min)
        lam_usage_error(command, "%s is missing", command->operands);
    if (command->operands_max >= 0 && args->n_operands > command->operands_max)
        lam_usage_error(command,
                        "what is '%s' for? (perhaps an option's name is missing before it)",
                        args->operands[command->operands_max]);
}
