/* describe.c -- see describe.h. */
#include "cli/describe.h"

#include "cli/shape_options.h"

#include <stdarg.h>
#include <stdio.h>

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
    char details[LAM_DESCRIPTION_MAX] = "";
    const lam_mem_ops *mem = NULL;
    if (lam_mem_find(&mem, cfg->memory) != LAM_OK)
        return; /* a finished configuration names one that exists */
    if (cfg->attn_type != mem->attn_types[0])
        add(l, "attn_type %d", cfg->attn_type);
    if (mem->details)
        mem->details(details, sizeof details, cfg);
    if (details[0])
        add(l, "%s", details);
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
