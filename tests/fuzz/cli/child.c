/* child.c -- runs one command in a child and watches it: time, memory, answer to SIGTERM, what a sanitizer says.
 *
 * The child is a fork of this process, which holds the whole program: starting lamemo anew would take ten times as
 * long as most commands.  A command is stuck if it has written nothing, anywhere, for ten seconds and worked for five
 * of them, or if it only waited, for five; on a busy machine a clock alone tells nothing. */
#include "fuzz/cli/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { QUIET = 10, WORK = 5, WAIT = 5, LEAVE = 2, BUSY = 60 }; /* seconds */
enum { FILE_MAX = 1 << 30 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void redirect(const char *path, int fd)
{
    const int file = open(path, fd == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || dup2(file, fd) < 0)
        _exit(3);
    close(file);
}

static _Noreturn void be_child(const char *folder, char **argv)
{
    int argc = 0;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    if (chdir(folder) != 0)
        _exit(3);
    redirect("/dev/null", 0);
    redirect("stdout", 1);
    redirect("stderr", 2);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){FILE_MAX, FILE_MAX});
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    setenv("LAMEMO_FUZZ_CHILD", "1", 1); /* compare starts this program again */
    while (argv[argc])
        argc++;
    exit(command_main(argc, argv));
}

typedef struct usage {
    double cpu;            /* seconds */
    size_t resident;       /* bytes */
    unsigned long written; /* bytes, of all files and streams */
} usage;

