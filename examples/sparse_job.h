/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse_job: the loop that the sparse examples share. In each step a worker chooses its samples,
 * pulls the rows that they need, computes gradients, and pushes them. Servers keep the rows.
 *
 * A second table, "totals", sums the losses of all workers in an epoch. Its steps are a barrier:
 * rank 0 tests the model while the others wait.
 */
#ifndef EXAMPLES_SPARSE_JOB_H
#define EXAMPLES_SPARSE_JOB_H

#include "sparse_batch.h"
#include "sparse_options.h"
#include "sparse_result.h"

struct job_loss {
	double sum;
	size_t samples;
};

/* What an example adds to the loop. */
struct job_model {
	void *context;
	size_t steps; /* of an epoch: the same on all workers, or they would wait for each other */
	void (*begin)(void *context, size_t epoch);
	/* Finds slots for all keys of a step. */
	void (*choose)(void *context, size_t step, struct batch *batch);
	/* Fills the gradients of the rows. */
	struct job_loss (*compute)(void *context, struct batch *batch);
	/* On rank 0, after each epoch; NULL: there is no test. */
	void (*test)(void *context, struct job_epoch *epoch);
	bool decays; /* the learning rate falls to 0 during the training */
};

struct job {
	const char *name;
	const struct job_options *o;
	int rank, workers;
	trib_sparse *table, *totals;
	struct progress progress;
	struct job_result result;
	FILE *tensors;
	double started, loss; /* loss: the moving average of this worker */
};

/* Reads TRIB_RANK and TRIB_SIZE: an example needs them before it reads its data. */
void job_start(struct job *job, const char *name, const struct job_options *options);
/* Opens the tables. `keys`: rows that the model has. */
void job_open(struct job *job, size_t keys);
void job_train(struct job *job, struct job_model *model);
/* Pulls rows in parts, however many they are. */
void job_pull(struct job *job, const uint64_t *keys, float *rows, size_t n);
/* Closes the tables, prints and writes the results. Returns the exit code. */
int job_end(struct job *job);

/* If not TRIB_OK: prints the library's sentence, and exits. */
void job_require(const struct job *job, trib_status status, const char *what);
/* Memory that is there: it exits if it is not. */
void *job_alloc(size_t count, size_t size);
double job_now(void);

/* The first item of this worker's part of `count`, and with rank + 1 its end. */
size_t job_part(const struct job *job, size_t count, int rank);

/* log(1 + exp(-x)) and 1 / (1 + exp(-x)), without overflow. */
double job_softplus(double x);
float job_sigmoid(float x);
float job_dot(const float *a, const float *b, size_t n);

#endif
