/* prepare_lack.c -- a given vocabulary and a text that has more: the first symbol it lacks, and where.
 *
 * Numbers of symbols forget where they came from, so this looks on while the text is read.  Where there
 * is <unk> nothing is lacking. */
#include "data/prepare_int.h"

void lam_lack_start(lam_lack *l, const lam_vocab *vocab, const lam_symbols *symbols)
{
    *l = (lam_lack){.vocab = vocab, .symbols = symbols, .newline = -1, .found = -1};
    if (vocab != NULL && lam_vocab_kind(vocab) == LAM_WORDS)
        l->newline = 0; /* <eos> */
}

void lam_lack_source(lam_lack *l, const char *name)
{
    if (l->found >= 0)
        return;
    l->source = name;
    l->line = l->place = 1;
}

/* Symbols are numbered as they appear: one that was not looked up has a number above all others. */
static bool is_lacking(lam_lack *l, int32_t id)
{
    size_t size;
    const char *text = lam_symbols_text(l->symbols, id, &size);
    l->seen = id + 1;
    if (l->newline < 0 && size == 1 && *text == '\n')
        l->newline = id;
    return lam_vocab_number(l->vocab, text, size) == LAM_SYMBOL_LACKING;
}

void lam_lack_note(lam_lack *l, const int32_t *ids, size_t n, int64_t at)
{
    if (l->vocab == NULL || lam_vocab_unk(l->vocab) >= 0)
        return;
    for (size_t i = 0; i < n && l->found < 0; i++) {
        if (ids[i] >= l->seen && is_lacking(l, ids[i])) {
            l->found = ids[i];
            l->at = at + (int64_t)i;
        } else if (ids[i] == l->newline) {
            l->line++;
            l->place = 1;
        } else {
            l->place++;
        }
    }
}

static int32_t count_others(const lam_lack *l)
{
    int32_t n = -1; /* the one that was found */
    for (int32_t i = 0; i < lam_symbols_count(l->symbols); i++) {
        size_t size;
        const char *text = lam_symbols_text(l->symbols, i, &size);
        n += lam_vocab_number(l->vocab, text, size) == LAM_SYMBOL_LACKING;
    }
    return n;
}

lam_status lam_lack_check(const lam_lack *l, int64_t end, const char *vocab_name)
{
    static const char *const unit[] = {"byte", "character", "word"};
    char shown[LAM_SYMBOL_SHOWN];
    size_t size;
    if (l->found < 0 || l->at >= end)
        return LAM_OK;
    const char *text = lam_symbols_text(l->symbols, l->found, &size);
    const int others = (int)count_others(l);
    lam_symbol_show(shown, text, size);
    if (others == 0)
        return lam_fail(LAM_ERR_FORMAT,
                        "%s, line %lld, %s %lld: %s is not in the vocabulary of %s, which has no "
                        "<unk>: replace or remove it",
                        l->source, (long long)l->line, unit[lam_vocab_kind(l->vocab)],
                        (long long)l->place, shown, vocab_name);
    return lam_fail(LAM_ERR_FORMAT,
                    "%s, line %lld, %s %lld: %s is not in the vocabulary of %s, which has no "
                    "<unk>, nor %s %d other symbol%s of the text: replace or remove them",
                    l->source, (long long)l->line, unit[lam_vocab_kind(l->vocab)],
                    (long long)l->place, shown, vocab_name, others == 1 ? "is" : "are", others,
                    others == 1 ? "" : "s");
}
