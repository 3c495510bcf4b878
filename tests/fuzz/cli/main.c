/* main.c -- cli_fuzz: damages the files that commands of lamemo read, runs the commands, and keeps what goes wrong.
 *
 *     cli_fuzz [--seconds N] [--runs N] [--seed S] [--first I] [--keep FOLDER] SEEDS WORK [CLASS...]
 *
 * SEEDS/CLASS holds `in` (files), `commands` (one a line; each must succeed on the files as they are) and, where a
 * command writes to one of its inputs, `writes` (the paths it may change).  Each execution copies `in` to WORK,
 * damages one to three things in it, mostly mends the checksums, and runs one of the commands there, which may take
 * 400 MB (--max-memory).  Wrong is:
 * a sanitizer's report or any end but exit status 0, 1, 2; memory beyond the honest run's and 512 MB; ten seconds in
 * which nothing is written; no end two seconds after SIGTERM; status 0 with a number that is not finite; a failure
 * without a message, or that leaves part of a folder; a change to a file outside of what the command writes.
 *
 * --seconds and --runs are for each class.  Execution I of a class depends on the seed, the class and I alone:
 * --first I --runs 1 repeats it.  Exit status: 0 nothing found, 1 findings, 3 the fuzzer itself failed. */
#include "fuzz/cli/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum { COMMANDS = 16, WORDS = 48, WRITES = 4, KINDS = 512, KEPT_OF_A_KIND = 2 };
static const size_t MORE_MEMORY = (size_t)512 << 20, HONEST_MEMORY = (size_t)4 << 30;

static const char LIMIT[] =
    " --max-memory 400M"; /* what a long text may take; session.c has the same */

/* A sanitizer's settings belong to the program: allocations fail as they do without it. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:detect_leaks=0:exitcode=99:quarantine_size_mb=16:malloc_"
           "context_size=8";
}
__attribute__((visibility("default"))) const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
    return "print_stacktrace=1";
}

typedef struct command {
    char text[1024], split[1024];
    char *argv[WORDS + 1];
    size_t memory;
} command;

typedef struct class
{
    const char *name;
    char in[PATH_ROOM], write_text[512];
    char *writes[WRITES + 4], *kept[WRITES + 1]; /* from the case; from `in` */
    command commands[COMMANDS];
    int n_commands;
} class;

typedef struct fuzzer {
    const char *seeds, *keep;
    char folder[PATH_ROOM]; /* of one case: in, out, outside */
    unsigned long seed, first, runs;
    double seconds;
    int n_kinds, findings;
    struct {
        char key[640];
        int n;
    } kinds[KINDS];
} fuzzer;

typedef struct tally {
    unsigned long runs, good, refused, took_long, findings;
    double cpu;
} tally;

/* ---- a class ---- */

static int split(char *text, char **words, int most)
{
    int n = 0;
    char *save = NULL;
    for (char *p = strtok_r(text, " \n", &save); p && n < most; p = strtok_r(NULL, " \n", &save))
        words[n++] = p;
    words[n] = NULL;
    return n;
}

static void load_commands(class *c, const char *folder)
{
    char path[PATH_ROOM];
    path_in(path, folder, "commands");
    FILE *const f = fopen(path, "r");
    if (!f)
        die("cannot read", path);
    command *m = c->commands;
    while (c->n_commands < COMMANDS && fgets(m->text, sizeof m->text, f)) {
        m->text[strcspn(m->text, "\n")] = '\0';
        if (strncmp(m->text, "fault ", 6) != 0 && strncmp(m->text, "session ", 8) != 0)
            strncat(m->text, LIMIT, sizeof m->text - strlen(m->text) - 1);
        strcpy(m->split, m->text);
        if (split(m->split, m->argv, WORDS) > 0) {
            m++;
            c->n_commands++;
        }
    }
    fclose(f);
}

static void load_class(class *c, const char *seeds, const char *name)
{
    char folder[PATH_ROOM], path[PATH_ROOM];
    *c = (class){.name = name};
    path_in(folder, seeds, name);
    path_in(c->in, folder, "in");
    load_commands(c, folder);
    path_in(path, folder, "writes");
    FILE *const f = fopen(path, "r");
    int n = 0;
    if (f) {
        c->write_text[fread(c->write_text, 1, sizeof c->write_text - 1, f)] = '\0';
        fclose(f);
        n = split(c->write_text, c->writes, WRITES);
    }
    for (int i = 0; i < n; i++)
        c->kept[i] = c->writes[i] + strlen("in/");
    c->writes[n] = "out";
    c->writes[n + 1] = "stdout";
    c->writes[n + 2] = "stderr";
}

/* ---- one case ---- */

