/* lamemo.h -- language models with a recurrence memory inside a C or C++ program.
 *
 * An engine is a loaded model: its weights, its vocabulary, its device.  A session is one live timeline on
 * it: feed tokens, ask what comes next.  However long the text is, a session's memory stays the same size.
 *
 *     lamemo_engine *engine;
 *     lamemo_session *session = NULL;
 *     int32_t next;
 *     if (lamemo_engine_open("runs/tiny", NULL, &engine) != LAMEMO_OK ||
 *         lamemo_session_create(engine, NULL, &session) != LAMEMO_OK ||
 *         lamemo_session_feed(session, tokens, n) != LAMEMO_OK ||
 *         lamemo_session_sample(session, &next, NULL) != LAMEMO_OK)
 *         fprintf(stderr, "%s\n", lamemo_error());
 *     lamemo_session_free(session);
 *     lamemo_engine_close(engine);
 *
 * Errors.  What can fail returns a lamemo_status; objects and arrays leave through the last arguments, which
 * are NULL or 0 after a failure; numbers that the caller has room for are undefined then.  lamemo_error()
 * has one line of text, kept per thread.  A device works on while calls return, so that its failure may be
 * told by a later call than the one that met it; a session keeps it (LAMEMO_ERR_DEVICE) until it is freed.
 * The library never exits, never installs a signal handler and prints only what lamemo_log_to() did not
 * redirect.  A NULL where it is not allowed is a bug of the caller and not checked.
 *
 * Threads.  An engine is only read after it was opened: any number of threads may use it at once, each
 * with its own sessions.  A session (and a snapshot while it is being used) belongs to one thread at a time,
 * which need not be the one that created it.  With many sessions in parallel give each of them one thread
 * of computation (lamemo_session_options.threads = 1).  OpenMP keeps a team of threads per calling thread.
 *
 * Ownership.  What an open or create function returns is the caller's, and goes back to the close or free
 * function of its kind, all of which take NULL.  Arrays from lamemo_encode() and lamemo_decode() go
 * to lamemo_free().  Everything else that is passed in is borrowed for the call, except where "kept" is
 * written: then it must live as long as the object.
 *
 * Tokens are numbers 0 to lamemo_vocab_size() - 1; a token outside is LAMEMO_ERR_ARG.
 *
 * This header needs nothing else of the library.  While the major version is 0 the interface may change
 * with the minor version, and with it the name of the shared library. */
#ifndef LAMEMO_H
#define LAMEMO_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define LAMEMO_API __attribute__((visibility("default")))
#else
#define LAMEMO_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define LAMEMO_VERSION_MAJOR 0
#define LAMEMO_VERSION_MINOR 1
#define LAMEMO_VERSION_PATCH 0

/* ---- errors, messages, memory ------------------------------------------------------------------ */

typedef enum lamemo_status {
    LAMEMO_OK = 0,
    LAMEMO_ERR_ARG,     /* an option or argument is wrong */
    LAMEMO_ERR_IO,      /* the operating system refused: open, read, write, no space */
    LAMEMO_ERR_FORMAT,  /* a file does not hold what it should, or a text what the vocabulary has */
    LAMEMO_ERR_MEMORY,  /* no memory, or more than max_memory allows */
    LAMEMO_ERR_NUMERIC, /* a number is not finite */
    LAMEMO_ERR_UNSUPPORTED, /* valid, but not in this build or not for this model */
    LAMEMO_ERR_INTERRUPTED, /* a lamemo_progress callback ended the call */
    LAMEMO_ERR_DEVICE       /* the accelerator failed */
} lamemo_status;

/* The version of the library that runs, "0.1.0"; the macros above are those it was compiled against.
 * Static text.  Any thread. */
LAMEMO_API const char *lamemo_version(void);

/* Does the library that runs have the structs this header describes?  For programs that load it at run time or
 * describe the structs themselves (bindings):
 *     const lamemo_abi mine = LAMEMO_ABI;
 *     if (lamemo_abi_check(&mine) != LAMEMO_OK) ...
 * UNSUPPORTED: the message names what differs.  Any thread. */
