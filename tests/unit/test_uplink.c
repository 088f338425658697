/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of aggregators in memory: engine, uplink and stream together, over a network that loses,
 * duplicates and reorders. Integers are exact. Floats have the same bits as with one aggregator for
 * all, in any tree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random_bits.h"
#include "engine/uplink.h"
#include "short.h"
#include "simnet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ull
#define JOBS 6

static uint64_t random_state;

static uint64_t next_random(void)
{
	return random_next(&random_state);
}

/*
 * A random tree: a node's parent has a lower number, and a node without child nodes has a worker.
 */
static void tree_draw(struct simnet_options *options)
{
	uint64_t inner = 1;

	options->nodes = 2 + (unsigned)(next_random() % 8);
	options->workers = options->nodes + (unsigned)(next_random() % 12);
	for (unsigned n = 1; n < options->nodes; n++) {
		/* Half of the trees are deep, half are wide. */
		options->parent[n] = next_random() & 1 ? n - 1 : (unsigned)(next_random() % n);
		inner |= 1ull << options->parent[n];
	}
	for (unsigned w = 0; w < options->workers; w++) {
		options->leaf[w] = (unsigned)(next_random() % options->nodes);
		if (w < options->nodes && !(inner >> w & 1))
			options->leaf[w] = w;
	}
}

struct job {
	size_t count;
	bool floats;
	uint8_t from, to;
	uint32_t *in[SIM_WORKERS_MAX], *out[SIM_WORKERS_MAX];
};

static void job_make(struct job *job, unsigned workers, unsigned number)
{
	unsigned who = (unsigned)(next_random() % workers);

	job->count = next_random() % 20000;
	job->floats = number % 2;
	job->from = number % 3 == 1 && !job->floats ? (uint8_t)who : WIRE_ALL;
	job->to = number % 3 == 2 ? (uint8_t)who : WIRE_ALL;
	for (unsigned w = 0; w < workers; w++) {
		job->in[w] = malloc(job->count * 4 + 4);
		job->out[w] = calloc(job->count + 1, 4);
		assert_true(job->in[w] && job->out[w]);
		for (size_t i = 0; i < job->count; i++) {
			float f = (float)((double)(int64_t)next_random() * 1e-19);

			/* Blocks of different magnitudes, so that subtrees' exponents differ. */
			if (i / 500 % 3 == w % 3)
				f *= 1e6f;
			memcpy(&job->in[w][i], &f, 4);
		}
	}
}

static void job_post(struct job *job, struct simnet *sim, unsigned workers)
{
	for (unsigned w = 0; w < workers; w++) {
		bool wants = job->to == WIRE_ALL || job->to == w;
		struct round_spec spec = { .source = job->in[w],
			                   .target = wants ? job->out[w] : NULL,
			                   .count = job->from == WIRE_ALL ? job->count
			                                                  : job->count * 4,
			                   .type = job->floats ? TRIB_F32 : TRIB_U32,
			                   .op = TRIB_SUM,
			                   .copy = job->from != WIRE_ALL,
			                   .from = job->from,
			                   .to = job->to };

		simnet_post(sim, w, &spec);
	}
}

static void job_check(const struct job *job, unsigned workers)
{
	for (size_t i = 0; i < job->count && !job->floats; i++) {
		uint32_t sum = 0;

		for (unsigned w = 0; w < workers; w++)
			sum += job->in[w][i];
		if (job->from != WIRE_ALL)
			sum = job->in[job->from][i];
		for (unsigned w = 0; w < workers; w++)
			if (job->to == WIRE_ALL || job->to == w)
				assert_int_equal(job->out[w][i], sum);
	}
}

static uint64_t run(const struct simnet_options *options, struct job *jobs)
{
	struct simnet *sim = simnet_new(options);
	uint64_t packets;

	for (unsigned k = 0; k < JOBS; k++)
		job_post(&jobs[k], sim, options->workers);
	if (!simnet_run(sim, 600 * SECOND))
		fail_msg("stuck: %u nodes, %u workers, %u cells, seed %llu", options->nodes,
		         options->workers, options->cells, (unsigned long long)options->seed);
	assert_int_equal(simnet_verdicts(sim, DENSE_STRANGER), 0);
	assert_int_equal(simnet_verdicts(sim, DENSE_MISMATCH), 0);
	for (unsigned k = 0; k < JOBS; k++)
		job_check(&jobs[k], options->workers);
	packets = simnet_packets(sim);
	simnet_free(sim);
	return packets;
}

