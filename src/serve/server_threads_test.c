/* server_threads_test.c -- a server asked by many threads at once, some of which leave in the middle.
 *
 * Built with the preset tsan this is the proof that HTTP, compute, clerk and watchdog threads share nothing unguarded
 * (docs/testing.md).  What the responses say is the matter of tests/serve. */
#include "serve/server.h"

#include "support/suite.h"
#include "support/toy_folder.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 6, ROUNDS = 4 };

static lam_status open_device(lam_dev **out, void *user)
{
    const lam_ops *ops;
    (void)user;
    LAM_TRY(lam_ops_find(&ops, "cpu"));
    return ops->open(out, &(lam_dev_options){.threads = 1});
}

static lam_server *start(const char *state)
{
    static lam_serve_model model = {.name = "toy"};
    lam_server *s;
    int ready = 0;
    model.folder = test_temp_path("model");
    must(toy_folder_save(model.folder, "lamemo", 2));
    must(lam_server_start(
        &s, &(lam_serve_options){.models = &model,
                                 .n_models = 1,
                                 .open_device = open_device,
                                 .scheduler = {.lanes = 3, .queue = 64, .prefixes = 1 << 16},
                                 .address = "127.0.0.1",
                                 .state = state,
                                 .connections = 64,
                                 .sessions = 64,
                                 .session_bytes = 1 << 26,
                                 .header_seconds = 10,
                                 .body_seconds = 10}));
    while (!ready)
        must(lam_server_wait(s, 1.0, &ready));
    return s;
}

static int connect_to(int port)
{
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0 ? fd : -1;
}

/* Sends a request; returns the status, and the beginning of what comes in `back`.  `most` bytes are read: a stream
 * is left then. */
static int ask(int port, const char *method, const char *path, const char *body, char *back,
               size_t room, size_t most)
{
    char request[2048];
    const int fd = connect_to(port);
    size_t size = 0, all = 0;
    if (fd < 0)
        return -1;
    const int n = snprintf(request, sizeof request,
                           "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                           "Content-Length: %zu\r\n\r\n%s",
                           method, path, strlen(body), body);
    if (write(fd, request, (size_t)n) != n) {
        close(fd);
        return -1;
    }
    while (all < most) {
        char data[1024];
        const ssize_t got = read(fd, data, sizeof data);
        if (got <= 0)
            break;
        const size_t kept = (size_t)got < room - 1 - size ? (size_t)got : room - 1 - size;
        memcpy(back + size, data, kept);
        size += kept;
        all += (size_t)got;
    }
    back[size] = '\0';
    close(fd);
    return size > 12 ? atoi(back + 9) : 0;
}

typedef struct client {
    int port, number, failures;
} client;

static void expect(client *c, int got, int want)
{
    if (got != want) {
        fprintf(stderr, "client %d: status %d, not %d\n", c->number, got, want);
        c->failures++;
    }
}

/* The id in a response. */
static void id_of(char id[33], const char *response)
{
    const char *at = strstr(response, "\"id\":\"");
    snprintf(id, 33, "%.32s", at ? at + 6 : "");
}

static void use_session(client *c, char *back, size_t room)
{
    const size_t all = (size_t)-1;
    char id[33], fork[33], path[128];
    expect(c, ask(c->port, "POST", "/v1/sessions", "{}", back, room, all), 201);
    id_of(id, back);
    snprintf(path, sizeof path, "/v1/sessions/%s/feed", id);
    expect(c,
           ask(c->port, "POST", path, "{\"text\":\"once upon a time\",\"logprobs\":1}", back, room,
               all),
           200);
    snprintf(path, sizeof path, "/v1/sessions/%s/memory?watch=1", id);
    expect(c, ask(c->port, "GET", path, "", back, room, 200), 200);
    snprintf(path, sizeof path, "/v1/sessions/%s/fork", id);
    expect(c, ask(c->port, "POST", path, "{}", back, room, all), 201);
    id_of(fork, back);
    snprintf(path, sizeof path, "/v1/sessions/%s", fork);
    expect(c, ask(c->port, "DELETE", path, "", back, room, all), 200);
    snprintf(path, sizeof path, "/v1/sessions/%s/snapshot", id);
    expect(c, ask(c->port, "POST", path, "{}", back, room, all), 201);
    id_of(fork, back);
    snprintf(path, sizeof path, "/v1/snapshots/%s", fork);
    expect(c, ask(c->port, "GET", path, "", back, room, all), 200);
}

static void *work(void *arg)
{
    client *c = arg;
    const size_t all = (size_t)-1;
    static const char *const bodies[] = {"{\"prompt\":\"the old fox saw one of them and went "
                                         "away\",\"max_tokens\":20,\"logprobs\":2,\"echo\":true}",
                                         "{\"prompt\":[\"abc\",\"the old fox saw one of them "
                                         "and\"],\"n\":2,\"max_tokens\":9,\"stream\":true}",
                                         "{\"max_tokens\":100000,\"stream\":true}"};
    char back[4096];
    for (int i = 0; i < ROUNDS; i++) {
        expect(c, ask(c->port, "POST", "/v1/completions", bodies[0], back, sizeof back, all), 200);
        expect(c, ask(c->port, "POST", "/v1/completions", bodies[1], back, sizeof back, all), 200);
        expect(c, ask(c->port, "POST", "/v1/completions", bodies[2], back, sizeof back, 700), 200);
        expect(c, ask(c->port, "GET", "/metrics", "", back, sizeof back, all), 200);
        expect(c, ask(c->port, "POST", "/tokenize", "{\"prompt\":\"x\"}", back, sizeof back, all),
               200);
        expect(c, ask(c->port, "POST", "/v1/completions", "{", back, sizeof back, all), 400);
        if (i == 0)
            use_session(c, back, sizeof back);
    }
    return NULL;
}

START_TEST(many_clients_come_and_go)
{
    lam_server *s = start(test_temp_path("state"));
    pthread_t threads[CLIENTS];
    static client clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (client){.port = lam_server_port(s), .number = i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(clients[i].failures, 0);
    }
    lam_server_stop(s, 5.0);
}
END_TEST

/* A stream that would never end is ended, and so is one that has nothing to say. */
START_TEST(a_server_stops_in_the_middle_of_streams)
{
    lam_server *s = start(NULL);
    static const char request[] =
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Length: 36\r\n\r\n{\"max_tokens\":1000000,\"stream\":true}";
    int fd[3];
    char byte;
    for (int i = 0; i < 3; i++) {
        fd[i] = connect_to(lam_server_port(s));
        ck_assert_int_ge(fd[i], 0);
        ck_assert_int_eq(write(fd[i], request, sizeof request - 1), (int)sizeof request - 1);
        ck_assert_int_eq(read(fd[i], &byte, 1), 1);
    }
    lam_server_stop(s, 0.1);
    for (int i = 0; i < 3; i++)
        close(fd[i]);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, many_clients_come_and_go);
    tcase_add_test(tests, a_server_stops_in_the_middle_of_streams);
    return test_run("serve/server_threads", tests);
}