typedef struct lamemo_abi {
    size_t
        size; /* of this struct; the others are sizes, too; 0: the caller does not use that struct */
    int major, minor;
    size_t engine_options, model_info, session_options, sampling, likely, piece, generate_options;
    size_t batch_options, event, job, compress_options;
} lamemo_abi;
#define LAMEMO_ABI                                                                                 \
    {                                                                                              \
        sizeof(lamemo_abi), LAMEMO_VERSION_MAJOR, LAMEMO_VERSION_MINOR,                            \
            sizeof(lamemo_engine_options), sizeof(lamemo_model_info),                              \
            sizeof(lamemo_session_options), sizeof(lamemo_sampling), sizeof(lamemo_likely),        \
            sizeof(lamemo_piece), sizeof(lamemo_generate_options), sizeof(lamemo_batch_options),   \
            sizeof(lamemo_event), sizeof(lamemo_job), sizeof(lamemo_compress_options)              \
    }
LAMEMO_API lamemo_status lamemo_abi_check(const lamemo_abi *mine);

/* What went wrong last in this thread: one line without a newline, "" if nothing did.  Valid until the
 * next failure in this thread. */
LAMEMO_API const char *lamemo_error(void);

/* A word for a status: "ok", "argument", "io", ...  Static text.  Any thread. */
LAMEMO_API const char *lamemo_status_name(lamemo_status status);

typedef enum lamemo_log_level {
    LAMEMO_LOG_ERROR,
    LAMEMO_LOG_WARN,
    LAMEMO_LOG_INFO,
    LAMEMO_LOG_DEBUG
} lamemo_log_level;

/* Gets one line of text without a newline, borrowed; it may be called by several threads at once. */
typedef void lamemo_log_sink(lamemo_log_level level, const char *line, void *user);

/* Sends messages up to `level` to `sink` (kept, with `user`); NULL: to standard error, where they go
 * from the start, up to LAMEMO_LOG_INFO.  For the whole process: call it before there are threads. */
LAMEMO_API void lamemo_log_to(lamemo_log_sink *sink, void *user, lamemo_log_level level);

/* Frees an array that lamemo_encode() or lamemo_decode() returned; NULL is fine.  Any thread. */
LAMEMO_API void lamemo_free(void *array);

/* Called now and then by long work with the part that is done, 0 to 1, in the calling thread.  A return other
 * than 0 ends the call with LAMEMO_ERR_INTERRUPTED. */
typedef int lamemo_progress(void *user, double part);

/* ---- the engine -------------------------------------------------------------------------------- */

typedef struct lamemo_engine lamemo_engine;

/* 0 or NULL in a field means its default. */
typedef struct lamemo_engine_options {
    /* "auto" (default: cuda where there is a GPU, else cpu), "cpu", "cuda", "ref". */
    const char *device;
    /* Of a session that names none, at most 1024; 0: every core this process may use. */
    int threads;
    /* 1: float32 on cuda instead of bf16. */
    int full_precision;
    /* Matrices on cpu: "auto" (default: as the folder has them), "float32", "bf16", "int8" (a scale for
     * each row). */
    const char *weights;
    /* Cached keys and values on cpu: "auto" (default: bf16 where weights are bf16 or int8), "float32",
     * "bf16". */
    const char *cache;
    /* "fast" (default), or "exact": the same bits on every machine, device, number of threads and of streams, and however
     * a text is cut into calls; weights and caches are int8.  Memories none, xl and lamemo (docs/exact.md). */
    const char *numerics;
    /* Bytes: what would take the process above (on cuda: the memory taken of the card since the engine, or the
     * session, was opened) is refused with LAMEMO_ERR_MEMORY before it is allocated.  0: what the machine has free;
     * on cuda, the card. */
    size_t max_memory;
    /* While the weights are read; NULL: nobody is told. */
    lamemo_progress *progress;
    void *progress_user;
} lamemo_engine_options;

/* Loads the model folder or run folder `path` (`lamemo train` and `lamemo import` make them): weights
 * and vocabulary; or, where there is no such folder, the model of that name that comes with lamemo, such as
 * "wiki11m" (docs/library.md says where it is looked for).  options may be NULL.  Fails with IO (no such
 * folder), FORMAT (a file is damaged, does not fit the others or has a weight that is not finite; the message
 * names it), UNSUPPORTED (a kind of model or device this build has not), MEMORY, DEVICE, ARG (an option), INTERRUPTED
 * (by the progress callback).
 * Any thread. */
