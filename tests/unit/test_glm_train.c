/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training: the same bits for every number of workers, threads and micro-batches, for both
 * partitions, with and without pipeline. Workers are threads of this process that sum through a
 * hub. No allocation in the hot loop.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "glm/data/glm_load.h"
#include "glm/data/matrix_room.h"
#include "glm/data/synthetic.h"
#include "glm/train/trainer.h"
#include "short.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 203u
#define COLUMNS 300u
#define EPOCHS 2u
#define WORKERS_MAX 3u
#define OPS 64u /* sums that may be open at once, a power of two above the window */

/* ---- allocations are counted ---- */

static atomic_ulong allocations;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t n);

void *__wrap_malloc(size_t n)
{
	allocations++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	allocations++;
	return __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
	allocations++;
	return __real_aligned_alloc(align, n);
}

/* ---- a hub that sums for the workers of this process ---- */

struct hub {
	pthread_mutex_t lock;
	pthread_cond_t change;
	unsigned workers;
	struct hub_op {
		uint64_t number;
		unsigned in, out;
		int64_t sum[4096];
	} ops[OPS];
};

struct hub_worker {
	struct hub *hub;
	uint64_t next; /* number of the next sum */
	struct {
		uint64_t number;
		int64_t *data;
		size_t n;
	} slots[TRAIN_WINDOW];
};

static struct hub hub;

static trib_status hub_open(struct exchange *x, trib_comm *comm)
{
	(void)x, (void)comm;
	return TRIB_OK;
}

static trib_status hub_post(struct exchange *x, uint32_t slot, int64_t *data, size_t n)
{
	struct hub_worker *worker = x->state;
	uint64_t number = worker->next++;
	struct hub_op *op = &hub.ops[number % OPS];

	worker->slots[slot].number = number;
	worker->slots[slot].data = data;
	worker->slots[slot].n = n;
	if (n > sizeof(op->sum) / sizeof(*op->sum))
		return TRIB_ERR_ARGUMENT;
	pthread_mutex_lock(&hub.lock);
	while (op->number != number)
		pthread_cond_wait(&hub.change, &hub.lock);
	for (size_t i = 0; i < n; i++)
		op->sum[i] = (op->in ? op->sum[i] : 0) + data[i];
	op->in++;
	pthread_cond_broadcast(&hub.change);
	pthread_mutex_unlock(&hub.lock);
	return TRIB_IN_PROGRESS;
}

static trib_status hub_wait(struct exchange *x, uint32_t slot)
{
	struct hub_worker *worker = x->state;
	struct hub_op *op = &hub.ops[worker->slots[slot].number % OPS];

	pthread_mutex_lock(&hub.lock);
	while (op->in < hub.workers)
		pthread_cond_wait(&hub.change, &hub.lock);
	memcpy(worker->slots[slot].data, op->sum, worker->slots[slot].n * sizeof(int64_t));
	if (++op->out == hub.workers) {
		op->in = op->out = 0;
		op->number += OPS;
	}
	pthread_cond_broadcast(&hub.change);
	pthread_mutex_unlock(&hub.lock);
	return TRIB_OK;
}

static void hub_close(struct exchange *x)
{
	(void)x;
}

static trib_status hub_sum(struct exchange *x, int64_t *data, size_t n)
{
	trib_status status = hub_post(x, 0, data, n);

	return status < 0 ? status : hub_wait(x, 0);
}

static trib_status hub_sum32(struct exchange *x, int32_t *data, size_t n)
{
	int64_t wide[4096];
	trib_status status;

	for (size_t i = 0; i < n && i < 4096; i++)
		wide[i] = data[i];
	status = hub_sum(x, wide, n);
	for (size_t i = 0; i < n && i < 4096; i++)
		data[i] = (int32_t)(uint32_t)wide[i];
	return status;
}

static const struct glm_exchange hub_table = {
	.name = "hub",
	.open = hub_open,
	.sum = hub_sum,
	.sum32 = hub_sum32,
	.post = hub_post,
	.test = hub_wait,
	.wait = hub_wait,
	.close = hub_close,
};

