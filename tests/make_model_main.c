/* make_model_main.c -- writes a small model with random weights: make_model FOLDER [MEMORY [SEED]] */
#include "support/toy_folder.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const char *memory = argc > 2 ? argv[2] : "lamemo";
    const unsigned seed = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 1;
    if (argc < 2 || toy_folder_save(argv[1], memory, seed) != LAM_OK) {
        fprintf(stderr, "make_model: %s\n", argc < 2 ? "which folder?" : lam_error());
        return 1;
    }
    return 0;
}