LAMEMO_API lamemo_status lamemo_engine_open(const char *path, const lamemo_engine_options *options,
                                            lamemo_engine **engine);
/* Frees the model.  Every session of the engine must have been freed before.  NULL is fine. */
LAMEMO_API void lamemo_engine_close(lamemo_engine *engine);

/* Any thread may ask these at any time. */
LAMEMO_API int lamemo_vocab_size(const lamemo_engine *engine);
LAMEMO_API int lamemo_segment_length(const lamemo_engine *engine); /* trained with; the default */
LAMEMO_API int lamemo_memory_length(const lamemo_engine *engine);  /* likewise; 0: no memory */
/* What the model is.  Texts are static. */
typedef struct lamemo_model_info {
    const char *memory;     /* "none", "xl", "compressive", "infinite", "lamemo" */
    const char *vocabulary; /* what a token is: "bytes", "chars", "words", "bpe" */
    const char *device;     /* "cpu", "cuda", "ref" */
    int64_t parameters;
    int layers, width, heads; /* width: of the model, d_model */
} lamemo_model_info;
LAMEMO_API void lamemo_engine_info(const lamemo_engine *engine, lamemo_model_info *info);

/* The token a text without a beginning begins with: <eos> for words; for byte pairs the separator of documents,
 * if the training text had it; else the first the vocabulary has of newline, blank and "_" (a blank in text8),
 * else 0. */
LAMEMO_API int32_t lamemo_start_token(const lamemo_engine *engine);
/* What ends a line of words (<eos>) or a document of byte pairs (<|endoftext|>); -1: the vocabulary has none. */
LAMEMO_API int32_t lamemo_eos_token(const lamemo_engine *engine);

/* The tokens of `size` bytes of text: *tokens (the caller's, lamemo_free) has *n of them, perhaps none.
 * FORMAT: the text is not UTF-8 (for models of words or characters), or has a symbol that is not in the
 * vocabulary where this has no <unk>.  Byte pairs take any bytes; special tokens that the text spells are
 * text.  Any thread. */
LAMEMO_API lamemo_status lamemo_encode(const lamemo_engine *engine, const char *text, size_t size,
                                       int32_t **tokens, size_t *n);
/* The text of n tokens: *text (the caller's, lamemo_free) has *size bytes and a NUL after them.  Bytes,
 * characters and byte pairs come back exactly; words are joined as people write them.  Any thread. */
LAMEMO_API lamemo_status lamemo_decode(const lamemo_engine *engine, const int32_t *tokens, size_t n,
                                       char **text, size_t *size);

/* The bytes of one token as the vocabulary has them, *size of them and no NUL, perhaps part of a character.  Borrowed
 * from the engine; NULL: there is no such token.  Any thread. */
LAMEMO_API const char *lamemo_token_text(const lamemo_engine *engine, int32_t token, size_t *size);

/* ---- sessions ---------------------------------------------------------------------------------- */

typedef struct lamemo_session lamemo_session;

/* 0 in a field means its default. */
typedef struct lamemo_session_options {
    int streams;               /* texts of equal length in parallel; default 1 */
    int longest;               /* longest segment it will use; default lamemo_segment_length() */
    int memory;                /* memory length; default lamemo_memory_length() */
    int threads;               /* of its computations on cpu, at most 1024; default the engine's */
    lamemo_progress *progress; /* of lamemo_score() alone; default nobody is told */
    void *progress_user;
} lamemo_session_options;

/* Starts a timeline at an empty past.  engine is kept.  options may be NULL.  Fails with ARG
 * (a size is negative or too large), MEMORY, DEVICE.  Any thread. */
LAMEMO_API lamemo_status lamemo_session_create(lamemo_engine *engine,
                                               const lamemo_session_options *options,
                                               lamemo_session **session);
LAMEMO_API void lamemo_session_free(lamemo_session *session); /* NULL is fine */

