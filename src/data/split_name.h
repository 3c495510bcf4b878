/* split_name.h -- recognises splits by the names of files and folders.
 *
 * Held-out text that ends up in training is the worst that can happen to a corpus, so any name in which a word such as
 * train, val, dev or test stands by itself counts: wiki.train.tokens, dev.txt.gz, test-00001-of-00003.txt,
 * train/book.txt, trainset.txt, wikiTest.txt.
 *
 * At the end of a longer word it may be chance: constraint.txt holds a train, protest.txt ends with a test.  It counts
 * only where another file has the same name but for another split's word in its place: wikitrain.txt counts beside
 * wikitest.txt (prepare_splits.c). */
#ifndef LAM_DATA_SPLIT_NAME_H
#define LAM_DATA_SPLIT_NAME_H

#include "data/corpus.h"

enum { LAM_SPLIT_NONE = LAM_SPLITS, LAM_SPLIT_UNCLEAR }; /* no such word; contradicting ones */

enum { LAM_FAMILY_MAX = 256 };

typedef struct lam_split_guess {
    int split; /* a lam_split, or one of the above */
    char word[24];
    /* The name with the word left open: files that belong together have the same one.  Numbers behind the word count
     * as any number (parts of a split), packing and kind of file as none. */
    char family[LAM_FAMILY_MAX];
} lam_split_guess;

/* `path` is relative: folders, if any, then the name of a file (or of a folder, with '/' at its end). */
lam_split_guess lam_split_guess_of(const char *path);

/* The same of word number `number`, from 0, of those that end with a split's word behind other letters; LAM_SPLIT_NONE:
 * there are not so many. */
lam_split_guess lam_split_ending_of(const char *path, int number);

/* Is this the name of a text: .txt, .tokens, .raw or a split's word at its end, packed or not; not hidden? */
bool lam_text_name(const char *name);
/* The name of JSON lines: .jsonl, .ndjson, .json; packed or not, not hidden? */
bool lam_json_lines_name(const char *name);
/* The bytes of `name` without the suffixes of a packing and of a kind of text. */
size_t lam_text_stem(const char *name);

#endif
