/* interactive.c -- see interactive.h. */
#include "cli/interactive.h"

#include "cli/interactive_int.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "core/log.h"
#include "infer/emitter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_MOST = 1 << 20
}; /* bytes of a line that is typed; a file may be longer (--prompt @FILE) */

/* ---- what the model writes ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Has the newest text, from `at`, completed a stop; or without stops, a line that is not blank? */
static bool is_complete(const lam_talk *t, size_t at)
{
    const char *const text = t->written.data;
    const size_t size = t->written.size;
    for (int i = 0; i < t->n_stops; i++) {
        const size_t n = strlen(t->stops[i]), from = at < n ? 0 : at - n;
        if (size > from && memmem(text + from, size - from, t->stops[i], n))
            return true;
    }
    if (t->n_stops > 0 || at == size || !memchr(text + at, '\n', size - at))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!is_blank(text[i]))
            return true;
    return false;
}

static void show(lam_talk *t, const char *text, size_t size)
{
    lam_text_bytes(&t->written, text, size);
    lam_term_write(stdout, text, size);
    fflush(stdout);
}

/* A turn's own sampler and emitter, which know what came before. */
static lam_status open_turn(lam_talk *t, lam_sampler **sampler, lam_emitter **emitter)
{
    lam_sampler_options how = lam_generate_sampler(&t->o);
    int n;
    const int32_t *const recent = lam_branches_recent(t->branches, &n);
    how.never = t->o.unknown ? -1 : lam_vocab_unk(t->engine->vocab);
    LAM_TRY(lam_sampler_create(sampler, &how, t->engine->model->cfg.n_token, t->turns++));
    LAM_TRY(lam_emitter_create(emitter, t->engine->vocab, NULL, 0));
    for (int i = 0; i < n; i++) {
        lam_sampler_note(*sampler, recent[i]);
        lam_emitter_prompt(*emitter, recent[i]);
    }
    return LAM_OK;
}

/* Every token is fed as soon as it is drawn, so that the memory holds what the screen shows. */
static lam_status write_on(lam_talk *t, lam_sampler *sampler, lam_emitter *emitter)
{
    const char *text;
    const double *scores;
    size_t size;
    bool stopped, complete = false;
    for (int i = 0; i < t->o.tokens && !complete; i++) {
        int32_t token;
        const size_t at = t->written.size;
        if (lam_stop_signal() != 0 || ferror(stdout))
            break;
        LAM_TRY(lam_branches_scores(t->branches, &scores));
        LAM_TRY(lam_sampler_draw(sampler, scores, &token, NULL));
        LAM_TRY(lam_emitter_push(emitter, token, &text, &size, &stopped));
        show(t, text, size);
        LAM_TRY(lam_branches_drawn(t->branches, token));
        LAM_TRY(lam_text_status(&t->written, "the text of a line"));
        complete = is_complete(t, at);
    }
    LAM_TRY(lam_emitter_finish(emitter, &text, &size));
    show(t, text, size);
    /* This newline is not in the text; on a terminal a mark says so. */
    if (t->written.size > 0 && t->written.data[t->written.size - 1] != '\n')
        printf("%s%s%s\n", lam_term_style(stdout, LAM_STYLE_DIM),
               t->terminal && lam_term_is_tty(stdout) && !complete ? "..." : "",
               lam_term_style(stdout, LAM_STYLE_NONE));
    fflush(stdout);
    return LAM_OK;
}

static lam_status take_turn(lam_talk *t)
{
    lam_sampler *sampler = NULL;
    lam_emitter *emitter = NULL;
    lam_text_free(&t->written);
    lam_status status = open_turn(t, &sampler, &emitter);
    if (status == LAM_OK)
        status = write_on(t, sampler, emitter);
    lam_emitter_free(emitter);
    lam_sampler_free(sampler);
    return status;
}

/* ---- what is typed ---- */

/* The tokens of what was typed; nothing at the very beginning is what a text without a prompt begins with. */
static lam_status read_text(lam_talk *t, const char *text, size_t size)
{
    const int32_t start = lam_engine_start_token(t->engine);
    int32_t *ids = NULL;
    size_t n = 0;
    if (size == 0)
        return lam_branches_length(t->branches) > 0 ? LAM_OK
                                                    : lam_branches_read(t->branches, &start, 1);
    LAM_TRY(lam_vocab_encode(t->engine->vocab, &ids, &n, text, size));
    if (t->o.echo)
        lam_term_write(stdout, text, size);
    const lam_status status = n > 0 || lam_branches_length(t->branches) > 0
                                  ? lam_branches_read(t->branches, ids, n)
                                  : lam_branches_read(t->branches, &start, 1);
    free(ids);
    return status;
}

