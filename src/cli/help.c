/* help.c -- prints what the option tables say: overview, one command, Markdown, manual page.
 *
 * There is no other description of the options anywhere, so none can be out of date. */
#include "cli/help.h"

#include "cli/spelling.h"
#include "cli/term.h"
#include "model/boxed.h"

#include <ctype.h>
#include <string.h>

enum { HELP_INDENT = 28, HELP_WIDTH_MAX = 100 };

static bool ends(const lam_option *o)
{
    return o->help == NULL || o->type == LAM_OPT_REST;
}

/* ---- the terminal ---- */

/* Prints the words of `text`, beginning at column `indent` and never past `width`. */
static void wrap(FILE *out, const char *text, int indent, int width)
{
    int column = indent;
    while (*text != '\0') {
        const int len = (int)strcspn(text, " ");
        if (column > indent && column + 1 + len > width) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
        column += fprintf(out, "%s%.*s", column > indent ? " " : "", len, text);
        text += len;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

/* "-b, --batch-size N" into text. */
static void signature(char *text, size_t size, const lam_option *o)
{
    char key[8] = "    ";
    if (o->key != 0)
        snprintf(key, sizeof key, "-%c, ", o->key);
    snprintf(text, size, "%s--%s%s%s", key, o->name, o->arg != NULL && *o->arg != '[' ? " " : "",
             o->arg != NULL ? o->arg : "");
}

static bool has_word(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        if ((at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[n]))
            return true;
    return false;
}

/* Does the sentence leave out a word that may be chosen? */
static bool lacks_choices(const lam_option *o)
{
    for (int i = 0; o->choices != NULL && o->choices[i] != NULL; i++)
        if (!has_word(o->help, o->choices[i]))
            return true;
    return false;
}

/* The help sentence with choices, default and other names. */
static void explanation(char *text, size_t size, const lam_option *o)
{
    const bool list = lacks_choices(o);
    size_t n = (size_t)snprintf(text, size, "%s", o->help);
    for (int i = 0; list && o->choices[i] != NULL && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i == 0 ? " One of: " : ", ",
                              o->choices[i]);
    if (list && n < size)
        n += (size_t)snprintf(text + n, size - n, ".");
    const char *value = o->shown != NULL ? o->shown : o->value;
    if (o->fast != NULL && n < size)
        n += (size_t)snprintf(text + n, size - n, " Default: %s; %s with --recipe paper.", o->fast,
                              value);
    else if (value != NULL && n < size)
        n += (size_t)snprintf(text + n, size - n, " Default: %s.", value);
    if (o->aliases != NULL && n < size)
        snprintf(text + n, size - n, " Also: %s.", o->aliases);
}

static int help_width(FILE *out)
{
    const int width = lam_term_width(out);
    return width < 60 ? 60 : width > HELP_WIDTH_MAX ? HELP_WIDTH_MAX : width;
}

static void print_option(FILE *out, const lam_option *o)
{
    char left[128], right[1024];
    signature(left, sizeof left, o);
    explanation(right, sizeof right, o);
    int column = fprintf(out, "  %s", left);
    if (column > HELP_INDENT - 2) {
        fputc('\n', out);
        column = 0;
    }
    fprintf(out, "%*s", HELP_INDENT - column, "");
    wrap(out, right, HELP_INDENT, help_width(out));
}

static void print_heading(FILE *out, const char *text)
{
    fprintf(out, "\n%s%s%s\n", lam_term_style(out, LAM_STYLE_BOLD), text,
            lam_term_style(out, LAM_STYLE_NONE));
}

/* Is there anything to show before the next heading? */
static bool any_shown(const lam_option *o)
{
    while (!ends(o) && o->type != LAM_OPT_GROUP && o->hidden)
        o++;
    return !ends(o) && o->type != LAM_OPT_GROUP;
}

static void print_examples(FILE *out, const char *examples)
{
    for (const char *line = examples; *line != '\0';) {
        const int len = (int)strcspn(line, "\n");
        fprintf(out, "  %.*s\n", len, line);
        line += len + (line[len] == '\n');
    }
}

void lam_help_usage(FILE *out, const lam_command *c)
{
    fprintf(out, "Usage: lamemo %s [OPTION...]%s%s\n", c->name, c->operands != NULL ? " " : "",
            c->operands != NULL ? c->operands : "");
}

/* The words that show a group each, "batches, optimiser, ...", into text. */
static void list_topics(char *text, size_t size, const lam_option *o)
{
    size_t n = 0;
    const char *last = "";
    for (text[0] = '\0'; !ends(o); o++) {
        if (o->type != LAM_OPT_GROUP || o->arg == NULL || strcmp(o->arg, last) == 0 || n >= size)
            continue;
        n += (size_t)snprintf(text + n, size - n, "%s%.*s", n > 0 ? ", " : "",
                              (int)strcspn(o->arg, " "), o->arg);
        last = o->arg;
    }
}

/* Prints the groups that `topic` asks for, with the options before the first heading where it asks for none. */
static bool print_groups(FILE *out, const lam_option *rows, const char *topic)
{
    const bool all = topic != NULL && strcmp(topic, "all") == 0;
    bool shown = topic == NULL || all, any = shown;
    if (shown && any_shown(rows))
        print_heading(out, "Options");
    for (const lam_option *o = rows; !ends(o); o++) {
        if (o->type == LAM_OPT_GROUP) {
            shown = all || (topic == NULL && o->arg == NULL) ||
                    (topic != NULL && o->arg != NULL && lam_word_listed(o->arg, topic));
            any |= shown;
            if (shown)
                print_heading(out, o->help);
        } else if (shown && !o->hidden)
            print_option(out, o);
    }
    return any;
}

lam_status lam_help_command(FILE *out, const lam_command *c, const char *topic)
{
    char topics[256];
    lam_option_table table;
    lam_options_list(&table, c);
    list_topics(topics, sizeof topics, table.rows);
    if (topic != NULL && strcmp(topic, "all") != 0)
        return print_groups(out, table.rows, topic)
                   ? LAM_OK
                   : lam_fail(LAM_ERR_ARG, "--help=%s: there is no such topic, but all%s%s", topic,
                              topics[0] ? ", " : "", topics);
    lam_help_usage(out, c);
    fputc('\n', out);
    wrap(out, c->description, 0, help_width(out));
    print_groups(out, table.rows, topic);
    print_heading(out, "Common options");
    for (const lam_option *o = lam_common_options; o->help != NULL; o++)
        print_option(out, o);
    if (c->appendix != NULL) {
        print_heading(out, c->appendix_title);
        c->appendix(out);
    }
    if (c->examples != NULL) {
        print_heading(out, "Examples");
        print_examples(out, c->examples);
    }
    if (topics[0] && topic == NULL) {
        print_heading(out, "More options");
        fprintf(out, "  lamemo %s --help=TOPIC, where TOPIC is one of:\n    ", c->name);
        wrap(out, topics, 4, help_width(out));
        fprintf(out, "  lamemo %s --help=all prints everything.\n", c->name);
    }
    return LAM_OK;
}

void lam_help_overview(FILE *out)
{
    fputs("Usage: lamemo COMMAND [OPTION...]\n\n"
          "Language models with a recurrence memory: prepare text, train, evaluate, generate.\n",
          out);
    print_heading(out, "Commands");
    for (int i = 0; lam_commands[i] != NULL; i++)
        if (!lam_commands[i]->hidden)
            fprintf(out, "  %-10s %s\n", lam_commands[i]->name, lam_commands[i]->summary);
    print_heading(out, "To begin with");
    print_examples(out, "lamemo generate --model " LAM_BOXED " \"The history of Rome\"\n"
                        "lamemo prepare --out data/book book.txt\n"
                        "lamemo train --data data/book --out runs/book --max-step 1000\n"
                        "lamemo generate --model runs/book \"Once upon a time\"\n");
    fputs("\n'lamemo COMMAND --help' explains a command; 'lamemo --version' prints the version.\n"
          "Exit status: 0 done, 1 the job failed, 2 wrong usage, 130 or 143 stopped by a signal.\n",
          out);
}

int lam_help_end(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    fputs("lamemo: standard output: the help could not be written\n", stderr);
    return 1;
}

lam_status lam_command_find(const lam_command **out, const char *name)
{
    const char *names[LAM_OPTIONS_MAX] = {0};
    int n = 0;
    *out = NULL;
    for (; lam_commands[n] != NULL; n++) {
        names[n] = lam_commands[n]->name;
        if (strcmp(names[n], name) == 0)
            *out = lam_commands[n];
    }
    if (*out != NULL)
        return LAM_OK;
    names[n++] = "--version"; /* which take the place of a command */
    names[n] = "--help";
    const char *near = lam_closest(name, names);
    if (near != NULL)
        return lam_fail(LAM_ERR_ARG, "there is no command '%s'; did you mean '%s'?", name, near);
    return lam_fail(LAM_ERR_ARG, "there is no command '%s'", name);
}

/* ---- Markdown ---- */

static void markdown_rows(FILE *out, const lam_option *o)
{
    char right[1024];
    for (; !ends(o) && o->type != LAM_OPT_GROUP; o++) {
        if (o->hidden)
            continue;
        explanation(right, sizeof right, o);
        fputs("| `", out);
        if (o->key != 0)
            fprintf(out, "-%c`, `", o->key);
        fprintf(out, "--%s%s", o->name, o->arg != NULL && *o->arg != '[' ? " " : "");
        for (const char *s = o->arg; s != NULL && *s != '\0'; s++)
            fprintf(out, *s == '|' ? "\\%c" : "%c", *s); /* it would end the cell, even here */
        fputs("` | ", out);
        for (const char *s = right; *s != '\0'; s++)
            fprintf(out, strchr("|<\\", *s) ? "\\%c" : "%c", *s);
        fputs(" |\n", out);
    }
}

static void markdown_table(FILE *out, const char *heading, const lam_option *rows)
{
    if (!any_shown(rows))
        return;
    fprintf(out, "\n| %s | |\n|---|---|\n", heading);
    markdown_rows(out, rows);
}

static void markdown_command(FILE *out, const lam_command *c)
{
    lam_option_table table;
    lam_options_list(&table, c);
    fprintf(out, "\n## lamemo %s\n\n    lamemo %s [OPTION...]%s%s\n\n%s\n", c->name, c->name,
            c->operands != NULL ? " " : "", c->operands != NULL ? c->operands : "", c->description);
    markdown_table(out, "Options", table.rows);
    for (const lam_option *o = table.rows; !ends(o); o++)
        if (o->type == LAM_OPT_GROUP)
            markdown_table(out, o->help, o + 1);
    if (c->appendix != NULL) {
        fprintf(out, "\n%s:\n\n```\n", c->appendix_title);
        c->appendix(out);
        fputs("```\n", out);
    }
    if (c->examples != NULL) {
        fputs("\nExamples:\n\n```sh\n", out);
        for (const char *line = c->examples; *line != '\0';) {
            const int len = (int)strcspn(line, "\n");
            fprintf(out, "%.*s\n", len, line);
            line += len + (line[len] == '\n');
        }
        fputs("```\n", out);
    }
}

void lam_help_markdown(FILE *out)
{
    fputs(
        "# Commands of lamemo\n\n"
        "Written by `scripts/gen-docs.sh` from the option tables of the program.\n\n"
        "Long options may be written with `_` for `-`, so the option names of the Transformer-XL\n"
        "and LaMemo scripts are accepted as they are, and may be abbreviated as long as they\n"
        "stay unambiguous. Results go to standard output, progress and messages to standard\n"
        "error. Exit status: 0 done, 1 the job failed (bad data, failed verification), 2 wrong\n"
        "usage, 130 or 143 after SIGINT or SIGTERM. `NO_COLOR` is respected.\n",
        out);
    markdown_table(out, "Options of every command", lam_common_options);
    for (int i = 0; lam_commands[i] != NULL; i++)
        if (!lam_commands[i]->hidden)
            markdown_command(out, lam_commands[i]);
}

/* ---- the manual page ---- */

/* Text for roff: '-' and '\' escaped, a leading '.' or '\'' protected. */
static void roff(FILE *out, const char *text, size_t len)
{
    if (len > 0 && (*text == '.' || *text == '\''))
        fputs("\\&", out);
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '-' || text[i] == '\\')
            fputs(text[i] == '-' ? "\\-" : "\\e", out);
        else
            fputc(text[i], out);
    }
}

