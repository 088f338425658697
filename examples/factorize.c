/* SPDX-License-Identifier: Apache-2.0 */
/*
 * factorize: a recommender with Tributary's sparse tables. Each user and each item has a row, and
 * a user's liking of an item is the product of their rows. Rows are learned from pairs of items:
 * one that the user has used, and one drawn at random (Bayesian personalized ranking).
 *
 *     trib run -n 4 --servers 1 -- build/examples/factorize --epochs 5
 *
 * Each worker has a part of the users. After each epoch rank 0 ranks all items for some users, and
 * looks for the items of the test file among the first 20.
 */
#include "interactions.h"
#include "random.h"
#include "ranking.h"
#include "sparse_job.h"
#include "sparse_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEARBY "../shared/data/gowalla"

enum { PATH_ROOM = 4096, DRAWS = 16 };

static const char made[] = "made"; /* value of --data, and the data's name */

/* Keys of users and of items differ in their upper half. */
static uint64_t user_key(uint32_t user)
{
	return (uint64_t)1 << 32 | user;
}

static uint64_t item_key(uint32_t item)
{
	return (uint64_t)2 << 32 | item;
}

/* A user, an item that the user has used, and one that the user has not: slots of the batch. */
struct sample {
	uint32_t user, liked, other;
};

struct recommender {
	struct job job;
	struct job_options o;
	size_t tested; /* users of a test, at most; 0: all */
	double decay;  /* how strongly rows are pulled towards zero */
	const char *negatives;
	struct interactions train, test;
	uint32_t *order; /* this worker's interactions, shuffled */
	size_t n_order, epoch;
	struct sample *samples; /* of the present step */
	struct ranking popularity;
};

/* ---- data ---- */

static void file_read(const char *folder, const char *name, struct interactions *out)
{
	char path[PATH_ROOM];

	if (!lines_find(folder, name, path, sizeof(path))) {
		fprintf(stderr, "factorize: neither %s/%s nor the same with .xz or .gz is there\n",
		        folder, name);
		exit(EXIT_FAILURE);
	}
	interactions_read(out, path);
}

static void data_load(struct recommender *r)
{
	const char *from = r->o.data;

	if (!from)
		from = access(NEARBY, X_OK) == 0 ? NEARBY : made;
	r->job.result.data = from;
	if (strcmp(from, made) == 0) {
		interactions_make(&r->train, &r->test, r->o.seed);
	} else {
		file_read(from, "train.txt", &r->train);
		file_read(from, "test.txt", &r->test);
	}
	interactions_match(&r->train, &r->test);
	if (r->job.rank == 0)
		progress_say(&r->job.progress,
		             "data          %s: %u users, %u items, %zu interactions, %zu to test",
		             from, r->train.users, r->train.items, r->train.n, r->test.n);
}

static size_t samples_count(const struct recommender *r)
{
	return r->o.samples && r->o.samples < r->train.n ? r->o.samples : r->train.n;
}

/* Users are dealt out, so that each worker has users with many and with few interactions. */
static void order_make(struct recommender *r)
{
	size_t limit = samples_count(r);

	r->order = job_alloc(limit, sizeof(*r->order));
	for (size_t i = 0; i < limit; i++) {
		size_t at = i * r->train.n / limit; /* of all users, if not all are wanted */

		if (r->train.user[at] % (uint32_t)r->job.workers == (uint32_t)r->job.rank)
			r->order[r->n_order++] = (uint32_t)at;
	}
	if (r->n_order == 0) {
		fprintf(stderr, "factorize: rank %d has no user: there are too many workers\n",
		        r->job.rank);
		exit(EXIT_FAILURE);
	}
	r->samples = job_alloc(r->o.batch, sizeof(*r->samples));
}

static size_t steps_count(const struct recommender *r)
{
	size_t of_a_step = r->o.batch * (size_t)r->job.workers;

	return (samples_count(r) + of_a_step - 1) / of_a_step;
}

/* ---- training ---- */

static void epoch_begin(void *context, size_t epoch)
{
	struct recommender *r = context;
	struct random random =
		random_of(r->o.seed, epoch * (size_t)r->job.workers + (size_t)r->job.rank);

	r->epoch = epoch;
	for (size_t i = r->n_order - 1; i > 0; i--) {
		size_t j = random_next(&random) % (i + 1);
		uint32_t other = r->order[j];

		r->order[j] = r->order[i];
		r->order[i] = other;
	}
}

/* An item that the user has not used; after many draws, any item. */
static uint32_t other_draw(const struct recommender *r, uint32_t user, struct random *random)
{
	uint32_t item = 0;

	bool popular = strcmp(r->negatives, "popular") == 0;

	for (int i = 0; i < DRAWS; i++) {
		item = popular ? r->train.item[random_next(random) % r->train.n]
		               : (uint32_t)(random_next(random) % r->train.items);
		if (!interactions_has(&r->train, user, item))
			break;
	}
	return item;
}

static void samples_choose(void *context, size_t step, struct batch *batch)
{
	struct recommender *r = context;
	uint64_t stream =
		(r->epoch * 1000003 + step) * (size_t)r->job.workers + (size_t)r->job.rank;
	struct random random = random_of(r->o.seed ^ 0x5eed, stream);

	for (size_t i = 0; i < r->o.batch; i++) {
		uint32_t at = r->order[(step * r->o.batch + i) % r->n_order];
		uint32_t user = r->train.user[at];

		r->samples[i].user = (uint32_t)batch_slot(batch, user_key(user));
		r->samples[i].liked = (uint32_t)batch_slot(batch, item_key(r->train.item[at]));
		r->samples[i].other =
			(uint32_t)batch_slot(batch, item_key(other_draw(r, user, &random)));
	}
}

