/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine and stream together, compared with a plain sum, over a network that loses, duplicates and
 * reorders. Integers are exact. Floats are bitwise equal on all workers and with different seeds of
 * the network.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "short.h"
#include "simnet.h"
#include "wire/brief.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SECOND 1000000000ull
#define MS 1000000ull

static uint64_t packets_total;

struct job {
	unsigned workers;
	unsigned who; /* the only sender or receiver, if there is one */
	size_t count;
	uint32_t *in[SIM_WORKERS_MAX], *out[SIM_WORKERS_MAX];
};

static void job_make(struct job *job, struct simnet *sim, unsigned workers, size_t count,
                     bool floats)
{
	job->workers = workers;
	job->count = count;
	for (unsigned w = 0; w < workers; w++) {
		job->in[w] = malloc(count * 4 + 4);
		job->out[w] = malloc(count * 4 + 4);
		assert_true(job->in[w] && job->out[w]);
		for (size_t i = 0; i < count; i++) {
			if (floats) {
				float f = (float)((double)(int64_t)simnet_random(sim) * 1e-19);

				/*
				 * Blocks of different magnitudes, so that workers' exponents
				 * differ.
				 */
				if (i / 500 % 3 == w % 3)
					f *= 1e6f;
				memcpy(&job->in[w][i], &f, 4);
			} else {
				job->in[w][i] = (uint32_t)simnet_random(sim);
			}
		}
	}
}

static void job_free(struct job *job)
{
	for (unsigned w = 0; w < job->workers; w++) {
		free(job->in[w]);
		free(job->out[w]);
	}
}

static void job_post(struct job *job, struct simnet *sim, trib_type type, trib_op op, uint8_t from,
                     uint8_t to)
{
	for (unsigned w = 0; w < job->workers; w++) {
		bool wants = to == WIRE_ALL || to == w;
		struct round_spec spec = { .source = job->in[w],
			                   .target = wants ? job->out[w] : NULL,
			                   .count = from == WIRE_ALL ? job->count : job->count * 4,
			                   .type = type,
			                   .op = op,
			                   .copy = from != WIRE_ALL,
			                   .from = from,
			                   .to = to };

		simnet_post(sim, w, &spec);
	}
}

static void run(struct simnet *sim)
{
	assert_true(simnet_run(sim, 600 * SECOND));
	assert_int_equal(simnet_verdicts(sim, DENSE_MISMATCH), 0);
	assert_int_equal(simnet_verdicts(sim, DENSE_STRANGER), 0);
	packets_total += simnet_packets(sim);
}

/* On a reliable path every packet is sent once and accepted. */
static void check_nothing_wasted(const struct simnet *sim)
{
	assert_int_equal(simnet_verdicts(sim, DENSE_AHEAD), 0);
	assert_int_equal(simnet_verdicts(sim, DENSE_STALE), 0);
	assert_int_equal(simnet_verdicts(sim, DENSE_DUPLICATE), 0);
	assert_int_equal(simnet_verdicts(sim, DENSE_FINISHED), 0);
}

