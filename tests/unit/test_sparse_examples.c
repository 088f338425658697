/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the examples factorize and words, and the loop that they share, with a table in
 * memory (local_sparse.c).
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "interactions.h"
#include "ranking.h"
#include "sparse_job.h"
#include "vocabulary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEYS = 5000, WIDTH = 3 };

/* ---- batch ---- */

static void equal_keys_share_a_slot(void **state)
{
	struct batch batch;

	(void)state;
	batch_open(&batch, WIDTH);
	for (int round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < KEYS; i++)
			assert_int_equal(batch_slot(&batch, i << 32 | i), i);
		for (uint64_t i = 0; i < KEYS; i += 2)
			assert_int_equal(batch_slot(&batch, i << 32 | i), i);
		assert_int_equal(batch.n, KEYS);
		for (uint64_t i = 0; i < KEYS; i++) {
			assert_int_equal(batch.counts[i], 2 - i % 2);
			assert_true(batch_gradient(&batch, i)[WIDTH - 1] == 0);
			batch_gradient(&batch, i)[WIDTH - 1] = 1;
		}
		batch_clear(&batch);
		assert_int_equal(batch.n, 0);
	}
	batch_close(&batch);
}

/* ---- interactions and ranking ---- */

static char *file_make(const char *text)
{
	static char path[] = "/tmp/trib-sparse-XXXXXX";
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return path;
}

static void lists_are_read(void **state)
{
	const char *path = file_make("0 5 3 5\n\n2 1\n");
	struct interactions read;

	(void)state;
	interactions_read(&read, path);
	unlink(path);
	assert_int_equal(read.users, 3);
	assert_int_equal(read.items, 6);
	assert_int_equal(read.n, 3);
	assert_true(interactions_has(&read, 0, 3) && interactions_has(&read, 0, 5));
	assert_true(interactions_has(&read, 2, 1));
	assert_false(interactions_has(&read, 0, 4) || interactions_has(&read, 1, 1));
	interactions_free(&read);
}

static void triples_are_read(void **state)
{
	const char *path = file_make("0 5 1\n0 3 1\n1 2 1\n");
	struct interactions read;

	(void)state;
	interactions_read(&read, path);
	unlink(path);
	assert_int_equal(read.n, 3);
	assert_false(interactions_has(&read, 0, 1) || interactions_has(&read, 1, 1));
	assert_true(interactions_has(&read, 0, 3) && interactions_has(&read, 1, 2));
	interactions_free(&read);
}

static void known_items_are_not_recommended(void **state)
{
	const char *path = file_make("0 0 1 2\n1 39\n");
	struct interactions train, test;
	struct ranking ranking = { 0 };
	float scores[40];

	(void)state;
	interactions_read(&train, path);
	unlink(path);
	path = file_make("0 22 30\n1 0\n");
	interactions_read(&test, path);
	unlink(path);
	interactions_match(&train, &test);
	assert_int_equal(test.items, 40);
	/* The best are 0, 1, 2, which user 0 knows. So 3 to 22 are recommended. */
	for (int i = 0; i < 40; i++)
		scores[i] = (float)(100 - i);
	ranking_add(&ranking, &train, &test, 0, scores);
	for (int i = 0; i < 40; i++)
		scores[i] = (float)i;
	ranking_add(&ranking, &train, &test, 1, scores);
	ranking_mean(&ranking);
	assert_int_equal(ranking.users, 2);
	assert_true(ranking.recall == 0.25 && ranking.hit_rate == 0.5);
	interactions_free(&train);
	interactions_free(&test);
}

/* ---- vocabulary ---- */

static void frequent_words_come_first(void **state)
{
	const char *path = file_make("b a  rare\nc a b\ta c\n");
	static const uint32_t text[] = { 1, 0, 2, 0, 1, 0, 2 };
	struct random random = random_of(1, 2);
	struct vocabulary v;
	size_t drawn[3] = { 0 };

	(void)state;
	vocabulary_read(&v, path, 2, 0);
	unlink(path);
	assert_int_equal(v.n, 3);
	assert_string_equal(v.words[0].text, "a");
	assert_string_equal(v.words[1].text, "b");
	assert_int_equal(v.words[0].count, 3);
	assert_int_equal(v.length, 7);
	assert_memory_equal(v.text, text, sizeof(text));
	assert_int_equal(vocabulary_find(&v, "c"), 2);
	assert_true(vocabulary_find(&v, "rare") == SIZE_MAX);
	for (int i = 0; i < 100000; i++)
		drawn[vocabulary_draw(&v, &random)]++;
	/* 3^0.75 to 2^0.75 */
	assert_true(fabs((double)drawn[0] / (double)drawn[1] - 1.355) < 0.05);
	vocabulary_free(&v);
}