static void man_options(FILE *out, const lam_option *o)
{
    char left[128], right[1024];
    for (; !ends(o); o++) {
        if (o->hidden)
            continue;
        if (o->type == LAM_OPT_GROUP) {
            fprintf(out, ".PP\n.I \"%s\"\n", o->help);
            continue;
        }
        signature(left, sizeof left, o);
        explanation(right, sizeof right, o);
        const char *trimmed = left + strspn(left, " ");
        fputs(".TP\n\\fB", out);
        roff(out, trimmed, strlen(trimmed));
        fputs("\\fR\n", out);
        roff(out, right, strlen(right));
        fputc('\n', out);
    }
}

/* Options, what the command adds to them, and examples. */
static void man_body(FILE *out, const lam_command *c)
{
    lam_option_table table;
    lam_options_list(&table, c);
    man_options(out, table.rows);
    if (c->appendix != NULL) {
        fprintf(out, ".PP\n%s:\n.PP\n.nf\n", c->appendix_title);
        c->appendix(out);
        fputs(".fi\n", out);
    }
    if (c->examples == NULL)
        return;
    fputs(".PP\nExamples:\n.PP\n.nf\n", out);
    for (const char *line = c->examples; *line != '\0';) {
        const size_t len = strcspn(line, "\n");
        fputs("    ", out);
        roff(out, line, len);
        fputc('\n', out);
        line += len + (line[len] == '\n');
    }
    fputs(".fi\n", out);
}