/* Many rounds in flight, of every kind, with every fault, on pools of all sizes. */
static void test_integers_exact(void **state)
{
	(void)state;
	static const struct {
		unsigned workers;
		uint32_t cells;
		double loss, dup, delayed;
		bool reliable;
	} cases[] = {
		{ 1, 8, 0.1, 0.1, 0.1, false },      { 2, 4, 0, 0, 0, false },
		{ 2, 4, 0.2, 0.2, 0.2, false },      { 3, 64, 0.1, 0.05, 0.05, false },
		{ 4, 256, 0.01, 0.01, 0.3, false },  { 4, 4096, 0.1, 0.05, 0.05, false },
		{ 8, 1000, 0.05, 0.5, 0.02, false }, { 64, 100, 0.02, 0.02, 0.02, false },
		{ 5, 2048, 0.5, 0.1, 0.1, false },   { 2, 4, 0, 0, 0, true },
		{ 4, 256, 0, 0, 0, true },           { 8, 4096, 0, 0, 0, true },
		{ 64, 100, 0, 0, 0, true },
	};
	size_t longest = test_count("elements at the most", 40000, 8000);

	for (unsigned c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct simnet_options options = { .workers = cases[c].workers,
			                          .cells = cases[c].cells,
			                          .payload = 256,
			                          .loss = cases[c].loss,
			                          .dup = cases[c].dup,
			                          .delayed = cases[c].delayed,
			                          .reliable = cases[c].reliable,
			                          .seed = 42 + c };
		struct simnet *sim = simnet_new(&options);
		struct job jobs[12];
		unsigned n = sizeof(jobs) / sizeof(jobs[0]);

		for (unsigned k = 0; k < n; k++) {
			unsigned who = (unsigned)(simnet_random(sim) % options.workers);

			job_make(&jobs[k], sim, options.workers,
			         k == 5 ? 0 : (size_t)(simnet_random(sim) % longest), false);
			job_post(&jobs[k], sim, TRIB_U32, TRIB_SUM, k % 4 == 1 ? who : WIRE_ALL,
			         k % 4 == 2 ? who : WIRE_ALL);
			jobs[k].who = who;
		}
		run(sim);
		if (options.reliable)
			check_nothing_wasted(sim);
		for (unsigned k = 0; k < n; k++) {
			unsigned who = jobs[k].who;

			for (size_t i = 0; i < jobs[k].count; i++) {
				uint32_t sum = 0;

				for (unsigned w = 0; w < options.workers; w++)
					sum += jobs[k].in[w][i];
				if (k % 4 == 1)
					sum = jobs[k].in[who][i];
				for (unsigned w = 0; w < options.workers; w++)
					if (k % 4 != 2 || w == who)
						assert_int_equal(jobs[k].out[w][i], sum);
			}
			job_free(&jobs[k]);
		}
		simnet_free(sim);
	}
}

/* The bits of a float sum depend on the inputs alone. */
static void float_run(unsigned per_word, uint64_t seed, double loss, uint32_t cells, bool late,
                      bool specials, bool in_place, uint32_t *bits, size_t count)
{
	struct simnet_options options = { .workers = 4,
		                          .cells = cells,
		                          .payload = 256,
		                          .loss = loss,
		                          .dup = loss,
		                          .delayed = loss,
		                          .seed = 7 };
	struct job job;
	struct simnet *sim;

	if (late)
		options.start_ns[2] = 20000000;
	sim = simnet_new(&options);
	job_make(&job, sim, 4, count, true);
	if (specials) {
		float inf = INFINITY, ninf = -INFINITY, nan = NAN;

		memcpy(&job.in[0][3], &inf, 4);
		memcpy(&job.in[1][3], &inf, 4);
		memcpy(&job.in[2][77], &inf, 4);
		memcpy(&job.in[3][77], &ninf, 4);
		memcpy(&job.in[1][count - 1], &nan, 4);
		memcpy(&job.in[2][count / 2], &ninf, 4);
	}
	if (in_place)
		for (unsigned w = 0; w < 4; w++)
			memcpy(job.out[w], job.in[w], count * 4);
	/* The network's randomness differs each time, the inputs do not. */
	for (uint64_t i = 0; i < seed; i++)
		simnet_random(sim);
	for (unsigned w = 0; w < 4; w++) {
		struct round_spec spec = { .source = in_place ? job.out[w] : job.in[w],
			                   .target = job.out[w],
			                   .count = count,
			                   .type = TRIB_F32,
			                   .op = TRIB_SUM,
			                   .per_word = (uint8_t)per_word,
			                   .from = WIRE_ALL,
			                   .to = WIRE_ALL };
		simnet_post(sim, w, &spec);
	}
	run(sim);
	for (unsigned w = 1; w < 4; w++)
		assert_memory_equal(job.out[w], job.out[0], count * 4);
	for (size_t i = 0; i < count; i++) {
		double sum = 0, size = 0;
		float got;

		for (unsigned w = 0; w < 4; w++) {
			float f;

			memcpy(&f, &job.in[w][i], 4);
			sum += (double)f;
			size += fabs((double)f);
		}
		memcpy(&got, &job.out[0][i], 4);
		if (isnan(sum))
			assert_true(isnan(got));
		else if (isinf(sum))
			assert_true((double)got == sum);
		else
			assert_true(fabs((double)got - sum) <=
			            (per_word ? 3e-4 : 1e-6) * (size + 1e6));
	}
	memcpy(bits, job.out[0], count * 4);
	job_free(&job);
	simnet_free(sim);
}

