/* lamemo.h -- language models with a recurrence memory inside a C or C++ program.
 *
 * An engine is a loaded model: weights, vocabulary and device.  A session is one decoding state on an engine: feed it
 * tokens and ask for the distribution of the next one.  The memory of a session has the same size however long the text
 * is.
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
 * Errors.  A function that can fail returns a lamemo_status.  It returns objects and arrays through its last arguments,
 * which are NULL or 0 after a failure; arrays of numbers that the caller provides are undefined then.  lamemo_error()
 * returns the message of the calling thread's last failure, one line.  A device works asynchronously, so a later call
 * may report its failure; the session then returns LAMEMO_ERR_DEVICE until it is freed.  The library never exits, never
 * installs a signal handler and prints only messages that lamemo_log_to() did not redirect.  A NULL argument where NULL
 * is not allowed is a bug of the caller and is not checked.
 *
 * Threads.  An open engine is read-only: any number of threads may use it at once, each with its own sessions.  A
 * session is used by one thread at a time, which need not be the one that created it.  With many sessions in parallel,
 * give each of them one thread of computation (lamemo_session_options.threads = 1).  OpenMP keeps a team of threads per
 * calling thread.
 *
 * Ownership.  The caller owns what an open or create function returns and passes it to the matching close or free
 * function; all of these accept NULL.  Arrays from lamemo_encode() and lamemo_decode() are freed with lamemo_free().
 * Arguments are borrowed for the duration of the call; an argument described as "kept" must live as long as the object.
 *
 * Tokens are numbers from 0 to lamemo_vocab_size() - 1; any other token is LAMEMO_ERR_ARG.
 *
 * In the comments below, capitals such as ARG and MEMORY list the statuses LAMEMO_ERR_ARG, LAMEMO_ERR_MEMORY, ... that
 * a function can return, and "Any thread" means that any thread may call it at any time.  This header includes no other
 * header of the library.  While the major version is 0, a new minor version may change the interface, and always
 * changes the name of the shared library. */
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
    LAMEMO_ERR_ARG,         /* an option or argument is wrong */
    LAMEMO_ERR_IO,          /* the operating system refused: open, read, write, no space */
    LAMEMO_ERR_FORMAT,      /* a file has invalid content, or a text is not in the vocabulary */
    LAMEMO_ERR_MEMORY,      /* out of memory, or more than max_memory allows */
    LAMEMO_ERR_NUMERIC,     /* a number is not finite */
    LAMEMO_ERR_UNSUPPORTED, /* valid, but not in this build or not for this model */
    LAMEMO_ERR_INTERRUPTED, /* a lamemo_progress callback ended the call */
    LAMEMO_ERR_DEVICE       /* the accelerator failed */
} lamemo_status;

/* Returns the version of the library at run time, "0.1.0"; the macros above are the version that the program was
 * compiled against.  Static text.  Any thread. */
LAMEMO_API const char *lamemo_version(void);

/* Checks that the library at run time has the structs that this header declares.  For programs that load the library at
 * run time or declare the structs themselves (bindings):
 *     const lamemo_abi mine = LAMEMO_ABI;
 *     if (lamemo_abi_check(&mine) != LAMEMO_OK) ...
 * UNSUPPORTED: the message names the difference.  Any thread. */
