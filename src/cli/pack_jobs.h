/* pack_jobs.h -- what compress and decompress share: options, the model, one file after the other, progress. */
#ifndef LAM_CLI_PACK_JOBS_H
#define LAM_CLI_PACK_JOBS_H

#include "cli/device.h"
#include "cli/options.h"
#include "cli/packing.h"
#include "cli/term.h"
#include "core/watch.h"
#include "infer/engine.h"

typedef struct lam_pack_options {
    const char *model, *out;
    bool to_stdout, keep, force, test, list, json;
    int64_t block;
    int streams, adapt;
    const char *range;
    bool salvage;
    lam_device_options device;
} lam_pack_options;

/* Table entries of both commands, for a command whose struct is lam_pack_options.  -t is --test here, so that --threads
 * has the letter that xz gives it. */
/* clang-format off */
#define LAM_PACK(field) offsetof(lam_pack_options, field)
#define LAM_PACK_FILE_OPTIONS \
    {"stdout", 'c', NULL, LAM_OPT_FLAG, LAM_PACK(to_stdout), .aliases = "to-stdout", \
     .help = "Write to standard output and keep the source."}, \
    {"keep", 'k', NULL, LAM_OPT_FLAG, LAM_PACK(keep), .help = "Keep the source."}, \
    {"force", 'f', NULL, LAM_OPT_FLAG, LAM_PACK(force), \
     .help = "Replace an existing result; accept links, several hard links and terminals."}, \
    {"out", 'o', "FILE", LAM_OPT_PATH, LAM_PACK(out), \
     .help = "Write the result of the one source to FILE and keep the source."}, \
    {"test", 't', NULL, LAM_OPT_FLAG, LAM_PACK(test), \
     .help = "Decompress archives, check every block and write nothing."}, \
    {"list", 'l', NULL, LAM_OPT_FLAG, LAM_PACK(list), \
     .help = "List what archives hold, with -v every block; needs no model."}, \
    {"json", 0, NULL, LAM_OPT_FLAG, LAM_PACK(json), .help = "With --list: one JSON object for each archive."}
#define LAM_PACK_DEVICE_OPTIONS \
    {"device", 0, "NAME", LAM_OPT_STRING, LAM_PACK(device.device), "auto", \
     .help = "Back-end: cpu, cuda, ref, or auto. Archives do not depend on it."}, \
    {"threads", 'T', "N", LAM_OPT_INT, LAM_PACK(device.threads), "0", .max = 1024, \
     .help = "Number of CPU threads; 0: one for every core this process may run on. Archives do not depend on it."}
/* clang-format on */

/* A command at work. */
typedef struct lam_pack_job {
    const lam_pack_options *o;
    const lam_args *args;
    lam_dev *dev;
    lam_engine *engine; /* of `name` */
    char name[PATH_MAX];
    lam_progress line;
    /* the file that is being worked on */
    lam_source source;
    lam_target target;
    uint64_t done, total; /* bytes of the source read; 0: nobody knows how many there are */
    uint64_t block;       /* bytes of it that are being worked on, behind `done` */
    bool first;           /* no archive was listed yet */
} lam_pack_job;

/* Does one file, whose source is open; the target is opened by it and finished or aborted by the caller. */
typedef lam_status lam_pack_file(lam_pack_job *j);

/* Refuses options that contradict each other; then each operand in turn, "-" where there is none.  All are tried; a
 * failure is told with the name of the file. */
lam_status lam_pack_run(const lam_args *args, lam_pack_file *one);

/* The engine of a model folder, opened once for many files. */
lam_status lam_pack_engine(lam_pack_job *j, const char *model);
/* Opens the target as the options say: `named` makes its name from the source's. */
lam_status lam_pack_target(lam_pack_job *j,
                           lam_status (*named)(char out[PATH_MAX], const char *path));
/* Shows progress; `part` is that of the block.  For lam_watch, with the job as user. */
int lam_pack_progress(void *user, double part);

/* --test and --list, the same for both commands (unpack.c, pack_list.c). */
lam_status lam_unpack_file(lam_pack_job *j);
lam_status lam_pack_list(lam_pack_job *j);

#endif
