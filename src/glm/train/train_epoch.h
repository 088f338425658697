/* SPDX-License-Identifier: Apache-2.0 */
/* One epoch of an engine: the hot loop. No allocation, no lock. */
#ifndef TRIB_GLM_TRAIN_EPOCH_H
#define TRIB_GLM_TRAIN_EPOCH_H

#include "glm/train/train_state.h"

/* The engine's part of the epoch. It returns early if trainer->failed is set. */
void engine_epoch(struct engine *engine);

/* Waits until all engines of the worker are here. */
void engines_meet(struct trainer *trainer);

/* Notes the first error with the calling thread's sentence; the other engines stop soon. */
void engines_fail(struct trainer *trainer, trib_status status);

/* Sets what follows from the weights of the engine's columns: codes and constants. */
void engine_prepare(struct engine *engine);

/* Adds the loss of `n` samples; `activation` has n sums for each class. */
void sums_add(const struct train_rule *rule, const int64_t *activation, const float *targets,
              const uint32_t *rows, uint32_t n, struct train_sums *sums);

#endif