/* An empty line goes on where the text is; \ at the end holds the newline back; // is a / in the text. */
static lam_status continue_line(lam_talk *t)
{
    lam_text *const line = &t->line;
    const char *const text = line->data ? line->data : "";
    const size_t skip = line->size > 1 && text[0] == '/' && text[1] == '/';
    const bool open = line->size > 0 && text[line->size - 1] == '\\';
    lam_text full = {0};
    lam_text_bytes(&full, text + skip, line->size - skip - open);
    if (line->size > 0 && !open)
        lam_text_add(&full, t->newline);
    lam_status status = lam_text_status(&full, "a line");
    if (status == LAM_OK)
        status = read_text(t, full.data ? full.data : "", full.size);
    lam_text_free(&full);
    return status == LAM_OK ? take_turn(t) : status;
}

/* A newline, or what stands for one where the vocabulary has none (text8), or nothing. */
static const char *find_newline(const lam_engine *engine)
{
    static const char *const ways[] = {"\n", " ", ""};
    int i = 0;
    while (i < 2 && lam_vocab_check(engine->vocab, ways[i], 1) != LAM_OK)
        i++;
    return ways[i];
}

/* ---- lines ---- */

static void ask(const lam_talk *t)
{
    int64_t length;
    const bool several = lam_branches_count(t->branches) > 1;
    if (!t->terminal)
        return;
    fprintf(stderr, "%s%s> %s", lam_term_style(stderr, LAM_STYLE_BOLD),
            several ? lam_branches_name(t->branches, lam_branches_current(t->branches), &length)
                    : "",
            lam_term_style(stderr, LAM_STYLE_NONE));
    fflush(stderr);
}

/* *more is false at the end of the input. */
static lam_status read_line(lam_talk *t, bool *more)
{
    int c = EOF;
    lam_text_free(&t->line);
    while (lam_stop_signal() == 0 && (c = getc(stdin)) != EOF && c != '\n') {
        const char byte = (char)c;
        lam_text_bytes(&t->line, &byte, 1);
        if (t->line.size > LINE_MOST)
            return lam_fail(LAM_ERR_IO, "standard input: a line of more than %d bytes", LINE_MOST);
    }
    const int error = errno;
    if (lam_stop_signal() != 0)
        return lam_fail(LAM_ERR_INTERRUPTED, "interrupted");
    if (c == EOF && ferror(stdin))
        return lam_fail(LAM_ERR_IO, "standard input: %s", strerror(error));
    *more = c != EOF || t->line.size > 0;
    return lam_text_status(&t->line, "a line");
}

/* Somebody at a terminal is told of a mistake and may try again; so after Ctrl-C. */
static lam_status forgive(const lam_talk *t, lam_status status)
{
    if (t->terminal && lam_stop_again())
        return LAM_OK;
    if (lam_stop_signal() != 0)
        return lam_fail(LAM_ERR_INTERRUPTED, "interrupted");
    if (!t->terminal || (status != LAM_ERR_ARG && status != LAM_ERR_FORMAT && status != LAM_ERR_IO))
        return status == LAM_ERR_ARG ? lam_fail(LAM_ERR_FORMAT, "%s", lam_error()) : status;
    lam_log(LAM_LOG_ERROR, "%s", lam_error());
    return LAM_OK;
}

static lam_status converse(lam_talk *t, const lam_given_text *prompt)
{
    lam_status status = LAM_OK;
    if (t->terminal)
        lam_log(LAM_LOG_INFO, "%s continues what you type; /help lists commands", t->engine->name);
    if (prompt) {
        status = read_text(t, prompt->text, prompt->size);
        status = forgive(t, status == LAM_OK ? take_turn(t) : status);
    }
    for (bool more = true; status == LAM_OK && !t->quit;) {
        ask(t);
        status = read_line(t, &more);
        if (status != LAM_OK || !more) {
            if (t->terminal)
                fputc('\n', stderr);
            break;
        }
        const char *const text = t->line.data ? t->line.data : "";
        status = text[0] == '/' && text[1] != '/' ? lam_talk_obey(t) : continue_line(t);
        status = forgive(t, status);
        if (ferror(stdout))
            break;
    }
    return status;
}

lam_status lam_interactive(const lam_engine *engine, const lam_args *args, const char *const *stops,
                           const lam_given_text *prompt)
{
    const lam_generate_args *const o = args->options;
    lam_talk t = {.engine = engine,
                  .o = *o,
                  .stops = stops,
                  .n_stops = o->stop.n,
                  .newline = find_newline(engine),
                  .terminal = lam_term_is_tty(stdin)};
    for (int i = 0; i < t.n_stops; i++)
        if (stops[i][0] == '\0')
            return lam_fail(LAM_ERR_ARG, "stop string %d is empty", i + 1);
    lam_status status = lam_branches_create(&t.branches, engine, o);
    if (status == LAM_OK)
        status = converse(&t, prompt);
    lam_branches_free(t.branches);
    lam_text_free(&t.line);
    lam_text_free(&t.written);
    return lam_engine_blame(engine, status);
}
