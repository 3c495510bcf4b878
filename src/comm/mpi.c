/* mpi.c -- messages by MPI, loaded at run time, each with a deadline.
 *
 * MPI's own waiting calls wait for ever: a rank that was stopped or killed would take all others with it.  So a message
 * is begun, and looked after until it is done, with pauses, since ranks may be more than cores.  Meanwhile three things
 * are watched: the clock, the processes of ranks on this host, and whether another rank calls the group broken.
 *
 * Once it is broken, whoever is still there says so to everybody and listens for a moment: those who do not answer are
 * the ones to blame, and the first one who does speaks for all. */
#include "comm/comm_int.h"
#include "comm/mpi_module.h"
#include "core/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TOGETHER = 64, /* messages that are under way at once */
    WORDS = 512,   /* bytes of the message that the group is broken */
    SPINS = 200    /* looks without a pause */
};

static const double SHORT = 2e-5, LONG = 5e-3; /* seconds of a pause */
static const double LOOK = 0.02;               /* seconds between two looks at the other ranks */
/* Seconds in which those that are left answer: mpirun ends them one second after it misses a rank, and a busy machine
 * takes its time where it misses none. */
static const double LISTEN = 0.6, LISTEN_LONG = 3.0;

static const lam_mpi_module *loaded; /* a process joins one group in its life */

/* ---- who is left ---- */

static void pause_for(long nanoseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
}

/* Has the process of a rank on this host ended? */
static int has_ended(const lam_comm *c, int r)
{
    return r != c->rank && c->peers[r].pid > 0 &&
           strcmp(c->peers[r].host, c->peers[c->rank].host) == 0 && kill(c->peers[r].pid, 0) != 0 &&
           errno == ESRCH;
}

/* Does rank r say so too?  If it knows more, it is for it to speak. */
static int answers(lam_comm *c, int r)
{
    static char words[WORDS];
    int there = 1, n = 0;
    while (loaded->probe(r, LAM_TAG_BROKEN, &there) == 0 && there) {
        lam_mpi_request request;
        int done = 0;
        if (loaded->receive(&request, words, WORDS, r, LAM_TAG_BROKEN) != 0)
            break;
        for (int i = 0; i < 100 && !done && loaded->test(&request, &done) == 0; i++)
            pause_for(1000000);
        if (done && *words)
            c->speaker = r;
        n++;
    }
    if (n > 0)
        c->peers[r].gone = 0;
    return n > 0;
}

/* Those who are blamed, should they wake up, hear that somebody else speaks. */
static void tell_blamed(const lam_comm *c)
{
    static const char words[WORDS] = "you are blamed";
    for (int r = 0; r < c->size && lam_comm_speaks(c); r++) {
        lam_mpi_request request;
        if (c->peers[r].gone && !has_ended(c, r))
            (void)loaded->send(&request, words, WORDS, r, LAM_TAG_BROKEN);
    }
}

/* Says that the group is broken, and notes who does not say so too. */
static void take_census(lam_comm *c)
{
    static char words[WORDS]; /* they are on their way for ever */
    const double began = lam_clock();
    double until = began + LISTEN_LONG;
    snprintf(words, sizeof words, "%s", c->last_words ? c->last_words : "");
    if (c->last_words)
        c->speaker = c->rank;
    int left = 0; /* those who may answer */
    for (int r = 0; r < c->size; r++) {
        lam_mpi_request request;
        c->peers[r].gone = r != c->rank;
        if (r == c->rank)
            continue;
        if (has_ended(c, r)) {
            until = began + LISTEN;
            continue;
        }
        left++;
        (void)loaded->send(&request, words, WORDS, r, LAM_TAG_BROKEN);
    }
    for (; left > 0 && lam_clock() < until; pause_for(1000000))
        for (int r = 0; r < c->size; r++)
            if (c->peers[r].gone && answers(c, r))
                left--;
}

