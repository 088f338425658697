/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data-parallel training with Tributary. Every worker holds the whole network
 * and the same order of samples, computes the gradient of its share of each
 * batch, and gets the mean of all gradients from one collective; as that mean
 * is bitwise the same everywhere, so stay the weights. Parts of the gradient
 * ("buckets") travel while the next ones are still computed.
 */
#include "digits.h"
#include "mlp.h"
#include "options.h"
#include "progress.h"
#include "random.h"
#include "ranks.h"
#include "result.h"
#include "sgd.h"

#include <tributary.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MNIST_NEARBY "../shared/data/mnist"

enum { DRAWN_TRAIN = 60000, DRAWN_TEST = 10000, EVAL_BATCH = 128 };

static const float momentum = 0.9f;
static const char drawn[] = "drawn"; /* the word for --data, and the data's name */

struct trainer {
	trib_comm *comm;
	int rank, size;
	struct options o;
	struct digits train, test;
	struct mlp net;
	uint32_t *order; /* the samples, shuffled alike on all ranks */
	struct progress progress;
	struct result result;
};

/* The part of `count` things that is this rank's. */
struct share {
	size_t first, count;
};

static struct share share_of(const struct trainer *t, size_t count)
{
	size_t first = count * (size_t)t->rank / (size_t)t->size;
	size_t end = count * ((size_t)t->rank + 1) / (size_t)t->size;

	return (struct share){ first, end - first };
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void fail(const struct trainer *t, const char *why)
{
	fprintf(stderr, "train: rank %d: %s\n", t->rank, why);
	exit(EXIT_FAILURE);
}

static void data_load(struct trainer *t)
{
	const char *from = t->o.data ? t->o.data : getenv("TRIB_MNIST");
	char why[DIGITS_WHY];
	int failed;

	if (!from || !*from)
		from = access(MNIST_NEARBY, X_OK) == 0 ? MNIST_NEARBY : drawn;
	if (strcmp(from, drawn) == 0) {
		size_t count = t->o.samples ? t->o.samples : DRAWN_TRAIN;

		t->result.data = drawn;
		failed = digits_draw(&t->train, count, 2 * t->o.seed, why) ||
		         digits_draw(&t->test, DRAWN_TEST, 2 * t->o.seed + 1, why);
	} else {
		t->result.data = "mnist";
		failed = digits_load(&t->train, from, "train", why) ||
		         digits_load(&t->test, from, "t10k", why);
	}
	if (failed)
		fail(t, why);
	if (t->o.samples)
		digits_cut(&t->train, t->o.samples);
	if (t->o.batch > t->train.count || t->o.batch < (size_t)t->size) {
		snprintf(why, sizeof(why), "a batch of %zu does not suit %zu samples, %d workers",
		         t->o.batch, t->train.count, t->size);
		fail(t, why);
	}
	if (t->rank == 0)
		progress_say(&t->progress, "data          %s%s, %zu to learn from, %zu to test on",
		             t->result.data == drawn ? "" : "MNIST in ",
		             t->result.data == drawn ? "drawn digits" : from, t->train.count,
		             t->test.count);
}

/* Ranks that were started with other options or data would train, and learn nonsense. */
static void setup_compare(struct trainer *t)
{
	uint64_t numbers[] = { t->o.epochs, t->o.batch, t->o.hidden,    t->o.buckets,
		               t->o.seed,   0,          t->train.count, t->test.count };
	uint64_t hash;

	memcpy(&numbers[5], &t->o.rate, sizeof(t->o.rate));
	hash = hash_bytes(HASH_START, numbers, sizeof(numbers));
	hash = hash_bytes(hash, t->train.labels, t->train.count);
	if (!ranks_agree(t->comm, hash, "options or data"))
		exit(EXIT_FAILURE);
}

static void net_start(struct trainer *t)
{
	size_t share = t->o.batch / (size_t)t->size + 1;

	if (mlp_init(&t->net, t->o.hidden, share > EVAL_BATCH ? share : EVAL_BATCH) != 0)
		fail(t, "no memory for the network");
	if (t->rank == 0)
		mlp_randomize(&t->net, t->o.seed);
	ranks_require(t->comm, trib_broadcast(t->comm, t->net.weights, t->net.count, TRIB_F32, 0),
	              "broadcast of the first weights");
	t->order = calloc(t->train.count, sizeof(*t->order));
	if (!t->order)
		fail(t, "no memory for the order of samples");
	for (size_t i = 0; i < t->train.count; i++)
		t->order[i] = (uint32_t)i;
}

static void order_shuffle(struct trainer *t, size_t epoch)
{
	struct random r = random_of(t->o.seed, epoch);

	for (size_t i = t->train.count - 1; i > 0; i--) {
		size_t j = random_next(&r) % (i + 1);
		uint32_t other = t->order[j];

		t->order[j] = t->order[i];
		t->order[i] = other;
	}
}

/* The elements of bucket `i`: a run of pixels' weights; the first has the head as well. */
static struct share bucket_of(const struct trainer *t, size_t i)
{
	size_t first = DIGITS_PIXELS * i / t->o.buckets;
	size_t end = DIGITS_PIXELS * (i + 1) / t->o.buckets;
	size_t begin = i == 0 ? 0 : mlp_offset(&t->net, first);

