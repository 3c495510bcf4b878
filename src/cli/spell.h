/* spell.h -- what the library calls batch_size is --batch-size to who wrote a command line.
 *
 * The library names fields as files hold them, and knows of no options.  Where it refuses an argument, the program
 * tells its user which option that was. */
#ifndef LAM_CLI_SPELL_H
#define LAM_CLI_SPELL_H

#include "cli/options.h"

/* `message` with the names of fields that are options in `table` spelled as such, into out (size bytes); returns out.
 * A name is a word with an underscore, or the first one ("optim muon: ..."), before a blank: other words may mean
 * what they say. */
const char *lam_spell_options(char *out, size_t size, const char *message, const lam_option *table);

#endif
