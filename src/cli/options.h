/* options.h -- one table per command, from which parsing, --help and the documentation come.
 *
 * A command declares a plain struct and a table of lam_option entries that point into it.  The
 * defaults are text in the table and go through the same parser as the user's values, so what
 * --help shows is what the program does.  glibc's argp walks the command line; this file gives the
 * values their meaning.  Nothing here knows any command. */
#ifndef LAM_CLI_OPTIONS_H
#define LAM_CLI_OPTIONS_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What a value is, and the type of the field it is stored in. */
typedef enum lam_option_type {
    LAM_OPT_GROUP, /* not an option: `help` is the heading of what follows; with an `arg`, words separated by
                     * spaces, --help shows it only on request: --help=WORD */
    LAM_OPT_REST,   /* not an option: what follows is described elsewhere, help ends here */
    LAM_OPT_MORE,   /* not an option: rows that `more` knows stand here */
    LAM_OPT_FLAG,   /* bool; takes no argument */
    LAM_OPT_INT,    /* int */
    LAM_OPT_INT64,  /* int64_t */
    LAM_OPT_SEED,   /* int64_t, or the word random: a number that nobody has chosen */
    LAM_OPT_DOUBLE, /* double */
    LAM_OPT_SIZE,   /* int64_t: bytes, above 0; 500M is 500 million, 2GiB is 2 << 30 */
    LAM_OPT_STRING, /* const char *, borrowed from argv */
    LAM_OPT_PATH,   /* const char *; refuses "" */
    LAM_OPT_CHOICE, /* int: index into `choices` */
    LAM_OPT_INTS,   /* lam_int_list: 64,128,256 */
    LAM_OPT_RESET,  /* lam_reset of train/settings.h: 8, document, or document,8 */
    LAM_OPT_STRINGS /* lam_string_list: the option may be repeated */
} lam_option_type;

enum { LAM_LIST_MAX = 64, LAM_OPTIONS_MAX = 128 };

typedef struct lam_int_list {
    int n;
    int v[LAM_LIST_MAX];
} lam_int_list;

typedef struct lam_string_list {
    int n;
    const char *v[LAM_LIST_MAX];
} lam_string_list;

typedef struct lam_option lam_option;
struct lam_option {
    const char *name; /* long name, with dashes; underscores are accepted for them everywhere */
    char key;         /* short name or 0 */
    const char *arg;  /* "N", "DIR", ...; NULL for flags; "[=WORD]" may be left out */
    lam_option_type type;
    size_t offset;              /* offsetof() the field in the command's struct */
    const char *value;          /* default, parsed like the user's; NULL leaves the field zero */
    const char *help;           /* one sentence without the default */
    double min, max;            /* inclusive limits; both 0: those of the type */
    const char *const *choices; /* for LAM_OPT_CHOICE, and in help; ends with NULL */
    const char *aliases;        /* more long names, separated by spaces */
    const char *shown;          /* text for the default when `value` cannot say it */
    const char *fast; /* the default of the recipe fast, where `value` is only that of paper */
    unsigned traits;  /* lam_mem_trait of the memories it is of use with; 0: all */
    const char *only; /* the one memory it is of use with, or NULL */
    bool harmless;    /* where it is of no use, that is told, not refused */
    const char *with; /* "optim adam muon": an option and its values it is of use with */
    char former;      /* a letter that used to mean it, refused with the way out, or 0 */
    bool hidden;      /* parsed, but in no documentation */
    int (*more)(lam_option *rows, int room, size_t offset); /* LAM_OPT_MORE: returns how many */
};

/* A command's options as they are used: without rows of LAM_OPT_MORE, and a row of zeros at the end. */
typedef struct lam_option_table {
    lam_option rows[LAM_OPTIONS_MAX + 1];
} lam_option_table;

typedef struct lam_args lam_args;

typedef struct lam_command {
    const char *name;
    const char *summary;            /* one line for the list of commands */
    const char *operands;           /* "FILE..." in the usage line; NULL if it takes none */
    int operands_min, operands_max; /* max < 0: any number */
    const char *description;        /* a paragraph */
    const lam_option *options; /* ends with an entry of zeros; lam_option_table is what counts */
    size_t options_size;       /* sizeof the struct the table points into */
    const char *examples;      /* lines, each a command with an optional "# comment" line above */
    void (*complete)(lam_option *rows); /* adds to the rows what is known elsewhere, or NULL */
    const char *appendix_title; /* of a table that the help has besides its options, or NULL */
    void (*appendix)(FILE *out);
    lam_status (*run)(const lam_args *args);
    const char
        *source;   /* the file that the words come from, for messages; NULL: the command line */
    bool reads;    /* makes no files: some seconds after a signal it may be ended where it is */
    bool shared;   /* several processes may share it (ranks.h) */
    bool killable; /* makes no files and never asks about signals: they may end it at once */
} lam_command;

/* What a command gets.  Everything is borrowed from main(). */
struct lam_args {
    const lam_command *command;
    const void *options; /* the filled struct */
    int n_operands;
    char *const *operands;
    bool quiet, verbose;         /* every command has -q and -v */
    bool inner;                  /* another process of ours started it and has the last word */
    lam_option_table table;      /* the command's */
    int64_t max_memory;          /* and --max-memory; 0: not given */
    bool given[LAM_OPTIONS_MAX]; /* the user wrote table entry i */
    const char *text[LAM_OPTIONS_MAX]; /* as what; NULL for flags */
    char line[4096]; /* the whole command, as a shell would read it; cut if longer */
};

/* The options of a command. */
void lam_options_list(lam_option_table *out, const lam_command *command);

/* Parses argv (argv[0] is ignored) into *args and `options` (zeroed, options_size bytes).  argv is
 * reordered and kept.  Wrong usage prints one line and where to find help, and exits with 2;
 * --help prints and exits with 0. */
void lam_args_parse(lam_args *args, void *options, const lam_command *command, int argc,
                    char **argv);

/* The row of the option with this name, -1: there is none; and whether an option goes by a name, its own or an alias, in
 * which underscores are dashes. */
int lam_option_row(const lam_option *table, const char *name);
bool lam_option_called(const lam_option *option, const char *name);

/* Did the user write the option called `name`?  (Presets give way only to what was written.) */
bool lam_option_given(const lam_args *args, const char *name);

/* Is `word` one of `words`, which are separated by spaces? */
bool lam_word_listed(const char *words, const char *word);

/* Bytes of the field of an option that is one number, word or choice. */
size_t lam_option_size(const lam_option *option);

/* Copies the fields at [part, part + size) of the command's struct that count into `to`, a struct of that size: those
 * the user wrote, or also those with a default. */
typedef enum lam_which { LAM_WRITTEN, LAM_WRITTEN_OR_DEFAULT } lam_which;
void lam_options_copy(void *to, const lam_args *args, size_t part, size_t size, lam_which which);

/* Stores `text` as the value of `option` in `options`: whole string, in range, or LAM_ERR_ARG with
 * "--name: 'text' is not ...". */
lam_status lam_option_set(const lam_option *option, void *options, const char *text);

/* The options every command has, in the same form, for the documentation. */
extern const lam_option lam_common_options[];

/* "lamemo train: MESSAGE", where to find help, exit 2; of words from a file its name instead of the help, exit 1. */
_Noreturn void lam_usage_error(const lam_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
