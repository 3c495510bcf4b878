/* mem.h -- how a layer uses the past: the interface of all memories.
 *
 * Every model in the paper runs the same block (Eq. 3) and differs in what a row reads and in what a finished segment
 * leaves behind.  A mechanism is
 *   slots   what survives a segment: copies of the newest M rows of some buffer of the segment, or rows
 *           that the mechanism makes of those that had to go;
 *   attend  what context C each row reads: C-> (Eq. 2), C<- (Eq. 9), C<-> (Eq. 10).
 * A mechanism may have parameters, buffers and an auxiliary loss of its own; all of that is optional.  It also declares
 * its cost and its name in reports: no code outside src/mem refers to a mechanism by its name
 * (scripts/check-memories.sh). attend reads the state and never changes it; lam_mem_commit alone writes it (C1).  Wo,
 * residual, LayerNorm and FFN are in model/block.c.
 *
 * The segment, its rows and the rules G1.., C1.. are in segment.h.  In LaMemo the memory rows pass through the layers
 * with the current ones ("lead" rows); elsewhere they are constants that only serve as keys and values. */
#ifndef LAM_MEM_MEM_H
#define LAM_MEM_MEM_H

#include "core/arena.h"
#include "mem/cost.h"
#include "mem/segment.h"
#include "nn/linear.h"

enum { LAM_LAYER_SLOTS = 5 }; /* at most; the last layer's output may have one more */

typedef enum lam_slot_source { LAM_FROM_X, LAM_FROM_C, LAM_FROM_LSE } lam_slot_source;

/* One piece of state, [B][cap][width]. */
typedef struct lam_slot {
    const char *name;       /* with the layer, its name in files */
    lam_slot_source source; /* the buffer of the layer that its rows come from, or resemble */
    int layer;
    int front; /* 1: its rows are put in front of the layer's rows, slot after slot (FROM_X) */
    int own;   /* written by the mechanism's commit; otherwise the newest M rows are kept */
    int cap;   /* rows per stream there is room for; 0 becomes M */
    /* Set by lam_mem_layout: */
    lam_class type;
    int width; /* stored */
    void *rows;
    int n; /* of them are valid, oldest first */
} lam_slot;

/* Properties of a mechanism that other code needs to know. */
typedef enum lam_mem_trait {
    /* Something survives a segment: the model has a memory length. */
    LAM_REMEMBERS = 1,
    /* The memory is just the newest M rows, so rows can be computed again with the next segment (ext_len). */
    LAM_EXTENDS = 2,
    /* After a segment's first call a row only attends to the rows before it: its keys can be cached. */
    LAM_CACHED = 4,
    /* The operations of a segment depend only on its length and on the number of memory rows. */
    LAM_REPEATS = 8,
    /* Some parameters learn only from its auxiliary loss and are clipped separately (lam_params_set_apart). */
    LAM_CLIPS_APART = 16,
    /* Its forward pass uses only operations with exact arithmetic (LAM_EXACT_OPS in ops/list.h). */
    LAM_IN_INTEGERS = 32,
    /* python/hf/modeling_lamemo.py implements it, except what not_in_torch names. */
    LAM_IN_TORCH = 64
} lam_mem_trait;

/* Its role in the paper's comparisons. */
typedef enum lam_paper_role {
    LAM_NOT_IN_PAPER,
    LAM_SUBJECT,  /* the paper's own */
    LAM_BASELINE, /* the baseline of all comparisons */
    LAM_COMPARED  /* in tables */
} lam_paper_role;

typedef struct lam_paper {
    lam_paper_role role;
    int parameters, macs; /* Table 1, in millions */
    const char *claim;    /* what the tables claim about the paper's own against this one */
} lam_paper;

/* An ablation with a name: `options` of lamemo train, "alpha=zero". */
typedef struct lam_ablation {
    const char *name, *options;
} lam_ablation;

typedef struct lam_mem_field lam_mem_field; /* mem/fields.h */

