/* options.c -- from a table of options to argp, and what the user wrote.
 *
 * argp (glibc) knows how command lines are written: clusters of short options, --name=value,
 * abbreviations, "--".  Before it looks, '_' becomes '-' in long names, so that the option names of
 * the Transformer-XL and LaMemo scripts are accepted as they are. */
#include "cli/options.h"

#include "cli/help.h"
#include "cli/input.h"
#include "cli/spelling.h"
#include "cli/ranks.h"
#include "core/printable.h"

#include <argp.h>
#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_TABLE = 256, KEY_USAGE = 1024, KEY_COMMON = 2048, ARGP_MAX = 2 * LAM_OPTIONS_MAX };

const lam_option lam_common_options[] = {
    {"quiet", 'q', NULL, LAM_OPT_FLAG,
     .help = "Print errors and warnings only. Results and --json are still printed, summaries of "
             "written files are not."},
    {"verbose", 'v', NULL, LAM_OPT_FLAG, .help = "Also print details of what is done."},
    {"max-memory", 0, "SIZE", LAM_OPT_SIZE, offsetof(lam_args, max_memory),
     .shown = "what the machine has free",
     .help = "Refuse to allocate more memory than SIZE (500M, 2G, 1.5GiB); on cuda, memory of the "
             "GPU."},
    {"inner-job", 0, NULL, LAM_OPT_FLAG, offsetof(lam_args, inner), .hidden = true,
     .help = "Part of a larger job, which says how it ended and how to go on."},
    {"help", 'h', "[=TOPIC]", LAM_OPT_STRING,
     .help = "Print the most common options and exit; --help=all prints all of them, --help=TOPIC "
             "one group."},
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
    if (lam_ranks_mute(command))
        exit(0);
    fprintf(stderr, "lamemo %s: %s\n", command->name, lam_printable(clean, sizeof clean, text));
    if (source)
        exit(1);
    fprintf(stderr, "Try 'lamemo %s --help'.\n", command->name);
    exit(2);
}

int lam_option_row(const lam_option *table, const char *name)
{
    for (int i = 0; table[i].help != NULL; i++)
        if (table[i].name != NULL && strcmp(table[i].name, name) == 0)
            return i;
    return -1;
}

bool lam_option_called(const lam_option *o, const char *name)
{
    char dashed[64];
    if (o->name == NULL || (size_t)snprintf(dashed, sizeof dashed, "%s", name) >= sizeof dashed)
        return false;
    for (char *c = dashed; *c != '\0'; c++)
        *c = *c == '_' ? '-' : *c;
    return strcmp(o->name, dashed) == 0 ||
           (o->aliases != NULL && lam_word_listed(o->aliases, dashed));
}

bool lam_option_given(const lam_args *args, const char *name)
{
    const int i = lam_option_row(args->table.rows, name);
    assert(i >= 0 && "no such option in the table");
    return args->given[i];
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
    int n_names;
    int n;
    char alias_text[1024]; /* the alias names, each with its own end */
    size_t alias_used;
} parse;

static void add_name(parse *p, const char *name, int key, const char *arg, int flags)
{
    assert(p->n < ARGP_MAX);
    p->argp[p->n++] = (struct argp_option){.name = name, .key = key, .arg = arg, .flags = flags};
    if (name != NULL && !(flags & OPTION_HIDDEN))
        p->names[p->n_names++] = name;
}

static void add_option(parse *p, const lam_option *o, int key)
{
    const char *arg = o->type == LAM_OPT_FLAG ? NULL : o->arg;
    assert(o->type == LAM_OPT_FLAG || o->arg != NULL);
    add_name(p, o->name, key, arg,
             (arg != NULL && *arg == '[' ? OPTION_ARG_OPTIONAL : 0) |
                 (o->hidden ? OPTION_HIDDEN : 0));
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
    if (command->complete != NULL)
        command->complete(out->rows);
}

