/* SPDX-License-Identifier: Apache-2.0 */
/* One epoch of a thread: the hot loop. No allocation, no lock. */
#ifndef TRIB_GLM_TRAIN_EPOCH_H
#define TRIB_GLM_TRAIN_EPOCH_H

#include "glm/train/train_state.h"

/* The thread's part of the epoch. It returns early if trainer->failed is set. */
void thread_epoch(struct train_thread *self);

/* Waits until all threads of the worker are here. */
void threads_meet(struct trainer *trainer);

/* Notes the first error with the calling thread's sentence; the other threads stop soon. */
void threads_fail(struct trainer *trainer, trib_status status);

/* Sets what follows from the weights of the thread's columns: codes and constants. */
void thread_prepare(struct train_thread *self);

/* Adds the loss of `n` samples; `activation` has n sums for each class. */
void sums_add(const struct train_rule *rule, const int64_t *activation, const float *targets,
              const uint32_t *rows, uint32_t n, struct train_sums *sums);

#endif