typedef struct lam_mem_ops {
    const char *name;  /* as in config.json and on the command line */
    const char *title; /* as in tables */
    lam_paper paper;
    unsigned traits;       /* of lam_mem_trait */
    const int *attn_types; /* lam_attn_type it works with, its usual one first; ends with -1 */
    /* Fills in the cost; *out is zeroed.  Its own lengths may be 0: undecided, to be derived from the others. */
    void (*cost)(lam_mem_cost *out, const lam_config *cfg);
    /* Fills slots (room for lam_mem_max_slots) and returns their number; `full` also requests state that nothing reads.
     * Only B, M and N of *mem are set. */
    int (*slots)(const lam_mem *mem, const lam_config *cfg, int full, lam_slot *out);
    void (*attend_fwd)(const lam_segment *s, int layer);
    void (*attend_bwd)(const lam_segment *s, int layer);

    /* All members below may be NULL or 0. */

    /* Its fields in configurations; a row of zeros ends them.  `options` is the heading above their options. */
    const lam_mem_field *fields;
    const char *options;
    /* 1: the fields are in config.json of all models, as before memories had their own fields. */
    int in_every_file;
    /* Is this the memory of a configuration that names none? */
    int (*implied)(const lam_config *cfg);
    /* Derives fields that depend on others, and refuses combinations that ranges cannot express; attn_type is set. */
    lam_status (*resolve)(lam_config *cfg);
    /* Refuses segments of N tokens with M remembered rows. */
    lam_status (*check)(const lam_config *cfg, int N, int M);
    /* Do memory rows pass through `layer`?  If so, the block computes them as well, ... */
    int (*leads)(const lam_config *cfg, int layer);
    /* ... unless the next segment leaves the memory as it is: then it is constants in all layers, and the tokens of the
     * segment join mem->prev. */
    int (*rests)(const lam_config *cfg, const lam_mem *mem);
    /* The number of memory rows in front beyond the newest M, and a word for them: "compressed". */
    int (*beyond)(const lam_config *cfg);
    const char *beyond_name;
    /* The number of tokens that fill the memory beyond the newest M. */
    int (*reaches)(const lam_config *cfg);
    /* lam_length_fit() for its own lengths, if a stream has at most `most` tokens. */
    void (*fit)(lam_config *cfg, int64_t most);
    /* Sizes of its structs, which other code stores as bytes: parameter numbers of each layer (s->ids[..].own), buffer
     * addresses of each layer (s->layer[..].own) and of all layers together (s->own). */
    size_t params_size, layer_size, shared_size;
    /* Declares parameters of `layer`; their numbers go to `ids`, a struct of params_size. */
    void (*declare)(void *ids, lam_params *p, const lam_config *cfg, const lam_dev *dev, int layer);
    /* Allocates its buffers from the arena: *s->own, *layer[..].own and, when training, s->aux. */
    void (*layout)(lam_segment *s, lam_arena *arena);
    /* Fills the constants among them; once. */
    lam_status (*fill)(const lam_segment *s);
    /* Adds what the layer's rows read besides C to s->out. */
    void (*output)(const lam_segment *s, int layer);
    /* Writes its own slots, before the newest rows of the others are copied. */
    void (*commit)(lam_mem *mem, const lam_segment *s, int done);

    /* What distinguishes this model from others with the same memory, "alpha zero, window current"; "": nothing. */
    void (*details)(char *text, size_t size, const lam_config *cfg);
    /* Ends with zeros. */
    const lam_ablation *ablations;
    /* What figures of attention leave out about it. */
    void (*remark)(char *text, size_t size, const lam_config *cfg);
    /* The field that this configuration uses and the PyTorch module does not support; NULL: none. */
    const char *(*not_in_torch)(const lam_config *cfg);
    /* Does it have Eq. 11's alpha?  NULL, or why not: "it was made with alpha = 0". */
    const char *(*lacks_alpha)(const lam_config *cfg);
    /* After a layer's forward pass: WIDE [B][M][H].  NULL: the layer or the segment refreshes nothing, alpha is 1. */
    const void *(*alpha)(const lam_segment *s, int layer);
} lam_mem_ops;

/* The memory of one stream, where streams differ. */
typedef struct lam_mem_stream {
    int m;                  /* newest rows it has */
    int n[LAM_LAYER_SLOTS]; /* rows in a layer's slots that the mechanism writes, oldest first */
    int64_t seen;           /* tokens since its beginning */
} lam_mem_stream;

/* Tokens of a text, at most: sums do not overflow. */
#define LAM_MOST_SEEN ((int64_t)1 << 60)

/* State of B streams. */
struct lam_mem {
    const lam_mem_ops *ops;
    lam_dev *dev;
    int B, M, N; /* streams; newest rows that are kept; longest segment */
    int m;       /* newest rows there are */
    int prev; /* tokens since the last segment that did not rest, itself included, usually the length of the previous
               * segment: the keys that look-ahead has not seen; at most LAM_MAX_LEN */
    int64_t seen; /* tokens since the beginning: names what is drawn at random */
    int n_slots;
    lam_slot *slots; /* [lam_mem_max_slots], owned by the caller */
    int apart;       /* streams differ: m, seen and the n of slots are those of the longest */
    lam_mem_stream *streams; /* [B], owned by the caller; what each has where they differ */
    lam_slot *view;          /* [lam_mem_max_slots], owned by the caller: slots of one stream */
};

