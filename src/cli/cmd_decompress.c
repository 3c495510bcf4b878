/* cmd_decompress.c -- `lamemo decompress`: archives back to files. */
#include "cli/commands.h"
#include "cli/pack_jobs.h"

static const lam_option options[] = {
    {"model", 'm', "DIR", LAM_OPT_PATH, offsetof(lam_pack_options, model),
     .shown = "the bundled model the archive names",
     .help = "Model or run folder that the archive was made with."},
    LAM_PACK_FILE_OPTIONS,
    {"range", 0, "OFFSET+LENGTH", LAM_OPT_STRING, offsetof(lam_pack_options, range),
     .help = "Only LENGTH bytes from OFFSET on, to standard output or --out; sizes as 10M or 4KiB. "
             "Decodes only the blocks that hold them."},
    {"salvage", 0, NULL, LAM_OPT_FLAG, offsetof(lam_pack_options, salvage),
     .help = "Write the blocks of a damaged archive that are intact, and leave the others out; the "
             "exit status is 1 all the same."},
    LAM_PACK_DEVICE_OPTIONS,
    {0},
};

static lam_status run(const lam_args *args)
{
    const lam_pack_options *const o = args->options;
    if (o->range && (o->test || o->list))
        return lam_fail(LAM_ERR_ARG, "--range %s writes bytes, --test and --list do not", o->range);
    return lam_pack_run(args, o->list ? lam_pack_list : lam_unpack_file);
}

const lam_command lam_command_decompress = {
    .name = "decompress",
    .summary = "restore files that compress made",
    .operands = "[FILE...]",
    .operands_max = -1,
    .description =
        "Decompresses each FILE.lmz to FILE and removes the archive once FILE is on disk; without "
        "FILE, or with -, standard input to standard output. Every block is checked before it is "
        "written. A model other than the one the archive was made with is refused.",
    .options = options,
    .options_size = sizeof(lam_pack_options),
    .examples = "lamemo decompress notes.txt.lmz\n"
                "lamemo decompress -c letters.tar.lmz | tar x\n"
                "# a page from the middle\n"
                "lamemo decompress --range 20M+4kB book.txt.lmz",
    .run = run,
};
