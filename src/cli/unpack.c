/* unpack.c -- decompressing one file for `decompress` and for --test: as a stream, or by its index for --range and
 * --salvage. */
#include "cli/pack_jobs.h"

#include "compress/archive.h"
#include "compress/decompressor.h"
#include "core/log.h"
#include "model/boxed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 16 };

static void on_damage(void *user, const char *message)
{
    const lam_pack_job *const j = user;
    lam_log(LAM_LOG_ERROR, "%s: %s", j->source.path, message);
}

/* The engine that --model names, or the bundled one that the header names.  A name in an archive is never a path. */
static lam_status open_engine(lam_pack_job *j, const lam_lmz_header *h)
{
    char folder[PATH_MAX];
    if (j->o->model)
        return lam_pack_engine(j, j->o->model);
    if (lam_boxed_find(folder, sizeof folder, h->name))
        return lam_pack_engine(j, h->name);
    return lam_fail(
        LAM_ERR_FORMAT,
        "made with model %s, which does not come with lamemo: name its folder with --model",
        h->name[0] ? h->name : "without a name");
}

/* Progress counts bytes that come out: what goes in arrives block by block. */
static int on_progress(void *user, double part)
{
    lam_pack_job *const j = user;
    j->done = j->target.written;
    return lam_pack_progress(j, part);
}

/* How many there will be, where the index says so. */
static void count(lam_pack_job *j, const lam_lmz_header *h)
{
    lam_archive a;
    j->block = h->block;
    j->total = 0;
    if (!S_ISREG(j->source.info.st_mode) || lam_archive_open(&a, j->source.fd) != LAM_OK)
        return;
    j->total = a.raw;
    j->block = a.raw < j->block ? a.raw : j->block;
    lam_archive_close(&a);
}

/* ---- as a stream ---- */

/* Reads the header, which says which model is needed, into bytes [LAM_LMZ_HEADER]; *n bytes were read. */
static lam_status read_header(lam_pack_job *j, uint8_t *bytes, size_t *n, lam_lmz_header *h)
{
    size_t k = 1;
    for (*n = 0; *n < LAM_LMZ_HEADER && k > 0; *n += k)
        LAM_TRY(lam_source_read(&j->source, bytes + *n, LAM_LMZ_HEADER - *n, &k));
    return lam_lmz_get_header(h, bytes, *n);
}

static lam_status push_all(lam_pack_job *j, lam_decompressor *d, uint8_t *bytes, size_t n)
{
    while (n > 0) {
        LAM_TRY(lam_decompressor_push(d, bytes, n));
        LAM_TRY(lam_source_read(&j->source, bytes, CHUNK, &n));
    }
    return lam_decompressor_finish(d);
}

static lam_status unpack_stream(lam_pack_job *j)
{
    uint8_t *const bytes = malloc(CHUNK);
    lam_decompressor *d = NULL;
    lam_lmz_header h;
    size_t n = 0;
    lam_status status = bytes ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "no memory to read a file");
    if (status == LAM_OK)
        status = read_header(j, bytes, &n, &h);
    if (status == LAM_OK)
        status = open_engine(j, &h);
    if (status == LAM_OK)
        count(j, &h);
    const lam_decompressor_options wanted = {.dev = j->dev,
                                             .watch = {on_progress, j},
                                             .on_damage =
                                                 j->o->test || j->o->salvage ? on_damage : NULL,
                                             .damage_user = j};
    if (status == LAM_OK)
        status = lam_decompressor_create(&d, j->engine, &wanted, lam_target_write, &j->target);
    if (status == LAM_OK)
        status = push_all(j, d, bytes, n);
    lam_decompressor_free(d);
    free(bytes);
    return status;
}

/* ---- by the index ---- */

/* "OFFSET+LENGTH", each a size. */
static lam_status parse_range(const char *text, uint64_t *from, uint64_t *n)
{
    int64_t values[2] = {0, 0};
    char parts[64];
    const lam_option size = {.name = "range", .type = LAM_OPT_SIZE};
    char *const plus = strlen(text) < sizeof parts ? strchr(strcpy(parts, text), '+') : NULL;
    if (!plus)
        return lam_fail(LAM_ERR_ARG, "--range: '%s' is not OFFSET+LENGTH", text);
    *plus = '\0';
    if (strcmp(parts, "0") != 0) /* sizes of options are above 0 */
        LAM_TRY(lam_option_set(&size, &values[0], parts));
    LAM_TRY(lam_option_set(&size, &values[1], plus + 1));
    *from = (uint64_t)values[0];
    *n = (uint64_t)values[1];
    return LAM_OK;
}

static lam_status extract(lam_pack_job *j, const lam_archive *a)
{
    const lam_watch watch = {on_progress, j};
    lam_archive_range range = {.n = a->raw, .watch = &watch};
    lam_unpacker *u = NULL;
    if (j->o->range)
        LAM_TRY(parse_range(j->o->range, &range.from, &range.n));
    if (j->o->salvage) {
        range.on_damage = on_damage;
        range.damage_user = j;
    }
    LAM_TRY(open_engine(j, &a->header));
    j->total = range.n;
    j->block = a->header.block < range.n ? a->header.block : range.n;
    LAM_TRY(lam_unpacker_create(&u, j->engine, &a->header, j->dev));
    lam_status status = lam_archive_extract(a, u, &range, lam_target_write, &j->target);
    lam_unpacker_free(u);
    /* --range needs only its blocks; whoever wants all of a damaged archive is told that it was not all. */
    if (status == LAM_OK && !a->complete && !j->o->range)
        status = lam_fail(LAM_ERR_FORMAT, "%s; %zu block%s came out", a->trouble, a->n,
                          a->n == 1 ? "" : "s");
    return status;
}

static lam_status unpack_indexed(lam_pack_job *j)
{
    lam_archive a;
    if (!S_ISREG(j->source.info.st_mode))
        return lam_fail(LAM_ERR_IO, "--range needs a file that can be read anywhere, not a pipe");
    LAM_TRY(lam_archive_open(&a, j->source.fd));
    const lam_status status = extract(j, &a);
    lam_archive_close(&a);
    return status;
}

/* What --salvage wrote of a damaged archive is kept, and so is the archive. */
static lam_status keep_salvaged(lam_pack_job *j, lam_status status)
{
    if (!j->o->salvage || status != LAM_ERR_FORMAT || j->target.written == 0)
        return status;
    char why[512];
    strncpy(why, lam_error(), sizeof why - 1);
    why[sizeof why - 1] = '\0';
    LAM_TRY(lam_target_finish(&j->target, &j->source));
    return lam_fail(LAM_ERR_FORMAT, "%s; %llu bytes came out, the archive is kept", why,
                    (unsigned long long)j->target.written);
}

lam_status lam_unpack_file(lam_pack_job *j)
{
    if (j->source.standard && isatty(STDIN_FILENO))
        return lam_fail(LAM_ERR_IO, "an archive is not read from a terminal");
    if (j->o->range && !j->o->out)
        LAM_TRY(lam_target_open(&j->target, LAM_TARGET_STDOUT, NULL, false));
    else
        LAM_TRY(lam_pack_target(j, lam_unpacked_name));
    const bool indexed = j->o->range || (j->o->salvage && S_ISREG(j->source.info.st_mode));
    return keep_salvaged(j, indexed ? unpack_indexed(j) : unpack_stream(j));
}
