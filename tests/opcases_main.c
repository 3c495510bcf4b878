/* opcases_main.c -- runs the operation cases of a back-end by hand: opcases DEVICE [FAMILY]
 *
 * The same cases as the unit tests, with the report on stdout.  Exit status 1 when one fails.
 * LAM_OPCASES_SEED draws other cases; LAM_OPCASES_FULL_PREC=1 asks the device for float. */
#include "support/naive.h"
#include "support/naive16.h"
#include "support/opcases.h"

#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const lam_ops *ops = NULL;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: opcases ref|cpu|cuda|naive|naive16 [FAMILY]\n");
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
    return lam_opcases_run_on(ops, &options, argc == 3 ? argv[2] : NULL, stdout) != 0;
}