static void man_command(FILE *out, const lam_command *c)
{
    fprintf(out, ".SS lamemo %s [OPTION...]%s%s\n", c->name, c->operands != NULL ? " " : "",
            c->operands != NULL ? c->operands : "");
    roff(out, c->description, strlen(c->description));
    fputc('\n', out);
    man_body(out, c);
}

void lam_help_man_command(FILE *out, const lam_command *c)
{
    fputs(".TH LAMEMO\\-", out);
    for (const char *at = c->name; *at != '\0'; at++)
        fputc(toupper((unsigned char)*at), out);
    fprintf(out,
            " 1 \"\" \"lamemo " LAM_VERSION "\" \"User Commands\"\n"
            ".SH NAME\nlamemo\\-%s \\- ",
            c->name);
    roff(out, c->summary, strlen(c->summary));
    fprintf(out, "\n.SH SYNOPSIS\n.B lamemo %s\n[\\fIOPTION\\fR...]%s%s\n.SH DESCRIPTION\n",
            c->name, c->operands != NULL ? " " : "", c->operands != NULL ? c->operands : "");
    roff(out, c->description, strlen(c->description));
    fputs("\n.SH OPTIONS\n", out);
    man_body(out, c);
    fputs(".SH OPTIONS OF EVERY COMMAND\n", out);
    man_options(out, lam_common_options);
    fputs(".SH SEE ALSO\n.BR lamemo (1)\n", out);
}

