/* main.c -- finds the command, runs it, turns its status into an exit code.
 *
 * 0 done; 1 the job failed; 2 wrong usage; 128 + n after signal n. */
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/ranks.h"
#include "cli/children.h"
#include "cli/spelling.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "core/budget.h"
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Output that could not be written (a full disk, a closed pipe) is a failed job. */
static lam_status flush_output(void)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return lam_fail(LAM_ERR_IO, "standard output: %s", strerror(errno));
    return LAM_OK;
}

static int exit_code(const lam_args *args, lam_status status)
{
    const lam_command *command = args->command;
    const lam_option *table = args->table.rows;
    char text[1024]; /* as long as a message can be */
    if (status == LAM_OK)
        return 0;
    if (lam_ranks_mute(command))
        return 0;
    if (lam_stop_signal() == SIGPIPE)
        return 128 + SIGPIPE; /* as if it had killed us, and nobody would read why */
    if (status == LAM_ERR_INTERRUPTED && lam_stop_signal() != 0) {
        if (!args->inner)
            fprintf(stderr, "lamemo %s: stopped\n", command->name);
        return 128 + lam_stop_signal();
    }
    if (status == LAM_ERR_ARG)
        lam_usage_error(command, "%s", lam_spell_options(text, sizeof text, lam_error(), table));
    fprintf(stderr, "lamemo %s: %s\n", command->name,
            status == LAM_ERR_MEMORY ? lam_spell_options(text, sizeof text, lam_error(), table)
                                     : lam_error());
    return 1;
}

static int run_command(const lam_command *command, int argc, char **argv)
{
    lam_args args;
    void *options = calloc(1, command->options_size + 1);
    if (options == NULL) {
        fputs("lamemo: no memory\n", stderr);
        return 1;
    }
    lam_args_parse(&args, options, command, argc, argv);
    if (args.quiet || args.verbose)
        lam_log_set_level(args.quiet ? LAM_LOG_WARN : LAM_LOG_DEBUG);
    lam_budget_set((size_t)args.max_memory);
    if (!command->killable)
        lam_stop_install();
    if (command->reads)
        lam_stop_within(LAM_STOP_PATIENCE);
    lam_status status = command->run(&args);
    if (status == LAM_OK)
        status = flush_output();
    const int code = exit_code(&args, status);
    free(options);
    return code;
}

/* How long threads spin before they sleep: turns of libgomp, a thousand of which take 20 us.  Where tokens are computed one by
 * one, threads meet every 50 us.  In training most waits are for a thread that is nearly done.  NULL: another command. */
static const char *spin_count(char **argv)
{
    const char *command = argv[1] ? argv[1] : "", *what = command[0] && argv[2] ? argv[2] : "";
    if (strcmp(command, "serve") == 0)
        return "5000"; /* some 100 us: between two steps one thread draws the tokens of all texts */
    if (strcmp(command, "generate") == 0 || strcmp(command, "decompress") == 0 ||
        (strcmp(command, "bench") == 0 && strcmp(what, "generate") == 0))
        return "1000";
    return strcmp(command, "train") == 0 || strcmp(command, "bench") == 0 ? "300" : NULL;
}

/* Threads that wait by spinning make a busy machine crawl (a training step took 4 to 16 times as long
 * beside other work); going to sleep and waking up takes as long as a small product.  So they sleep at
 * once, or after a few us: docs/SPEED.md has what that gains and costs.  libgomp reads its settings before main(), so we start
 * once more, unless the user has chosen. */
static void wait_asleep(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") != NULL || getenv("GOMP_SPINCOUNT") != NULL)
        return;
    const char *count = spin_count(argv);
    const int set =
        count ? setenv("GOMP_SPINCOUNT", count, 1) : setenv("OMP_WAIT_POLICY", "passive", 1);
    char **const words = set == 0 ? lam_self_words(argv) : NULL;
    if (words)
        execv("/proc/self/exe", words); /* if this fails, go on spinning */
    free(words);
}

/* A standard stream that is closed must not become the next file we open: messages would go into it.
 * Opened for the other direction, its use fails, as it would have. */
static void occupy_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) /* fd is then the lowest number that is free */
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    occupy_standard_streams();
    wait_asleep(argv);
    lam_term_log();
    if (argc < 2) {
        lam_help_overview(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        puts("lamemo " LAM_VERSION);
        return lam_help_end();
    }
    const bool help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
    const lam_command *command;
    if (lam_command_find(&command, help ? "help" : argv[1]) != LAM_OK) {
        fprintf(stderr, "lamemo: %s\nTry 'lamemo --help'.\n", lam_error());
        return 2;
    }
    return run_command(command, argc - 1, argv + 1);
}
