/* budget.c -- see budget.h. */
#include "core/budget.h"

#include "core/machine.h"

#include <stdio.h>
#include <string.h>

static size_t common_limit;

void lam_budget_set(size_t limit)
{
    common_limit = limit;
}

size_t lam_budget_limit(size_t limit)
{
    return limit > 0 ? limit : common_limit;
}

size_t lam_budget_left(size_t limit)
{
    const size_t all = lam_budget_limit(limit);
    const size_t used = all > 0 ? lam_machine_used() : 0;
    return all == 0 ? lam_machine_left("") : all > used ? all - used : 0;
}

lam_status lam_budget_compare(const char *what, size_t bytes, size_t left, size_t limit)
{
    char need[32], have[32];
    if (bytes <= left)
        return LAM_OK;
    lam_format_size(need, sizeof need, (double)bytes);
    lam_format_size(have, sizeof have, (double)left);
    if (strcmp(need, have) == 0) { /* the difference is in the digits that were left out */
        snprintf(need, sizeof need, "%zu bytes", bytes);
        snprintf(have, sizeof have, "%zu", left);
    }
    return lam_fail(LAM_ERR_MEMORY, "%s: needs %s of memory, %s available; use smaller sizes%s",
                    what, need, have, limit > 0 ? ", or set max_memory higher" : "");
}

lam_status lam_budget_ask_under(size_t limit, const char *what, size_t bytes)
{
    return bytes < LAM_BUDGET_SMALL
               ? LAM_OK
               : lam_budget_compare(what, bytes, lam_budget_left(limit), lam_budget_limit(limit));
}

lam_status lam_budget_ask(const char *what, size_t bytes)
{
    return lam_budget_ask_under(0, what, bytes);
}

char *lam_format_size(char *text, size_t size, double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    int unit = 0;
    while (bytes >= 999.5 && unit < 4) {
        bytes /= 1000;
        unit++;
    }
    snprintf(text, size, unit > 0 && bytes < 9.95 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return text;
}