static double sample_learn(const struct recommender *r, const struct batch *batch,
                           const struct sample *sample)
{
	const float *user = batch_row(batch, sample->user),
		    *liked = batch_row(batch, sample->liked),
		    *other = batch_row(batch, sample->other);
	float *to_user = batch_gradient(batch, sample->user),
	      *to_liked = batch_gradient(batch, sample->liked),
	      *to_other = batch_gradient(batch, sample->other);
	float decay = (float)r->decay, push;
	float x = job_dot(user, liked, batch->width) - job_dot(user, other, batch->width);

	push = job_sigmoid(-x);
	for (size_t i = 0; i < batch->width; i++) {
		to_user[i] += decay * user[i] - push * (liked[i] - other[i]);
		to_liked[i] += decay * liked[i] - push * user[i];
		to_other[i] += decay * other[i] + push * user[i];
	}
	return job_softplus((double)x);
}

static struct job_loss samples_learn(void *context, struct batch *batch)
{
	struct recommender *r = context;
	struct job_loss loss = { .samples = r->o.batch };

	for (size_t i = 0; i < r->o.batch; i++)
		loss.sum += sample_learn(r, batch, &r->samples[i]);
	return loss;
}

/* ---- test ---- */

static size_t tested_count(const struct recommender *r)
{
	return r->tested && r->tested < r->train.users ? r->tested : r->train.users;
}

/* The i-th user of a test: the same in every test. */
static uint32_t tested_user(const struct recommender *r, size_t i)
{
	return (uint32_t)(i * r->train.users / tested_count(r));
}

static float *rows_pull(struct recommender *r, uint64_t (*key)(uint32_t), size_t n, bool users)
{
	uint64_t *keys = job_alloc(n, sizeof(*keys));
	float *rows = job_alloc(n * r->o.width, sizeof(*rows));

	for (size_t i = 0; i < n; i++)
		keys[i] = key(users ? tested_user(r, i) : (uint32_t)i);
	job_pull(&r->job, keys, rows, n);
	free(keys);
	return rows;
}

static void model_test(void *context, struct job_epoch *epoch)
{
	struct recommender *r = context;
	struct ranking ranking = { 0 };
	size_t n = tested_count(r), width = r->o.width;
	float *users = rows_pull(r, user_key, n, true);
	float *items = rows_pull(r, item_key, r->train.items, false);
	float *scores = job_alloc(r->train.items, sizeof(*scores));

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < r->train.items; k++)
			scores[k] = job_dot(users + i * width, items + k * width, width);
		ranking_add(&ranking, &r->train, &r->test, tested_user(r, i), scores);
	}
	ranking_mean(&ranking);
	epoch->measures[0] =
		(struct job_measure){ "recall_20", ranking.recall, r->popularity.recall };
	epoch->measures[1] =
		(struct job_measure){ "hit_rate_20", ranking.hit_rate, r->popularity.hit_rate };
	epoch->n_measures = 2;
	free(users);
	free(items);
	free(scores);
}

/* What recommending the most popular items to everybody would reach. */
static void popularity_test(struct recommender *r)
{
	float *popular = job_alloc(r->train.items, sizeof(*popular));
	float *scores = job_alloc(r->train.items, sizeof(*scores));

	for (size_t i = 0; i < r->train.n; i++)
		popular[r->train.item[i]]++;
	for (size_t i = 0; i < tested_count(r); i++) {
		memcpy(scores, popular, r->train.items * sizeof(*scores));
		ranking_add(&r->popularity, &r->train, &r->test, tested_user(r, i), scores);
	}
	ranking_mean(&r->popularity);
	r->job.result.baseline = "popular items";
	free(popular);
	free(scores);
}

/* ---- the program ---- */

static void options_read(struct recommender *r, int argc, char **argv)
{
	const struct job_option own[] = {
		{ "negatives", JOB_CHOICE, &r->negatives, 0, 0, "uniform|popular",
		  "popular: items are drawn as often as they are used" },
		{ "decay", JOB_NUMBER, &r->decay, 0, 10, "R", "pulls rows towards zero" },
		{ "tested", JOB_COUNT, &r->tested, 0, 1e9, "N",
		  "users of a test, at most; 0: all users" },
		{ 0 },
	};
	const struct job_usage usage = {
		.name = "factorize",
		.what = "Trains a recommender on DIR/train.txt (--data DIR), and tests it on "
			"DIR/test.txt.\nFiles may end in .xz or .gz. Lines are \"USER ITEM "
			"ITEM...\" or \"USER ITEM 1\".\nWithout --data: " NEARBY
			" if it is there, else made data (--data made).",
		.example = "trib run -n 4 --servers 1 -- factorize --epochs 5 --json result.json",
		.own = own,
	};

	r->o = job_options_default();
	r->o.batch = 512;
	r->o.width = 16;
	r->o.init = 0.02;
	r->decay = 0.01;
	r->tested = 2000;
	r->negatives = "uniform";
	job_options_parse(&usage, &r->o, argc, argv);
}

int main(int argc, char **argv)
{
	static struct recommender r;
	struct job_model model = { .context = &r,
		                   .begin = epoch_begin,
		                   .choose = samples_choose,
		                   .compute = samples_learn,
		                   .test = model_test };
	int code;

	options_read(&r, argc, argv);
	job_start(&r.job, "factorize", &r.o);
	data_load(&r);
	order_make(&r);
	model.steps = steps_count(&r);
	if (r.job.rank == 0)
		popularity_test(&r);
	job_open(&r.job, (size_t)r.train.users + r.train.items);
	job_train(&r.job, &model);
	code = job_end(&r.job);
	interactions_free(&r.train);
	interactions_free(&r.test);
	free(r.order);
	free(r.samples);
	return code;
}
