/* help_pages.c -- see help.h: the option tables as Markdown (docs/cli.md) and as manual pages. */
#include "cli/help.h"

#include "cli/commands.h"

#include <ctype.h>
#include <string.h>

/* ---- Markdown ---- */

static void markdown_rows(FILE *out, const lam_option *o)
{
    char right[1024];
    for (; !lam_help_ends(o) && o->type != LAM_OPT_GROUP; o++) {
        if (o->hidden)
            continue;
        lam_help_explanation(right, sizeof right, o);
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
    if (!lam_help_any(rows))
        return;
    fprintf(out, "\n| %s | |\n|---|---|\n", heading);
    markdown_rows(out, rows);
}

static void markdown_line(FILE *out, const char *line, size_t len)
{
    fprintf(out, "%.*s\n", (int)len, line);
}

static void markdown_command(FILE *out, const lam_command *c)
{
    lam_option_table table;
    lam_options_list(&table, c);
    fprintf(out, "\n## lamemo %s\n\n    ", c->name);
    lam_help_synopsis(out, c);
    fprintf(out, "\n%s\n", c->description);
    markdown_table(out, "Options", table.rows);
    for (const lam_option *o = table.rows; !lam_help_ends(o); o++)
        if (o->type == LAM_OPT_GROUP)
            markdown_table(out, o->help, o + 1);
    if (c->appendix != NULL) {
        fprintf(out, "\n%s:\n\n```\n", c->appendix_title);
        c->appendix(out);
        fputs("```\n", out);
    }
    if (c->examples != NULL) {
        fputs("\nExamples:\n\n```sh\n", out);
        lam_help_lines(out, c->examples, markdown_line);
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
    for (; !lam_help_ends(o); o++) {
        if (o->hidden)
            continue;
        if (o->type == LAM_OPT_GROUP) {
            fprintf(out, ".PP\n.I \"%s\"\n", o->help);
            continue;
        }
        lam_help_signature(left, sizeof left, o);
        lam_help_explanation(right, sizeof right, o);
        const char *trimmed = left + strspn(left, " ");
        fputs(".TP\n\\fB", out);
        roff(out, trimmed, strlen(trimmed));
        fputs("\\fR\n", out);
        roff(out, right, strlen(right));
        fputc('\n', out);
    }
}

static void man_line(FILE *out, const char *line, size_t len)
{
    fputs("    ", out);
    roff(out, line, len);
    fputc('\n', out);
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
    lam_help_lines(out, c->examples, man_line);
    fputs(".fi\n", out);
}

static void man_command(FILE *out, const lam_command *c)
{
    fputs(".SS ", out);
    lam_help_synopsis(out, c);
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
        man_command(out, lam_commands[i]);
    fputs(".SH EXIT STATUS\n0 done; 1 the job failed; 2 wrong usage; 130 or 143 after SIGINT or "
          "SIGTERM.\n.SH ENVIRONMENT\n.TP\nNO_COLOR\nno colours on terminals\n"
          ".TP\nLAMEMO_MODELS\nthe folder in which models are found by name, instead of the one "
          "that comes with lamemo\n"
          ".TP\nOMP_WAIT_POLICY, GOMP_SPINCOUNT\nhow threads wait; chosen by command where neither "
          "is set\n"
          ".TP\nLAMEMO_ISA\nthe instruction set of the CPU to use (x86\\-64\\-v2, x86\\-64\\-v3, "
          "x86\\-64\\-v4) instead of the highest that the machine has; lamemo info prints it\n"
          ".TP\nLAMEMO_GRAPHS\n0: record no CUDA graphs\n"
          ".TP\nLAMEMO_PDL\n0: do not start kernels of decoding early on Hopper GPUs (programmatic "
          "dependent launch)\n"
          ".TP\nLAMEMO_PERSISTENT\n0: on GPUs, a kernel for each operation of a decoded token\n"
          ".SH SEE ALSO\n",
          out);
    const char *comma = "";
    for (int i = 0; lam_commands[i] != NULL; i++) {
        fprintf(out, "%s.BR lamemo\\-%s (1)", comma, lam_commands[i]->name);
        comma = ",\n";
    }
    fputc('\n', out);
}