static void check_same_bits(unsigned per_word)
{
	uint64_t seeds = test_count("seeds", 12, 4);
	size_t count = 30011;
	uint32_t *first = malloc(count * 4), *again = malloc(count * 4);

	assert_true(first && again);
	for (int specials = 0; specials < 2; specials++) {
		float_run(per_word, 0, 0, 4096, false, specials, false, first, count);
		for (uint64_t seed = 1; seed <= seeds; seed++) {
			float_run(per_word, seed, 0.01 * (double)(seed % 4) * 4,
			          seed % 3 ? 4096 : 32, seed & 1, specials, seed & 2, again, count);
			assert_memory_equal(first, again, count * 4);
		}
	}
	free(first);
	free(again);
}

static void test_floats_same_bits(void **state)
{
	(void)state;
	check_same_bits(0);
}

/* The same with short integers, whose classes have to be agreed on before data leaves. */
static void test_parts_same_bits(void **state)
{
	(void)state;
	check_same_bits(4);
}

/*
 * In a reduce, ranks other than the root get no result. They finish when their part has arrived for
 * good. A part with a guessed scale that was too low does not count.
 */
static void test_reduce_after_guess(void **state)
{
	uint64_t seeds = test_cases("seeds", 90);

	(void)state;
	for (uint64_t seed = 0; seed < seeds; seed++) {
		struct simnet_options options = { .workers = 2,
			                          .cells = seed % 2 ? 64 : 1024,
			                          .payload = 256,
			                          .loss = 0.3,
			                          .dup = 0.05,
			                          .delayed = 0.1,
			                          .seed = 1000 + seed };
		struct simnet *sim;
		struct job job;

		options.start_ns[seed % 2] = 8000000; /* late, so that the others guess */
		sim = simnet_new(&options);
		job_make(&job, sim, 2, 9000, true);
		job_post(&job, sim, TRIB_F32, TRIB_SUM, WIRE_ALL, (uint8_t)(seed / 2 % 2));
		run(sim);
		job_free(&job);
		simnet_free(sim);
	}
}

/*
 * Workers whose classes differ guess wrong, and learn it from the first vector: in later ones data
 * waits for the classes of all, and leaves once.
 */
static void test_guesses_are_learned(void **state)
{
	(void)state;
	struct simnet_options options = {
		.workers = 4, .cells = 8192, .payload = 1432, .latency_ns = MS, .seed = 3
	};
	struct simnet *sim = simnet_new(&options);
	uint64_t first = 0, later = 0;

	for (int i = 0; i < 4; i++) {
		struct job job;

		job_make(&job, sim, 4, 500000, true);
		job_post(&job, sim, TRIB_F32, TRIB_SUM, WIRE_ALL, WIRE_ALL);
		run(sim);
		job_free(&job);
		later = 0;
		for (unsigned w = 0; w < 4; w++)
			later += simnet_stream(sim, w)->stats.resent;
		first = i ? first : later;
	}
	assert_true(first > 500); /* of 4 * 1397 */
	assert_int_equal(later, first);
	simnet_free(sim);
}