/* The mechanisms (mem/memories.def) and their names; both end with NULL. */
extern const lam_mem_ops *const lam_mem_all[];
extern const char *const lam_mem_names[];
/* The default mechanism. */
#define LAM_MEMORY_DEFAULT "lamemo"
/* The mechanism called `name`; LAM_ERR_ARG lists them. */
lam_status lam_mem_find(const lam_mem_ops **out, const char *name);

/* Does it have all of these traits? */
int lam_mem_has(const lam_mem_ops *ops, unsigned traits);
/* Writes the names of the mechanisms that have them, separated by commas.  Returns text. */
enum { LAM_MEMORY_TEXT = 128 };
const char *lam_mem_having(char text[LAM_MEMORY_TEXT], unsigned traits);

int lam_mem_leads(const lam_mem_ops *ops, const lam_config *cfg, int layer);
/* Does the next segment, or the one at work before its commit, leave the memory as it is? */
int lam_mem_rests(const lam_mem *mem, const lam_config *cfg);
/* Can streams begin anew one by one, where documents begin?  LAM_ERR_UNSUPPORTED: this memory rests in some segments,
 * in all streams at once, so that what a document gives would depend on when it begins. */
lam_status lam_mem_takes_documents(const lam_mem_ops *ops, const lam_config *cfg);
/* Do memory rows pass through `layer` in this segment? */
int lam_mem_climbs(const lam_segment *s, int layer);
/* The number of tokens after which a memory with the newest M rows is full. */
int lam_mem_tokens(const lam_mem_ops *ops, const lam_config *cfg, int M);
size_t lam_mem_max_slots(const lam_config *cfg);
/* Carves the state's buffers.  mem->ops, dev, B, M, N, slots are set. */
void lam_mem_layout(lam_mem *mem, const lam_config *cfg, int full, lam_arena *arena);
/* Bytes of a slot, all of its rows. */
size_t lam_slot_bytes(const lam_mem *mem, const lam_slot *slot);
/* Allocates `count` elements from the arena; layout hooks use this. */
void *lam_mem_take(const lam_segment *s, lam_arena *arena, lam_class type, size_t count);

/* Copies `rows` rows of D per stream. */
void lam_mem_copy(const lam_segment *s, lam_view out, lam_view in, int rows);

/* The rows that a segment of `done` tokens evicts from the newest M. */
typedef struct lam_evicted {
    int first, rows; /* of the segment's rows */
} lam_evicted;
lam_evicted lam_mem_evicted(const lam_segment *s, int done);

/* Empties the memory. */
void lam_mem_reset(lam_mem *mem);
/* Empties the memory of one stream; the others keep theirs. */
void lam_mem_forget(lam_mem *mem, int stream);
/* The number of rows in front that belong to the stream; only where streams differ. */
int lam_mem_valid(const lam_mem *mem, int stream);
/* Do streams have memories of different lengths, or end in padding? */
int lam_mem_differs(const lam_segment *s);
/* Calls part(s, layer); where streams differ, once per stream, on a view of that stream.  For the work of a mechanism
 * other than attention, which handles `valid` itself. */
void lam_mem_each(const lam_segment *s, int layer, void (*part)(const lam_segment *s, int layer));
/* Where streams differ: puts the rows of an own slot in front, from `to` on; writes own slots and counts rows. */
void lam_mem_load_streams(const lam_segment *s, const lam_slot *slot, lam_view to);
void lam_mem_commit_streams(lam_mem *mem, const lam_segment *s, int done);
/* Checks streams read from files: LAM_ERR_FORMAT if one has more rows than there are. */
lam_status lam_mem_resolve_streams(const lam_mem *mem, const char *label);
/* The number of memory rows that the next segment will have in front. */
int lam_mem_context(const lam_mem *mem);
/* Puts them there; Eq. 5. */
void lam_mem_load(const lam_segment *s);
/* The buffer of the segment that a slot's rows come from. */
void *lam_slot_source_rows(const lam_segment *s, const lam_slot *slot);
/* Keeps the newest M rows of the memory and `done` current rows. */
void lam_mem_commit(lam_mem *mem, const lam_segment *s, int done);
/* After prev, seen and the slots were read from files: sets m accordingly; LAM_ERR_FORMAT if they disagree. */
lam_status lam_mem_resolve(lam_mem *mem, const char *label);

#endif