static usage usage_of(pid_t pid)
{
    usage u = {0};
    char path[64];
    unsigned long user = 0, kernel = 0, pages = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f) {
        if (fscanf(f, "%*d %*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                   &kernel) == 2)
            u.cpu = (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
        fclose(f);
    }
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    if ((f = fopen(path, "r"))) {
        if (fscanf(f, "%*u %lu", &pages) == 1)
            u.resident = (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
        fclose(f);
    }
    snprintf(path, sizeof path, "/proc/%d/io", (int)pid);
    if ((f = fopen(path, "r"))) {
        if (fscanf(f, "rchar: %*u wchar: %lu", &u.written) != 1)
            u.written = 0;
        fclose(f);
    }
    return u;
}

/* Waits a moment for the child's end. */
static int ended(pid_t pid, int *status, struct rusage *used, long nanoseconds)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    if (wait4(pid, status, WNOHANG, used) == pid)
        return 1;
    sigtimedwait(&child, NULL, &(struct timespec){.tv_nsec = nanoseconds});
    return wait4(pid, status, WNOHANG, used) == pid;
}

typedef struct watcher {
    double start, quiet_since, cpu_then; /* when it wrote last, and its CPU time then */
    double idle_since, cpu_idle;         /* since when its CPU time has been this */
    double told_at, told_cpu;            /* SIGTERM */
    unsigned long written;
} watcher;

/* Is it stuck?  Says why. */
static const char *stuck(watcher *w, const usage *u, double t)
{
    if (u->written != w->written) {
        w->written = u->written;
        w->quiet_since = t;
        w->cpu_then = u->cpu;
    }
    if (u->cpu > w->cpu_idle) {
        w->cpu_idle = u->cpu;
        w->idle_since = t;
    }
    if (t - w->quiet_since > QUIET && u->cpu - w->cpu_then > WORK)
        return "works and writes nothing for 10 s";
    if (t - w->quiet_since > WAIT && t - w->idle_since > WAIT)
        return "waits for nothing";
    return NULL;
}

/* Two seconds of its own, whoever else uses the machine. */
static int is_deaf(const watcher *w, const usage *u, double t)
{
    const double since = t - w->told_at, worked = u->cpu - w->told_cpu;
    return worked > LEAVE || since > BUSY || (since > 2 * LEAVE && t - w->idle_since > 2 * LEAVE);
}

static void blame(verdict *v, const char *why)
{
    const size_t n = strlen(v->fault);
    snprintf(v->fault + n, sizeof v->fault - n, "%s%s", n > 0 ? "; " : "", why);
}

/* Watches until the child ends, asks it to leave when it is stuck or has written for long, or kills it for what it
 * does. */
static void wait_for(verdict *v, pid_t pid, size_t memory, int *status, struct rusage *used)
{
    const double start = now();
    watcher w = {.start = start, .quiet_since = start, .idle_since = start};
    while (!ended(pid, status, used, 20 * 1000 * 1000)) {
        const double t = now();
        const usage u = usage_of(pid);
        const char *const why = stuck(&w, &u, t);
        const int greedy = u.resident > memory, deaf = v->took_long && is_deaf(&w, &u, t);
        if (greedy)
            blame(v, "takes too much memory");
        if (deaf)
            blame(v, "does not leave on SIGTERM");
        if (greedy || deaf) {
            kill(-pid, SIGKILL);
            while (wait4(pid, status, 0, used) < 0 && errno == EINTR)
                ;
            return;
        }
        if (!v->took_long && (why || (t - start > QUIET && t - w.quiet_since < QUIET))) {
            if (why)
                blame(v, why);
            v->took_long = 1;
            w.told_at = t;
            w.told_cpu = u.cpu;
            kill(pid, SIGTERM);
        }
    }
}

/* The first line of a sanitizer's report, and the first place of ours in its stack. */
static void read_report(verdict *v, const char *folder)
{
    char path[PATH_ROOM], line[1024];
    path_in(path, folder, "stderr");
    FILE *const f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (!v->fault[0] && (strstr(line, "Sanitizer") || strstr(line, "runtime error:") ||
                             strstr(line, "Assertion") || strstr(line, "*** ")))
            snprintf(v->fault, sizeof v->fault, "%.200s", line);
        char *const place = strstr(line, "/src/");
        if (v->fault[0] && !v->where[0] && place)
            snprintf(v->where, sizeof v->where, "%.200s", place + 1);
    }
    if (f)
        fclose(f);
}

/* A number that is not finite, as a word of its own, in what was printed. */
static int is_not_finite(const char *folder)
{
    static const char *const words[] = {
        "nan", "NaN", "inf", "Infinity", "\"logprob\":null", "\"nats\":null", "\"value\":null"};
    char path[PATH_ROOM];
    int found = 0;
    path_in(path, folder, "stdout");
    blob b = blob_read(path);
    blob_replace(&b, b.n, 0, "", 1);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (const char *p = (const char *)b.p; (p = strstr(p, words[i])); p++) {
            const char before = p > (const char *)b.p ? p[-1] : ' ', after = p[strlen(words[i])];
            found |=
                strchr(" :-=([,\n\t", before) && (strchr(" ,)]}%\n\t", after) || after == '\0');
        }
    blob_free(&b);
    return found;
}

static int is_empty(const char *folder, const char *name)
{
    char path[PATH_ROOM];
    path_in(path, folder, name);
    blob b = blob_read(path);
    const int empty = b.n == 0;
    blob_free(&b);
    return empty;
}

static void judge(verdict *v, const char *folder, int status)
{
    v->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (v->fault[0])
        return;
    read_report(v, folder);
    if (v->fault[0])
        return;
    const int stopped = v->took_long && (v->code == 128 + SIGTERM ||
                                         (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM));
    if (WIFSIGNALED(status) && !stopped)
        snprintf(v->fault, sizeof v->fault, "killed by signal %d", WTERMSIG(status));
    else if (v->code > 2 && !stopped)
        snprintf(v->fault, sizeof v->fault, "exit status %d", v->code);
    else if (v->code == 0 && is_not_finite(folder))
        snprintf(v->fault, sizeof v->fault, "prints a number that is not finite, and exits with 0");
    else if ((v->code == 1 || v->code == 2) && is_empty(folder, "stderr"))
        snprintf(v->fault, sizeof v->fault, "fails without a message");
}

void watch(verdict *v, const char *folder, char **argv, size_t memory)
{
    int status = 0;
    struct rusage used;
    *v = (verdict){0};
    fflush(NULL);
    const pid_t pid = fork();
    if (pid < 0)
        die("cannot start", argv[0]);
    if (pid == 0)
        be_child(folder, argv);
    wait_for(v, pid, memory, &status, &used);
    kill(-pid, SIGKILL); /* whom it may have started */
    v->seconds = (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
                 1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    v->peak = (size_t)used.ru_maxrss << 10;
    if (!v->fault[0] && v->peak > memory)
        blame(v, "takes too much memory");
    judge(v, folder, status);
}