/* Without faults each fragment is sent once, and none is requested again. */
static void test_no_waste(void **state)
{
	(void)state;
	struct simnet_options options = { .workers = 4, .cells = 8192, .payload = 1432, .seed = 1 };
	struct simnet *sim = simnet_new(&options);
	struct job job;

	job_make(&job, sim, 4, 2000000, false);
	job_post(&job, sim, TRIB_I32, TRIB_SUM, WIRE_ALL, WIRE_ALL);
	run(sim);
	for (unsigned w = 0; w < 4; w++) {
		const struct stream_stats *stats = &simnet_stream(sim, w)->stats;

		assert_int_equal(stats->sent, (2000000 + 357) / 358);
		assert_int_equal(stats->resent, 0);
		assert_int_equal(stats->duplicates, 0);
		assert_true(stats->reports < stats->sent / 200);
	}
	job_free(&job);
	simnet_free(sim);
}

/* The reported losses match those of the network. */
static void test_lost_results_are_told(void **state)
{
	struct simnet_options options = {
		.workers = 4, .cells = 8192, .payload = 256, .loss = 0.02, .seed = 5
	};
	struct simnet *sim = simnet_new(&options);
	uint64_t again = 0, results = 0;
	struct job job;

	(void)state;
	job_make(&job, sim, 4, 1000000, false);
	job_post(&job, sim, TRIB_I32, TRIB_SUM, WIRE_ALL, WIRE_ALL);
	run(sim);
	for (unsigned w = 0; w < 4; w++) {
		again += simnet_stream(sim, w)->stats.again;
		results += simnet_stream(sim, w)->stats.results -
		           simnet_stream(sim, w)->stats.duplicates;
	}
	assert_true((double)again > 0.015 * (double)results);
	assert_true((double)again < 0.025 * (double)results);
	job_free(&job);
	simnet_free(sim);
}

/*
 * The fate of each packet is counted once, repeats included, even if most are never asked about
 * because their results arrive first.
 */
static void test_losses_are_told(void **state)
{
	static const double shares[] = { 0, 0.01, 0.05, 0.3 };

	(void)state;
	for (int floats = 0; floats < 2; floats++)
		for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
			struct simnet_options options = { .workers = 4,
				                          .cells = 8192,
				                          .payload = 256,
				                          .loss = shares[i],
				                          .seed = 5 };
			struct simnet *sim = simnet_new(&options);
			double sent = 0, judged = 0, lost = 0;
			struct job job;

			job_make(&job, sim, 4, 250000, floats);
			job_post(&job, sim, floats ? TRIB_F32 : TRIB_I32, TRIB_SUM, WIRE_ALL,
			         WIRE_ALL);
			run(sim);
			for (unsigned w = 0; w < 4; w++) {
				const struct stream *stream = simnet_stream(sim, w);

				sent += (double)stream->flight.launched;
				judged += (double)stream->stats.judged;
				lost += (double)stream->stats.lost;
			}
			print_message("loss %g: %.0f packets, %.0f judged, %.0f lost\n", shares[i],
			              sent, judged, lost);
			assert_true(judged <= sent && judged > 0.75 * sent);
			/*
			 * A packet dropped because of a wrong guess is sent again, but was not
			 * lost.
			 */
			assert_true(lost >= (floats ? 0.75 : 0.85) * shares[i] * judged);
			assert_true(lost <= 1.15 * shares[i] * judged);
			job_free(&job);
			simnet_free(sim);
		}
}

struct tally {
	uint64_t took, longest; /* simulated time, the same on every machine */
	uint64_t reports, duplicates;
};

/* Vectors of 1 MB, one after the other. `from`: the only sender, or WIRE_ALL. */
static struct tally tally(const struct simnet_options *options, int vectors, uint8_t from)
{
	struct simnet *sim = simnet_new(options);
	struct tally tally = { 0 };

