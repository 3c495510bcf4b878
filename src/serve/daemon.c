/* daemon.c -- libmicrohttpd's daemon: its address and its limits. */
#include "serve/http.h"

#include "core/log.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>

enum { POOL = 24 << 10, INACTIVE = 60, BACKLOG = 1024 };

/* Every connection needs a descriptor, and each stream one only. */
static void raise_limit(int connections)
{
    struct rlimit limit;
    const rlim_t need = (rlim_t)connections + 64;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return;
    limit.rlim_cur =
        limit.rlim_max == RLIM_INFINITY || limit.rlim_max > need ? need : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        lam_log(LAM_LOG_WARN, "the limit of open files could not be raised to %d",
                connections + 64);
}

typedef union place {
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr any;
} place;

static lam_status read_address(place *out, const char *address, int port)
{
    *out = (place){0};
    if (inet_pton(AF_INET, address, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons((uint16_t)port);
        return LAM_OK;
    }
    *out = (place){0};
    if (inet_pton(AF_INET6, address, &out->v6.sin6_addr) == 1) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons((uint16_t)port);
        return LAM_OK;
    }
    return lam_fail(LAM_ERR_ARG, "--host %s: must be an IPv4 or IPv6 address", address);
}

static int is_loopback(const place *p)
{
    return p->any.sa_family == AF_INET ? ntohl(p->v4.sin_addr.s_addr) >> 24 == 127
                                       : IN6_IS_ADDR_LOOPBACK(&p->v6.sin6_addr);
}

/* libmicrohttpd tells what clients did wrong; nobody here can do anything about it. */
static void on_log(void *cls, const char *format, va_list args)
{
    (void)cls, (void)format, (void)args;
}

lam_status lam_http_start(lam_server *s)
{
    place at;
    LAM_TRY(read_address(&at, s->o.address, s->o.port));
    s->auth.loopback = is_loopback(&at);
    if (!s->auth.loopback && s->auth.n_keys == 0)
        return lam_fail(LAM_ERR_ARG,
                        "--host %s can be reached from other machines: give --api-key-file FILE",
                        s->o.address);
    raise_limit(s->o.connections);
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                           MHD_USE_ERROR_LOG |
                           (at.any.sa_family == AF_INET6 ? MHD_USE_IPv6 : MHD_NO_FLAG);
    s->daemon = MHD_start_daemon(
        flags, (uint16_t)s->o.port, NULL, NULL, lam_on_request, s, MHD_OPTION_EXTERNAL_LOGGER,
        on_log, NULL, MHD_OPTION_SOCK_ADDR, &at.any, MHD_OPTION_NOTIFY_COMPLETED, lam_on_completed,
        s, MHD_OPTION_NOTIFY_CONNECTION, lam_on_connection, s, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)s->o.connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)INACTIVE, MHD_OPTION_LISTEN_BACKLOG_SIZE,
        (unsigned)BACKLOG, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (!s->daemon)
        return lam_fail(LAM_ERR_IO, "cannot listen on %s port %d: is another server there?",
                        s->o.address, s->o.port);
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    s->port = info ? info->port : s->o.port;
    return LAM_OK;
}

void lam_http_stop(lam_server *s)
{
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    s->daemon = NULL;
}
