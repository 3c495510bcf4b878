/* closest.c -- what a mistyped word may have meant. */
#include "cli/options.h"

#include <limits.h>
#include <string.h>

/* Optimal string alignment distance of two short words: insert, delete, change, swap. */
static int distance(const char *a, const char *b)
{
    enum { MAX = 32 };
    int d[MAX + 1][MAX + 1];
    const int na = (int)strlen(a), nb = (int)strlen(b);
    if (na > MAX || nb > MAX)
        return INT_MAX;
    for (int i = 0; i <= na; i++) {
        for (int j = 0; j <= nb; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            best = d[i - 1][j] + 1 < best ? d[i - 1][j] + 1 : best;
            best = d[i][j - 1] + 1 < best ? d[i][j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[na][nb];
}

const char *lam_closest(const char *word, const char *const *names)
{
    const char *best = NULL;
    int best_distance = 1 + (int)strlen(word) / 3; /* a slip, not another word */
    for (int i = 0; names[i] != NULL; i++) {
        const int d = distance(word, names[i]);
        if (d <= best_distance && (best == NULL || d < best_distance)) {
            best = names[i];
            best_distance = d;
        }
    }
    return best;
}
