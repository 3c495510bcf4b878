/* mem.h -- how a layer uses the past: the one interface behind all memories.
 *
 * Every model in the paper runs the same block (Eq. 3) and differs in what a row reads and in what a finished
 * segment leaves behind.  A mechanism is
 *   slots   what survives a segment: copies of the newest M rows of some buffer of the segment, or rows
 *           that the mechanism makes of those that had to go;
 *   attend  what context C each row reads: C-> (Eq. 2), C<- (Eq. 9), C<-> (Eq. 10).
 * A mechanism may have parameters, buffers and an auxiliary loss of its own; all of that is optional.  It also says
 * what it costs and how reports call it: nobody outside src/mem asks for a mechanism by its name
 * (scripts/check-memories.sh).  attend reads the state and never changes it; lam_mem_commit alone writes it (C1).
 * Wo, residual, LayerNorm and FFN are in model/block.c.
 *
 * The segment, its rows and the rules G1.., C1.. are in segment.h.  In LaMemo the memory rows climb the layers with the
 * current ones ("lead" rows); elsewhere they are constants that only serve as keys. */
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
    lam_slot_source source; /* rows of which buffer of the layer, or like those */
    int layer;
    int front; /* they are put in front of the layer's rows, slot after slot (FROM_X) */
    int own;   /* written by the mechanism's commit; otherwise the newest M rows are kept */
    int cap;   /* rows per stream there is room for; 0 becomes M */
    /* Set by lam_mem_layout: */
    lam_class type;
    int width; /* stored */
    void *rows;
    int n; /* of them are valid, oldest first */
} lam_slot;

/* What a mechanism is like, as far as others must know. */
typedef enum lam_mem_trait {
    /* Something survives a segment: a memory length means something. */
    LAM_REMEMBERS = 1,
    /* It is the newest M rows and nothing else, so rows may come again with the next segment (ext_len). */
    LAM_EXTENDS = 2,
    /* After a segment's first call a row only attends to the rows before it: its keys can be cached. */
    LAM_CACHED = 4,
    /* The operations of a segment depend on its length and on how many rows are remembered alone. */
    LAM_REPEATS = 8,
    /* Some parameters learn from its auxiliary loss alone and are clipped apart (lam_params_set_apart). */
    LAM_CLIPS_APART = 16,
    /* Forward it uses operations that have exact arithmetic alone (LAM_EXACT_OPS in ops/list.h). */
    LAM_IN_INTEGERS = 32,
    /* python/hf/modeling_lamemo.py computes it, too; but for what not_in_torch names. */
    LAM_IN_TORCH = 64
} lam_mem_trait;

/* What it is in the paper's comparisons. */
typedef enum lam_paper_role {
    LAM_NOT_IN_PAPER,
    LAM_SUBJECT,  /* the paper's own */
    LAM_BASELINE, /* what it is compared with everywhere */
    LAM_COMPARED  /* in tables */
} lam_paper_role;

typedef struct lam_paper {
    lam_paper_role role;
    int parameters, macs; /* Table 1, in millions */
    const char *claim;    /* what the tables say of the paper's own against this one */
} lam_paper;

/* A model that lacks something, under a name of its own: `options` of lamemo train, "alpha=zero". */
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
    /* Adds what it costs to zeros.  Its own lengths may be 0: not settled, as the others suggest. */
    void (*cost)(lam_mem_cost *out, const lam_config *cfg);
    /* Fills slots (room for lam_mem_max_slots) and returns how many; `full` asks for state nobody reads too.
     * Of *mem only B, M and N are there. */
    int (*slots)(const lam_mem *mem, const lam_config *cfg, int full, lam_slot *out);
    void (*attend_fwd)(const lam_segment *s, int layer);
    void (*attend_bwd)(const lam_segment *s, int layer);

    /* What follows may be NULL or 0. */

    /* Its fields in configurations; a row of zeros ends them.  `options` is the heading above their options. */
    const lam_mem_field *fields;
    const char *options;
    /* They are in config.json of all models, as they were before memories had fields of their own. */
    int in_every_file;
    /* Is this the memory of a configuration that names none? */
    int (*implied)(const lam_config *cfg);
    /* Fills in what of its fields follows from others, and refuses what ranges cannot say; attn_type is settled. */
    lam_status (*resolve)(lam_config *cfg);
    /* Refuses segments of N tokens with M remembered rows. */
    lam_status (*check)(const lam_config *cfg, int N, int M);
    /* Do memory rows climb through `layer`?  Then the block computes them as well. */
    int (*leads)(const lam_config *cfg, int layer);
    /* Remembered rows in front beyond the newest M, and what these rows are: "compressed". */
    int (*beyond)(const lam_config *cfg);
    const char *beyond_name;
    /* Tokens that fill what is remembered beyond the newest M. */
    int (*reaches)(const lam_config *cfg);
    /* lam_length_fit() for lengths of its own, where a stream has no more than `most` tokens. */
    void (*fit)(lam_config *cfg, int64_t most);
    /* Its structs, which others keep for it as bytes: numbers of parameters for every layer (s->ids[..].own), and
     * addresses of buffers for every layer (s->layer[..].own) and for all of them together (s->own). */
    size_t params_size, layer_size, shared_size;
    /* Declares parameters of `layer`; their numbers go to `ids`, a struct of params_size. */
    void (*declare)(void *ids, lam_params *p, const lam_config *cfg, const lam_dev *dev, int layer);
    /* Carves its buffers: *s->own, *layer[..].own and, when training, s->aux. */
    void (*layout)(lam_segment *s, lam_arena *arena);
    /* Fills the constants among them; once. */
    lam_status (*fill)(const lam_segment *s);
    /* Adds to s->out what the layer's rows read besides C. */
    void (*output)(const lam_segment *s, int layer);
    /* Writes its own slots, before the newest rows of the others are copied. */
    void (*commit)(lam_mem *mem, const lam_segment *s, int done);

    /* What sets this one apart from others of its name, "alpha zero, window current"; "": nothing. */
    void (*details)(char *text, size_t size, const lam_config *cfg);
    /* Ends with zeros. */
    const lam_ablation *ablations;
    /* What figures of attention do not say about it. */
    void (*remark)(char *text, size_t size, const lam_config *cfg);
    /* The field that the PyTorch module does not know and this configuration uses; NULL: none. */
    const char *(*not_in_torch)(const lam_config *cfg);
    /* Has it Eq. 11's alpha?  NULL, or why not: "it was made with alpha = 0". */
    const char *(*lacks_alpha)(const lam_config *cfg);
    /* After a layer's forward pass: WIDE [B][M][H].  NULL: the layer refreshes nothing, alpha is 1. */
    const void *(*alpha)(const lam_segment *s, int layer);
} lam_mem_ops;

