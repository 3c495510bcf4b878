/* huggingface.c -- see huggingface.h. */
#include "convert/huggingface.h"

#include "convert/tokenizer_json.h"
#include "core/file.h"
#include "data/byte_text.h"
#include "io/json.h"
#include "mem/mem.h"
#include "model/configure.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char MODULE[] = "modeling_lamemo.py";

lam_status lam_hf_check(const lam_config *cfg, lam_dtype dtype)
{
    char names[LAM_MEMORY_TEXT];
    const lam_mem_ops *mem;
    LAM_TRY(lam_mem_find(&mem, cfg->memory));
    if (!lam_mem_has(mem, LAM_IN_TORCH))
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "--hf: %s has no memory %s; it has %s.  --out writes the weights alone",
                        MODULE, cfg->memory, lam_mem_having(names, LAM_IN_TORCH));
    const char *const field = mem->not_in_torch ? mem->not_in_torch(cfg) : NULL;
    if (field)
        return lam_fail(LAM_ERR_UNSUPPORTED, "--hf: %s has no %s, which this model uses", MODULE,
                        field);
    if (cfg->ext_len > 0)
        return lam_fail(LAM_ERR_UNSUPPORTED, "--hf: %s has no ext_len, which is %d in this model",
                        MODULE, cfg->ext_len);
    if (dtype == LAM_I8)
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "--hf: transformers read no int8 of ours; choose --dtype f32, bf16 or f16");
    return LAM_OK;
}

/* What lam_config_print() says, and what transformers want to know. */
static lam_status write_config(const char *path, const lam_config *cfg, lam_dtype dtype)
{
    static const char *const types[] = {
        [LAM_F32] = "float32", [LAM_F16] = "float16", [LAM_BF16] = "bfloat16"};
    char *text;
    json_t *root = NULL;
    LAM_TRY(lam_config_print(&text, cfg));
    const lam_status status = lam_json_parse(&root, path, text, strlen(text));
    free(text);
    LAM_TRY(status);
    root = lam_json_set(root, "architectures", json_pack("[s]", "LamemoForCausalLM"));
    root = lam_json_set(root, "auto_map",
                        json_pack("{s:s, s:s}", "AutoConfig", "modeling_lamemo.LamemoConfig",
                                  "AutoModelForCausalLM", "modeling_lamemo.LamemoForCausalLM"));
    root = lam_json_set(root, "torch_dtype", json_string(types[dtype]));
    root = lam_json_set(root, "tie_word_embeddings", json_false());
    return lam_json_save(path, root, JSON_INDENT(2));
}

/* All 256 bytes as byte pairs without a merge; NULL without memory. */
static json_t *byte_tokenizer(const lam_vocab *vocab)
{
    json_t *tokens = json_object();
    for (int32_t i = 0; i < lam_vocab_size(vocab) && tokens; i++) {
        char spelled[8];
        size_t size;
        const char *bytes = lam_vocab_symbol(vocab, i, &size);
        lam_byte_text(spelled, bytes, size);
        if (json_object_set_new(tokens, spelled, json_integer(i)) != 0) {
            json_decref(tokens);
            return NULL;
        }
    }
    json_t *level = json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                              "trim_offsets", 0, "use_regex", 0);
    json_t *model = json_pack("{s:s, s:n, s:n, s:s, s:s, s:b, s:o, s:[]}", "type", "BPE", "dropout",
                              "unk_token", "continuing_subword_prefix", "", "end_of_word_suffix",
                              "", "fuse_unk", 0, "vocab", tokens, "merges");
    return json_pack("{s:s, s:n, s:n, s:[], s:n, s:O, s:n, s:o, s:o}", "version", "1.0",
                     "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", level,
                     "post_processor", "decoder", level, "model", model);
}

/* Bytes that are numbered by their values.  Words and characters have no counterpart that cuts every text alike. */
static int is_all_bytes(const lam_vocab *vocab)
{
    if (lam_vocab_kind(vocab) != LAM_BYTES || lam_vocab_lower(vocab) ||
        lam_vocab_size(vocab) != 256)
        return 0;
    for (int32_t i = 0; i < 256; i++) {
        size_t size;
        const char *bytes = lam_vocab_symbol(vocab, i, &size);
        if (size != 1 || (unsigned char)bytes[0] != i)
            return 0;
    }
    return 1;
}

static lam_status write_tokenizer(const char *dir, const lam_vocab *vocab)
{
    char path[PATH_MAX];
    if (!vocab || (!lam_vocab_bpe(vocab) && !is_all_bytes(vocab)))
        return LAM_OK;
    LAM_TRY(lam_path_join(path, sizeof path, dir, "tokenizer.json"));
    LAM_TRY(lam_vocab_bpe(vocab) ? lam_tokenizer_json_save(vocab, path)
                                 : lam_json_save(path, byte_tokenizer(vocab), JSON_INDENT(2)));
    LAM_TRY(lam_path_join(path, sizeof path, dir, "tokenizer_config.json"));
    return lam_json_save(path,
                         json_pack("{s:s, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
                                   "clean_up_tokenization_spaces", 0),
                         JSON_INDENT(2));
}

lam_status lam_hf_write(const char *dir, const lam_config *cfg, lam_dtype dtype,
                        const lam_vocab *vocab)
{
    char path[PATH_MAX];
    LAM_TRY(lam_path_join(path, sizeof path, dir, "config.json"));
    LAM_TRY(write_config(path, cfg, dtype));
    LAM_TRY(lam_path_join(path, sizeof path, dir, MODULE));
    LAM_TRY(lam_file_save(path, lam_asset_modeling_lamemo.data, lam_asset_modeling_lamemo.size));
    return write_tokenizer(dir, vocab);
}
