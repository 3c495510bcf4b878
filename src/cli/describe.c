/* describe.c -- see describe.h. */
#include "cli/describe.h"

#include "cli/shape_options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* "NAME", then " (FIRST, SECOND)". */
typedef struct list {
    char *text;
    size_t used;
    int n;
} list;

__attribute__((format(printf, 2, 3))) static void add(list *l, const char *format, ...)
{
    va_list args;
    const size_t room = LAM_DESCRIPTION_MAX - l->used;
    const int lead = snprintf(l->text + l->used, room, "%s", l->n++ == 0 ? " (" : ", ");
    va_start(args, format);
    const int more = vsnprintf(l->text + l->used + lead, room - (size_t)lead, format, args);
    va_end(args);
    l->used += (size_t)lead + (size_t)more;
}

static void add_details(list *l, const lam_config *cfg)
{
    if (strcmp(cfg->memory, "lamemo") == 0) {
        if (cfg->attn_type != LAM_ATTN_LAMEMO)
            add(l, "attn_type %d", cfg->attn_type);
        if (cfg->alpha != LAM_ALPHA_LEARNED)
            add(l, "alpha %s", lam_alpha_names[cfg->alpha]);
        if (cfg->window != LAM_WINDOW_PREVIOUS)
            add(l, "window %s", lam_window_names[cfg->window]);
        return;
    }
    if (cfg->attn_type != LAM_ATTN_XL)
        add(l, "attn_type %d", cfg->attn_type);
    if (strcmp(cfg->memory, "compressive") == 0)
        add(l, "%d rows at a rate of %d, %s", cfg->cmem_len, cfg->rate,
            lam_pooling_names[cfg->pooling]);
    if (strcmp(cfg->memory, "infinite") == 0)
        add(l, "%d basis functions, blocks of %d, sticky %s", cfg->ltm_basis, cfg->ltm_block,
            lam_sticky_names[cfg->ltm_sticky]);
    if (cfg->ext_len > 0)
        add(l, "ext_len %d", cfg->ext_len);
}

const char *lam_describe_memory(char text[LAM_DESCRIPTION_MAX], const lam_config *cfg)
{
    list l = {.text = text};
    l.used = (size_t)snprintf(text, LAM_DESCRIPTION_MAX, "%s", cfg->memory);
    add_details(&l, cfg);
    if (l.n > 0)
        snprintf(text + l.used, LAM_DESCRIPTION_MAX - l.used, ")");
    return text;
}

const char *lam_describe_length(char text[LAM_DESCRIPTION_MAX], const lam_settings *s)
{
    if (lam_settings_timed(s))
        snprintf(text, LAM_DESCRIPTION_MAX, "%g seconds", s->scheduler_time);
    else
        snprintf(text, LAM_DESCRIPTION_MAX, "%lld steps", (long long)s->max_step);
    return text;
}
