/* spell.c -- see spell.h. */
#include "cli/spell.h"

#include <stdio.h>
#include <string.h>

/* Is the word of n bytes the option's name, with underscores for dashes? */
static bool is_field(const char *word, size_t n, const char *name)
{
    if (strlen(name) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (word[i] != (name[i] == '-' ? '_' : name[i]))
            return false;
    return true;
}

static const char *option_of(const char *word, size_t n, const lam_option *table)
{
    const lam_option *const tables[] = {table, lam_common_options};
    for (int i = 0; i < 2; i++)
        for (const lam_option *o = tables[i]; o->help; o++)
            if (o->name && is_field(word, n, o->name))
                return o->name;
    return NULL;
}

const char *lam_spell_options(char *out, size_t size, const char *message, const lam_option *table)
{
    size_t used = 0;
    out[0] = '\0';
    for (const char *word = message; *word && used < size;) {
        const size_t n = strcspn(word, " "), blanks = strspn(word + n, " ");
        const bool may_be = blanks > 0 && (word == message || memchr(word, '_', n));
        const char *name = may_be ? option_of(word, n, table) : NULL;
        used += (size_t)(name ? snprintf(out + used, size - used, "--%s%.*s", name, (int)blanks,
                                         word + n)
                              : snprintf(out + used, size - used, "%.*s", (int)(n + blanks), word));
        word += n + blanks;
    }
    return out;
}
