/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glm/train owns the training of generalized linear models: the order of rows, the pipeline of
 * micro-batches, updates and checkpoints. It must not read text, and it must not know command
 * lines.
 *
 * train_state: what a training has in memory. trainer.h fills it, train_epoch.h works on it.
 *
 * Each thread of a worker (P4SGD's "engine") has a range of the worker's columns, and only it
 * writes their weights. Threads meet in the activations of a micro-batch: the thread that
 * finishes its forward last adds the parts of all threads and posts the sum.
 */
#ifndef TRIB_GLM_TRAIN_STATE_H
#define TRIB_GLM_TRAIN_STATE_H

#include "glm/kernel/glm_kernel.h"
#include "glm/exchange/exchange.h"
#include "glm/model/loss.h"
#include "glm/train/row_order.h"
#include "glm/train/weights.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define TRAIN_WINDOW 64u /* micro-batches that may be on their way at once */
#define TRAIN_BATCH_MAX (1u << 20)
#define TRAIN_THREADS_MAX 256u

/* The settings of a training after all defaults were chosen. The same on every worker. */
struct train_rule {
	enum glm_loss loss;
	enum glm_update update;
	double rate, decay, l1, l2;
	uint64_t seed;
	uint32_t bits; /* 0: float */
	uint32_t batch, micro, epochs, threads;
	uint32_t classes; /* weight vectors: 1 for two classes and for regression */
	uint32_t columns; /* of the data */
	uint64_t rows;
	uint32_t shrink_every; /* mini-batches between two applications of l1 and l2 */
	bool bias, data_parallel, pipelined;
	double unit; /* regression: labels are divided by this power of two */
};

/* Rows in memory, with their targets. */
struct train_data {
	struct glm_matrix matrix;
	float *targets;         /* one a row of the matrix */
	struct row_share share; /* all rows for model parallel, a part for data parallel */
	const float *low, *step;
};

/* A sum over samples, in integers. */
struct train_sums {
	int64_t loss;    /* in multiples of 2^-TRAIN_LOSS_BITS */
	int64_t correct; /* samples; 0 in a regression */
	int64_t samples;
};

#define TRAIN_LOSS_BITS 24

/* What a class has beside its weights. */
struct train_bias {
	float x, h;
};

struct train_thread {
	struct trainer *trainer;
	uint32_t number;
	pthread_t thread;
	uint32_t from, to;  /* its columns */
	uint64_t base;      /* micro-batches of all mini-batches before this one */
	int64_t *parts;     /* of each slot: its part of the activations */
	int64_t *constants; /* of each class: low precision, what all rows have in common */
	int64_t *totals;    /* of each class: the sum of the scales of this mini-batch */
	float *scale_f;
	int32_t *scale_i;
	double rates;   /* the sum since the last l1 and l2 */
	uint32_t since; /* mini-batches since then */
	uint64_t saturated;
	struct train_sums sums; /* of this epoch, or of this scoring: its part */
};

struct trainer {
	struct train_rule rule;
	struct train_data data;
	struct exchange exchange;
	struct exchange
		*activations; /* where activations are summed: not at all for data parallel */
	struct exchange alone;
	struct weights *weights;     /* of each class */
	struct glm_weights *kernels; /* the same memory, as kernels want it */
	struct train_bias *bias;     /* of each class */
	int64_t *sums; /* memory of all g; data parallel: with the totals, one vector to sum */
	size_t sums_n;
	bool has_low; /* a column has low != 0: all columns change in every mini-batch */
	bool walks;   /* sparse: an update visits the entries of the rows, not all columns */
	struct glm_index index;
	uint32_t first_column; /* of the shard, in the data */

	uint32_t *order, *start, *scratch; /* rows of this epoch */
	uint32_t epoch;                    /* from 0 */

	int64_t *activation; /* of each slot */
	int32_t *narrow;     /* room of exchange_sum_small */
	atomic_uint *done;   /* of each slot: threads that have done their forward */
	uint32_t window, slot_room;
	_Atomic uint64_t posted, arrived; /* micro-batches of the whole training */
	atomic_uint met;                  /* threads that wait for each other in threads_meet */
	atomic_uint meeting;              /* the number of that meeting */
	_Atomic int failed;               /* the first error, a trib_status */
	pthread_mutex_t lock;
	char error[512]; /* its sentence */

	struct train_thread *team;
	uint32_t threads; /* started ones: all but the first, which is the caller's */
	atomic_bool stops;
	const struct train_data *scored; /* what threads score; NULL: they train */
	int64_t *scores;                 /* activations of those rows */
	bool opened;
	/* Called by the first thread between mini-batches, and not too often; may be NULL. */
	void (*tick)(void *context, uint64_t rows_done);
	void *context;
};

#endif