/* ---- the loop ---- */

enum { STEPS = 50, TARGET = 2 };

/* A model whose rows all have to become TARGET. */
static void nothing_begin(void *context, size_t epoch)
{
	(void)context;
	(void)epoch;
}

static void keys_choose(void *context, size_t step, struct batch *batch)
{
	(void)context;
	for (uint64_t i = 0; i < 10; i++)
		batch_slot(batch, (step * 7 + i) % 40);
}

static struct job_loss rows_learn(void *context, struct batch *batch)
{
	struct job_loss loss = { .samples = batch->n };

	(void)context;
	for (size_t i = 0; i < batch->n * batch->width; i++) {
		float error = batch->rows[i] - TARGET;

		batch->gradients[i] = error;
		loss.sum += (double)(error * error);
	}
	return loss;
}

static void model_test(void *context, struct job_epoch *epoch)
{
	*(int *)context += 1;
	epoch->measures[0] = (struct job_measure){ "tests", *(int *)context, 0 };
	epoch->n_measures = 1;
}

static void a_job_learns_and_reports(void **state)
{
	int tests = 0;
	struct job_options options = { .epochs = 3,
		                       .batch = 10,
		                       .width = WIDTH,
		                       .rate = 0.1,
		                       .sample = 5,
		                       .largest = 1,
		                       .timeout_s = 1,
		                       .optimizer = "sgd",
		                       .path = "auto",
		                       .sums = "fixed",
		                       .wire = "f32",
		                       .staleness = "none",
		                       .progress = "none" };
	struct job_model model = { .context = &tests,
		                   .steps = STEPS,
		                   .begin = nothing_begin,
		                   .choose = keys_choose,
		                   .compute = rows_learn,
		                   .test = model_test };
	const uint64_t keys[] = { 0, 39 };
	float rows[2 * WIDTH];
	struct job job;

	(void)state;
	job_start(&job, "unit", &options);
	job.result.data = "\"quoted\"";
	job.result.baseline = "nothing";
	job_open(&job, 40);
	job_train(&job, &model);
	assert_int_equal(tests, 3);
	assert_int_equal(job.result.n_epochs, 3);
	assert_int_equal(job.result.n_losses, 3 * STEPS);
	/* Every row begins at 0, so the first step's loss is WIDTH * TARGET^2. */
	assert_true(fabs(job.result.losses[0] - WIDTH * TARGET * TARGET) < 1e-6);
	assert_true(job.result.epochs[0].loss > 2 * job.result.epochs[1].loss);
	assert_true(job.result.epochs[1].loss > 2 * job.result.epochs[2].loss);
	job_pull(&job, keys, rows, 2);
	for (int i = 0; i < 2 * WIDTH; i++)
		assert_true(fabsf(rows[i] - TARGET) < 0.1f);
	assert_int_equal(job_end(&job), EXIT_SUCCESS);
}

static void softplus_does_not_overflow(void **state)
{
	(void)state;
	assert_true(fabs(job_softplus(0) - log(2)) < 1e-12);
	assert_true(job_softplus(-1e6) == 1e6 && job_softplus(1e6) == 0);
	assert_true(job_sigmoid(1e6f) == 1 && job_sigmoid(-1e6f) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_keys_share_a_slot),
		cmocka_unit_test(lists_are_read),
		cmocka_unit_test(triples_are_read),
		cmocka_unit_test(known_items_are_not_recommended),
		cmocka_unit_test(frequent_words_come_first),
		cmocka_unit_test(a_job_learns_and_reports),
		cmocka_unit_test(softplus_does_not_overflow),
	};

	unsetenv("TRIB_RANK");
	unsetenv("TRIB_SIZE");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
