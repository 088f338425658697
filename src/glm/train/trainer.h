/* SPDX-License-Identifier: Apache-2.0 */
/* trainer: memory and threads of a training, epoch by epoch, and what all workers have together. */
#ifndef TRIB_GLM_TRAINER_H
#define TRIB_GLM_TRAINER_H

#include "glm/train/train_state.h"

/*
 * The caller has set rule, data, first_column and exchange. `pace` and `inverse` have one factor a
 * column of the shard, see struct weights. After an error trainer_close is
 * still due.
 */
trib_status trainer_open(struct trainer *t, const float *pace, const float *inverse);
/* Ends the threads and frees the memory, but for data and exchange. */
void trainer_close(struct trainer *t);

/* Trains epoch `epoch`, and sums over the workers. */
trib_status trainer_epoch(struct trainer *t, uint32_t epoch, struct train_sums *sums);

/* How often a number was too large for its fixed point, on all workers. */
trib_status trainer_saturated(struct trainer *t, uint64_t *n);

/*
 * The weights of all workers, on every worker: `x` and, if it is not NULL, `h` have classes *
 * columns floats, class after class.
 */
trib_status trainer_gather(struct trainer *t, float *x, float *h);
/* The reverse: takes this worker's columns. */
void trainer_scatter(struct trainer *t, const float *x, const float *h);

/* All workers get what worker 0 has; the others' floats are overwritten. */
trib_status floats_spread(struct exchange *x, float *floats, size_t n);

/* Sums up loss and hits of rows with the weights as they are. All threads take part. */
trib_status trainer_score(struct trainer *t, const struct train_data *data,
                          struct train_sums *sums);
/* The sums of all threads of all workers, after an epoch or a scoring. */
trib_status trainer_sums(struct trainer *t, struct train_sums *sums);
/* What each thread does for that: a part of the rows of t->scored. */
void thread_score(struct train_thread *self);

#endif