typedef struct lamemo_abi {
    size_t
        size; /* of this struct; the fields below are sizes too; 0: the caller does not use that struct */
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

/* Returns the message of the last failure in this thread: one line without a newline, "" if there was none.  Valid
 * until the next failure in this thread. */
LAMEMO_API const char *lamemo_error(void);

/* Returns a word for a status: "ok", "argument", "io", ...  Static text.  Any thread. */
LAMEMO_API const char *lamemo_status_name(lamemo_status status);

typedef enum lamemo_log_level {
    LAMEMO_LOG_ERROR,
    LAMEMO_LOG_WARN,
    LAMEMO_LOG_INFO,
    LAMEMO_LOG_DEBUG
} lamemo_log_level;

/* Receives one line of text without a newline, borrowed.  Several threads may call it at once. */
typedef void lamemo_log_sink(lamemo_log_level level, const char *line, void *user);

/* Sends messages up to `level` to `sink` (kept, with `user`); NULL: to standard error.  Without a call, messages up to
 * LAMEMO_LOG_INFO go to standard error.  The setting holds for the whole process: call this before starting threads. */
LAMEMO_API void lamemo_log_to(lamemo_log_sink *sink, void *user, lamemo_log_level level);

/* Frees an array that lamemo_encode() or lamemo_decode() returned; NULL is allowed.  Any thread. */
LAMEMO_API void lamemo_free(void *array);

/* Long operations call this from time to time, in the calling thread, with the part that is done, 0 to 1. A return
 * value other than 0 ends the operation with LAMEMO_ERR_INTERRUPTED. */
typedef int lamemo_progress(void *user, double part);

/* ---- the engine -------------------------------------------------------------------------------- */

typedef struct lamemo_engine lamemo_engine;

/* 0 or NULL in a field means its default. */
typedef struct lamemo_engine_options {
    /* "auto" (default: cuda where there is a GPU, else cpu), "cpu", "cuda", "ref". */
    const char *device;
    /* Threads of computation of sessions that do not set their own number, at most 1024; default every core that this
     * process may use. */
    int threads;
    /* 1: float32 on cuda instead of bf16. */
    int full_precision;
    /* Weight matrices on cpu: "auto" (default: as stored in the folder), "float32", "bf16", "int8" (one scale per
     * row). */
    const char *weights;
    /* Cached keys and values on cpu: "auto" (default: bf16 where weights are bf16 or int8), "float32",
     * "bf16". */
    const char *cache;
    /* "fast" (default), or "exact": results have the same bits on every machine and device, with any number of threads
     * and streams, and however a text is divided into calls; weights and caches are int8.  For the memories none, xl
     * and lamemo (docs/exact.md). */
    const char *numerics;
    /* Limit in bytes on the memory of the process (on cuda: on the card's memory allocated since the engine, or the
     * session, was opened).  An allocation that would exceed the limit is refused with LAMEMO_ERR_MEMORY.  Default: the
     * free memory of the machine; on cuda, of the card. */
    size_t max_memory;
    /* Called while the weights are read; default none. */
    lamemo_progress *progress;
    void *progress_user;
} lamemo_engine_options;

/* Loads weights and vocabulary of the model folder or run folder `path` (as written by `lamemo train` and `lamemo
 * import`) or, if there is no such folder, of the bundled model of that name, such as "wiki11m" (docs/library.md says
 * where it is searched for). options may be NULL.  Fails with IO (no such folder), FORMAT (a file is damaged, does not
 * match the others or has a weight that is not finite; the message names it), UNSUPPORTED (this build does not have
 * that type of model or device), MEMORY, DEVICE, ARG (an option), INTERRUPTED (by the progress callback).  Any
 * thread. */
LAMEMO_API lamemo_status lamemo_engine_open(const char *path, const lamemo_engine_options *options,
                                            lamemo_engine **engine);
/* Frees the engine.  Free all its sessions first.  NULL is allowed. */
LAMEMO_API void lamemo_engine_close(lamemo_engine *engine);

/* Properties of the model.  Any thread. */
LAMEMO_API int lamemo_vocab_size(const lamemo_engine *engine);
LAMEMO_API int lamemo_segment_length(const lamemo_engine *engine); /* in training; the default */
LAMEMO_API int lamemo_memory_length(const lamemo_engine *engine);  /* likewise; 0: no memory */
/* A description of the model.  Texts are static. */
typedef struct lamemo_model_info {
    const char *memory;     /* "none", "xl", "compressive", "infinite", "lamemo" */
    const char *vocabulary; /* type of tokens: "bytes", "chars", "words", "bpe" */
    const char *device;     /* "cpu", "cuda", "ref" */
    int64_t parameters;
    int layers, width, heads; /* width: d_model */
} lamemo_model_info;
LAMEMO_API void lamemo_engine_info(const lamemo_engine *engine, lamemo_model_info *info);

/* Returns the token that starts a text without a prompt: <eos> for words; for BPE the document separator, if the
 * training text had one; else the first of newline, blank and "_" (a blank in text8) that is in the vocabulary, else
 * 0. */
LAMEMO_API int32_t lamemo_start_token(const lamemo_engine *engine);
/* Returns the token that ends a line for words (<eos>) or a document for BPE (<|endoftext|>); -1: the vocabulary has
 * none. */
LAMEMO_API int32_t lamemo_eos_token(const lamemo_engine *engine);

/* Converts `size` bytes of text to *n tokens, possibly none, in the new array *tokens (lamemo_free).  FORMAT: the text
 * is not UTF-8 (for words or chars), or contains a word or character that is not in the vocabulary and the vocabulary
 * has no <unk>. BPE accepts any bytes; a special token spelled out in the text is encoded as text.  MEMORY.  Any
 * thread. */
LAMEMO_API lamemo_status lamemo_encode(const lamemo_engine *engine, const char *text, size_t size,
                                       int32_t **tokens, size_t *n);
/* Converts n tokens to text: *text (a new array, lamemo_free) has *size bytes and a NUL after them.  Bytes, characters
 * and BPE tokens give the original text exactly; words are joined with normal spacing.  Any thread. */
LAMEMO_API lamemo_status lamemo_decode(const lamemo_engine *engine, const int32_t *tokens, size_t n,
                                       char **text, size_t *size);

/* Returns the *size bytes of one token as stored in the vocabulary, without a NUL; they may be part of a character.
 * Borrowed from the engine; NULL: there is no such token.  Any thread. */
LAMEMO_API const char *lamemo_token_text(const lamemo_engine *engine, int32_t token, size_t *size);

/* ---- sessions ---------------------------------------------------------------------------------- */

typedef struct lamemo_session lamemo_session;

/* 0 in a field means its default. */
typedef struct lamemo_session_options {
    int streams; /* texts of equal length in parallel; default 1 */
    int longest; /* longest segment the session will use; default lamemo_segment_length() */
    int memory;  /* memory length; default lamemo_memory_length() */
    int threads; /* threads of computation on cpu, at most 1024; default the engine's */
    lamemo_progress *progress; /* used by lamemo_score() only; default none */
    void *progress_user;
} lamemo_session_options;

/* Creates a session with an empty memory. engine is kept. options may be NULL.  Fails with ARG (a size is negative or
 * too large), MEMORY, DEVICE.  Any thread. */
LAMEMO_API lamemo_status lamemo_session_create(lamemo_engine *engine,
                                               const lamemo_session_options *options,
                                               lamemo_session **session);
LAMEMO_API void lamemo_session_free(lamemo_session *session); /* NULL is allowed */

/* Empties the memory and restarts the random numbers of lamemo_session_sample(). */
LAMEMO_API void lamemo_session_reset(lamemo_session *session);

/* Sets the segment length to `length` tokens, 1 to `longest`, from now on; a new session starts with `longest`.  If the
 * length changes, the current segment ends here.  The memory is refreshed once per segment, so short segments cost
 * more.  ARG: the length is out of range; nothing changed. */
LAMEMO_API lamemo_status lamemo_session_segment(lamemo_session *session, int length);

/* Feeds tokens [streams][n].  The results do not depend on how a text is divided into calls; long pieces are much
 * faster than single tokens.  ARG: a token is outside the vocabulary, or n exceeds INT_MAX; nothing was fed. */
LAMEMO_API lamemo_status lamemo_session_feed(lamemo_session *session, const int32_t *tokens,
                                             size_t n);
/* Returns the number of tokens fed to each stream since the start or the last reset. */
LAMEMO_API int64_t lamemo_session_length(const lamemo_session *session);

/* Writes the logits of the next token, [streams][lamemo_vocab_size()]: log-probabilities up to a constant per row.
 * ARG: nothing was fed yet, or nothing since the segment length changed.  NUMERIC: a logit is not finite (the model's
 * activations overflow).  DEVICE. */
LAMEMO_API lamemo_status lamemo_session_logits(lamemo_session *session, double *logits);

/* The same as float. */
LAMEMO_API lamemo_status lamemo_session_logits_float(lamemo_session *session, float *logits);

/* How a token is sampled, in this order: penalty, temperature, top-k, top-p, min-p, draw.  0 in a field means its
 * default; for greedy decoding (temperature 0 in other programs) set greedy = 1. */
typedef struct lamemo_sampling {
    double temperature; /* default 1 */
    int top_k;          /* sample from the k most likely tokens; default off */
    double top_p;       /* fewest tokens with this total probability; default 0.95, 1: off */
    double min_p;       /* exclude tokens below this times the highest probability; default off */
    double repeat_penalty; /* a value above 1 makes recent tokens less likely; default 1: off */
    int repeat_last;       /* how many recent tokens the penalty counts; default 64 */
    uint64_t seed;         /* the same seed gives the same draws; default 42 */
    int greedy;            /* 1: always the most likely token */
    int unknown; /* 1: <unk>, which stands for no text, may be sampled; default 0: never */
} lamemo_sampling;

/* Fills in the defaults named above.  Any thread. */
LAMEMO_API void lamemo_sampling_defaults(lamemo_sampling *sampling);

/* Sets how lamemo_session_sample() samples from now on, and restarts its random numbers; without a call it uses the
 * defaults.  The penalty counts tokens that are fed or sampled from here on.  ARG: the message names the field that is
 * out of range.  MEMORY.  After a failure the old settings remain. */
LAMEMO_API lamemo_status lamemo_session_sampling(lamemo_session *session,
                                                 const lamemo_sampling *sampling);
/* Samples the next token of each stream into tokens [streams], and writes the log-probabilities before sampling
 * settings apply to logprobs [streams], which may be NULL.  The tokens are not fed: feed them in the next call.  Fails
 * as lamemo_session_logits() does. */
LAMEMO_API lamemo_status lamemo_session_sample(lamemo_session *session, int32_t *tokens,
                                               double *logprobs);

/* A copy of a session's state.  After a restore, results are the same to the last bit.  A snapshot fits every session
 * of a model of the same shape with the same number of streams and memory length.  It does not contain the random
 * numbers of lamemo_session_sample() and the tokens that its penalty counts.  It depends on no session or engine, and
 * several threads may restore it at once.  MEMORY, DEVICE, NUMERIC: the memory contains a number that is not finite;
 * for restore also ARG: the snapshot does not fit. */
typedef struct lamemo_snapshot lamemo_snapshot;
LAMEMO_API lamemo_status lamemo_session_snapshot(lamemo_session *session, lamemo_snapshot **out);
LAMEMO_API lamemo_status lamemo_session_restore(lamemo_session *session,
                                                const lamemo_snapshot *snapshot);
LAMEMO_API void lamemo_snapshot_free(lamemo_snapshot *snapshot); /* NULL is allowed */

/* Save and load a snapshot in a file, for another process with the same model.  Saving replaces the file whole or not
 * at all; the file ends with a checksum (docs/formats.md).  IO, FORMAT (not a snapshot, or damaged), ARG (the snapshot
 * does not fit), NUMERIC, MEMORY.  After a failed load the session is as it was. */
LAMEMO_API lamemo_status lamemo_session_save(lamemo_session *session, const char *path);
LAMEMO_API lamemo_status lamemo_session_load(lamemo_session *session, const char *path);

/* ---- generating and scoring -------------------------------------------------------------------- */

typedef enum lamemo_finish {
    LAMEMO_FINISH_LENGTH, /* the requested number of tokens is reached */
    LAMEMO_FINISH_STOP,   /* a stop string */
    LAMEMO_FINISH_BREAK   /* the callback ended it */
} lamemo_finish;

/* A likely token, and its log-probability under the model, before sampling settings apply. */
typedef struct lamemo_likely {
    int32_t token;
    double logprob;
} lamemo_likely;

/* One step of one sample.  Everything is borrowed for the call. */
typedef struct lamemo_piece {
    int sample;
    int32_t token;    /* -1: only text that had been held back */
    double logprob;   /* of the token, before sampling settings apply */
    const char *text; /* new text: valid UTF-8, whole characters, not NUL-terminated */
    size_t size;      /* bytes of text, possibly 0 */
    int last;         /* 1: the last piece of this sample, which ended as `finish` says */
    lamemo_finish finish;
    const lamemo_likely *top; /* [n_top], most likely first; none where token is -1 */
    int n_top;
} lamemo_piece;

/* Receives every piece in chronological order.  A return value other than 0 ends the generation: each unfinished sample
 * still gets its last piece, with LAMEMO_FINISH_BREAK and the text that had been held back. */
typedef int lamemo_piece_sink(void *user, const lamemo_piece *piece);

/* 0 or NULL in a field means its default. */
typedef struct lamemo_generate_options {
    int tokens;  /* maximum number per sample; default 256 */
    int samples; /* in parallel; default 1 */
    int segment; /* segment length of the prompt; default lamemo_segment_length() */
    int refresh; /* segment length of new tokens (refresh interval); default as the prompt's */
    int memory;  /* memory length; default lamemo_memory_length() */
    int threads; /* on cpu; default the engine's */
    const lamemo_sampling *sampling; /* NULL: the defaults */
    const char *const *stops; /* [n_stops] texts before which a sample ends; none may be empty */
    int n_stops;
    int top; /* report this many of the most likely tokens with each token; default none */
} lamemo_generate_options;

/* Continues a prompt of n tokens, of any length; an empty prompt starts with lamemo_start_token(). options may be NULL.
 * The sink runs in the calling thread and must not be NULL.  Uses its own session: any thread.  Returns OK also when
 * the sink ended the generation.  ARG, MEMORY, NUMERIC, DEVICE: unfinished samples then get no last piece. */
LAMEMO_API lamemo_status lamemo_generate(lamemo_engine *engine, const int32_t *prompt, size_t n,
                                         const lamemo_generate_options *options,
                                         lamemo_piece_sink *sink, void *user);

/* The same as lamemo_generate(), for callers that request the pieces one at a time.  *more is 0 with the last piece;
 * the text is borrowed until the next call.  A piece without token, text and end only reports that a part of a long
 * prompt was read. engine and the stop strings of options are kept; the prompt is copied.  One thread at a time.  After
 * a failure there are no more pieces.  A generation may be freed at any time. */
typedef struct lamemo_generation lamemo_generation;
LAMEMO_API lamemo_status lamemo_generation_create(lamemo_engine *engine, const int32_t *prompt,
                                                  size_t n, const lamemo_generate_options *options,
                                                  lamemo_generation **generation);
LAMEMO_API lamemo_status lamemo_generation_next(lamemo_generation *generation, lamemo_piece *piece,
                                                int *more);
LAMEMO_API void lamemo_generation_free(lamemo_generation *generation); /* NULL is allowed */

/* Computes logprobs[i] = log p(tokens[i] | the tokens before it), natural logarithms, for n tokens of which the first
 * follows lamemo_start_token(). options (streams must be 0 or 1) may be NULL.  Uses its own session: any thread.  ARG,
 * MEMORY, DEVICE, NUMERIC: a log-probability is not finite; INTERRUPTED: by the progress callback. */
LAMEMO_API lamemo_status lamemo_score(lamemo_engine *engine, const int32_t *tokens, size_t n,
                                      const lamemo_session_options *options, double *logprobs);

/* ---- many texts on one model -------------------------------------------------------------------
 *
 * A batch advances many texts in one call (continuous batching): prompts are read in chunks, and texts of different
 * lengths decode together, starting and ending at any time. `lamemo serve` is built on it.
 *
 *     lamemo_batch_create(engine, NULL, &batch);
 *     lamemo_text_create(batch, &text);
 *     lamemo_batch_submit(batch, &(lamemo_job){.text = text, .tokens = prompt, .n = n, .draw = 100,
 *                                              .sink = sink, .user = me}, &job);
 *     do
 *         status = lamemo_batch_step(batch, &busy);
 *     while (status == LAMEMO_OK && busy);
 *
 * The results of a text do not depend on the other texts, up to rounding; with `fixed`, to the last bit.  A batch and
 * its texts are used by one thread at a time. */

typedef struct lamemo_batch lamemo_batch;
typedef struct lamemo_text lamemo_text;

/* 0 in a field means its default. */
typedef struct lamemo_batch_options {
    int slots;   /* maximum number of texts that run side by side; default 8 */
    int segment; /* segment length; default lamemo_segment_length() */
    int memory;  /* memory length; default lamemo_memory_length() */
    int rows;    /* rows of prompts and refreshes between two tokens; default one segment and its
                 memory, more where many slots have short segments */
    int queue;   /* maximum number of jobs that wait for a slot; default 256 */
    int fixed;   /* 1: always compute all slots */
    int threads; /* threads of computation on cpu; default the engine's */
    size_t
        prefix_cache; /* bytes for caching the state after common prompt prefixes; default none */
} lamemo_batch_options;

/* Creates a batch. engine is kept. options may be NULL.  ARG, MEMORY, DEVICE. */
LAMEMO_API lamemo_status lamemo_batch_create(lamemo_engine *engine,
                                             const lamemo_batch_options *options,
                                             lamemo_batch **batch);
/* Ends every job with its last event and frees the batch.  Free its texts first, except those that a job is using.
 * NULL is allowed. */
LAMEMO_API void lamemo_batch_free(lamemo_batch *batch);

/* Creates an empty text; forks a text into a second one with the same content, which shares its memory.  A text must
 * not be in use by a job when it is forked or freed.  ARG, MEMORY. */
LAMEMO_API lamemo_status lamemo_text_create(lamemo_batch *batch, lamemo_text **text);
LAMEMO_API lamemo_status lamemo_text_fork(const lamemo_text *text, lamemo_text **fork);
LAMEMO_API void lamemo_text_free(lamemo_text *text);            /* NULL is allowed */
LAMEMO_API int64_t lamemo_text_length(const lamemo_text *text); /* number of tokens */

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
    double logprob; /* before sampling settings apply; NaN: no token came before this one */
    const lamemo_likely *top; /* [n_top], most likely first */
    int n_top;
    const char *text; /* new text: whole characters, not NUL-terminated */
    size_t size;
    lamemo_finish finish; /* valid in the last event; BREAK: the job was cancelled */
    lamemo_status status; /* valid in the last event; lamemo_error() has the message */
} lamemo_event;