/* What a stream remembers where streams differ. */
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
    int B, M, N;  /* streams; newest rows that are kept; longest segment */
    int m;        /* newest rows there are */
    int prev;     /* length of the previous segment: the keys that look-ahead has not seen */
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
/* The one that is meant where none is named. */
#define LAM_MEMORY_DEFAULT "lamemo"
/* The mechanism called `name`; LAM_ERR_ARG lists them. */
lam_status lam_mem_find(const lam_mem_ops **out, const char *name);

/* Has it all of these traits? */
int lam_mem_has(const lam_mem_ops *ops, unsigned traits);
/* The names of those that have, separated by commas.  Returns text. */
enum { LAM_MEMORY_TEXT = 128 };
const char *lam_mem_having(char text[LAM_MEMORY_TEXT], unsigned traits);

int lam_mem_leads(const lam_mem_ops *ops, const lam_config *cfg, int layer);
/* Tokens after which a memory with the newest M rows is as full as it gets. */
int lam_mem_tokens(const lam_mem_ops *ops, const lam_config *cfg, int M);
size_t lam_mem_max_slots(const lam_config *cfg);
/* Carves the state's buffers.  mem->ops, dev, B, M, N, slots are set. */
void lam_mem_layout(lam_mem *mem, const lam_config *cfg, int full, lam_arena *arena);
/* Bytes of a slot, all of its rows. */
size_t lam_slot_bytes(const lam_mem *mem, const lam_slot *slot);
/* Room for `count` elements: what layout hooks are made of. */
void *lam_mem_take(const lam_segment *s, lam_arena *arena, lam_class type, size_t count);

/* Copies `rows` rows of D per stream. */
void lam_mem_copy(const lam_segment *s, lam_view out, lam_view in, int rows);

/* The rows that a segment of `done` tokens pushes out of the newest M. */
typedef struct lam_evicted {
    int first, rows; /* of the segment's rows */
} lam_evicted;
lam_evicted lam_mem_evicted(const lam_segment *s, int done);

/* Forgets everything. */
void lam_mem_reset(lam_mem *mem);
/* One stream forgets; the others go on. */
void lam_mem_forget(lam_mem *mem, int stream);
/* Rows that a stream has of those in front; only where streams differ. */
int lam_mem_valid(const lam_mem *mem, int stream);
/* Do streams remember different amounts, or end in padding? */
int lam_mem_differs(const lam_segment *s);
/* Calls part(s, layer); where streams differ, for one after the other, on a view of its own.  For what a mechanism
 * does besides attention, which knows of valid. */
void lam_mem_each(const lam_segment *s, int layer, void (*part)(const lam_segment *s, int layer));
/* Where streams differ: puts the rows of an own slot in front, from `to` on; writes own slots and counts rows. */
void lam_mem_load_streams(const lam_segment *s, const lam_slot *slot, lam_view to);
void lam_mem_commit_streams(lam_mem *mem, const lam_segment *s, int done);
/* After files filled them: LAM_ERR_FORMAT where a stream has more than there is. */
lam_status lam_mem_resolve_streams(const lam_mem *mem, const char *label);
/* Remembered rows that the next segment will have in front. */
int lam_mem_context(const lam_mem *mem);
/* Puts them there; Eq. 5. */
void lam_mem_load(const lam_segment *s);
/* The buffer of the segment that a slot's rows come from. */
void *lam_slot_source_rows(const lam_segment *s, const lam_slot *slot);
/* Keeps the newest M rows of what is remembered and `done` current rows. */
void lam_mem_commit(lam_mem *mem, const lam_segment *s, int done);
/* After files filled prev, seen and the slots: m is what they say; LAM_ERR_FORMAT where they disagree. */
lam_status lam_mem_resolve(lam_mem *mem, const char *label);

#endif
