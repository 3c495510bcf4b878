/* config_fuzz.c -- whatever is in config.json, parsing fails with a message naming the file or gives a
 * configuration that reads the same when it is printed. */
#include "model/configure.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char label[] = "fuzz/config.json";
    lam_config cfg, again;
    char *text = malloc(size + 1), *printed = NULL;
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (lam_config_parse(&cfg, text, label) != LAM_OK) {
        require(strncmp(lam_error(), label, sizeof label - 1) == 0);
    } else {
        require(lam_config_print(&printed, &cfg) == LAM_OK);
        require(lam_config_parse(&again, printed, label) == LAM_OK);
        require(lam_config_same(&again, &cfg, label) == LAM_OK);
    }
    free(printed);
    free(text);
    return 0;
}
