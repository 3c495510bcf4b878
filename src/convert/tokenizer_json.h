/* tokenizer_json.h -- Hugging Face's tokenizer.json, where it describes a byte-level BPE (the GPT-2, Llama
 * 3 and Qwen families).
 *
 * Read: the BPE model (vocabulary, merges, ignore_merges), added tokens, the NFC normalizer, and the
 * ByteLevel pre_tokenizer, alone or after one Split by a regular expression. Anything else that changes
 * tokens is refused by name (LAM_ERR_UNSUPPORTED). Ignored: truncation, padding, the decoder and the
 * post_processor, since no special tokens are added to a text. Added tokens become special tokens. */
#ifndef LAM_CONVERT_TOKENIZER_JSON_H
#define LAM_CONVERT_TOKENIZER_JSON_H

#include "data/vocab.h"

#include <jansson.h>

/* Is a JSON file one of these? */
bool lam_tokenizer_json_is(const json_t *root);
lam_status lam_tokenizer_json_read(lam_vocab **out, const json_t *root, const char *path);

/* Writes one that Hugging Face's `tokenizers` and what is like it reads; LAM_ERR_ARG where the vocabulary is not of byte
 * pairs. */
lam_status lam_tokenizer_json_save(const lam_vocab *vocab, const char *path);

#endif
