/* fault.c -- `fault KIND FILE`: a command that does something wrong if FILE is not the word "good".
 *
 * tests/fuzz/cli_fuzz_test.sh lets the fuzzer find each kind: one that is no longer found is a hole in the watching. */
#include "fuzz/cli/fuzz.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void work_for_ever(void)
{
    for (volatile unsigned i = 0;; i++)
        ;
}

static int misbehave(const char *kind)
{
    static volatile int zero;
    if (strcmp(kind, "overflow") == 0) {
        char *volatile block = malloc(8);
        block[8 + zero] = 1;
        free(block);
    } else if (strcmp(kind, "abort") == 0) {
        abort();
    } else if (strcmp(kind, "memory") == 0) {
        const size_t much = (size_t)700 << 20;
        void *const block =
            mmap(NULL, much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(block, 1, much);
    } else if (strcmp(kind, "wait") == 0) {
        pause();
    } else if (strcmp(kind, "work") == 0) {
        work_for_ever();
    } else if (strcmp(kind, "deaf") == 0) {
        signal(SIGTERM, SIG_IGN);
        work_for_ever();
    } else if (strcmp(kind, "number") == 0) {
        puts("{\"loss\": nan}");
    } else if (strcmp(kind, "silent") == 0) {
        return 1;
    } else if (strcmp(kind, "status") == 0) {
        return 17;
    } else if (strcmp(kind, "outside") == 0) {
        FILE *const f = fopen("outside/file", "a");
        if (f)
            fclose(f);
        return truncate("outside/file", 0);
    } else if (strcmp(kind, "input") == 0) {
        return remove("in/other");
    }
    return 0;
}

int fault_main(int argc, char **argv)
{
    char word[8] = "";
    FILE *const f = argc == 3 ? fopen(argv[2], "r") : NULL;
    if (f) {
        word[fread(word, 1, sizeof word - 1, f)] = '\0';
        fclose(f);
    }
    return strcmp(word, "good\n") == 0 ? 0 : misbehave(argv[1]);
}
