/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train: data-parallel training with Tributary. Every worker has the whole network and the same
 * order of samples. It computes the gradient of its share of each batch. An allreduce gives all
 * workers the mean of the gradients. The mean is bitwise the same everywhere, so the weights stay
 * bitwise equal too. Parts of the gradient ("buckets") are sent while the next ones are computed.
 */
#include "digits.h"
#include "gradient.h"
#include "model.h"
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
static const char drawn[] = "drawn"; /* value of --data, and the data's name */

struct trainer {
	trib_comm *comm;
	int rank, size;
	struct options o;
	struct digits train, test;
	struct net *net;
	float *velocity; /* of the weights */
	struct gradient gradient;
	uint32_t *order; /* the samples, shuffled in the same way on all ranks */
	struct progress progress;
	double point_loss; /* of this rank, summed since the last point of the learning curve */
	struct result result;
};

/* This rank's part of `count` items. */
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

/*
 * Compares options and data: ranks with different ones would train without an error and learn
 * nonsense.
 */
static void setup_compare(struct trainer *t)
{
	uint64_t numbers[] = { t->o.epochs,  t->o.batch,  t->o.hidden,    t->o.buckets,
		               t->o.seed,    0,           t->train.count, t->test.count,
		               t->o.is_half, t->o.points, t->o.feedback };
	uint64_t hash;

	memcpy(&numbers[5], &t->o.rate, sizeof(t->o.rate));
	hash = hash_bytes(HASH_START, numbers, sizeof(numbers));
	hash = hash_bytes(hash, t->o.model->name, strlen(t->o.model->name));
	hash = hash_bytes(hash, t->train.labels, t->train.count);
	if (!ranks_agree(t->comm, hash, "options or data"))
		exit(EXIT_FAILURE);
}