/* Receives events during lamemo_batch_step() and lamemo_batch_free().  It must not call functions of the batch other
 * than lamemo_batch_cancel(). */
typedef void lamemo_event_sink(void *user, const lamemo_event *event);

/* Work on one text: read tokens, then sample new ones. */
typedef struct lamemo_job {
    lamemo_text *text;     /* kept until the last event */
    const int32_t *tokens; /* [n]: read first */
    size_t n;
    int score;  /* 1: report the log-probability of each of them */
    int top;    /* report this many of the most likely tokens with each token, at most 64 */
    int draw;   /* then sample at most this many tokens */
    int forget; /* 1: leave the text as it was; default: all these tokens are added to it */
    const lamemo_sampling *sampling; /* NULL: the defaults */
    const char *const *stops;        /* [n_stops] stop strings: the job ends before one */
    int n_stops;
    lamemo_event_sink *sink;
    void *user;
} lamemo_job;

/* Submits a job and sets *number, its identifier.  ARG: a token is outside the vocabulary, an option is wrong,
 * another job uses the text, or there are no tokens and none was read since the text's last segment ended early;
 * UNSUPPORTED: the queue is full; MEMORY. */
LAMEMO_API lamemo_status lamemo_batch_submit(lamemo_batch *batch, const lamemo_job *job,
                                             uint64_t *number);
