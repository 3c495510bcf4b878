/* checkpoint.h -- saves a run so that it can resume as if it had never stopped.
 *
 * A checkpoint is a model folder (model/folder.h) with four more files: training_state.json,
 * optimizer.safetensors (moments), memory.safetensors and a record of their checksums (core/seal.h).  It is
 * written beside the old one, synced and put in its place by one renaming: a crash, a full disk or an error
 * at any moment leaves the old one or the new one, whole. */
#ifndef LAM_TRAIN_CHECKPOINT_H
#define LAM_TRAIN_CHECKPOINT_H

#include "comm/comm.h"
#include "core/own.h"
#include "train/group_memory.h"
#include "train/optimizer.h"
#include "train/state.h"

/* How a checkpoint of lamemo is recognised before it is replaced. */
extern const lam_kind lam_checkpoint_kind;

/* The parts of a run; all borrowed for the call. */
typedef struct lam_checkpoint {
    lam_model *model;
    lam_optimizer *optimizer;
    lam_group_memory *memories;
    lam_train_state *state;
    const char *vocab; /* text of vocab.json, NULL: none; not read by load */
    lam_comm *comm;    /* the ranks that share the run; NULL: one process alone */
} lam_checkpoint;

/* Writes the checkpoint `dir`.  With several ranks, each writes the memory of its leaves and rank 0 the rest; the
 * folder is put in place when all have succeeded.  Moments that are divided between ranks are collected in the vector
 * of gradients, which is overwritten. */
lam_status lam_checkpoint_save(const char *dir, const lam_checkpoint *c);
/* Restores every part from `dir`; the model must have its configuration, the batches its shape.
 * A damaged file is LAM_ERR_FORMAT before anything is read.  After another failure the parts are in an
 * undefined, but valid, state. */
lam_status lam_checkpoint_load(const char *dir, const lam_checkpoint *c);
/* Reads only the state, from which the parts are created, and checks it and the configuration for damage.  First
 * completes an interrupted exchange of names. */
lam_status lam_checkpoint_peek(const char *dir, lam_train_state *state);

#endif