static void build(parse *p)
{
    const lam_option *table = p->args->table.rows;
    for (int i = 0; table[i].help != NULL; i++) {
        if (table[i].type != LAM_OPT_GROUP && table[i].type != LAM_OPT_REST)
            add_option(p, &table[i], table[i].key != 0 ? table[i].key : KEY_TABLE + i);
        if (table[i].former != 0)
            add_name(p, NULL, table[i].former, table[i].arg, OPTION_HIDDEN);
        if (table[i].value != NULL &&
            lam_option_set(&table[i], p->options, table[i].value) != LAM_OK)
            assert(0 && "the default is not a legal value");
    }
    for (int i = 0; lam_common_options[i].name != NULL; i++)
        add_option(p, &lam_common_options[i],
                   lam_common_options[i].key != 0 ? lam_common_options[i].key : KEY_COMMON + i);
    add_name(p, "usage", KEY_USAGE, NULL, OPTION_HIDDEN); /* as argp's programs have it */
}

static int table_index(const lam_option *table, int key)
{
    if (key >= KEY_TABLE && key < KEY_USAGE)
        return key - KEY_TABLE;
    for (int i = 0; table[i].help != NULL; i++)
        if (table[i].key != 0 && table[i].key == key)
            return i;
    return -1;
}

/* Refuses a letter that used to mean an option of this command and means another one in all others. */
static void refuse_former(const lam_args *args, int key, const char *text)
{
    static const char *const meanings[] = {"model", "prompt", "seed", "tokens", NULL};
    const lam_option *o = args->table.rows;
    while (o->help != NULL && o->former != key)
        o++;
    for (int i = 0; o->help != NULL && meanings[i] != NULL; i++)
        if (meanings[i][0] == key || (key == 'n' && strcmp(meanings[i], "tokens") == 0))
            lam_usage_error(args->command,
                            "-%c is --%s in every command that has it: write --%s %s", key,
                            meanings[i], o->name, text);
}

/* Was the option of this value written with one letter? */
static bool written_short(const struct argp_state *state, const char *text)
{
    const int at = state->next - 1; /* of "-n5", or of the value */
    const char *const word =
        at > 0 && text == state->argv[at] ? state->argv[at - 1] : state->argv[at];
    return word[0] == '-' && word[1] != '-';
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
        if (lam_option_set(&args->table.rows[i], p->options, text) == LAM_OK)
            return 0;
        if (written_short(state, text))
            lam_usage_error(command, "-%c/%s", key, lam_error());
        lam_usage_error(command, "%s", lam_error());
    }
    if (key >= KEY_COMMON && key < KEY_COMMON + LAM_OPTIONS_MAX) {
        if (lam_option_set(&lam_common_options[key - KEY_COMMON], args, text) != LAM_OK)
            lam_usage_error(command, "%s", lam_error());
        return 0;
    }
    if (key > 0 && key < KEY_TABLE)
        refuse_former(args, key, text);
    switch (key) {
    case 'q':
        args->quiet = true;
        return 0;
    case 'v':
        args->verbose = true;
        return 0;
    case 'h':
        if (lam_help_command(stdout, command, text) != LAM_OK)
            lam_usage_error(command, "%s", lam_error());
        exit(lam_help_end());
    case KEY_USAGE:
        lam_help_usage(stdout, command);
        exit(lam_help_end());
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The option that the long name of `len` bytes means: itself, or the only one that begins with it. */
static const struct argp_option *find_long(const parse *p, const char *name, size_t len)
{
    const struct argp_option *found = NULL;
    char others[256] = "";
    size_t n = 0;
    for (const struct argp_option *o = p->argp; o < p->argp + p->n; o++) {
        if (o->name == NULL || strncmp(o->name, name, len) != 0)
            continue;
        if (o->name[len] == '\0')
            return o;
        if (o->flags & OPTION_HIDDEN)
            continue;
        if (found != NULL && found->key != o->key && n < sizeof others)
            n += (size_t)snprintf(others + n, sizeof others - n, ", --%s", o->name);
        found = found != NULL ? found : o;
    }
    if (n > 0)
        lam_usage_error(p->args->command, "option '--%.*s' is ambiguous: --%s%s", (int)len, name,
                        found->name, others);
    return found;
}

_Noreturn static void refuse_unknown(const parse *p, const char *word, size_t len)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(len < 63 ? len : 63), word);
    const char *near = lam_closest(name, p->names), *here = lam_brought(name, p->names);
    if (here != NULL)
        lam_usage_error(p->args->command, "unknown option '--%s'; here it is '--%s'", name, here);
    if (near != NULL)
        lam_usage_error(p->args->command, "unknown option '--%s'; did you mean '--%s'?", name,
                        near);
    lam_usage_error(p->args->command, "unknown option '--%s'", name);
}