/* Forgets everything that was fed, and restarts the random numbers of lamemo_session_sample(). */
LAMEMO_API void lamemo_session_reset(lamemo_session *session);

/* Text is cut into segments, `longest` tokens each from the start.  From here on they have `length` tokens,
 * 1 to `longest`; if that is another length than before, a segment that has begun ends here.  The memory is
 * refreshed once per segment, so shorter ones cost more.  ARG: the length is out of range; nothing
 * changed. */
LAMEMO_API lamemo_status lamemo_session_segment(lamemo_session *session, int length);

/* Feeds tokens [streams][n].  Any way of cutting a text into calls gives the same results; long pieces
 * are much faster than single tokens.  ARG: a token is outside the vocabulary, or n above INT_MAX;
 * nothing was fed. */
LAMEMO_API lamemo_status lamemo_session_feed(lamemo_session *session, const int32_t *tokens,
                                             size_t n);
/* Tokens of each stream fed since the start or reset. */
LAMEMO_API int64_t lamemo_session_length(const lamemo_session *session);

/* What follows the last token: logits [streams][lamemo_vocab_size()], log-probabilities up to a constant
 * in each row.  ARG: nothing was fed yet, or not since the segment length changed.  NUMERIC: a logit is not
 * finite (the model's numbers overflow).  DEVICE. */
LAMEMO_API lamemo_status lamemo_session_logits(lamemo_session *session, double *logits);

/* The same as float. */
LAMEMO_API lamemo_status lamemo_session_logits_float(lamemo_session *session, float *logits);

/* How a token is drawn.  In this order: penalty, temperature, top-k, top-p, min-p, draw.  0 in a field means its
 * default; a temperature of 0, as elsewhere in the field, is greedy = 1 here. */
typedef struct lamemo_sampling {
    double temperature; /* default 1 */
    int top_k;          /* draw from the k most likely tokens; default off */
    double top_p; /* from the fewest that together have this probability; default 0.95, 1: off */
    double min_p; /* none less likely than this times the most likely one; default off */
    double repeat_penalty; /* above 1, recent tokens become less likely; default 1: off */
    int repeat_last;       /* how many recent tokens the penalty counts; default 64 */
    uint64_t seed;         /* the same seed gives the same draws; default 42 */
    int greedy;            /* 1: always the most likely token */
    int unknown;           /* 1: <unk>, which stands for no text, may be drawn; default 0: never */
} lamemo_sampling;

/* Fills in the values named above.  Any thread. */
LAMEMO_API void lamemo_sampling_defaults(lamemo_sampling *sampling);

/* Says how lamemo_session_sample() draws, from now on, and restarts its random numbers; without it, the
 * defaults.  The penalty sees tokens that are fed or drawn from here on.  ARG names the field that is out of
 * range, MEMORY; the old way stays. */
LAMEMO_API lamemo_status lamemo_session_sampling(lamemo_session *session,
                                                 const lamemo_sampling *sampling);
/* Draws what follows: tokens [streams], and their log-probabilities under the model itself in
 * logprobs [streams], which may be NULL.  They are not fed: that is the caller's next step.  Fails as
 * lamemo_session_logits() does. */
LAMEMO_API lamemo_status lamemo_session_sample(lamemo_session *session, int32_t *tokens,
                                               double *logprobs);

/* A point in time to come back to: what follows is then the same to the last bit.  It fits every session
 * of a model of this shape with the same streams and memory length.  The random numbers of
 * lamemo_session_sample() and the tokens its penalty has seen are not part of it.  A snapshot depends on no
 * session or engine; it may be restored by several threads at once.  MEMORY, DEVICE, NUMERIC: what the memory
 * holds is not finite; for restore also ARG: it does not fit. */
typedef struct lamemo_snapshot lamemo_snapshot;
LAMEMO_API lamemo_status lamemo_session_snapshot(lamemo_session *session, lamemo_snapshot **out);
LAMEMO_API lamemo_status lamemo_session_restore(lamemo_session *session,
                                                const lamemo_snapshot *snapshot);
LAMEMO_API void lamemo_snapshot_free(lamemo_snapshot *snapshot); /* NULL is fine */