static void net_start(struct trainer *t)
{
	size_t share = t->o.batch / (size_t)t->size + 1;

	t->net = t->o.model->create(t->o.hidden, share > EVAL_BATCH ? share : EVAL_BATCH);
	t->velocity = t->net ? calloc(t->net->count, sizeof(*t->velocity)) : NULL;
	if (!t->velocity)
		fail(t, "no memory for the network");
	if (t->rank == 0)
		t->o.model->randomize(t->net, t->o.seed);
	ranks_require(t->comm, trib_broadcast(t->comm, t->net->weights, t->net->count, TRIB_F32, 0),
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

/* A part of the gradient on its way. */
struct bucket {
	size_t first, count;
	trib_request *request;
};

static void backward_send(struct trainer *t, size_t count, struct bucket *buckets)
{
	/* Divided by the whole batch: so the mean is exact even if shares differ in size. */
	float scale = (float)t->size / (float)t->o.batch;
	size_t end = 0;

	for (size_t i = 0; i < t->o.buckets; i++) {
		struct bucket *b = &buckets[i];
		double start;

		b->first = end;
		end = t->o.model->backward(t->net, count, scale, i, t->o.buckets);
		b->count = end - b->first;
		start = seconds_now();
		ranks_require(t->comm, gradient_send(&t->gradient, b->first, b->count, &b->request),
		              "all-reduce of the gradient");
		t->result.comm_s += seconds_now() - start;
	}
}

/* Updates the weights of each bucket while later buckets are in flight. */
static void receive_update(struct trainer *t, float rate, struct bucket *buckets)
{
	for (size_t i = 0; i < t->o.buckets; i++) {
		struct bucket *b = &buckets[i];
		double start = seconds_now();

		ranks_require(t->comm, trib_wait(&b->request, -1), "all-reduce of the gradient");
		t->result.comm_s += seconds_now() - start;
		gradient_receive(&t->gradient, b->first, b->count);
		sgd_step(t->net->weights + b->first, t->velocity + b->first,
		         t->net->gradient + b->first, b->count, rate, momentum);
	}
}

static struct score step_run(struct trainer *t, size_t at, float rate)
{
	struct share mine = share_of(t, t->o.batch);
	struct bucket buckets[BUCKETS_MAX] = { 0 };
	struct score score;

	score = t->o.model->forward(t->net, &t->train, t->order + at + mine.first, mine.count);
	backward_send(t, mine.count, buckets);
	receive_update(t, rate, buckets);
	return score;
}

/* Each rank tests its share of the samples. An allreduce sums the results. */
static void test_run(struct trainer *t)
{
	struct share mine = share_of(t, t->test.count);
	uint32_t picks[EVAL_BATCH];
	int64_t correct = 0;

	for (size_t done = 0; done < mine.count; done += EVAL_BATCH) {
		size_t count = mine.count - done < EVAL_BATCH ? mine.count - done : EVAL_BATCH;

		for (size_t i = 0; i < count; i++)
			picks[i] = (uint32_t)(mine.first + done + i);
		correct += (int64_t)t->o.model->forward(t->net, &t->test, picks, count).correct;
	}
	ranks_require(t->comm,
	              trib_allreduce(t->comm, TRIB_IN_PLACE, &correct, 1, TRIB_I64, TRIB_SUM),
	              "all-reduce of the test");
	t->result.tested = t->test.count;
	t->result.correct = (size_t)correct;
}

/* Whether this step, counted from 0, ends one of the equal parts of an epoch. */
static bool is_point(const struct trainer *t, size_t step, size_t steps)
{
	return (step + 1) * t->o.points / steps > step * t->o.points / steps;
}

static void point_add(struct trainer *t)
{
	struct curve *curve = &t->result.curve;
	size_t before = curve->count ? curve->points[curve->count - 1].samples : 0;
	size_t epoch = t->train.count / t->o.batch; /* in steps */
	struct curve_point point = { .samples = t->result.steps * t->o.batch };
	double loss = t->point_loss;

	test_run(t);
	ranks_require(t->comm, trib_allreduce(t->comm, TRIB_IN_PLACE, &loss, 1, TRIB_F64, TRIB_SUM),
	              "all-reduce of the loss");
	t->point_loss = 0;
	point.epoch = (double)t->result.steps / (double)epoch;
	point.loss = loss / (double)(point.samples - before);
	point.accuracy = result_accuracy(&t->result);
	if (curve_add(curve, point) != 0)
		fail(t, "no memory for the learning curve");
	if (t->rank == 0 && t->progress.mode != PROGRESS_NONE)
		progress_say(&t->progress, "epoch %.2f    loss %.4f, test accuracy %.2f %%",
		             point.epoch, point.loss, 100 * point.accuracy);
}

static void epoch_run(struct trainer *t, size_t epoch)
{
	size_t steps = t->train.count / t->o.batch, total = steps * t->o.epochs;
	struct progress_state state = { .epoch = epoch + 1, .epochs = t->o.epochs, .steps = steps };
	double loss = 0, correct = 0, seen = 0;

	order_shuffle(t, epoch);
	for (size_t step = 0; step < steps; step++) {
		double left = 1 - (double)t->result.steps / (double)total, start = seconds_now();
		struct score score = step_run(t, step * t->o.batch, (float)(t->o.rate * left));

		t->result.steps++;
		t->result.step_total_s += seconds_now() - start;
		/*
		 * Shows the loss of rank 0's share only: the sum over all ranks would cost another
		 * collective.
		 */
		loss += score.loss;
		correct += (double)score.correct;
		seen += (double)share_of(t, t->o.batch).count;
		state.step = step + 1;
		state.loss = loss / seen;
		state.accuracy = correct / seen;
		state.communication = t->result.comm_s / t->result.step_total_s;
		if (t->rank == 0)
			progress_show(&t->progress, &state, seconds_now());
		t->point_loss += score.loss;
		if (is_point(t, step, steps))
			point_add(t);
	}
	t->result.loss = state.loss;
}

static void train_run(struct trainer *t)
{
	double start = seconds_now();
	uint64_t hash;

	for (size_t epoch = 0; epoch < t->o.epochs; epoch++)
		epoch_run(t, epoch);
	if (t->o.points == 0)
		test_run(t);
	hash = hash_bytes(HASH_START, t->net->weights, t->net->count * sizeof(float));
	t->result.weights_equal = ranks_agree(t->comm, hash, "weights");
	t->result.total_s = seconds_now() - start;
}

static void trainer_free(struct trainer *t)
{
	curve_free(&t->result.curve);
	gradient_free(&t->gradient);
	t->o.model->destroy(t->net);
	free(t->velocity);
	free(t->order);
	digits_free(&t->train);
	digits_free(&t->test);
}

static bool files_write(struct trainer *t)
{
	const char *failed = NULL;

	if (t->o.json && result_write(&t->result, t->o.json) != 0)
		failed = t->o.json;
	else if (t->o.curve && curve_write(&t->result.curve, t->o.curve) != 0)
		failed = t->o.curve;
	if (failed)
		fprintf(stderr, "train: %s: %s\n", failed, strerror(errno));
	return !failed;
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
	t.result.model = t.o.model->name;
	t.result.workers = t.size;
	t.result.batch = t.o.batch;
	t.result.hidden = t.o.hidden;
	t.result.buckets = t.o.buckets;
	t.result.gradient_bytes = t.net->count * (t.o.is_half ? sizeof(uint16_t) : sizeof(float));
	gradient_init(&t.gradient, t.comm, t.net->gradient, t.net->count, t.o.is_half, t.o.feedback,
	              t.o.gradients);
	train_run(&t);
	if (t.rank == 0) {
		result_print(&t.result, &t.progress);
		written = files_write(&t);
	}
	ranks_require(t.comm, trib_finalize(t.comm), "leaving the job");
	trainer_free(&t);
	return t.result.weights_equal && written ? EXIT_SUCCESS : EXIT_FAILURE;
}
