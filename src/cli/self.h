/* self.h -- starting this program again.
 *
 * /proc/self/exe is this program, unless a loader was told to run it ("ld.so --library-path DIR lamemo ..."):
 * then it is the loader, which wants its own words first. */
#ifndef LAM_CLI_SELF_H
#define LAM_CLI_SELF_H

/* The words with which execv() of /proc/self/exe starts this program with the arguments argv[1], ...;
 * argv[0] is only a name, both end with NULL.  One block, the caller's to free(); NULL: no memory.  It points
 * into argv. */
char **lam_self_words(char *const argv[]);

#endif