/* The same through a file, for another process with the same model.  Saving replaces the file whole or
 * not at all; it ends with a checksum (docs/formats.md).  IO, FORMAT (not such a file, or damaged), ARG (it does
 * not fit), NUMERIC, MEMORY.  After a failed load the session is as it was. */
LAMEMO_API lamemo_status lamemo_session_save(lamemo_session *session, const char *path);
LAMEMO_API lamemo_status lamemo_session_load(lamemo_session *session, const char *path);

/* ---- whole jobs -------------------------------------------------------------------------------- */

typedef enum lamemo_finish {
    LAMEMO_FINISH_LENGTH, /* as many tokens as asked for */
    LAMEMO_FINISH_STOP,   /* a stop string */
    LAMEMO_FINISH_BREAK   /* the callback said so */
} lamemo_finish;

/* A token that could have come, and its log-probability under the model itself. */
typedef struct lamemo_likely {
    int32_t token;
    double logprob;
} lamemo_likely;

/* One step of one sample.  Everything is borrowed for the call. */
typedef struct lamemo_piece {
    int sample;
    int32_t token;    /* -1: only text that had been held back */
    double logprob;   /* of the token, under the model itself */
    const char *text; /* to show now: valid UTF-8, whole characters, no NUL after them */
    size_t size;      /* bytes of text, perhaps none */
    int last;         /* 1: nothing more of this sample, which ended as `finish` says */
    lamemo_finish finish;
    const lamemo_likely *top; /* [n_top], most likely first; none where token is -1 */
    int n_top;
} lamemo_piece;

/* Gets every piece in order of time.  A return other than 0 ends the generation: each sample that has not
 * ended yet still gets its last piece, with LAMEMO_FINISH_BREAK and the text that had been held back. */
typedef int lamemo_piece_sink(void *user, const lamemo_piece *piece);

/* 0 or NULL in a field means its default. */
typedef struct lamemo_generate_options {
    int tokens;  /* at most, for each sample; default 256 */
    int samples; /* in parallel; default 1 */
    int segment; /* segment length of the prompt; default lamemo_segment_length() */
    int refresh; /* of new tokens: the memory is refreshed this often; default as the prompt's */
    int memory;  /* memory length; default lamemo_memory_length() */
    int threads; /* on cpu; default the engine's */
    const lamemo_sampling *sampling; /* NULL: the defaults */
    const char *const *stops;        /* [n_stops] texts before which a sample ends; none is empty */
    int n_stops;
    int top; /* report this many of the most likely tokens with each token; default none */
} lamemo_generate_options;

/* Continues the prompt of n tokens, of any length; none: begins with lamemo_start_token().  options may be
 * NULL.  The sink runs in the calling thread and must not be NULL.  Uses a session of its own: any thread.
 * Returns OK also when the sink ended it.  ARG, MEMORY, NUMERIC, DEVICE: what has not ended by then
 * gets no last piece. */
LAMEMO_API lamemo_status lamemo_generate(lamemo_engine *engine, const int32_t *prompt, size_t n,
                                         const lamemo_generate_options *options,
                                         lamemo_piece_sink *sink, void *user);

/* The same for callers that ask for the pieces, one at a time.  *more is 0 with the last of them; the text is
 * borrowed until the next call.  A piece without token, text and end only says that a part of a long prompt was
 * read.  engine and the stops of options are kept, the prompt is copied.  One thread at a time.  After a failure
 * nothing more comes; freeing it early is fine. */
typedef struct lamemo_generation lamemo_generation;
LAMEMO_API lamemo_status lamemo_generation_create(lamemo_engine *engine, const int32_t *prompt,
                                                  size_t n, const lamemo_generate_options *options,
                                                  lamemo_generation **generation);
LAMEMO_API lamemo_status lamemo_generation_next(lamemo_generation *generation, lamemo_piece *piece,
                                                int *more);
LAMEMO_API void lamemo_generation_free(lamemo_generation *generation); /* NULL is fine */

/* logprobs[i] = log p(tokens[i] | the tokens before it), for n tokens of which the first follows
 * lamemo_start_token(); options (streams must be 0 or 1) may be NULL.  Natural logarithms.  Uses a session of
 * its own: any thread.  ARG, MEMORY, DEVICE, NUMERIC: a log-probability is not finite; INTERRUPTED: by the progress
 * callback. */
