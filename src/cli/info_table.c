/* info_table.c -- see info_table.h. */
#include "cli/info_table.h"

#include "cli/print_json.h"
#include "mem/mem.h"
#include "model/macs.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void print_text(const lam_config *cfg, bool published)
{
    printf("%-26s %12s%s\n", "MACs per token", "millions", published ? "        paper" : "");
    for (int i = 0; lam_mem_all[i]; i++) {
        const lam_mem_ops *mem = lam_mem_all[i];
        printf("%-26s %12.2f", mem->title, lam_macs_token(cfg, mem->name).total / 1e6);
        if (published && mem->paper.macs > 0)
            printf(" %12d", mem->paper.macs);
        putchar('\n');
    }
}

static lam_status print_json(const lam_config *cfg, bool published)
{
    json_t *list = json_array();
    for (int i = 0; lam_mem_all[i]; i++) {
        const lam_mem_ops *mem = lam_mem_all[i];
        json_t *row = json_pack("{s:s, s:s, s:f}", "memory", mem->name, "name", mem->title,
                                "macs_per_token", lam_macs_token(cfg, mem->name).total);
        if (published && mem->paper.macs > 0)
            json_object_set_new(row, "paper", json_real(1e6 * mem->paper.macs));
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
