/* util.c -- random numbers, bytes, messages of the fuzzer. */
#include "fuzz/cli/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Noreturn void die(const char *what, const char *path)
{
    fprintf(stderr, "cli_fuzz: %s %s: %s\n", what, path, strerror(errno));
    _exit(3);
}

void path_in(char out[static PATH_ROOM], const char *folder, const char *name)
{
    const int n = snprintf(out, PATH_ROOM, "%s/%s", folder, name);
    if (n < 0 || n >= PATH_ROOM)
        die("too long is the path of", name);
}

/* splitmix64: any state is a good one. */
uint64_t rng_next(rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

rng rng_of(uint64_t seed, const char *class, uint64_t number)
{
    rng r = {seed};
    for (const char *p = class; *p; p++)
        r.state = rng_next(&r) ^ (unsigned char)*p;
    r.state = rng_next(&r) ^ number;
    return r;
}

size_t rng_below(rng *r, size_t n)
{
    const uint64_t drawn = rng_next(r);
    return n > 0 ? (size_t)(drawn % n) : 0;
}

int rng_one_in(rng *r, size_t n)
{
    return rng_below(r, n) == 0;
}

blob blob_read(const char *path)
{
    blob b = {0};
    struct stat st;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) != 0)
        die("cannot read", path);
    const size_t room = st.st_size < BLOB_MAX ? (size_t)st.st_size : BLOB_MAX;
    b.p = malloc(room + 1);
    if (!b.p)
        die("no memory for", path);
    while (b.n < room) {
        const ssize_t got = read(fd, b.p + b.n, room - b.n);
        if (got <= 0)
            break;
        b.n += (size_t)got;
    }
    close(fd);
    return b;
}

void blob_write(const blob *b, const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644);
    if (fd < 0 || write(fd, b->p, b->n) != (ssize_t)b->n)
        die("cannot write", path);
    close(fd);
}

void blob_replace(blob *b, size_t at, size_t cut, const void *bytes, size_t size)
{
    if (at > b->n || cut > b->n - at || b->n - cut + size > BLOB_MAX)
        return;
    unsigned char *const p = malloc(b->n - cut + size + 1);
    if (!p)
        die("no memory for", "a mutation");
    if (at > 0)
        memcpy(p, b->p, at);
    if (size > 0)
        memcpy(p + at, bytes, size);
    if (b->n > at + cut)
        memcpy(p + at + size, b->p + at + cut, b->n - at - cut);
    free(b->p);
    b->p = p;
    b->n += size;
    b->n -= cut;
}

void blob_free(blob *b)
{
    free(b->p);
    *b = (blob){0};
}

void tell(story *s, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(s->text + s->n, sizeof s->text - s->n, format, list);
    va_end(list);
    if (n > 0)
        s->n += (size_t)n < sizeof s->text - s->n ? (size_t)n : sizeof s->text - s->n - 1;
}