LAMEMO_API lamemo_status lamemo_score(lamemo_engine *engine, const int32_t *tokens, size_t n,
                                      const lamemo_session_options *options, double *logprobs);

/* ---- many texts on one model -------------------------------------------------------------------
 *
 * A batch advances many texts in one call: prompts are read in pieces, and texts of any age decode side by side,
 * joining and leaving as they like.  That is what `lamemo serve` runs on.
 *
 *     lamemo_batch_create(engine, NULL, &batch);
 *     lamemo_text_create(batch, &text);
 *     lamemo_batch_submit(batch, &(lamemo_job){.text = text, .tokens = prompt, .n = n, .draw = 100,
 *                                              .sink = sink, .user = me}, &job);
 *     do
 *         status = lamemo_batch_step(batch, &busy);
 *     while (status == LAMEMO_OK && busy);
 *
 * What a text gets does not depend on its neighbours but for rounding; with `fixed`, to the last bit.  A batch and
 * its texts belong to one thread at a time. */

typedef struct lamemo_batch lamemo_batch;
typedef struct lamemo_text lamemo_text;

/* 0 in a field means its default. */
typedef struct lamemo_batch_options {
    int slots;   /* texts that run side by side; default 8 */
    int segment; /* segment length; default lamemo_segment_length() */
    int memory;  /* memory length; default lamemo_memory_length() */
    int rows; /* rows of prompts and refreshes between two tokens; default one segment and its memory */
    int queue;           /* jobs that wait for a slot, at most; default 256 */
    int fixed;           /* 1: always compute all slots */
    int threads;         /* of its computations on cpu; default the engine's */
    size_t prefix_cache; /* bytes for beginnings of prompts that were read before; default none */
} lamemo_batch_options;

/* engine is kept.  options may be NULL.  ARG, MEMORY, DEVICE. */
LAMEMO_API lamemo_status lamemo_batch_create(lamemo_engine *engine,
                                             const lamemo_batch_options *options,
                                             lamemo_batch **batch);
/* Ends every job, each with its last event, and frees the batch.  Its texts must have been freed, unless a job has
 * them.  NULL is fine. */
LAMEMO_API void lamemo_batch_free(lamemo_batch *batch);

/* A text that has read nothing; one that begins with everything another has read, which shares its memory.  No job may
 * have a text that is forked or freed.  ARG, MEMORY. */
LAMEMO_API lamemo_status lamemo_text_create(lamemo_batch *batch, lamemo_text **text);
LAMEMO_API lamemo_status lamemo_text_fork(const lamemo_text *text, lamemo_text **fork);
LAMEMO_API void lamemo_text_free(lamemo_text *text);            /* NULL is fine */
LAMEMO_API int64_t lamemo_text_length(const lamemo_text *text); /* tokens it has read */

typedef enum lamemo_event_kind {
    LAMEMO_EVENT_READ,  /* a token of the prompt, if `score` was set */
    LAMEMO_EVENT_DRAWN, /* a new token */
    LAMEMO_EVENT_ENDED  /* the last event of a job */
} lamemo_event_kind;

/* Everything is borrowed for the call. */
typedef struct lamemo_event {
    uint64_t job;
    lamemo_event_kind kind;
    int32_t token;
    double logprob;           /* under the model itself; NaN: nothing came before the token */
    const lamemo_likely *top; /* [n_top], most likely first */
    int n_top;
    const char *text; /* to show now: whole characters, no NUL after them */
    size_t size;
    lamemo_finish finish; /* of the last event: BREAK if it was cancelled */
    lamemo_status status; /* and whether it failed; lamemo_error() says why */
} lamemo_event;

/* Called by lamemo_batch_step() and lamemo_batch_free(); must not call functions of the batch other than
 * lamemo_batch_cancel(). */
typedef void lamemo_event_sink(void *user, const lamemo_event *event);