	for (int i = 0; i < vectors; i++) {
		bool is_float = from == WIRE_ALL;
		uint64_t began = simnet_now(sim), took;
		struct job job;

		job_make(&job, sim, options->workers, 1 << 18, is_float);
		job_post(&job, sim, is_float ? TRIB_F32 : TRIB_I32, TRIB_SUM, from, WIRE_ALL);
		run(sim);
		job_free(&job);
		took = simnet_now(sim) - began;
		tally.took += took;
		tally.longest = took > tally.longest ? took : tally.longest;
	}
	for (unsigned w = 0; w < options->workers; w++) {
		tally.reports += simnet_stream(sim, w)->stats.reports;
		tally.duplicates += simnet_stream(sim, w)->stats.duplicates;
	}
	simnet_free(sim);
	return tally;
}

/* One packet in five is lost, also reports and answers: a lost packet is requested again soon. */
static void test_rough_ends_soon(void **state)
{
	struct simnet_options options = {
		.workers = 4, .cells = 8192, .payload = 1432, .loss = 0.2, .seed = 7
	};
	int sums = (int)test_count("sums", 20, 5);
	struct tally rough = tally(&options, sums, WIRE_ALL);

	(void)state;
	assert_true(rough.took < 1000 * MS);
	assert_true(rough.longest < 120 * MS);
	options.cells = 64; /* the window is closed most of the time */
	rough = tally(&options, sums, WIRE_ALL);
	assert_true(rough.took < 1900 * MS);
	assert_true(rough.longest < 200 * MS);
}

/* Few requests for results that are only late: behind others in a queue, or on a long path. */
static void test_late_is_not_asked_for(void **state)
{
	struct simnet_options queue = { .workers = 4,
		                        .cells = 8192,
		                        .payload = 1432,
		                        .seed = 7,
		                        .ring = 1000000,
		                        .drain_ns = 50000 };
	struct simnet_options far = {
		.workers = 4, .cells = 8192, .payload = 1432, .seed = 7, .latency_ns = 15 * MS
	};

	(void)state;
	for (int lossy = 0; lossy < 2; lossy++)
		for (int all = 0; all < 2; all++) {
			struct tally late;

			queue.loss = far.loss = lossy ? 0.01 : 0;
			late = tally(&queue, 6, all ? WIRE_ALL : 0);
			assert_int_equal(late.duplicates, 0);
			assert_true(late.reports < 300);
			late = tally(&far, 6, all ? WIRE_ALL : 0);
			assert_true(late.duplicates < 6 * 4 * 733 / 8);
			assert_true(late.reports < 300);
		}
}