/* Cancels a job: it ends with the next step and its text stays as it was.  A finished job is ignored. */
LAMEMO_API void lamemo_batch_cancel(lamemo_batch *batch, uint64_t number);
/* Advances all jobs: a decoding text by one token, prompts by one chunk.  *busy is 0 when no jobs are left.  DEVICE:
 * all jobs have ended. */
LAMEMO_API lamemo_status lamemo_batch_step(lamemo_batch *batch, int *busy);

/* ---- lossless compression ---------------------------------------------------------------------- */

/* Receives the bytes of a result in order, borrowed.  A return value other than 0 ends the call with
 * LAMEMO_ERR_INTERRUPTED. */
typedef int lamemo_byte_sink(void *user, const void *bytes, size_t n);

/* 0 or NULL in a field means its default. */
typedef struct lamemo_compress_options {
    int streams;       /* streams per block, processed side by side, at most 1024; default 16 */
    size_t block;      /* size of an independent block in bytes, 4096 to 2^30; default 8 MiB */
    const char *adapt; /* "mix" (default: also learn from the bytes themselves) or "none" */
    int threads;       /* on cpu; default the engine's; does not change the archive */
    lamemo_progress *progress; /* progress within the current block; default none */
    void *progress_user;
} lamemo_compress_options;

/* Compresses any bytes that are pushed into an archive (docs/formats.md, LMZ1) and sends it block by block to `sink`
 * (kept, with `user`; not NULL).  Allocates memory for one block, however much is pushed. engine is kept; it must be
 * opened with numerics "exact" and its vocabulary must be bytes or BPE, otherwise UNSUPPORTED.  The archive does not
 * contain the model.  After a failure the compressor can only be freed.  IO, MEMORY, ARG, NUMERIC, DEVICE,
 * INTERRUPTED. */
