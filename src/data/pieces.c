/* pieces.c -- see pieces.h. */
#include "data/pieces.h"

#include "core/clock.h"
#include "core/file.h"
#include "data/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* Most a match may take of its own stack; the patterns of tokenizers need a few hundred bytes. */
enum { STACK_FIRST = 1 << 15, STACK_MAX = 1 << 23 };
/* Of one attempt: backtracks, and KiB without JIT.  PCRE2's own limit is 20 GB.  Published patterns go back over a run
 * of blanks once, and each step back of a hostile one may look at the whole of LAM_PIECE_MAX bytes again. */
enum { MATCH_MAX = 2 * LAM_PIECE_MAX, HEAP_MAX = 1 << 16 };
enum { ATTEMPTS = 64 };          /* between two looks at the clock, where they are fast */
static const double SLOW = 1e-5; /* seconds of an attempt; a word takes a hundredth */

struct lam_pattern {
    char *source;
    pcre2_code *code;
    bool jit;
};

struct lam_pieces {
    const lam_pattern *pattern;
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    const char *text;
    size_t size;
    size_t checked;  /* text from the current piece to here is whole characters */
    bool stopped;    /* none begins at `checked` */
    size_t from;     /* where the text began */
    double computed; /* thread_seconds() then */
    double looked;   /* lam_clock() at the latest look */
    int every, left; /* attempts from one look to the next, and still to be made */
};

/* ---- patterns ---- */

/* "cl100k" is Llama 3's too. */
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER       "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER       "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
static const char *const sources[] = {
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
                "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" CONTRACTION "?|[^\\r\\n\\p{L}\\p{N}]?" UPPER
    "+" LOWER "*" CONTRACTION "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
                "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
};
const char *const lam_pattern_names[] = {"gpt2", "cl100k", "o200k", "qwen2", NULL};

const char *lam_pattern_named(const char *name)
{
    for (int i = 0; lam_pattern_names[i] != NULL; i++)
        if (strcmp(lam_pattern_names[i], name) == 0)
            return sources[i];
    return NULL;
}

/* The pattern with \s and \S spelled out, in *out (free).  *anchored: it has a ^ outside of brackets. */
static lam_status spell_out(char **out, const char *source, bool *anchored)
{
    static const char space[] = "\\p{White_Space}", other[] = "\\P{White_Space}";
    const size_t size = strlen(source);
    int depth = 0;
    *anchored = false;
    if (size > LAM_PATTERN_MAX)
        return lam_fail(LAM_ERR_FORMAT, "a pattern of %zu bytes; at most %d are read", size,
                        LAM_PATTERN_MAX);
    char *to = *out = malloc(size * sizeof space + 1);
    if (to == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for a pattern");
    for (const char *at = source; *at != '\0'; at++) {
        if (at[0] == '\\' && (at[1] == 's' || at[1] == 'S')) {
            memcpy(to, at[1] == 's' ? space : other, sizeof space - 1);
            to += sizeof space - 1;
            at++;
            continue;
        }
        if (at[0] == '\\' && at[1] != '\0')
            *to++ = *at++;
        else if (*at == '[')
            depth = 1; /* a '[' inside is a character of the class */
        else if (*at == ']')
            depth = 0;
        else if (*at == '^' && depth == 0)
            *anchored = true;
        *to++ = *at;
    }
    *to = '\0';
    return LAM_OK;
}

static lam_status complain(const char *what, const char *source)
{
    return lam_fail(LAM_ERR_FORMAT, "pattern '%.200s': %s", source, what);
}

static lam_status compile(lam_pattern *p, const char *spelled, bool anchored)
{
    const uint32_t options =
        PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY | PCRE2_ANCHORED;
    int code;
    PCRE2_SIZE at;
    uint32_t behind = 0, empty = 0;
    p->code = pcre2_compile((PCRE2_SPTR)spelled, PCRE2_ZERO_TERMINATED, options, &code, &at, NULL);
    if (p->code == NULL) {
        char why[256];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
        return complain(why, p->source);
    }
    pcre2_pattern_info(p->code, PCRE2_INFO_MAXLOOKBEHIND, &behind);
    pcre2_pattern_info(p->code, PCRE2_INFO_MATCHEMPTY, &empty);
    if (behind > 0 || anchored)
        return complain("it looks at what comes before a piece", p->source);
    if (empty)
        return complain("it can match nothing at all", p->source);
    p->jit = pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE) == 0; /* else it is interpreted */
    return LAM_OK;
}

