/* history_fuzz.c -- any bytes as metrics.jsonl: every line is taken or counted as bad, and steps rise. */
#include "measure/history.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

static int lines_in(const uint8_t *data, size_t size)
{
    int lines = 0;
    size_t length = 0; /* empty lines do not count, nor does one without an end */
    for (size_t i = 0; i < size; i++) {
        lines += data[i] == '\n' && length > 0;
        length = data[i] == '\n' ? 0 : length + 1;
    }
    return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lam_history h = {0};
    if (lam_history_parse(&h, "fuzz", (const char *)data, size) == LAM_OK)
        require(h.records + h.bad == lines_in(data, size) && (h.bad == 0) == (h.why[0] == '\0'));
    for (int i = 0; i < h.n; i++)
        for (int k = 1; k < h.curves[i].n; k++)
            require(h.curves[i].step[k] > h.curves[i].step[k - 1]);
    lam_history_free(&h);
    return 0;
}