static uint64_t one_tree(uint64_t seed)
{
	static const double losses[] = { 0, 0.01, 0.1, 0.3 };
	static const uint32_t pools[] = { 4, 16, 100, 1000, 4096 };
	struct simnet_options options = { .payload = 256, .seed = seed }, star;
	struct job jobs[JOBS];
	uint32_t *expected[JOBS][SIM_WORKERS_MAX];
	uint64_t packets;

	random_state = seed;
	tree_draw(&options);
	options.cells = pools[next_random() % 5];
	star = options;
	star.nodes = 0;
	memset(star.leaf, 0, sizeof(star.leaf));
	options.loss = losses[next_random() % 4];
	options.dup = losses[next_random() % 3];
	options.delayed = losses[next_random() % 3];
	for (unsigned k = 0; k < JOBS; k++)
		job_make(&jobs[k], options.workers, k);
	packets = run(&star, jobs);
	for (unsigned k = 0; k < JOBS; k++)
		for (unsigned w = 0; w < options.workers; w++) {
			expected[k][w] = jobs[k].out[w];
			jobs[k].out[w] = calloc(jobs[k].count + 1, 4);
			assert_non_null(jobs[k].out[w]);
		}
	packets += run(&options, jobs);
	for (unsigned k = 0; k < JOBS; k++)
		for (unsigned w = 0; w < options.workers; w++) {
			assert_memory_equal(expected[k][w], jobs[k].out[w], jobs[k].count * 4);
			free(expected[k][w]);
			free(jobs[k].out[w]);
			free(jobs[k].in[w]);
		}
	return packets;
}

