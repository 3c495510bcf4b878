/* command.c -- the program, for a child of the fuzzer: its main() under another name. */
#include "fuzz/cli/fuzz.h"

#include <string.h>

int lamemo_main(int argc, char **argv);
#define main lamemo_main
#include "cli/main.c"
#undef main

int command_main(int argc, char **argv)
{
    static char *all[64] = {"lamemo"};
    if (argc >= 1 && strcmp(argv[0], "session") == 0)
        return session_main(argc, argv);
    if (argc >= 1 && strcmp(argv[0], "fault") == 0)
        return fault_main(argc, argv);
    for (int i = 0; i < argc && i < 62; i++)
        all[i + 1] = argv[i];
    return lamemo_main(argc + 1, all);
}
