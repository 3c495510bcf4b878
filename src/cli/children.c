/* children.c -- see children.h. */
#include "cli/children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- our own command line ---- */

enum { TEXT = 1 << 15 }; /* more than a loader's options take */

/* The words this process was started with, each with a NUL behind it, as far as they fit; returns how many
 * bytes, 0 where the system does not tell. */
static size_t started_with(char text[TEXT])
{
    const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t more = 1;
    while (file >= 0 && n < TEXT && more > 0) {
        more = read(file, text + n, TEXT - n);
        n += more > 0 ? (size_t)more : 0;
    }
    if (file >= 0)
        close(file);
    while (n > 0 && text[n - 1] != '\0') /* a word that was cut */
        n--;
    return n;
}

/* How many of them stand in front of our arguments, our name included; 0 without a loader.  What main() got
 * as argv[0] is the file a loader was told to run, or what follows its option --argv0. */
static size_t count_loader_words(const char *text, size_t size)
{
    size_t words = 0;
    const char *last = "";
    for (const char *at = text; at < text + size; at += strlen(at) + 1) {
        words++;
        if (strcmp(at, program_invocation_name) == 0)
            return words == 1 ? 0 : words + (strcmp(last, "--argv0") == 0);
        last = at;
    }
    return 0;
}

char **lam_self_words(char *const argv[])
{
    char text[TEXT];
    const size_t size = started_with(text), before = count_loader_words(text, size);
    size_t n = 0;
    while (argv[n])
        n++;
    char **const words = malloc((before + n + 1) * sizeof *words + size);
    if (!words)
        return NULL;
    char *at = memcpy(words + before + n + 1, text, size);
    for (size_t i = 0; i < before; i++, at += strlen(at) + 1)
        words[i] = at;
    const size_t skip = before > 0; /* the loader's words name us */
    memcpy(words + before, argv + skip, (n - skip + 1) * sizeof *words);
    return words;
}

/* ---- processes ---- */

static sigset_t child_ended(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    return set;
}

/* In the child: only calls that are safe between fork and exec. */
static _Noreturn void become(char *const argv[], char *const environment[], pid_t parent)
{
    const sigset_t ended = child_ended();
    sigprocmask(SIG_UNBLOCK, &ended, NULL);
    setpgid(0, 0);
    signal(SIGTTOU, SIG_IGN); /* it may write to our terminal from the background */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* it ended before the line above */
        _exit(128 + SIGTERM);
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0)
        dup2(nowhere, STDOUT_FILENO); /* standard output is for our result */
    execve("/proc/self/exe", argv, environment);
    _exit(127);
}

/* The environment, and that the child is one process alone, whoever started us: to be freed; NULL: no memory. */
static char **alone(void)
{
    static char solo[] = "LAMEMO_COMM=solo";
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    char **const list = calloc(n + 2, sizeof *list);
    for (size_t i = 0; list && i < n; i++)
        if (strncmp(environ[i], solo, strcspn(solo, "=") + 1) != 0)
            list[kept++] = environ[i];
    if (list)
        list[kept] = solo;
    return list;
}

lam_status lam_child_start(pid_t *out, char *const argv[])
{
    const sigset_t ended = child_ended();
    char **const words = lam_self_words(argv), **const variables = alone();
    *out = 0;
    if (!words || !variables) {
        free(words);
        free(variables);
        return lam_fail(LAM_ERR_MEMORY, "no memory for a command line");
    }
    sigprocmask(SIG_BLOCK, &ended, NULL); /* it waits for lam_child_wait */
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become(words, variables, parent);
    free(words);
    free(variables);
    if (pid < 0)
        return lam_fail(LAM_ERR_IO, "cannot start a process: %s", strerror(errno));
    setpgid(pid, pid); /* here too: whoever comes first, a signal finds the group */
    *out = pid;
    return LAM_OK;
}

lam_status lam_child_wait(pid_t *pid, int *code)
{
    const sigset_t ended = child_ended();
    int status = 0;
    *code = 0;
    *pid = waitpid(-1, &status, WNOHANG);
    if (*pid == 0) { /* any other signal cuts this short */
        sigtimedwait(&ended, NULL, &(struct timespec){.tv_nsec = 100 * 1000 * 1000});
        *pid = waitpid(-1, &status, WNOHANG);
    }
    if (*pid < 0) {
        *pid = 0;
        return lam_fail(LAM_ERR_IO, "cannot wait for a process: %s", strerror(errno));
    }
    if (*pid > 0)
        *code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return LAM_OK;
}