/* Trees of two to nine aggregators. TRIB_TEST_SEED: the first seed. */
static void test_any_tree(void **state)
{
	const char *text = getenv("TRIB_TEST_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 10) : 1, packets = 0;
	unsigned trees = (unsigned)test_cases("trees", 60);

	(void)state;
	print_message("seeds from %llu on\n", (unsigned long long)seed);
	for (unsigned i = 0; i < trees; i++)
		packets += one_tree(seed + i);
	print_message("%llu packets\n", (unsigned long long)packets);
}

/* ---- reported losses ---- */

/* Two subtrees of two workers each. The workers of one have larger numbers in every other block. */
static struct simnet_losses losses_of(bool floats, double loss, uint64_t seed)
{
	struct simnet_options options = { .workers = 4,
		                          .nodes = 3,
		                          .leaf = { 1, 1, 2, 2 },
		                          .cells = 1000,
		                          .payload = 256,
		                          .loss = loss,
		                          .seed = seed };
	struct job job = { .count = 300000, .floats = floats, .from = WIRE_ALL, .to = WIRE_ALL };
	struct simnet *sim = simnet_new(&options);
	struct simnet_losses losses;

	for (unsigned w = 0; w < options.workers; w++) {
		job.in[w] = malloc(job.count * 4);
		job.out[w] = calloc(job.count, 4);
		assert_true(job.in[w] && job.out[w]);
		for (size_t i = 0; i < job.count; i++) {
			float f = (float)(i % 100 + 1) * (i / 500 % 2 == w / 2 ? 1e6f : 1);

			memcpy(&job.in[w][i], &f, 4);
		}
	}
	job_post(&job, sim, options.workers);
	assert_true(simnet_run(sim, 600 * SECOND));
	losses = simnet_losses(sim);
	print_message("%s, loss %g: %llu sums judged, %llu lost, %llu missed; %llu results again\n",
	              floats ? "floats" : "integers", loss, (unsigned long long)losses.judged,
	              (unsigned long long)losses.lost, (unsigned long long)losses.missed,
	              (unsigned long long)losses.again);
	simnet_free(sim);
	for (unsigned w = 0; w < options.workers; w++) {
		free(job.in[w]);
		free(job.out[w]);
	}
	return losses;
}

/* With floats, the root misses far more sums than are lost: those that arrived with a low scale. */
static void test_losses_are_told(void **state)
{
	static const double shares[] = { 0.005, 0.05 };

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		for (int floats = 0; floats < 2; floats++) {
			struct simnet_losses all = { 0 };
			double up, down;

			for (uint64_t seed = 1; seed <= 4; seed++) {
				struct simnet_losses losses = losses_of(floats, shares[i], seed);

				all.judged += losses.judged;
				all.lost += losses.lost;
				all.again += losses.again;
				all.missed += losses.missed;
			}
			up = (double)all.lost / (double)all.judged;
			down = (double)all.again / (double)all.judged;
			assert_true(up > 0.7 * shares[i] && up < 1.3 * shares[i]);
			assert_true(down > 0.7 * shares[i] && down < 1.3 * shares[i]);
			if (floats && shares[i] > 0.01)
				assert_true(all.missed > 2 * all.lost);
		}
}

/* Packets sent at another rate do not count. */
static void test_other_rate_is_not_counted(void **state)
{
	struct dense_cell cell = { .position = 7, .arrived = 1, .misses = 1, .complete = 1 };
	struct uplink up = { .sent = 8 };

	(void)state;
	uplink_judge_anew(&up, 1000000);
	uplink_count(&up, &cell);
	assert_int_equal(up.judged + up.lost, 0);
	up.sent = 9; /* a rate that falls endlessly does not keep everything from counting */
	uplink_judge_anew(&up, 1050000);
	assert_int_equal(up.unjudged, 8);
	cell.position = 8;
	uplink_count(&up, &cell);
	assert_int_equal(up.judged, 1);
	assert_int_equal(up.lost, 1);
	up.reliable = 1; /* nothing is lost on such a path */
	uplink_count(&up, &cell);
	assert_int_equal(up.judged, 2);
	assert_int_equal(up.lost, 1);
	uplink_judge_anew(&up, 1200000);
	assert_int_equal(up.unjudged, 9);
}

/* ---- a kernel that sends sums too ---- */

#define CELLS 4u

struct bench {
	struct dense_lane lane;
	struct dense_cell cells[CELLS];
	struct dense_pool pool;
	struct uplink up;
	uint64_t ring[CELLS];
};

/* One child, whose fragments 0 to 3 are summed. */
static void bench_make(struct bench *bench)
{
	*bench = (struct bench){ .lane = { .cells = CELLS, .payload = 8, .has_parent = 1 } };
	bench->pool = (struct dense_pool){ .cells = (uint8_t *)bench->cells,
		                           .cell_step = sizeof(bench->cells[0]) };
	bench->up.ring = bench->ring;
	dense_add_child(&bench->lane, 0, 1);
	for (unsigned i = 0; i < CELLS; i++)
		bench->cells[i] = (struct dense_cell){
			.position = i, .arrived = 1, .from = WIRE_ALL, .to = WIRE_ALL, .summed = 1
		};
}

static void test_who_sends(void **state)
{
	struct dense_cell *cell;
	struct bench bench;
	uint64_t position;

	(void)state;
	bench_make(&bench);
	cell = &bench.cells[2];
	assert_false(uplink_is_left(cell));
	cell->queued = UPLINK_LEFT;
	assert_true(uplink_is_left(cell));
	uplink_push(&bench.up, &bench.lane, cell);
	assert_int_equal(cell->queued, UPLINK_QUEUED);
	assert_false(uplink_is_left(cell));
	uplink_push(&bench.up, &bench.lane, cell); /* once is enough */
	assert_true(uplink_next(&bench.up, &bench.lane, &position));
	assert_int_equal(position, 2);
	assert_false(uplink_next(&bench.up, &bench.lane, &position));
	assert_true(uplink_claim(cell, 2));
	assert_false(uplink_claim(cell, 2));
	/* The kernel has sent it since, or it was emptied, or the cell holds another fragment. */
	uplink_push(&bench.up, &bench.lane, cell);
	cell->queued = UPLINK_RAISED;
	assert_null(uplink_pop(&bench.up, &bench.lane, &bench.pool));
	uplink_push(&bench.up, &bench.lane, cell);
	cell->summed = 0;
	assert_null(uplink_pop(&bench.up, &bench.lane, &bench.pool));
	cell->summed = 1;
	uplink_push(&bench.up, &bench.lane, cell);
	assert_false(uplink_claim(cell, 6));
	assert_ptr_equal(uplink_pop(&bench.up, &bench.lane, &bench.pool), cell);
	/* A complete fragment is not left to be sent. */
	cell->queued = UPLINK_LEFT;
	cell->complete = 1;
	assert_false(uplink_is_left(cell));
}

/* A status that was requested while a batch of the kernel may have been in flight. */
static void test_what_is_missing(void **state)
{
	struct wire_status status = { .stamp = 10000, .bits = CELLS, .missing = { 0xf } };
	struct uplink_news news;
	struct bench bench;

	(void)state;
	bench_make(&bench);
	bench.cells[0].queued = UPLINK_RAISED;
	bench.cells[0].raised_at = 10000 - UPLINK_BATCH_US;
	bench.cells[1].queued = UPLINK_RAISED;
	bench.cells[1].raised_at = 10000 - UPLINK_BATCH_US - 1;
	bench.cells[2].queued = UPLINK_LEFT;
	bench.cells[2].raised_at = 9999;
	bench.cells[3].queued = UPLINK_QUEUED;
	uplink_status(&bench.up, &bench.lane, &bench.pool, &status, 11000, &news);
	assert_int_equal(news.again[0], 6);
	assert_int_equal(news.n_again, 2);
	assert_int_equal(news.n_astray, 1);
	assert_int_equal(bench.cells[0].misses, 0);
	assert_int_equal(bench.cells[1].misses, 1);
}

/*
 * The parent misses sums 0 and 1. One was lost. The other has a lower scale than another subtree's.
 */
static void test_too_low_is_no_loss(void **state)
{
	struct wire_status status = { .stamp = 10000, .bits = 2, .missing = { 3 } };
	struct wire_header packet = { .type = WIRE_DATA, .from = WIRE_ALL, .to = WIRE_ALL };
	uint64_t payload = 0, sum = 0;
	struct uplink_news news;
	struct bench bench;

	(void)state;
	bench_make(&bench);
	for (unsigned i = 0; i < CELLS; i++) {
		bench.cells[i].bytes = sizeof(payload);
		bench.cells[i].raised_at = 9000;
	}
	uplink_status(&bench.up, &bench.lane, &bench.pool, &status, 11000, &news);
	assert_int_equal(news.n_again, 2);
	/* Its child has learnt the higher scale. */
	packet.pos = 1;
	packet.scale = 5;
	assert_int_equal(dense_take(&bench.lane, &bench.cells[1], &sum, &packet, &payload, 8),
	                 DENSE_SUMMED);
	packet.type = WIRE_RESULT;
	for (unsigned i = 0; i < CELLS; i++) {
		packet.pos = i;
		packet.scale = i == 1 ? 5 : 0;
		packet.flags = i == 2 ? WIRE_RESENT : 0; /* for one of them the result was lost */
		assert_int_equal(
			uplink_take(&bench.lane, &bench.cells[i], &sum, &packet, &payload, 8),
			DENSE_COMPLETE);
	}
	dense_ack(&bench.lane, 0, CELLS);
	uplink_settle(&bench.up, &bench.lane, &bench.pool);
	uplink_settle(&bench.up, &bench.lane, &bench.pool); /* each is counted once */
	assert_int_equal(bench.up.judged, CELLS);
	assert_int_equal(bench.up.lost, 1);
	assert_int_equal(bench.up.again, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_too_low_is_no_loss),
		cmocka_unit_test(test_any_tree),
		cmocka_unit_test(test_losses_are_told),
		cmocka_unit_test(test_other_rate_is_not_counted),
		cmocka_unit_test(test_who_sends),
		cmocka_unit_test(test_what_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
