/* spelling.h -- what a word of the user may have meant, and what the library's words are to the user.
 *
 * The library names fields as files hold them, and knows of no options.  Where it refuses an argument, the program
 * tells its user which option that was. */
#ifndef LAM_CLI_SPELLING_H
#define LAM_CLI_SPELLING_H

#include "cli/options.h"

/* The name in `names` (ends with NULL) nearest to `word` if it is near enough to be a slip; else
 * NULL. */
const char *lam_closest(const char *word, const char *const *names);

/* What an option that other programs call `word` is called here, "batch-size" or "device cuda": the first of those
 * whose name is in `names`; else NULL. */
const char *lam_brought(const char *word, const char *const *names);

/* `message` with the names of fields that are options in `table` spelled as such, into out (size bytes); returns out.
 * A name is a word with an underscore, or the first one ("optim muon: ..."), before a blank: other words may mean
 * what they say. */
const char *lam_spell_options(char *out, size_t size, const char *message, const lam_option *table);

#endif
