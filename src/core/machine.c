/* machine.c -- see machine.h.
 *
 * Nothing here allocates, because it is called when memory may be short. */
#include "core/machine.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TEXT = 1 << 14 }; /* more than any of these files has before what we look for */

/* The file ROOT/PATH as a string, cut at TEXT bytes; "" if it cannot be read. */
static const char *read_text(char out[TEXT], const char *root, const char *path)
{
    char name[PATH_MAX];
    size_t used = 0;
    out[0] = '\0';
    if ((size_t)snprintf(name, sizeof name, "%s%s", root, path) >= sizeof name)
        return out;
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return out;
    for (ssize_t n = 1; n > 0; used += n > 0 ? (size_t)n : 0)
        n = read(fd, out + used, TEXT - 1 - used);
    close(fd);
    out[used] = '\0';
    return out;
}

/* The number after the word `key` at the beginning of a line, or at the beginning of the text where key is "".
 * SIZE_MAX: there is none ("max"). */
static size_t number_of(const char *text, const char *key)
{
    const size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) != 0)
            continue;
        const char *at = line + n + strspn(line + n, " ");
        if (isdigit((unsigned char)*at)) {
            const unsigned long long value = strtoull(at, NULL, 10);
            return value < SIZE_MAX ? (size_t)value : SIZE_MAX;
        }
    }
    return SIZE_MAX;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t without(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

/* ---- control groups ---- */

/* The two versions of the interface: how their line in /proc/self/cgroup is found, where the tree is, and its
 * files. */
typedef struct hierarchy {
    const char *line, *tree, *limit, *usage, *cache;
} hierarchy;

static const hierarchy hierarchies[] = {
    {"0::", "/sys/fs/cgroup", "memory.max", "memory.current", "file"},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_cache"},
};

static size_t group_number(const char *root, const char *group, const char *file, const char *key)
{
    char text[TEXT], path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", group, file) >= sizeof path)
        return SIZE_MAX;
    return number_of(read_text(text, root, path), key);
}

/* What a group may still have.  Cached files do not count: they give way. */
static size_t group_left(const char *root, const hierarchy *h, const char *group)
{
    const size_t limit = group_number(root, group, h->limit, "");
    const size_t usage = group_number(root, group, h->usage, "");
    if (limit == SIZE_MAX || usage == SIZE_MAX)
        return SIZE_MAX;
    const size_t cache = group_number(root, group, "memory.stat", h->cache);
    return without(limit, without(usage, cache == SIZE_MAX ? 0 : cache));
}

/* Our group and those it is in.  In a container the path may be the host's, of which only the end of the tree is
 * visible: what cannot be read is passed over. */
static size_t groups_left(const char *root, const hierarchy *h)
{
    char text[TEXT], group[PATH_MAX];
    const char *at = strstr(read_text(text, root, "/proc/self/cgroup"), h->line);
    at = at ? at + strlen(h->line) : "";
    const int size = snprintf(group, sizeof group, "%s%.*s", h->tree, (int)strcspn(at, "\n"), at);
    if (size < 0 || (size_t)size >= sizeof group)
        return SIZE_MAX;
    const size_t tree = strlen(h->tree);
    for (size_t left = SIZE_MAX;;) {
        left = least(left, group_left(root, h, group));
        char *slash = strrchr(group + tree, '/');
        if (!slash)
            return left;
        *slash = '\0';
    }
}

/* ---- this process ---- */

/* Field `i` of /proc/self/statm, in bytes: 0 all addresses, 1 in memory, 2 of those backed by files. */
static size_t own_bytes(int i)
{
    char text[TEXT];
    unsigned long pages[3] = {0};
    if (sscanf(read_text(text, "", "/proc/self/statm"), "%lu %lu %lu", &pages[0], &pages[1],
               &pages[2]) != 3)
        return 0;
    return (size_t)pages[i] * (size_t)sysconf(_SC_PAGESIZE);
}

size_t lam_machine_used(void)
{
    return without(own_bytes(1), own_bytes(2));
}

static size_t addresses_left(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    return without((size_t)limit.rlim_cur, own_bytes(0));
}

size_t lam_machine_left(const char *root)
{
    char text[TEXT];
    const size_t kilobytes = number_of(read_text(text, root, "/proc/meminfo"), "MemAvailable:");
    size_t left = kilobytes < SIZE_MAX / 1024 ? kilobytes * 1024 : SIZE_MAX;
    for (size_t i = 0; i < sizeof hierarchies / sizeof *hierarchies; i++)
        left = least(left, groups_left(root, &hierarchies[i]));
    return least(left, addresses_left());
}
