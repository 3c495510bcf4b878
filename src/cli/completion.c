/* completion.c -- see completion.h.  bash, zsh and fish; each as its own documentation says. */
#include "cli/completion.h"

#include "cli/commands.h"
#include "model/boxed.h"

#include <string.h>

const char *const lam_completion_shells[] = {"bash", "zsh", "fish", NULL};

/* ---- what all of them ask ---- */

typedef void visit(FILE *out, const lam_command *command, const lam_option *option);

/* Every documented option of a command, the common ones included. */
static void each_option(FILE *out, const lam_command *command, visit *tell)
{
    lam_option_table table;
    lam_options_list(&table, command);
    const lam_option *const lists[] = {table.rows, lam_common_options};
    for (int i = 0; i < 2; i++)
        for (const lam_option *o = lists[i]; o->help && o->type != LAM_OPT_REST; o++)
            if (o->type != LAM_OPT_GROUP && !o->hidden)
                tell(out, command, o);
}

static bool takes_value(const lam_option *o)
{
    return o->arg && o->arg[0] != '[';
}

/* Models are found by name, too. */
static bool is_model(const lam_option *o)
{
    return strcmp(o->name, "model") == 0 || strcmp(o->name, "init-from") == 0 ||
           strcmp(o->name, "vocab-from") == 0;
}

static bool is_file(const lam_option *o)
{
    return o->type == LAM_OPT_PATH || is_model(o);
}

/* The words it may be, separated by blanks. */
static void words(FILE *out, const lam_option *o)
{
    for (int i = 0; o->choices && o->choices[i]; i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", o->choices[i]);
    if (is_model(o))
        fputs(LAM_BOXED, out);
}

/* The first sentence, for a string between single quotes; `special` are characters that need a backslash. */
static void sentence(FILE *out, const char *text, const char *special)
{
    for (const char *at = text; *at && !(*at == '.' && (at[1] == ' ' || at[1] == '\0')); at++)
        if (*at == '\'')
            fputs("'\\''", out);
        else
            fprintf(out, strchr(special, *at) ? "\\%c" : "%c", *at);
}

/* ---- bash ---- */

static void bash_value(FILE *out, const lam_command *command, const lam_option *o)
{
    (void)command;
    if (!takes_value(o))
        return;
    fprintf(out, "        --%s", o->name);
    if (o->key)
        fprintf(out, " | -%c", o->key);
    fputs(") ", out);
    if (o->choices || is_model(o)) {
        fputs("_lamemo_words \"", out);
        words(out, o);
        fputs("\"; ", out);
    }
    fprintf(out, "%sreturn ;;\n", is_file(o) ? "_lamemo_files; " : "");
}

static void bash_name(FILE *out, const lam_command *command, const lam_option *o)
{
    (void)command;
    fprintf(out, " --%s", o->name);
}

static void bash(FILE *out)
{
    fputs(
        "# bash completion of lamemo\n"
        "_lamemo_words() { COMPREPLY+=($(compgen -W \"$1\" -- \"$current\")); }\n"
        "_lamemo_files() {\n"
        "    local file\n"
        "    compopt -o filenames 2> /dev/null\n"
        "    while IFS= read -r file; do COMPREPLY+=(\"$file\"); done < <(compgen -f -- "
        "\"$current\")\n"
        "}\n"
        "_lamemo() {\n"
        "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
        "    COMPREPLY=()\n"
        "    if [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi # --name=value\n"
        "    if [ \"$current\" = = ]; then current=; fi\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "        _lamemo_words \"",
        out);
    for (int i = 0; lam_commands[i]; i++)
        fprintf(out, "%s ", lam_commands[i]->name);
    fputs("--help --version\"\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n", out);
    for (int i = 0; lam_commands[i]; i++) {
        fprintf(out, "    %s)\n        case $before in\n", lam_commands[i]->name);
        each_option(out, lam_commands[i], bash_value);
        fputs("        esac\n        case $current in -*) _lamemo_words \"", out);
        each_option(out, lam_commands[i], bash_name);
        fputs("\"; return ;; esac ;;\n", out);
    }
    fputs("    esac\n    _lamemo_files\n}\ncomplete -F _lamemo lamemo\n", out);
}

/* ---- zsh ---- */

static void zsh_option(FILE *out, const lam_command *command, const lam_option *o)
{
    static const char special[] = "[]:\\";
    (void)command;
    for (int both = o->key != 0; both >= 0; both--) { /* the letter, then the name */
        if (both)
            fprintf(out, " \\\n            '-%c%s[", o->key, takes_value(o) ? "+" : "");
        else
            fprintf(out, " \\\n            '--%s%s[", o->name, takes_value(o) ? "=" : "");
        sentence(out, o->help, special);
        fputc(']', out);
        if (takes_value(o)) {
            fputc(':', out);
            sentence(out, o->arg, special);
            fputc(':', out);
            if (o->choices) {
                fputc('(', out);
                words(out, o);
                fputc(')', out);
            } else if (is_file(o)) {
                fputs("_files", out);
            }
        }
        fputc('\'', out);
    }
}

static void zsh(FILE *out)
{
    fputs("#compdef lamemo\n_lamemo() {\n    local curcontext=$curcontext state line\n"
          "    _arguments -C '1: :->command' '*:: :->argument'\n    case $state in\n    command)\n"
          "        local -a commands=(",
          out);
    for (int i = 0; lam_commands[i]; i++) {
        fprintf(out, "\n            '%s:", lam_commands[i]->name);
        sentence(out, lam_commands[i]->summary, ":\\");
        fputc('\'', out);
    }
    fputs(")\n        _describe command commands ;;\n    argument)\n        case $words[1] in\n",
          out);
    for (int i = 0; lam_commands[i]; i++) {
        fprintf(out, "        %s) _arguments -s", lam_commands[i]->name);
        each_option(out, lam_commands[i], zsh_option);
        fputs(" \\\n            '*:file:_files' ;;\n", out);
    }
    fputs("        esac ;;\n    esac\n}\n_lamemo \"$@\"\n", out);
}

/* ---- fish ---- */

static void fish_option(FILE *out, const lam_command *command, const lam_option *o)
{
    fprintf(out, "complete -c lamemo -n '__fish_seen_subcommand_from %s' -l %s", command->name,
            o->name);
    if (o->key)
        fprintf(out, " -s %c", o->key);
    if (takes_value(o))
        fputs(is_file(o) ? " -r -F" : " -x", out);
    if (o->choices || is_model(o)) {
        fputs(" -a '", out);
        words(out, o);
        fputc('\'', out);
    }
    fputs(" -d '", out);
    sentence(out, o->help, "\\");
    fputs("'\n", out);
}

static void fish(FILE *out)
{
    fputs("# fish completion of lamemo\n", out);
    for (int i = 0; lam_commands[i]; i++) {
        fprintf(out, "complete -c lamemo -n __fish_use_subcommand -f -a %s -d '",
                lam_commands[i]->name);
        sentence(out, lam_commands[i]->summary, "\\");
        fputs("'\n", out);
    }
    for (int i = 0; lam_commands[i]; i++)
        each_option(out, lam_commands[i], fish_option);
}

void lam_completion_print(FILE *out, int shell)
{
    static void (*const print[])(FILE *) = {bash, zsh, fish};
    print[shell](out);
}