/* ---- one training of several workers ---- */

struct training {
	struct train_rule rule;
	struct synthetic data;
	enum glm_layout layout;
	unsigned workers;
	struct train_sums sums;    /* of the last epoch */
	float x[4 * COLUMNS];      /* classes after each other */
	unsigned long allocations; /* in the epochs */
};

struct one {
	struct training *training;
	unsigned rank;
	pthread_t thread;
};

static void worker_data(struct trainer *t, const struct training *training, float *low, float *step)
{
	struct glm_shard shard = {
		.count = COLUMNS, .workers = 1, .layout = training->layout, .bits = t->rule.bits
	};
	unsigned rank = (unsigned)t->exchange.rank;

	t->data.share = (struct row_share){ .rows = ROWS, .batch = t->rule.batch, .size = 1 };
	if (t->rule.data_parallel) {
		t->data.share.rank = shard.rank = rank;
		t->data.share.size = shard.workers = training->workers;
	} else {
		shard.first = COLUMNS * rank / training->workers;
		shard.count = COLUMNS * (rank + 1) / training->workers - shard.first;
	}
	if (t->rule.bits) {
		synthetic_maps(shard.count, t->rule.bits, low, step);
		low[3] = -0.5f; /* a column whose code 0 is no 0 */
		if (shard.first)
			low[3] = 0;
		shard.low = t->data.low = low;
		shard.step = t->data.step = step;
	}
	t->first_column = shard.first;
	assert_int_equal(synthetic_fill(&training->data, &shard, &t->data.matrix, &t->data.targets),
	                 TRIB_OK);
}

static void *worker_main(void *argument)
{
	struct one *one = argument;
	struct training *training = one->training;
	struct trainer *t = calloc(1, sizeof(*t));
	struct hub_worker worker = { .hub = &hub };
	float *low = calloc(COLUMNS, 4), *step = calloc(COLUMNS, 4), *pace = calloc(COLUMNS, 4),
	      *x = calloc((size_t)4 * COLUMNS, 4);
	struct train_sums sums = { 0 };
	unsigned long before = 0, after = 0;

	t->rule = training->rule;
	t->exchange = (struct exchange){ .ops = &hub_table,
		                         .state = &worker,
		                         .rank = (int)one->rank,
		                         .size = (int)training->workers,
		                         .slots = TRAIN_WINDOW };
	worker_data(t, training, low, step);
	for (uint32_t j = 0; j < COLUMNS; j++)
		pace[j] = 1;
	assert_int_equal(trainer_open(t, pace, pace), TRIB_OK);
	for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
		before = allocations;
		assert_int_equal(trainer_epoch(t, epoch, &sums), TRIB_OK);
		after += allocations - before;
	}
	assert_int_equal(trainer_gather(t, x, NULL), TRIB_OK);
	if (one->rank == 0) {
		training->sums = sums;
		training->allocations = after;
		memcpy(training->x, x, sizeof(training->x));
	}
	trainer_close(t);
	matrix_free(&t->data.matrix);
	free(t->data.targets);
	free(t);
	free(low);
	free(step);
	free(pace);
	free(x);
	return NULL;
}

static void training_run(struct training *training)
{
	struct one ones[WORKERS_MAX];

	hub.workers = training->workers;
	for (uint64_t i = 0; i < OPS; i++)
		hub.ops[i] = (struct hub_op){ .number = i };
	for (unsigned i = 0; i < training->workers; i++) {
		ones[i] = (struct one){ .training = training, .rank = i };
		pthread_create(&ones[i].thread, NULL, worker_main, &ones[i]);
	}
	for (unsigned i = 0; i < training->workers; i++)
		pthread_join(ones[i].thread, NULL);
}

