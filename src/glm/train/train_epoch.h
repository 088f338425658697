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

/* Rows with their sums: those of a class begin `stride` behind those of the class before it. */
struct train_losses {
	const int64_t *activation;
	uint32_t stride;
	const float *targets; /* of all rows */
	const uint32_t *rows;
	uint32_t n;
	bool whole_team; /* all threads have these rows, and each takes a part of them */
};

/*
 * Adds losses to self->sums. Model parallel: all workers have these rows, and each takes a part of
 * them. trainer_sums() has the sum of all.
 */
void losses_add(struct train_thread *self, const struct train_losses *of);

#endif
