#!/usr/bin/env bash
# Pickles of small checkpoints to start from: convert_foreign_fuzz.sh FOLDER
set -euo pipefail
cd "$1"

text() { printf "X\\x$(printf %02x ${#1})\\0\\0\\0%s" "$1"; }
tensor() { # tensor NAME ROWS COLUMNS (0: one dimension): all of storage 0, which has 16 floats
    text "$1"
    printf 'ctorch._utils\n_rebuild_tensor_v2\n(('; text storage; printf 'ctorch\nFloatStorage\n'; text 0; text cpu
    printf "K\\x10tQK\\0"
    if [ "$3" -gt 0 ]; then
        printf "K\\x$(printf %02x "$2")K\\x$(printf %02x "$3")\x86K\\x$(printf %02x "$3")K\\x01\x86"
    else
        printf "K\\x$(printf %02x "$2")\x85K\\x01\x85"
    fi
    printf '\x89ccollections\nOrderedDict\n)RtR'
}
state() { # a model of one layer: 3 types, 1 head of 2, width 2, inner 2
    printf 'ccollections\nOrderedDict\n)R('
    tensor r_w_bias 1 2; tensor r_r_bias 1 2; tensor word_emb.emb_layers.0.weight 3 2
    tensor layers.0.dec_attn.qkv_net.weight 6 2; tensor layers.0.dec_attn.r_net.weight 2 2
    tensor layers.0.dec_attn.o_net.weight 2 2; tensor layers.0.dec_attn.layer_norm.weight 2 0
    tensor layers.0.dec_attn.layer_norm.bias 2 0; tensor layers.0.pos_ff.CoreNet.0.weight 2 2
    tensor layers.0.pos_ff.CoreNet.0.bias 2 0; tensor layers.0.pos_ff.CoreNet.3.weight 2 2
    tensor layers.0.pos_ff.CoreNet.3.bias 2 0; tensor layers.0.pos_ff.layer_norm.weight 2 0
    tensor layers.0.pos_ff.layer_norm.bias 2 0; tensor crit.out_layers.0.weight 3 2
    tensor crit.out_layers.0.bias 3 0
    printf 'u'
}
vocab() {
    printf 'cutils.vocabulary\nVocab\n)\x81}('; text counter; printf 'ccollections\nCounter\n}('; text a; printf 'K\x05u\x85R'
    text lower_case; printf '\x89'; text idx2sym; printf ']('; text "$1"; text "$2"; text "$3"; printf 'eub'
}
config() { printf '}('; text tgt_len; printf 'K\x05'; text mem_len; printf 'K\x05'; text attn_type; printf 'K\0'; text cutoffs; printf ']u'; }
whole() {
    printf '\x80\x02}('; text model_config; config; text model_state; state; text vocab; vocab "$@"; text args
    printf 'cargparse\nNamespace\n)\x81}('; text tied; printf '\x88ubu.'
}
whole a b _ > chars
whole 10 101 255 > bytes
whole '<eos>' '<unk>' word > words
{ printf '\x80\x02'; state; printf '.'; } > bare
{ printf '\x80\x02cmem_transformer\nM\n)\x81}('; text _parameters; printf 'ccollections\nOrderedDict\n)R('; tensor r_w_bias 1 2; printf 'u'
    text _modules; printf 'ccollections\nOrderedDict\n)R('; text crit; printf 'cm\nC\n)\x81}('; text _parameters; printf '}'
    text _modules; printf '}'; text cutoffs; printf '](K\x03eubuub.'; } > module
