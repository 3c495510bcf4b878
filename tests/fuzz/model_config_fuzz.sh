#!/usr/bin/env bash
# Configurations of every memory to start from: model_config_fuzz.sh FOLDER
set -euo pipefail
cd "$1"

seed() { # seed NAME KEYS
    printf '{"n_token":9,"n_layer":2,"n_head":2,"d_model":8,"d_head":4,"d_inner":8,"tgt_len":4,%s}' "$2" > "$1"
}
seed none '"memory":"none","attn_type":2'
seed xl '"mem_len":4,"ext_len":2,"clamp_len":3,"cutoffs":[2,5],"tie_projs":[true,false,true],"div_val":2'
seed lamemo '"mem_len":4,"memory":"lamemo","attn_type":31,"alpha":"zero","window":"current","interp_eps":0.5,"refresh_from":1'
seed every '"mem_len":4,"memory":"lamemo","attn_type":3,"refresh_every":2'
seed compressive '"mem_len":4,"memory":"compressive","cmem_len":3,"rate":2,"pooling":"max","remainder":"carry"'
seed infinite '"mem_len":4,"memory":"infinite","ltm_basis":4,"ltm_widths":[0.1,0.2],"ltm_sticky":"uniform","ltm_tau":0.25'