/* The first rank that has to be blamed, and how many are. */
static int blamed(const lam_comm *c, int *n)
{
    int first = -1;
    *n = 0;
    for (int r = c->size - 1; r >= 0; r--)
        if (c->peers[r].gone) {
            first = r;
            ++*n;
        }
    return first;
}

static lam_status break_up(lam_comm *c, const char *why)
{
    int n;
    c->broken = 1;
    take_census(c);
    tell_blamed(c);
    const int first = blamed(c, &n);
    char more[64] = "";
    if (n > 1)
        snprintf(more, sizeof more, ", nor do %d others", n - 1);
    if (first < 0)
        return lam_fail(LAM_ERR_IO, "%s, though every rank answers", why);
    if (has_ended(c, first))
        return lam_fail(LAM_ERR_IO, "rank %d on %s has ended", first, c->peers[first].host);
    return lam_fail(LAM_ERR_IO, "rank %d on %s does not answer%s (%s)", first, c->peers[first].host,
                    more, why);
}

/* Anything that makes waiting useless?  NULL: no. */
static const char *trouble(const lam_comm *c, double since, char text[128])
{
    int there = 0;
    const double waited = lam_clock() - since;
    if (loaded->probe(-1, LAM_TAG_BROKEN, &there) == 0 && there)
        return "another rank called the group broken";
    for (int r = 0; r < c->size; r++)
        if (has_ended(c, r))
            return "its process is gone";
    if (c->timeout > 0.0 && waited > c->timeout) {
        snprintf(text, 128, "waited for %.3g s", waited);
        return text;
    }
    return NULL;
}

static lam_status fail_code(lam_comm *c, int code)
{
    char text[512];
    loaded->explain(code, text, sizeof text);
    return break_up(c, text);
}

/* Waits for all requests. */
static lam_status wait_for(lam_comm *c, lam_mpi_request *list, int n)
{
    const double since = lam_clock();
    double looked = since;
    char text[128];
    for (int i = 0, tries = 0; i < n;) {
        int done = 0;
        const int code = loaded->test(&list[i], &done);
        if (code != 0)
            return fail_code(c, code);
        if (done) {
            i++;
            continue;
        }
        if (++tries < SPINS) {
            sched_yield();
            continue;
        }
        /* The longer it takes, the longer the pauses: other threads may need the core.  But a large message may move only
         * while it is looked after, so each pause is followed by as many looks as the first one. */
        const double now = lam_clock(), pause = (now - since) / 16.0;
        pause_for((long)(1e9 * (pause < SHORT ? SHORT : pause > LONG ? LONG : pause)));
        tries = 0;
        if (now - looked < LOOK)
            continue;
        looked = now;
        const char *why = trouble(c, since, text);
        if (why)
            return break_up(c, why);
    }
    return LAM_OK;
}

/* ---- messages ---- */

static lam_status begin(lam_comm *c, int code)
{
    return code == 0 ? LAM_OK : fail_code(c, code);
}

static lam_status is_whole(const lam_comm *c)
{
    return c->broken ? lam_fail(LAM_ERR_IO, "the group of ranks is broken") : LAM_OK;
}

static lam_status exchange(lam_comm *c, const lam_message *list, int n)
{
    lam_mpi_request pending[TOGETHER];
    int waiting = 0;
    LAM_TRY(is_whole(c));
    for (int i = 0; i < n; i++) {
        const lam_message *m = &list[i];
        lam_mpi_request *const r = &pending[waiting++];
        LAM_TRY(begin(c, m->in ? loaded->receive(r, m->in, (int)m->bytes, m->peer, c->tag)
                               : loaded->send(r, m->out, (int)m->bytes, m->peer, c->tag)));
        if (waiting == TOGETHER || i + 1 == n) {
            LAM_TRY(wait_for(c, pending, waiting));
            waiting = 0;
        }
    }
    return LAM_OK;
}