/* Looks at "--name" or "--name=value" and turns '_' into '-' in the name.  Is the next word its value? */
static bool check_long(const parse *p, char *word, const char *next)
{
    const lam_command *command = p->args->command;
    const size_t len = strcspn(word + 2, "=");
    for (size_t i = 0; i < len; i++)
        if (word[2 + i] == '_')
            word[2 + i] = '-';
    const struct argp_option *o = find_long(p, word + 2, len);
    if (o == NULL)
        refuse_unknown(p, word + 2, len);
    const bool valued = word[2 + len] == '=', optional = o->flags & OPTION_ARG_OPTIONAL;
    if (valued && o->arg == NULL)
        lam_usage_error(command, "option '--%s' takes no value", o->name);
    if (!valued && o->arg != NULL && !optional && next == NULL)
        lam_usage_error(command, "option '--%s' needs a value: --%s %s", o->name, o->name, o->arg);
    return !valued && o->arg != NULL && !optional;
}

/* -model would be -m odel, and -lr a letter that nobody knows. */
static void refuse_one_dash(const parse *p, const char *word)
{
    const size_t len = strcspn(word + 1, "=");
    for (int i = 0; len > 1 && p->names[i] != NULL; i++)
        if (strncmp(p->names[i], word + 1, len) == 0 && p->names[i][len] == '\0')
            lam_usage_error(p->args->command, "unknown option '-%s'; did you mean '--%s'?",
                            p->names[i], p->names[i]);
}

/* The same of "-x", "-xVALUE", "-xyz". */
static bool check_short(const parse *p, const char *word, const char *next)
{
    refuse_one_dash(p, word);
    for (const char *letter = word + 1; *letter != '\0'; letter++) {
        const struct argp_option *o = p->argp, *const end = p->argp + p->n;
        while (o < end && o->key != *letter)
            o++;
        if (o == end)
            lam_usage_error(p->args->command, "unknown option '-%c'", *letter);
        if (o->arg == NULL)
            continue;
        if (letter[1] != '\0' || (o->flags & OPTION_ARG_OPTIONAL))
            return false;
        if (next == NULL)
            lam_usage_error(p->args->command, "option '-%c' needs a value: -%c %s", *letter,
                            *letter, o->arg);
        return true;
    }
    return false;
}

/* Walks argv as argp will, so that what it would refuse is refused in our words. */
static void check_words(const parse *p, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        char *const word = argv[i];
        const char *const next = i + 1 < argc ? argv[i + 1] : NULL;
        if (word[0] != '-' || word[1] == '\0')
            continue; /* an operand, or "-" */
        i += word[1] == '-' ? check_long(p, word, next) : check_short(p, word, next);
    }
}

/* A word of the command, in quotes where a shell would not take it as it is. */
static void add_word(char *line, size_t size, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,=:@%+-";
    const bool quoted = word[0] == '\0' || word[strspn(word, plain)] != '\0';
    size_t used = strlen(line);
    used += (size_t)snprintf(line + used, size - used, quoted ? " '" : " ");
    for (; *word && used + 8 < size; word++)
        used += (size_t)snprintf(line + used, size - used, *word == '\'' ? "'\\''" : "%c", *word);
    snprintf(line + used, size - used, "%s%s", *word ? "..." : "", quoted ? "'" : "");
}

/* What was typed, for pages that say how they were made. */
static void keep_line(lam_args *args, int argc, char **argv)
{
    snprintf(args->line, sizeof args->line, "lamemo %s", args->command->name);
    for (int i = 1; i < argc && strlen(args->line) + 16 < sizeof args->line; i++)
        add_word(args->line, sizeof args->line, argv[i]);
}

void lam_args_parse(lam_args *args, void *options, const lam_command *command, int argc,
                    char **argv)
{
    parse p = {.args = args, .options = options};
    char name[PATH_MAX], text[2 * PATH_MAX];

    *args = (lam_args){.command = command, .options = options};
    keep_line(args, argc, argv);
    lam_options_list(&args->table, command);
    build(&p);
    check_words(&p, argc, argv);

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
        lam_usage_error(command, "%s", lam_stray(text, sizeof text, args));
}
