/* serve_load.c -- how much a running `lamemo serve` writes for many streaming clients.
 *
 *     build/bench/serve_load [-p PORT] [-c CLIENTS] [-s SECONDS] [-w WARM-UP] [-n TOKENS] [-l PROMPT] [-r MS] [-P PID] [-q]
 *
 * Each client streams a completion of TOKENS tokens after a prompt of PROMPT to 2 PROMPT bytes, and then the next one.
 * Tokens are counted by the server (/metrics), for SECONDS, once every client has got text and WARM-UP seconds have passed.
 * By default no stream ends meanwhile, as none does in `lamemo bench generate`; with a small TOKENS the server also reads
 * prompts, which are counted apart.
 *
 * One thread, and a client that costs next to nothing, because client and server share the machine's cores here: it
 * throws away what it reads, but for the end of each piece.  With -r it reads only every MS milliseconds.  With -P it
 * says how much processor time the server used, thread by thread. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 64, PIECE = 1 << 16, TAIL = 40 };

typedef struct client {
    int fd;
    int begun;           /* text has come */
    char tail[TAIL + 1]; /* of what came last */
} client;

static struct {
    int port, clients, tokens, prompt, rest, pid;
    double seconds, warm;
} o = {8080, 64, 1 << 19, 1024, 0, 0, 20.0, 5.0};

static const char DRAWN[] = "\nlamemo_generated_tokens_total{";
static const char READ[] = "\nlamemo_prompt_tokens_total{";

static long long received, reads, requests;
static int silent; /* clients whose first text has not come */

static void die(const char *what)
{
    fprintf(stderr, "serve_load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int dial(void)
{
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)o.port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0), at_once = 1;
    if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof at) != 0)
        die("connect");
    /* A body must not wait for 40 ms until its headers are acknowledged. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    return fd;
}

static void send_all(int fd, const char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = send(fd, data + done, size - done, MSG_NOSIGNAL);
        if (n <= 0)
            die("send");
        done += (size_t)n;
    }
}

/* The next completion. */
static void ask(client *c)
{
    static const char letters[] = "etaoin shrdlu ";
    const int length = o.prompt + (o.prompt > 0 ? rand() % o.prompt : 0);
    char *body = malloc((size_t)length + 256), head[128];
    if (!body)
        die("ask");
    int size = sprintf(body, "{\"prompt\":\"");
    for (int i = 0; i < length; i++)
        body[size++] = letters[rand() % (int)(sizeof letters - 1)];
    size += sprintf(body + size, "\",\"max_tokens\":%d,\"stream\":true}", o.tokens);
    const int before = snprintf(head, sizeof head,
                                "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                                "Content-Length: %d\r\n\r\n",
                                size);
    send_all(c->fd, head, (size_t)before);
    send_all(c->fd, body, (size_t)size);
    memset(c->tail, 0, sizeof c->tail);
    free(body);
}

static void listen_to(client *c)
{
    static char piece[PIECE];
    const ssize_t n = recv(c->fd, piece, sizeof piece, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        errno = n == 0 ? ECONNRESET : errno;
        die("a stream ended early");
    }
    received += n;
    reads++;
    if (!c->begun && memmem(piece, (size_t)n, "\"text\":", 7)) {
        c->begun = 1;
        silent--;
    }
    const size_t kept = n < TAIL ? (size_t)n : TAIL;
    memmove(c->tail, c->tail + kept, TAIL - kept);
    memcpy(c->tail + TAIL - kept, piece + n - kept, kept);
    if (memcmp(c->tail + TAIL - 5, "0\r\n\r\n", 5) == 0) { /* of chunked encoding: the end */
        requests++;
        ask(c);
    }
}

/* Until all clients have begun, and then for so long. */
static void listen_for(client *clients, int poll, double seconds)
{
    double end = now() + seconds;
    struct epoll_event events[256];
    while (now() < end) {
        if (silent > 0)
            end = now() + seconds;
        const int n = epoll_wait(poll, events, 256, 100);
        for (int i = 0; i < n; i++)
            listen_to(&clients[events[i].data.u32]);
        if (o.rest > 0)
            nanosleep(&(struct timespec){.tv_nsec = o.rest * 1000000L}, NULL);
    }
}