/* A file that never ends.  A node of our own: whoever may make one could also break /dev/zero. */
static void make_endless(const char *path)
{
    if (mknod(path, S_IFCHR | 0666, makedev(1, 5)) == 0) {
        const int fd = open(path, O_RDONLY);
        if (fd >= 0)
            close(fd);
        else
            remove(path);
    } else if (geteuid() != 0 && symlink("/dev/zero", path) != 0) {
        die("cannot link", path);
    }
}

static void fresh_case(const char *folder, const class *c)
{
    char path[PATH_ROOM];
    const blob nothing = {(unsigned char *)"not to be changed\n", 18};
    tree_remove(folder);
    if (mkdir(folder, 0755) != 0)
        die("cannot make", folder);
    path_in(path, folder, "in");
    tree_copy(c->in, path);
    static const char *const folders[] = {"out", "outside", "outside/folder"};
    for (int i = 0; i < 3; i++) {
        path_in(path, folder, folders[i]);
        if (mkdir(path, 0755) != 0)
            die("cannot make", path);
    }
    path_in(path, folder, "outside/file");
    blob_write(&nothing, path);
    path_in(path, folder, "outside/folder/file");
    blob_write(&nothing, path);
    path_in(path, folder, "outside/zero");
    make_endless(path);
}

/* Commands that make a folder make all of it or nothing. */
static int is_half_made(const command *m, const verdict *v, const tree *after)
{
    static const char *const makers[] = {"prepare", "import", "export"};
    for (int i = 0; i < 3 && v->code != 0; i++)
        for (int k = 0; strcmp(m->argv[0], makers[i]) == 0 && k < after->n; k++)
            if (strncmp(after->at[k].path, "out/", 4) == 0)
                return 1;
    return 0;
}

static void run_case(verdict *v, const char *folder, const class *c, command *m, size_t memory)
{
    static tree before, after;
    tree_list(&before, folder);
    watch(v, folder, m->argv, memory);
    tree_list(&after, folder);
    const char *const changed = tree_difference(&before, &after, c->writes);
    if (!v->fault[0] && changed)
        snprintf(v->fault, sizeof v->fault, "changes %s", changed);
    if (!v->fault[0] && is_half_made(m, v, &after))
        snprintf(v->fault, sizeof v->fault, "fails and leaves something in out");
}

static void run_honest(const fuzzer *z, class *c)
{
    for (int i = 0; i < c->n_commands; i++) {
        verdict v;
        fresh_case(z->folder, c);
        run_case(&v, z->folder, c, &c->commands[i], HONEST_MEMORY);
        if (v.fault[0] || v.code != 0) {
            fprintf(stderr, "cli_fuzz: %s: '%s' ends with %d on good files: %s (see %s)\n", c->name,
                    c->commands[i].text, v.code, v.fault, z->folder);
            exit(3);
        }
        c->commands[i].memory = v.peak + MORE_MEMORY;
    }
}

/* ---- findings ---- */

/* Findings are of one kind if they differ in numbers only. */
static int count_kind(fuzzer *z, const command *m, const verdict *v, const story *s)
{
    char key[640];
    size_t n = 0;
    snprintf(key, sizeof key, "%s|%s|%s|%.*s", m->argv[0], v->fault, v->where,
             (int)strcspn(s->text, ":"), s->text);
    for (const char *p = key; *p; p++) {
        const int digit =
            (*p >= '0' && *p <= '9') || (p > key && p[-1] == 'x' && strchr("abcdef", *p));
        if (!digit || v->where[0] == '\0' || p > strchr(strchr(key, '|') + 1, '|'))
            key[n++] = digit ? '#' : *p;
    }
    key[n] = '\0';
    int i = 0;
    while (i < z->n_kinds && strcmp(z->kinds[i].key, key) != 0)
        i++;
    if (i == KINDS)
        return KINDS;
    if (i == z->n_kinds)
        strcpy(z->kinds[z->n_kinds++].key, key);
    return z->kinds[i].n++;
}

static void keep(fuzzer *z, const class *c, const command *m, const verdict *v, const story *s,
                 unsigned long number)
{
    char path[PATH_ROOM], name[256];
    z->findings++;
    if (count_kind(z, m, v, s) >= KEPT_OF_A_KIND)
        return;
    printf("  %s %lu: %s %s\n    %s\n    %s\n", c->name, number, v->fault, v->where, m->text,
           s->text);
    fflush(stdout);
    snprintf(name, sizeof name, "cli-%s-%lu-%lu", c->name, z->seed, number);
    path_in(path, z->keep, name);
    tree_remove(path);
    tree_copy(z->folder, path);
    strcat(path, "/finding");
    FILE *const f = fopen(path, "w");
    if (!f)
        die("cannot write", path);
    fprintf(f,
            "lamemo %s\n%s %s\n%s\nexit status %d, %.2f s, %zu MB\n--seed %lu --first %lu --runs 1 "
            "... %s\n",
            m->text, v->fault, v->where, s->text, v->code, v->seconds, v->peak >> 20, z->seed,
            number, c->name);
    fclose(f);
}

