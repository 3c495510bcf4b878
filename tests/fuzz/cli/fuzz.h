/* fuzz.h -- the parts of the fuzzer of the program: damage files, run a command on them, watch it.
 *
 * One execution is a pure function of (seed, class, number): `rng_of` draws everything.  A failing system call of
 * the fuzzer itself ends it (`die`): there is nothing to save. */
#ifndef FUZZ_CLI_FUZZ_H
#define FUZZ_CLI_FUZZ_H

#include <stddef.h>
#include <stdint.h>

_Noreturn void die(const char *what, const char *path);

enum { PATH_ROOM = 1024, NAME_ROOM = 512 };
/* folder/name; a path that is too long ends the fuzzer. */
void path_in(char out[static PATH_ROOM], const char *folder, const char *name);

/* ---- random numbers ---- */

typedef struct rng {
    uint64_t state;
} rng;

rng rng_of(uint64_t seed, const char *class, uint64_t number);
uint64_t rng_next(rng *r);
size_t rng_below(rng *r, size_t n); /* 0 .. n - 1; 0 if n is 0 */
int rng_one_in(rng *r, size_t n);

/* ---- bytes that grow ---- */

enum { BLOB_MAX = 4 << 20 };

typedef struct blob {
    unsigned char *p;
    size_t n;
} blob;

blob blob_read(const char *path); /* at most BLOB_MAX bytes of a plain file */
void blob_write(const blob *b, const char *path);
/* Puts `size` bytes where `cut` were, at `at`; what would grow beyond BLOB_MAX is left as it is.  `bytes` may not
 * lie in the blob. */
void blob_replace(blob *b, size_t at, size_t cut, const void *bytes, size_t size);
void blob_free(blob *b);

/* ---- folders ---- */

enum { TREE_MAX = 512 };

typedef struct tree { /* what is below a folder, in order of names; links are not followed */
    int n;
    struct {
        char path[NAME_ROOM]; /* from the folder */
        unsigned mode;
        long long size, time, node;
    } at[TREE_MAX];
} tree;

void tree_list(tree *t, const char *folder);
void tree_copy(const char *from, const char *to);
void tree_remove(const char *path);
/* The first path that is in one only or differs, and that no prefix in `allowed` (NULL ends it) names; NULL: none. */
const char *tree_difference(const tree *a, const tree *b, char *const allowed[]);

/* ---- damage ---- */

typedef struct story { /* what was done, in words */
    char text[1024];
    size_t n;
} story;
void tell(story *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

void mutate_bytes(rng *r, blob *b, const blob *other, story *s);
/* JSON, in a safetensors file its header, or lines.  Returns 0 where there is no such text. */
int mutate_text(rng *r, blob *b, story *s);
/* One to three mutations below `root`; `kept` (NULL ends it) are paths that stay what they are, with any contents.
 * What `command` names does not become a pipe: waiting for one that the user names is right. */
void mutate_tree(rng *r, const char *root, char *const kept[], const char *command, story *s);
/* Makes checksums right again, so that what they cover is read. */
void mend_tree(const char *root);

/* ---- one command ---- */

typedef struct verdict {
    int code;        /* exit status; -1: killed */
    int took_long;   /* it was sent SIGTERM */
    double seconds;  /* of CPU */
    size_t peak;     /* bytes of memory */
    char fault[256]; /* what is wrong; "": nothing */
    char where[256]; /* the place in our code, of a sanitizer */
} verdict;

/* Runs argv in `folder` with its output in the files stdout and stderr there.  `memory`: bytes it may take. */
void watch(verdict *v, const char *folder, char **argv, size_t memory);
/* The program itself; or `session MODEL FILE`, which the program has no command for; or `fault KIND FILE`, to try the
 * fuzzer.  argv begins with the command. */
int command_main(int argc, char **argv);
int session_main(int argc, char **argv);
int fault_main(int argc, char **argv);

#endif