/* A counter of the server, of all models. */
static double counter(const char *name)
{
    static const char ask_for[] =
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    static char text[PIECE];
    size_t size = 0;
    double sum = 0.0;
    const int fd = dial();
    send_all(fd, ask_for, sizeof ask_for - 1);
    for (ssize_t n;
         size < sizeof text - 1 && (n = recv(fd, text + size, sizeof text - 1 - size, 0)) > 0;)
        size += (size_t)n;
    text[size] = '\0';
    close(fd);
    for (const char *at = text; (at = strstr(at, name)) && (at = strstr(at, "} "));)
        sum += atof(at += 2);
    return sum;
}

/* ---- processor time ---- */

typedef struct usage {
    int n, id[THREADS];
    char name[THREADS][32];
    double seconds[THREADS], all;
} usage;

static void read_usage(usage *u)
{
    char path[300];
    *u = (usage){0};
    snprintf(path, sizeof path, "/proc/%d/task", o.pid);
    DIR *d = o.pid > 0 ? opendir(path) : NULL;
    for (struct dirent *e; d && (e = readdir(d)) && u->n < THREADS;) {
        unsigned long long ns = 0;
        snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", o.pid, e->d_name);
        FILE *f = e->d_name[0] != '.' ? fopen(path, "r") : NULL;
        const int known = f && fscanf(f, "%llu", &ns) == 1;
        if (f)
            fclose(f);
        if (!known)
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/comm", o.pid, e->d_name);
        f = fopen(path, "r");
        if (f && fscanf(f, "%31[^\n]", u->name[u->n]) != 1)
            u->name[u->n][0] = '\0';
        if (f)
            fclose(f);
        u->id[u->n] = atoi(e->d_name);
        u->all += u->seconds[u->n] = 1e-9 * (double)ns;
        u->n++;
    }
    if (d)
        closedir(d);
}

static void print_usage(const usage *before, const usage *after, double seconds, double tokens)
{
    printf("server: %.2f us of processor time a token (%.2f cores)\n",
           1e6 * (after->all - before->all) / tokens, (after->all - before->all) / seconds);
    for (int i = 0; i < after->n; i++) {
        double used = after->seconds[i];
        for (int k = 0; k < before->n; k++)
            used -= before->id[k] == after->id[i] ? before->seconds[k] : 0.0;
        if (used > 0.001 * seconds)
            printf("  %-16s %.2f us a token, %.1f %% of a core\n", after->name[i],
                   1e6 * used / tokens, 100.0 * used / seconds);
    }
}

static double own_time(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

/* ---- the whole ---- */

static void read_options(int argc, char **argv)
{
    for (int c; (c = getopt(argc, argv, "p:c:s:w:n:l:r:P:")) != -1;)
        switch (c) {
        case 'p':
            o.port = atoi(optarg);
            break;
        case 'c':
            o.clients = atoi(optarg);
            break;
        case 's':
            o.seconds = atof(optarg);
            break;
        case 'w':
            o.warm = atof(optarg);
            break;
        case 'n':
            o.tokens = atoi(optarg);
            break;
        case 'l':
            o.prompt = atoi(optarg);
            break;
        case 'r':
            o.rest = atoi(optarg);
            break;
        case 'P':
            o.pid = atoi(optarg);
            break;
        default:
            fprintf(stderr, "usage: see the first lines of bench/serve_load.c\n");
            exit(2);
        }
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    client *clients = calloc((size_t)o.clients, sizeof *clients);
    const int poll = epoll_create1(0);
    if (!clients || poll < 0)
        die("start");
    silent = o.clients;
    for (int i = 0; i < o.clients; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        clients[i].fd = dial();
        ask(&clients[i]);
        epoll_ctl(poll, EPOLL_CTL_ADD, clients[i].fd, &e);
    }
    listen_for(clients, poll, o.warm);
    usage before, after;
    read_usage(&before);
    const double begun = now(), own = own_time();
    const double first = counter(DRAWN), read_first = counter(READ);
    received = reads = requests = 0;
    listen_for(clients, poll, o.seconds);
    const double tokens = counter(DRAWN) - first, seconds = now() - begun;
    const double prompts = counter(READ) - read_first;
    read_usage(&after);
    printf("%.0f tokens/s; %.1f bytes a token, %.2f tokens a read; %lld requests ended, "
           "%.0f tokens/s of prompts\n",
           tokens / seconds, (double)received / tokens, tokens / (double)reads, requests,
           prompts / seconds);
    if (o.pid > 0)
        print_usage(&before, &after, seconds, tokens);
    printf("client: %.2f us of processor time a token\n", 1e6 * (own_time() - own) / tokens);
    return 0;
}
