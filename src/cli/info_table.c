/* info_table.c -- see info_table.h. */
#include "cli/info_table.h"

#include "cli/print_json.h"
#include "model/macs.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *memory, *name;
    int paper; /* millions, for wt103-base */
} rows[] = {{"none", "Transformer+RPE", 148},
            {"xl", "Transformer-XL", 157},
            {"compressive", "Compressive Transformer", 169},
            {"infinite", "infinity-former", 235},
            {"lamemo", "LaMemo", 191}};
enum { ROWS = sizeof rows / sizeof *rows };

static void print_text(const lam_config *cfg, bool published)
{
    printf("%-26s %12s%s\n", "MACs per token", "millions", published ? "        paper" : "");
    for (int i = 0; i < ROWS; i++) {
        printf("%-26s %12.2f", rows[i].name, lam_macs_token(cfg, rows[i].memory).total / 1e6);
        if (published)
            printf(" %12d", rows[i].paper);
        putchar('\n');
    }
}

static lam_status print_json(const lam_config *cfg, bool published)
{
    json_t *list = json_array();
    for (int i = 0; i < ROWS; i++) {
        json_t *row = json_pack("{s:s, s:s, s:f}", "memory", rows[i].memory, "name", rows[i].name,
                                "macs_per_token", lam_macs_token(cfg, rows[i].memory).total);
        if (published)
            json_object_set_new(row, "paper", json_real(1e6 * rows[i].paper));
        json_array_append_new(list, row);
    }
    return lam_print_json(list, JSON_INDENT(2));
}

lam_status lam_info_table(const lam_config *cfg, const char *preset, bool json)
{
    const bool published = strcmp(preset, "wt103-base") == 0;
    if (cfg->mem_len == 0)
        return lam_fail(LAM_ERR_ARG, "--table: memories are compared, and mem_len is 0");
    if (json)
        return print_json(cfg, published);
    print_text(cfg, published);
    return LAM_OK;
}
