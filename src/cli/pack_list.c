/* pack_list.c -- `--list`: what archives hold, without the model. */
#include "cli/output.h"
#include "cli/pack_jobs.h"
#include "compress/archive.h"
#include "data/json_name.h"

#include <inttypes.h>
#include <stdio.h>

static void hex(char out[65], const uint8_t sha[32])
{
    for (size_t i = 0; i < 32; i++)
        snprintf(out + 2 * i, 3, "%02x", sha[i]);
}

static json_t *json_block(const lam_archive_block *b)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "offset", (json_int_t)b->first, "bytes",
                     (json_int_t)b->raw, "at", (json_int_t)b->at, "stored", (json_int_t)b->stored);
}

static lam_status list_json(const lam_pack_job *j, const lam_archive *a)
{
    char sha[65];
    hex(sha, a->header.model);
    json_t *const blocks = json_array();
    json_t *root = json_pack(
        "{s:o, s:I, s:I, s:I, s:s, s:s, s:s, s:i, s:i, s:i, s:b}", "name",
        lam_json_name(j->source.path), "bytes", (json_int_t)a->raw, "archive", (json_int_t)a->size,
        "block", (json_int_t)a->header.block, "model", a->header.name, "model_sha256", sha, "adapt",
        lam_adapt_names[a->header.adapt], "streams", a->header.streams, "segment",
        a->header.segment, "memory", a->header.memory, "complete", a->complete);
    for (size_t i = 0; i < a->n; i++)
        json_array_append_new(blocks, json_block(&a->blocks[i]));
    if (root)
        json_object_set_new(root, "blocks", blocks);
    return lam_print_json(root, JSON_COMPACT);
}

static void list_text(const lam_pack_job *j, const lam_archive *a)
{
    const double percent = a->raw > 0 ? 100.0 * (double)a->size / (double)a->raw : 0.0;
    printf("%14" PRIu64 " %14" PRIu64 " %8.2f %7zu %8d %6s  %-12s ", a->raw, a->size, percent, a->n,
           a->header.streams, lam_adapt_names[a->header.adapt], a->header.name);
    lam_print("%s\n", j->source.path);
    for (size_t i = 0; j->args->verbose && i < a->n; i++)
        printf("  block %zu: bytes %" PRIu64 " to %" PRIu64 ", %u stored as %u at %" PRIu64 "\n",
               i + 1, a->blocks[i].first, a->blocks[i].first + a->blocks[i].raw - 1,
               (unsigned)a->blocks[i].raw, (unsigned)a->blocks[i].stored, a->blocks[i].at);
}

lam_status lam_pack_list(lam_pack_job *j)
{
    lam_archive a;
    if (!S_ISREG(j->source.info.st_mode))
        return lam_fail(LAM_ERR_IO, "--list needs a file that can be read anywhere, not a pipe");
    LAM_TRY(lam_archive_open(&a, j->source.fd));
    lam_status status = LAM_OK;
    if (j->o->json) {
        status = list_json(j, &a);
    } else {
        if (j->first)
            printf("%14s %14s %8s %7s %8s %6s  %-12s %s\n", "bytes", "archive", "percent", "blocks",
                   "streams", "adapt", "model", "file");
        j->first = false;
        list_text(j, &a);
    }
    if (status == LAM_OK && !a.complete)
        status = lam_fail(LAM_ERR_FORMAT, "%s", a.trouble);
    lam_archive_close(&a);
    return status;
}
