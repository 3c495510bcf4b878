/* cmd_compress.c -- `lamemo compress`: files to archives, by a model. */
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/pack_jobs.h"
#include "compress/compressor.h"
#include "core/log.h"

#include <inttypes.h>
#include <stdlib.h>

static const lam_option options[] = {
    {"model", 'm', "DIR", LAM_OPT_PATH, offsetof(lam_pack_options, model), .shown = LAM_BOXED,
     .help = "Model or run folder, of bytes or byte pairs. Decompressing needs the same model."},
    LAM_PACK_FILE_OPTIONS,
    {"adapt", 0, "HOW", LAM_OPT_CHOICE, offsetof(lam_pack_options, adapt), "mix",
     .choices = lam_adapt_names,
     .help = "none: the model alone; mix: also learn from the file itself, by contexts of 1 to 6 "
             "tokens, which helps most where the file is unlike the training text."},
    {"block", 0, "SIZE", LAM_OPT_SIZE, offsetof(lam_pack_options, block), "8MiB",
     .min = LAM_LMZ_RAW_LEAST, .max = LAM_LMZ_RAW_MOST,
     .help = "Bytes of a block. Blocks are independent: damage stays within one, and --range "
             "decodes only those it needs; larger ones compress better."},
    {"streams", 0, "S", LAM_OPT_INT, offsetof(lam_pack_options, streams), "16", .min = 1,
     .max = LAM_STREAMS_MOST,
     .help = "Streams of a block that the model reads side by side, at least 4 kB each: more are "
             "faster, fewer compress better."},
    LAM_PACK_DEVICE_OPTIONS,
    {0},
};

static lam_status push_all(lam_pack_job *j, lam_compressor *c)
{
    enum { CHUNK = 1 << 16 };
    uint8_t *const bytes = malloc(CHUNK);
    lam_status status = bytes ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "no memory to read a file");
    size_t n = 1;
    while (status == LAM_OK && n > 0) {
        status = lam_source_read(&j->source, bytes, CHUNK, &n);
        if (status == LAM_OK && n > 0)
            status = lam_compressor_push(c, bytes, n);
        /* a block that was just written is done; what waits is the next one */
        const uint64_t raw = lam_compressor_stats_of(c).raw, block = (uint64_t)j->o->block;
        j->done = raw / block * block;
        if (n == 0) /* the end of a pipe, whose last block is shorter */
            j->block = raw - j->done;
        else
            j->block =
                j->total > j->done && j->total - j->done < block ? j->total - j->done : block;
    }
    free(bytes);
    return status == LAM_OK ? lam_compressor_finish(c) : status;
}

/* The size with and without the model: an archive is worth nothing to somebody who has not got that. */
static void tell(const lam_pack_job *j, const lam_compressor_stats *s)
{
    char raw[32], written[32], both[32];
    const double percent = s->raw > 0 ? 100.0 * (double)s->written / (double)s->raw : 0.0;
    const double bits = s->raw > 0 ? 8.0 * (double)s->written / (double)s->raw : 0.0;
    lam_log(LAM_LOG_INFO,
            "%s: %s -> %s bytes (%.2f %%, %.4f bits per byte); with the model %s bytes",
            j->source.path, lam_format_count(raw, sizeof raw, (int64_t)s->raw),
            lam_format_count(written, sizeof written, (int64_t)s->written), percent, bits,
            lam_format_count(both, sizeof both, (int64_t)(s->written + s->model)));
    if (s->stored > 0)
        lam_log(LAM_LOG_DEBUG, "%s: %" PRIu64 " of %" PRIu64 " blocks are stored as they are",
                j->source.path, s->stored, s->blocks);
}

static lam_status pack(lam_pack_job *j)
{
    const lam_pack_options *const o = j->o;
    lam_compressor *c = NULL;
    LAM_TRY(lam_pack_target(j, lam_packed_name));
    LAM_TRY(lam_pack_engine(j, o->model ? o->model : LAM_BOXED));
    const lam_compressor_options wanted = {.streams = o->streams,
                                           .block = (size_t)o->block,
                                           .adapt = (lam_adapt)o->adapt,
                                           .dev = j->dev,
                                           .watch = {lam_pack_progress, j}};
    lam_status status = lam_compressor_create(&c, j->engine, &wanted, lam_target_write, &j->target);
    if (status == LAM_OK)
        status = push_all(j, c);
    if (status == LAM_OK) {
        const lam_compressor_stats stats = lam_compressor_stats_of(c);
        lam_progress_close(&j->line);
        tell(j, &stats);
    }
    lam_compressor_free(c);
    return status;
}

static lam_status run(const lam_args *args)
{
    const lam_pack_options *const o = args->options;
    return lam_pack_run(args, o->list ? lam_pack_list : o->test ? lam_unpack_file : pack);
}

const lam_command lam_command_compress = {
    .name = "compress",
    .summary = "compress files losslessly with a model",
    .operands = "[FILE...]",
    .operands_max = -1,
    .description =
        "Compresses each FILE to FILE.lmz and removes FILE once the archive is on disk; without "
        "FILE, or with -, standard input to standard output. Any bytes come back exactly, on any "
        "machine: the arithmetic is exact. Text like the model's training text compresses best; a "
        "block that does not get smaller is stored as it is. The model is not part of the archive.",
    .options = options,
    .options_size = sizeof(lam_pack_options),
    .examples = "lamemo compress notes.txt\n"
                "lamemo compress -k -m runs/tiny --adapt none book.txt\n"
                "# from a pipe\n"
                "tar c letters | lamemo compress > letters.tar.lmz\n"
                "lamemo compress -l -v book.txt.lmz",
    .run = run,
};
