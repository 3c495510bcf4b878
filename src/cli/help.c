/* help.c -- see help.h: what a terminal gets, and what the pages share with it. */
#include "cli/help.h"

#include "cli/commands.h"
#include "cli/term.h"
#include "model/boxed.h"

#include <ctype.h>
#include <string.h>

enum { HELP_INDENT = 28, HELP_WIDTH_MAX = 100 };

bool lam_help_ends(const lam_option *o)
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

void lam_help_signature(char *text, size_t size, const lam_option *o)
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

void lam_help_explanation(char *text, size_t size, const lam_option *o)
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
    lam_help_signature(left, sizeof left, o);
    lam_help_explanation(right, sizeof right, o);
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

bool lam_help_any(const lam_option *o)
{
    while (!lam_help_ends(o) && o->type != LAM_OPT_GROUP && o->hidden)
        o++;
    return !lam_help_ends(o) && o->type != LAM_OPT_GROUP;
}

void lam_help_lines(FILE *out, const char *text,
                    void (*print)(FILE *out, const char *line, size_t len))
{
    for (const char *line = text; *line != '\0';) {
        const size_t len = strcspn(line, "\n");
        print(out, line, len);
        line += len + (line[len] == '\n');
    }
}

static void print_line(FILE *out, const char *line, size_t len)
{
    fprintf(out, "  %.*s\n", (int)len, line);
}

void lam_help_synopsis(FILE *out, const lam_command *c)
{
    fprintf(out, "lamemo %s [OPTION...]%s%s\n", c->name, c->operands != NULL ? " " : "",
            c->operands != NULL ? c->operands : "");
}

void lam_help_usage(FILE *out, const lam_command *c)
{
    fputs("Usage: ", out);
    lam_help_synopsis(out, c);
}

/* The words that show a group each, "batches, optimiser, ...", into text. */
static void list_topics(char *text, size_t size, const lam_option *o)
{
    size_t n = 0;
    const char *last = "";
    for (text[0] = '\0'; !lam_help_ends(o); o++) {
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
    if (shown && lam_help_any(rows))
        print_heading(out, "Options");
    for (const lam_option *o = rows; !lam_help_ends(o); o++) {
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
        if (!o->hidden)
            print_option(out, o);
    if (c->appendix != NULL) {
        print_heading(out, c->appendix_title);
        c->appendix(out);
    }
    if (c->examples != NULL) {
        print_heading(out, "Examples");
        lam_help_lines(out, c->examples, print_line);
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
        fprintf(out, "  %-11s %s\n", lam_commands[i]->name, lam_commands[i]->summary);
    print_heading(out, "Getting started");
    lam_help_lines(out,
                   "lamemo generate --model " LAM_BOXED " \"The history of Rome\"\n"
                   "lamemo prepare --out data/book book.txt\n"
                   "lamemo train --data data/book --out runs/book --max-step 1000\n"
                   "lamemo generate --model runs/book \"Once upon a time\"\n",
                   print_line);
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