void lam_help_man(FILE *out)
{
    fputs(".TH LAMEMO 1 \"\" \"lamemo " LAM_VERSION "\" \"User Commands\"\n"
          ".SH NAME\nlamemo \\- language models with a recurrence memory\n"
          ".SH SYNOPSIS\n.B lamemo\n.I COMMAND\n[\\fIOPTION\\fR...]\n"
          ".SH DESCRIPTION\n"
          "Prepares text, trains, evaluates and samples language models with a recurrence memory.\n"
          ".SH OPTIONS OF EVERY COMMAND\n",
          out);
    man_options(out, lam_common_options);
    fputs(".SH COMMANDS\n", out);
    for (int i = 0; lam_commands[i] != NULL; i++)
        if (!lam_commands[i]->hidden)
            man_command(out, lam_commands[i]);
    fputs(".SH EXIT STATUS\n0 done; 1 the job failed; 2 wrong usage; 130 or 143 after SIGINT or "
          "SIGTERM.\n.SH ENVIRONMENT\n.TP\nNO_COLOR\nno colours on terminals\n"
          ".TP\nLAMEMO_MODELS\nthe folder in which models are found by name, instead of the one "
          "that comes with lamemo\n"
          ".TP\nOMP_WAIT_POLICY, GOMP_SPINCOUNT\nhow threads wait; chosen by command where "
          "neither is set\n"
          ".TP\nLAMEMO_ISA\nthe instruction set of the CPU to use (x86\\-64\\-v2, x86\\-64\\-v3, "
          "x86\\-64\\-v4) instead of the highest that the machine has; lamemo info prints it\n"
          ".TP\nLAMEMO_GRAPHS\n0: record no CUDA graphs\n"
          ".TP\nLAMEMO_PDL\n1: start kernels of decoding early on Hopper GPUs (programmatic "
          "dependent launch)\n"
          ".SH SEE ALSO\n",
          out);
    const char *comma = "";
    for (int i = 0; lam_commands[i] != NULL; i++)
        if (!lam_commands[i]->hidden) {
            fprintf(out, "%s.BR lamemo\\-%s (1)", comma, lam_commands[i]->name);
            comma = ",\n";
        }
    fputc('\n', out);
}
