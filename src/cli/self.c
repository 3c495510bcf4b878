/* self.c -- see self.h. */
#include "cli/self.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