	return (struct share){ begin, mlp_offset(&t->net, end) - begin };
}

static void backward_send(struct trainer *t, size_t count, trib_request **requests)
{
	/* By the whole batch, so that shares of unlike sizes still give its exact mean. */
	float scale = (float)t->size / (float)t->o.batch;

	mlp_backward_head(&t->net, count, scale);
	for (size_t i = 0; i < t->o.buckets; i++) {
		size_t first = DIGITS_PIXELS * i / t->o.buckets;
		size_t end = DIGITS_PIXELS * (i + 1) / t->o.buckets;
		struct share bucket = bucket_of(t, i);
		double start;

		mlp_backward_pixels(&t->net, count, first, end - first);
		start = seconds_now();
		ranks_require(t->comm,
		              trib_iallreduce(t->comm, TRIB_IN_PLACE,
		                              t->net.gradient + bucket.first, bucket.count,
		                              TRIB_F32, TRIB_AVG, &requests[i]),
		              "all-reduce of the gradient");
		t->result.comm_s += seconds_now() - start;
	}
}

/* Each bucket updates its weights while the later ones are still on their way. */
static void receive_update(struct trainer *t, float rate, trib_request **requests)
{
	for (size_t i = 0; i < t->o.buckets; i++) {
		struct share bucket = bucket_of(t, i);
		double start = seconds_now();

		ranks_require(t->comm, trib_wait(&requests[i], -1), "all-reduce of the gradient");
		t->result.comm_s += seconds_now() - start;
		sgd_step(t->net.weights + bucket.first, t->net.velocity + bucket.first,
		         t->net.gradient + bucket.first, bucket.count, rate, momentum);
	}
}

static struct mlp_score step_run(struct trainer *t, size_t at, float rate)
{
	struct share mine = share_of(t, t->o.batch);
	trib_request *requests[BUCKETS_MAX] = { 0 };
	struct mlp_score score;

	score = mlp_forward(&t->net, &t->train, t->order + at + mine.first, mine.count);
	backward_send(t, mine.count, requests);
	receive_update(t, rate, requests);
	return score;
}

static void epoch_run(struct trainer *t, size_t epoch)
{
	size_t steps = t->train.count / t->o.batch, total = steps * t->o.epochs;
	struct progress_state state = { .epoch = epoch + 1, .epochs = t->o.epochs, .steps = steps };
	double loss = 0, correct = 0, seen = 0;

	order_shuffle(t, epoch);
	for (size_t step = 0; step < steps; step++) {
		double left = 1 - (double)t->result.steps / (double)total, start = seconds_now();
		struct mlp_score score = step_run(t, step * t->o.batch, (float)(t->o.rate * left));

		t->result.steps++;
		t->result.step_total_s += seconds_now() - start;
		/* Rank 0's share stands for all: to add them up would cost a collective more. */
		loss += score.loss;
		correct += (double)score.correct;
		seen += (double)share_of(t, t->o.batch).count;
		state.step = step + 1;
		state.loss = loss / seen;
		state.accuracy = correct / seen;
		state.communication = t->result.comm_s / t->result.step_total_s;
		if (t->rank == 0)
			progress_show(&t->progress, &state, seconds_now());
	}
	t->result.loss = state.loss;
}

/* All ranks test, each its share of the samples, and get the sum. */
static void test_run(struct trainer *t)
{
	struct share mine = share_of(t, t->test.count);
	uint32_t picks[EVAL_BATCH];
	int64_t correct = 0;

	for (size_t done = 0; done < mine.count; done += EVAL_BATCH) {
		size_t count = mine.count - done < EVAL_BATCH ? mine.count - done : EVAL_BATCH;

		for (size_t i = 0; i < count; i++)
			picks[i] = (uint32_t)(mine.first + done + i);
		correct += (int64_t)mlp_forward(&t->net, &t->test, picks, count).correct;
	}
	ranks_require(t->comm,
	              trib_allreduce(t->comm, TRIB_IN_PLACE, &correct, 1, TRIB_I64, TRIB_SUM),
	              "all-reduce of the test");
	t->result.tested = t->test.count;
	t->result.correct = (size_t)correct;
}

static void train_run(struct trainer *t)
{
	double start = seconds_now();
	uint64_t hash;

	for (size_t epoch = 0; epoch < t->o.epochs; epoch++)
		epoch_run(t, epoch);
	test_run(t);
	hash = hash_bytes(HASH_START, t->net.weights, t->net.count * sizeof(float));
	t->result.weights_equal = ranks_agree(t->comm, hash, "weights");
	t->result.total_s = seconds_now() - start;
}

static void trainer_free(struct trainer *t)
{
	mlp_free(&t->net);
	free(t->order);
	digits_free(&t->train);
	digits_free(&t->test);
}

int main(int argc, char **argv)
{
	struct trainer t = { .o = options_parse(argc, argv) };
	bool written = true;

	progress_init(&t.progress, t.o.progress);
	ranks_require(NULL, trib_init(&t.comm, NULL), "cannot join the job");
	t.rank = trib_rank(t.comm);
	t.size = trib_size(t.comm);
	data_load(&t);
	setup_compare(&t);
	net_start(&t);
	t.result.workers = t.size;
	t.result.batch = t.o.batch;
	t.result.hidden = t.o.hidden;
	t.result.buckets = t.o.buckets;
	t.result.gradient_bytes = t.net.count * sizeof(float);
	train_run(&t);
	if (t.rank == 0) {
		result_print(&t.result, &t.progress);
		written = !t.o.json || result_write(&t.result, t.o.json) == 0;
		if (!written)
			fprintf(stderr, "train: %s: %s\n", t.o.json, strerror(errno));
	}
	ranks_require(t.comm, trib_finalize(t.comm), "leaving the job");
	trainer_free(&t);
	return t.result.weights_equal && written ? EXIT_SUCCESS : EXIT_FAILURE;
}