static struct training training_make(enum glm_loss loss, uint32_t bits, bool sparse,
                                     uint32_t classes)
{
	struct training training = {
		.rule = { .loss = loss,
		          .update = loss == GLM_LOSS_HINGE ? GLM_UPDATE_SGD : GLM_UPDATE_ADAGRAD,
		          .rate = 0.05,
		          .decay = 0.3,
		          .l1 = 1e-4,
		          .l2 = 1e-3,
		          .seed = 3,
		          .bits = bits,
		          .batch = 32,
		          .micro = 32,
		          .epochs = EPOCHS,
		          .threads = 1,
		          .classes = classes > 2 ? classes : 1,
		          .columns = COLUMNS,
		          .rows = ROWS,
		          .shrink_every = 3,
		          .bias = true,
		          .pipelined = true,
		          .unit = 1 },
		.data = { .rows = ROWS,
		          .columns = COLUMNS,
		          .density = sparse ? 0.02 : 1,
		          .classes = loss == GLM_LOSS_LINEAR ? 0 : classes,
		          .noise = 0.02,
		          .seed = 5 },
		.layout = sparse ? GLM_SPARSE
		          : bits ? GLM_WEAVED
		                 : GLM_DENSE,
		.workers = 1,
	};

	return training;
}

static void same(const struct training *right, const struct training *other)
{
	assert_memory_equal(right->x, other->x, sizeof(right->x));
	assert_true(right->sums.loss == other->sums.loss);
	assert_true(right->sums.correct == other->sums.correct);
	assert_true(right->sums.samples == ROWS && other->sums.samples == ROWS);
}

/* Every way to split the work gives the bits of one worker with one thread. */
static void splits_check(const struct training *first)
{
	static const struct {
		unsigned workers, threads, micro;
		bool data;
	} ways[] = {
		{ 1, 2, 32, false }, { 1, 3, 5, false }, { 2, 1, 8, false },
		{ 3, 1, 1, false },  { 2, 2, 7, false }, { 3, 2, 32, false },
		{ 1, 2, 32, true },  { 2, 1, 32, true }, { 3, 2, 32, true },
	};
	struct training *right = malloc(sizeof(*right)), *other = malloc(sizeof(*other));

	*right = *first;
	training_run(right);
	assert_true(right->sums.loss > 0);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (test_is_short() && i % 3 == 0)
			continue;
		*other = *first;
		other->workers = ways[i].workers;
		other->rule.threads = ways[i].threads;
		other->rule.micro = ways[i].micro;
		other->rule.data_parallel = ways[i].data;
		training_run(other);
		same(right, other);
	}
	free(right);
	free(other);
}

static void test_sparse_float(void **state)
{
	struct training training = training_make(GLM_LOSS_LOGISTIC, 0, true, 2);

	(void)state;
	splits_check(&training);
}

static void test_dense_float(void **state)
{
	struct training training = training_make(GLM_LOSS_HINGE, 0, false, 2);

	(void)state;
	splits_check(&training);
}

static void test_weaved(void **state)
{
	struct training training = training_make(GLM_LOSS_SQUARED_HINGE, 4, false, 2);

	(void)state;
	splits_check(&training);
}

static void test_sparse_codes(void **state)
{
	struct training training = training_make(GLM_LOSS_LINEAR, 8, true, 2);

	(void)state;
	splits_check(&training);
}

static void test_classes(void **state)
{
	struct training training = training_make(GLM_LOSS_LOGISTIC, 0, true, 4);

	(void)state;
	splits_check(&training);
}

static void test_no_allocation(void **state)
{
	struct training *training = malloc(sizeof(*training));

	(void)state;
	*training = training_make(GLM_LOSS_LOGISTIC, 0, true, 2);
	training->rule.threads = 2;
	training->rule.micro = 8;
	training_run(training);
	assert_int_equal(training->allocations, 0);
	free(training);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sparse_float), cmocka_unit_test(test_dense_float),
		cmocka_unit_test(test_weaved),       cmocka_unit_test(test_sparse_codes),
		cmocka_unit_test(test_classes),      cmocka_unit_test(test_no_allocation),
	};

	pthread_mutex_init(&hub.lock, NULL);
	pthread_cond_init(&hub.change, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