lam_status lam_pattern_create(lam_pattern **out, const char *source)
{
    char *spelled = NULL;
    bool anchored;
    *out = NULL;
    lam_pattern *p = calloc(1, sizeof *p);
    if (p == NULL || (p->source = strdup(source)) == NULL) {
        free(p);
        return lam_fail(LAM_ERR_MEMORY, "no memory for a pattern");
    }
    lam_status status = spell_out(&spelled, source, &anchored);
    if (status == LAM_OK)
        status = compile(p, spelled, anchored);
    free(spelled);
    if (status != LAM_OK)
        lam_pattern_free(p);
    else
        *out = p;
    return status;
}

void lam_pattern_free(lam_pattern *p)
{
    if (p == NULL)
        return;
    pcre2_code_free(p->code);
    free(p->source);
    free(p);
}

const char *lam_pattern_source(const lam_pattern *p)
{
    return p->source;
}

/* ---- pieces ---- */

lam_status lam_pieces_create(lam_pieces **out, const lam_pattern *pattern)
{
    *out = NULL;
    lam_pieces *p = calloc(1, sizeof *p);
    if (p == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory to cut a text into pieces");
    p->pattern = pattern;
    p->match = pcre2_match_data_create(1, NULL);
    p->context = pcre2_match_context_create(NULL);
    p->stack = pcre2_jit_stack_create(STACK_FIRST, STACK_MAX, NULL);
    if (p->match == NULL || p->context == NULL || p->stack == NULL) {
        lam_pieces_free(p);
        return lam_fail(LAM_ERR_MEMORY, "no memory to cut a text into pieces");
    }
    pcre2_jit_stack_assign(p->context, NULL, p->stack);
    pcre2_set_match_limit(p->context, MATCH_MAX);
    pcre2_set_heap_limit(p->context, HEAP_MAX);
    *out = p;
    return LAM_OK;
}

void lam_pieces_free(lam_pieces *p)
{
    if (p == NULL)
        return;
    pcre2_match_data_free(p->match);
    pcre2_match_context_free(p->context);
    pcre2_jit_stack_free(p->stack);
    free(p);
}

/* Of this thread alone, and whatever else the machine does. */
static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void lam_pieces_start(lam_pieces *p, const char *text, size_t size, size_t from)
{
    p->text = text;
    p->size = size;
    p->checked = p->from = from;
    p->stopped = false;
    p->computed = thread_seconds();
    p->looked = lam_clock();
    p->every = p->left = 1;
}

/* What is between the pieces, BPE's merging, counts too: it is a hundred times as fast. */
static lam_status check_speed(lam_pieces *p, size_t at)
{
    const double now = lam_clock(), took = now - p->looked;
    const bool slow = took > p->every * SLOW;
    p->looked = now;
    p->every = took > 0.01 ? 1 : p->every < ATTEMPTS ? 2 * p->every : ATTEMPTS;
    p->left = p->every;
    if (!slow)
        return LAM_OK;
    const double seconds = thread_seconds() - p->computed;
    if (seconds < LAM_PIECES_PATIENCE || (double)(at - p->from) > seconds * LAM_PIECES_SPEED)
        return LAM_OK;
    return lam_fail(LAM_ERR_FORMAT,
                    "pattern '%.200s' is too slow: %.0f s of computing for %zu bytes of text",
                    p->pattern->source, seconds, at - p->from);
}

/* Moves `checked` on to `goal` or a little beyond, or to where no character begins. */
static void check_to(lam_pieces *p, size_t goal)
{
    const unsigned char *s = (const unsigned char *)p->text;
    size_t at = p->checked;
    while (at < goal) {
        uint64_t word;
        if (p->size - at >= sizeof word) {
            memcpy(&word, s + at, sizeof word);
            if ((word & 0x8080808080808080u) == 0) { /* eight of ASCII */
                at += sizeof word;
                continue;
            }
        }
        int32_t code;
        const int n = lam_utf8_decode(s + at, p->size - at, &code);
        if (n <= 0) {
            p->stopped = true;
            break;
        }
        at += (size_t)n;
    }
    p->checked = at;
}

/* The end of the bytes from `from` on at which no character begins. */
static size_t end_of_invalid(const lam_pieces *p, size_t from)
{
    const unsigned char *s = (const unsigned char *)p->text;
    const size_t last = p->size - from > LAM_PIECE_MAX ? from + LAM_PIECE_MAX : p->size;
    int32_t code;
    size_t at = from + 1;
    while (at < last && lam_utf8_decode(s + at, p->size - at, &code) <= 0)
        at++;
    return at;
}

/* Without JIT, and where its stack is too small, which takes a pattern that recurses. */
static int match_slowly(lam_pieces *p, const char *text, size_t n, size_t at)
{
    return pcre2_match(p->pattern->code, (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       p->match, p->context);
}

/* A match that begins at `at` of the text of n bytes, or why there is none. */
static int match_at(lam_pieces *p, const char *text, size_t n, size_t at)
{
    int found = PCRE2_ERROR_JIT_STACKLIMIT;
    if (p->pattern->jit)
        found = pcre2_jit_match(p->pattern->code, (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK,
                                p->match, p->context);
    return found == PCRE2_ERROR_JIT_STACKLIMIT ? match_slowly(p, text, n, at) : found;
}

static lam_status failed(const lam_pieces *p, int code, size_t from)
{
    char why[128];
    pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
    return lam_fail(code == PCRE2_ERROR_NOMEMORY ? LAM_ERR_MEMORY : LAM_ERR_FORMAT,
                    "pattern '%.200s' fails at byte %zu of the text: %s", p->pattern->source, from,
                    why);
}

/* The end of the first match in the text up to `end`, if it begins at `from`; else where it begins: what lies before it
 * comes first.  Searching is done here, attempt by attempt: a pattern from outside may make each one slow, and PCRE2
 * limits an attempt, not a search. */
static lam_status find_end(lam_pieces *p, size_t from, size_t end, size_t *to)
{
    const char *const text = p->text + from;
    const size_t n = end - from;
    size_t at = 0;
    for (;;) {
        if (lam_read_stop && lam_read_stop()) /* one attempt may take seconds */
            return lam_read_check("the text");
        if (--p->left == 0)
            LAM_TRY(check_speed(p, from + at));
        const int found = match_at(p, text, n, at);
        if (found >= 0) {
            *to = from + (at > 0 ? at : pcre2_get_ovector_pointer(p->match)[1]);
            return LAM_OK;
        }
        if (found != PCRE2_ERROR_NOMATCH)
            return failed(p, found, from + at);
        do
            at++;
        while (at < n && (text[at] & 0xc0) == 0x80);
        if (at == n) {
            *to = end;
            return LAM_OK;
        }
    }
}

lam_status lam_pieces_next(lam_pieces *p, size_t from, size_t *to)
{
    const size_t last = p->size - from > LAM_PIECE_MAX ? from + LAM_PIECE_MAX : p->size;
    if (p->checked == from)
        p->stopped = false;
    if (p->checked < last && !p->stopped)
        check_to(p, last);
    if (p->checked == from) {
        p->checked = *to = end_of_invalid(p, from);
        return LAM_OK;
    }
    size_t end = p->checked < last ? p->checked : last;
    while (end < p->checked && (p->text[end] & 0xc0) == 0x80) /* not inside a character */
        end--;

    return find_end(p, from, end, to);
}