/* What to do with a text. */
typedef struct lamemo_job {
    lamemo_text *text;     /* kept until the last event */
    const int32_t *tokens; /* [n]: read first */
    size_t n;
    int score;  /* 1: tell how likely they were */
    int top;    /* tell so many of the most likely tokens, at most 64 */
    int draw;   /* then draw so many tokens, at most */
    int forget; /* 1: the text stays as it was; default: it has then read all of it */
    const lamemo_sampling *sampling; /* NULL: the defaults */
    const char *const *stops;        /* [n_stops] texts before which it ends */
    int n_stops;
    lamemo_event_sink *sink;
    void *user;
} lamemo_job;

/* Takes a job; *number names it.  ARG: a token is outside the vocabulary, an option is wrong, or another job has the
 * text; UNSUPPORTED: the queue is full; MEMORY. */
LAMEMO_API lamemo_status lamemo_batch_submit(lamemo_batch *batch, const lamemo_job *job,
                                             uint64_t *number);
/* The job ends with the next step; its text stays as it was.  One that has ended is ignored. */
LAMEMO_API void lamemo_batch_cancel(lamemo_batch *batch, uint64_t number);
/* Advances all texts: each that is written by a token, prompts by a piece.  *busy: 0 once nothing is left to do.
 * DEVICE: all jobs have ended. */
LAMEMO_API lamemo_status lamemo_batch_step(lamemo_batch *batch, int *busy);

/* ---- lossless compression ---------------------------------------------------------------------- */

/* Gets bytes of a result in order, borrowed.  A return other than 0 ends the call with LAMEMO_ERR_INTERRUPTED. */
typedef int lamemo_byte_sink(void *user, const void *bytes, size_t n);

/* 0 or NULL in a field means its default. */
typedef struct lamemo_compress_options {
    int streams;               /* of a block, read side by side, at most 1024; default 16 */
    size_t block;              /* bytes of an independent block, 4096 to 2^30; default 8 MiB */
    const char *adapt;         /* "mix" (default: also learn from the bytes themselves) or "none" */
    int threads;               /* on cpu; default the engine's.  Archives do not depend on it */
    lamemo_progress *progress; /* of the block that is being worked on; default nobody is told */
    void *progress_user;
} lamemo_compress_options;

/* Makes an archive (docs/formats.md, LMZ1) of any bytes that are pushed, and sends it to `sink` (kept, with `user`; it
 * must not be NULL), block by block.  Takes memory for one block, however much is pushed.  engine is kept; it must have been
 * opened with numerics "exact", and its vocabulary be of bytes or byte pairs: UNSUPPORTED.  The archive does not
 * contain the model.  After a failure only freeing is left.  IO, MEMORY, ARG, NUMERIC, DEVICE, INTERRUPTED. */
typedef struct lamemo_compressor lamemo_compressor;
LAMEMO_API lamemo_status lamemo_compressor_create(lamemo_engine *engine,
                                                  const lamemo_compress_options *options,
                                                  lamemo_byte_sink *sink, void *user,
                                                  lamemo_compressor **compressor);
LAMEMO_API lamemo_status lamemo_compressor_push(lamemo_compressor *compressor, const void *bytes,
                                                size_t n);
/* The last block and the index: without them the archive is cut off. */
LAMEMO_API lamemo_status lamemo_compressor_finish(lamemo_compressor *compressor);
LAMEMO_API void lamemo_compressor_free(lamemo_compressor *compressor); /* NULL is fine */

/* The other way: an archive is pushed in pieces of any size, and `sink` gets its bytes, each block after its checksum was
 * found right.  Of the options, threads and progress count.  FORMAT: damaged (the message names the block), cut off, or made
 * with another model. */
typedef struct lamemo_decompressor lamemo_decompressor;
LAMEMO_API lamemo_status lamemo_decompressor_create(lamemo_engine *engine,
                                                    const lamemo_compress_options *options,
                                                    lamemo_byte_sink *sink, void *user,
                                                    lamemo_decompressor **decompressor);
LAMEMO_API lamemo_status lamemo_decompressor_push(lamemo_decompressor *decompressor,
                                                  const void *bytes, size_t n);
/* The archive ends here: FORMAT where something is missing. */
LAMEMO_API lamemo_status lamemo_decompressor_finish(lamemo_decompressor *decompressor);
LAMEMO_API void lamemo_decompressor_free(lamemo_decompressor *decompressor); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