/* ---- the loop ---- */

static void run_number(fuzzer *z, class *c, unsigned long number, tally *t)
{
    char in[PATH_ROOM];
    verdict v;
    story s = {0};
    rng r = rng_of(z->seed, c->name, number);
    command *const m = &c->commands[rng_below(&r, (size_t)c->n_commands)];
    fresh_case(z->folder, c);
    path_in(in, z->folder, "in");
    mutate_tree(&r, in, c->kept, m->text, &s);
    if (!rng_one_in(&r, 4)) {
        mend_tree(in);
        tell(&s, "; mended");
    }
    run_case(&v, z->folder, c, m, m->memory);
    t->runs++;
    t->cpu += v.seconds;
    t->good += v.code == 0;
    t->refused += v.code == 1 || v.code == 2;
    t->took_long += v.took_long != 0;
    t->findings += v.fault[0] != '\0';
    if (v.fault[0])
        keep(z, c, m, &v, &s, number);
}

static void run_class(fuzzer *z, const char *name, tally *sum)
{
    static class c;
    struct timespec start, t;
    tally n = {0};
    load_class(&c, z->seeds, name);
    run_honest(z, &c);
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (unsigned long i = 0; z->runs == 0 || i < z->runs; i++) {
        clock_gettime(CLOCK_MONOTONIC, &t);
        if (z->seconds > 0 && (double)(t.tv_sec - start.tv_sec) >= z->seconds)
            break;
        run_number(z, &c, z->first + i, &n);
    }
    printf("%-12s %8lu executions, %lu done, %lu refused, %lu stopped, %.1f ms CPU each, %lu "
           "findings\n",
           name, n.runs, n.good, n.refused, n.took_long,
           n.runs > 0 ? 1e3 * n.cpu / (double)n.runs : 0.0, n.findings);
    fflush(stdout);
    sum->runs += n.runs;
    sum->findings += n.findings;
}

static int visible(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

static void run_all(fuzzer *z, tally *sum)
{
    struct dirent **names = NULL;
    const int n = scandir(z->seeds, &names, visible, alphasort);
    if (n < 0)
        die("cannot read", z->seeds);
    for (int i = 0; i < n; i++) {
        run_class(z, names[i]->d_name, sum);
        free(names[i]);
    }
    free(names);
}

static int parse(fuzzer *z, int argc, char **argv)
{
    int i = 1;
    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        const char *const name = argv[i] + 2, *const value = argv[i + 1];
        if (strcmp(name, "seconds") == 0)
            z->seconds = strtod(value, NULL);
        else if (strcmp(name, "runs") == 0)
            z->runs = strtoul(value, NULL, 10);
        else if (strcmp(name, "seed") == 0)
            z->seed = strtoul(value, NULL, 10);
        else if (strcmp(name, "first") == 0)
            z->first = strtoul(value, NULL, 10);
        else if (strcmp(name, "keep") == 0)
            z->keep = value;
        else
            return argc;
    }
    return i;
}

/* libgomp and the program read these when they start. */
static void resolve(char **argv)
{
    const char *const threads = getenv("OMP_NUM_THREADS");
    if (threads && strcmp(threads, "1") == 0 && getenv("OMP_WAIT_POLICY"))
        return;
    setenv("OMP_NUM_THREADS", "1", 1);
    setenv("OMP_WAIT_POLICY", "passive", 1);
    execv("/proc/self/exe", argv);
    die("cannot start", argv[0]);
}

int main(int argc, char **argv)
{
    static fuzzer z = {.seed = 1, .keep = "."};
    tally sum = {0};
    sigset_t child;
    if (getenv("LAMEMO_FUZZ_CHILD"))
        return command_main(argc - 1, argv + 1);
    resolve(argv);
    int i = parse(&z, argc, argv);
    if (argc - i < 2 || (z.seconds <= 0 && z.runs == 0)) {
        fputs("cli_fuzz [--seconds N] [--runs N] [--seed S] [--first I] [--keep FOLDER] SEEDS WORK "
              "[CLASS...]\n",
              stderr);
        return 3;
    }
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    z.seeds = argv[i];
    path_in(z.folder, argv[i + 1], "case");
    if (argc - i == 2)
        run_all(&z, &sum);
    for (i += 2; i < argc; i++)
        run_class(&z, argv[i], &sum);
    tree_remove(z.folder);
    printf("%lu executions, %lu findings of %d kinds\n", sum.runs, sum.findings, z.n_kinds);
    return sum.findings > 0;
}
