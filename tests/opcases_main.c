/* opcases_main.c -- runs the operation cases of a back-end by hand: opcases DEVICE [FAMILY | -FAMILY]...
 *
 * The same cases as the unit tests, with the report on stdout: of all families, of those named, or of all but
 * those named with a minus.  Exit status 1 when one fails.
 * LAM_OPCASES_SEED draws other cases; LAM_OPCASES_FULL_PREC=1 asks the device for float; LAM_OPCASES_LARGE=0 leaves out
 * cases that are large because a GPU has many multiprocessors. */
#include "support/naive.h"
#include "support/naive16.h"
#include "support/opcases.h"

#include <stdlib.h>
#include <string.h>

static int is_left_out(int n, char **names, const char *family)
{
    for (int i = 0; i < n; i++)
        if (names[i][0] == '-' && strcmp(names[i] + 1, family) == 0)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    const lam_ops *ops = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: opcases ref|cpu|cuda|naive|naive16 [FAMILY | -FAMILY]...\n");
        return 2;
    }
    if (strcmp(argv[1], "naive") == 0)
        ops = &lam_ops_naive;
    else if (strcmp(argv[1], "naive16") == 0)
        ops = &lam_ops_naive16;
    else if (lam_ops_find(&ops, argv[1]) != LAM_OK) {
        fprintf(stderr, "opcases: %s\n", lam_error());
        return 2;
    }
    const char *full = getenv("LAM_OPCASES_FULL_PREC");
    const lam_dev_options options = {.full_prec = full && strcmp(full, "0") != 0};
    int failures = 0, named = 0;
    for (int i = 2; i < argc; i++)
        if (argv[i][0] != '-') {
            failures += lam_opcases_run_on(ops, &options, argv[i], stdout);
            named = 1;
        }
    for (int i = 0; !named && lam_opcases_family(i); i++)
        if (!is_left_out(argc - 2, argv + 2, lam_opcases_family(i)))
            failures += lam_opcases_run_on(ops, &options, lam_opcases_family(i), stdout);
    return failures != 0;
}