/* Counts beyond 2^31: the far end of a vector that is not really in memory. */
static void test_huge_count(void **state)
{
	(void)state;
	size_t count = (1ull << 31) + 12345;
	uint8_t *memory = mmap(NULL, count, PROT_READ | PROT_WRITE,
	                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct round_spec spec = { .source = memory,
		                   .target = memory,
		                   .count = count,
		                   .type = TRIB_U8,
		                   .op = TRIB_SUM,
		                   .from = WIRE_ALL,
		                   .to = WIRE_ALL };
	struct wire_header header = { 0 };
	uint8_t payload[1432] __attribute__((aligned(8)));
	struct round *round;
	uint32_t last;

	assert_true(memory != MAP_FAILED);
	round = round_new(&spec, 0, sizeof(payload));
	assert_non_null(round);
	last = round_fragments(round) - 1;
	assert_int_equal(round_fragments(round), (count + 1431) / 1432);
	memory[count - 1] = 77;
	assert_int_equal(round_build(round, last, 2, &header, payload), (count % 1432 + 7) / 8 * 8);
	assert_int_equal(payload[count % 1432 - 1], 77);
	payload[count % 1432 - 1] = 99;
	assert_true(round_take(round, last, 2, 0, payload));
	assert_int_equal(memory[count - 1], 99);
	round_free(round);
	munmap(memory, count);
}

/*
 * With a pool as large as the vector no worker waits for a late one to send. With a small pool all
 * do.
 */
static void test_pool_is_a_dial(void **state)
{
	(void)state;
	for (int small = 0; small < 2; small++) {
		struct simnet_options options = {
			.workers = 4, .cells = small ? 128 : 4096, .payload = 1432, .seed = 1
		};
		struct simnet *sim;
		struct job job;

		options.start_ns[2] = SECOND;
		sim = simnet_new(&options);
		job_make(&job, sim, 4, 1000000, true);
		job_post(&job, sim, TRIB_F32, TRIB_SUM, WIRE_ALL, WIRE_ALL);
		assert_false(simnet_run(sim, SECOND - 1000000)); /* one worker is late */
		if (small)
			assert_true(simnet_stream(sim, 0)->stats.sent <= 128);
		else
			assert_true(simnet_stream(sim, 0)->stats.sent >= (1000000 + 357) / 358);
		assert_true(simnet_stream(sim, 0)->waiting == 4);
		run(sim);
		job_free(&job);
		simnet_free(sim);
	}
}

/* Results that arrive before their round starts here are kept if they will not be sent again. */
static void test_early(void **state)
{
	(void)state;
	for (uint32_t cells = 16; cells <= 4096; cells *= 16) {
		struct simnet_options options = {
			.workers = 3, .cells = cells, .payload = 256, .seed = 7, .reliable = true
		};
		struct simnet *sim = simnet_new(&options);
		struct job job;

		job_make(&job, sim, 3, 5000, false);
		for (unsigned w = 0; w < 3; w++) {
			struct round_spec spec = { .source = job.in[w],
				                   .target = job.out[w],
				                   .count = job.count * 4,
				                   .type = TRIB_U32,
				                   .op = TRIB_SUM,
				                   .copy = true,
				                   .from = 0,
				                   .to = WIRE_ALL };

			simnet_post(sim, w, &spec);
			simnet_run(sim, SECOND); /* the others have not called yet */
		}
		run(sim);
		check_nothing_wasted(sim);
		for (unsigned w = 0; w < 3; w++)
			assert_memory_equal(job.out[w], job.in[0], job.count * 4);
		job_free(&job);
		simnet_free(sim);
	}
}

static void test_millions(void **state)
{
	(void)state;
	size_t count = test_cases("elements", 6000000);
	struct simnet_options options = { .workers = 8,
		                          .cells = 4096,
		                          .payload = 256,
		                          .loss = 0.02,
		                          .dup = 0.05,
		                          .delayed = 0.05,
		                          .seed = 99 };
	struct simnet *sim = simnet_new(&options);
	struct job job;

	job_make(&job, sim, 8, count, false);
	job_post(&job, sim, TRIB_I32, TRIB_SUM, WIRE_ALL, WIRE_ALL);
	run(sim);
	for (size_t i = 0; i < job.count; i++) {
		uint32_t sum = 0;

		for (unsigned w = 0; w < 8; w++)
			sum += job.in[w][i];
		for (unsigned w = 0; w < 8; w++)
			assert_int_equal(job.out[w][i], sum);
	}
	job_free(&job);
	simnet_free(sim);
	print_message("%llu packets in all\n", (unsigned long long)packets_total);
	assert_true(packets_total > count / 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers_exact),
		cmocka_unit_test(test_floats_same_bits),
		cmocka_unit_test(test_parts_same_bits),
		cmocka_unit_test(test_reduce_after_guess),
		cmocka_unit_test(test_huge_count),
		cmocka_unit_test(test_guesses_are_learned),
		cmocka_unit_test(test_no_waste),
		cmocka_unit_test(test_lost_results_are_told),
		cmocka_unit_test(test_losses_are_told),
		cmocka_unit_test(test_rough_ends_soon),
		cmocka_unit_test(test_late_is_not_asked_for),
		cmocka_unit_test(test_pool_is_a_dial),
		cmocka_unit_test(test_early),
		cmocka_unit_test(test_millions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
