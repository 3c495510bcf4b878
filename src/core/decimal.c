/* decimal.c -- see decimal.h. */
#include "core/decimal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t lam_decimal(double *out, const char *text)
{
    static const char digits[] = "0123456789";
    const char *const first = text + strspn(text, "+-");
    char *end;
    *out = 0.0;
    if (first > text + 1 || strspn(first + (*first == '.'), digits) == 0 ||
        (first[0] == '0' && (first[1] == 'x' || first[1] == 'X')))
        return 0;
    errno = 0;
    const double v = strtod(text, &end);
    if (!isfinite(v) || (v == 0.0 && errno == ERANGE))
        return 0;
    *out = v + 0.0; /* of -0 this makes 0 */
    return (size_t)(end - text);
}