static lam_status sum(lam_comm *c, void *x, size_t n, lam_dtype type)
{
    const size_t size = lam_dtype_size(type), piece = LAM_MESSAGE_MAX / size;
    LAM_TRY(is_whole(c));
    for (size_t at = 0; at < n; at += piece) {
        const int some = (int)(n - at < piece ? n - at : piece);
        lam_mpi_request request;
        LAM_TRY(begin(c, loaded->sum(&request, (char *)x + at * size, some, type == LAM_F64)));
        LAM_TRY(wait_for(c, &request, 1));
    }
    return LAM_OK;
}

static lam_status watch(lam_comm *c, double since)
{
    char text[128];
    LAM_TRY(is_whole(c));
    const char *why = trouble(c, since, text);
    return why ? break_up(c, why) : LAM_OK;
}

static void close_mpi(lam_comm *c)
{
    if (!c->broken)
        loaded->finish();
}

/* Who speaks ends the others; should the library hang there, the alarm ends us. */
static void abort_mpi(lam_comm *c, int code)
{
    signal(SIGALRM, SIG_DFL);
    alarm(5);
    if (lam_comm_speaks(c))
        loaded->abort(code);
    else
        for (int i = 0; i < 30; i++) /* to be ended */
            pause_for(100000000);
}

static const lam_comm_ops ops = {"mpi", exchange, sum, watch, close_mpi, abort_mpi};

/* ---- joining ---- */

static lam_status cannot_load(int expected, const char *why)
{
    return lam_fail(LAM_ERR_UNSUPPORTED,
                    "%d processes were started, but MPI cannot be loaded: %s; install it, name the "
                    "module with LAMEMO_MPI_MODULE, or start one process",
                    expected, why);
}

/* The module: what the user names, else beside the program, else where it is installed. */
static lam_status load(int expected)
{
    char self[PATH_MAX], path[PATH_MAX + 64], why[256] = "";
    const char *const named = getenv("LAMEMO_MPI_MODULE");
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *const slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    static const char *const places[] = {"%s/lamemo-mpi.so",
                                         "%s/../" LAM_MODULE_DIR "/lamemo-mpi.so"};
    void *file = NULL;
    for (int i = 0; !file && i < (named ? 1 : 2); i++) {
        if (named)
            snprintf(path, sizeof path, "%s", named);
        else
            snprintf(path, sizeof path, places[i], self);
        /* Global: the plug-ins of Open MPI look for its functions among everybody's. */
        file = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (!file && (named || access(path, F_OK) == 0 || !*why))
            snprintf(why, sizeof why, "%s", dlerror());
    }
    if (!file)
        return cannot_load(expected, why);
    void *const symbol = dlsym(file, LAM_MPI_MODULE_SYMBOL);
    lam_mpi_module_get *get;
    memcpy(&get, &symbol, sizeof get); /* C has no conversion from an object to a function */
    loaded = symbol ? get() : NULL;
    if (!loaded || loaded->version != LAM_MPI_MODULE_VERSION) {
        loaded = NULL;
        return cannot_load(expected, "the module is of another version");
    }
    return LAM_OK;
}

lam_status lam_comm_mpi(lam_comm *c, int expected)
{
    LAM_TRY(load(expected));
    if (loaded->start(&c->rank, &c->size, &c->any_thread) != 0)
        return lam_fail(LAM_ERR_IO, "MPI does not start");
    if (c->size != expected) { /* each for itself, in one folder: no */
        const int found = c->size;
        loaded->finish();
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "%d processes were started, but MPI finds %d: it is not the launcher's MPI "
                        "(with srun: --mpi=pmix or pmi2)",
                        expected, found);
    }
    c->ops = &ops;
    c->library = loaded->library();
    c->peers = calloc((size_t)c->size, sizeof *c->peers);
    if (!c->peers)
        return lam_fail(LAM_ERR_MEMORY, "ranks: no memory");
    lam_comm_peer me = {.pid = (int)getpid()};
    gethostname(me.host, LAM_HOST_MAX - 1);
    strcpy(c->peers[c->rank].host, me.host);
    return lam_comm_gather(c, c->peers, &me, sizeof me);
}