typedef struct lamemo_compressor lamemo_compressor;
LAMEMO_API lamemo_status lamemo_compressor_create(lamemo_engine *engine,
                                                  const lamemo_compress_options *options,
                                                  lamemo_byte_sink *sink, void *user,
                                                  lamemo_compressor **compressor);
LAMEMO_API lamemo_status lamemo_compressor_push(lamemo_compressor *compressor, const void *bytes,
                                                size_t n);
/* Writes the last block and the index; without them the archive is truncated. */
LAMEMO_API lamemo_status lamemo_compressor_finish(lamemo_compressor *compressor);
LAMEMO_API void lamemo_compressor_free(lamemo_compressor *compressor); /* NULL is allowed */

/* Decompresses an archive that is pushed in pieces of any size; `sink` receives each block after its checksum was
 * verified.  Only threads and progress of the options are used.  FORMAT: the archive is damaged (the message names the
 * block), truncated, or was made with another model. */
typedef struct lamemo_decompressor lamemo_decompressor;
LAMEMO_API lamemo_status lamemo_decompressor_create(lamemo_engine *engine,
                                                    const lamemo_compress_options *options,
                                                    lamemo_byte_sink *sink, void *user,
                                                    lamemo_decompressor **decompressor);
LAMEMO_API lamemo_status lamemo_decompressor_push(lamemo_decompressor *decompressor,
                                                  const void *bytes, size_t n);
/* Marks the end of the archive.  FORMAT: the archive is truncated. */
LAMEMO_API lamemo_status lamemo_decompressor_finish(lamemo_decompressor *decompressor);
LAMEMO_API void lamemo_decompressor_free(lamemo_decompressor *decompressor); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif
