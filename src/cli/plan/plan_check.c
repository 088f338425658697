/* SPDX-License-Identifier: Apache-2.0 */
/* trib plan --check: compares plans of random clusters with the optimum. */
#include "base/random_bits.h"
#include "base/status.h"
#include "cli/plan/plan_command.h"
#include "cli/plan/plan_exact.h"
#include "options/json_writer.h"
#include "plan/cluster/draw.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define HOSTS_MIN 2u
#define HOSTS_MAX 256u
#define NEAR 0.97
#define BARS 8u /* one percent each; the last bar has everything below */

struct tally {
	unsigned n;
	unsigned bars[BARS];
	double sum, least;
	unsigned near_program; /* plans within 3 % of the optimum without a limit on trees */
	uint64_t least_seed;
	unsigned least_hosts;
	double plan_s, exact_s, longest_s;
};

static void progress_show(unsigned done, unsigned all)
{
	if (!isatty(STDERR_FILENO))
		return;
	if (done < all)
		fprintf(stderr, "\r%u of %u clusters", done, all);
	else
		fprintf(stderr, "\r\033[K");
}

static void tally_add(struct tally *tally, double ratio, uint64_t seed, unsigned hosts)
{
	unsigned bar = ratio < 1 ? (unsigned)((1 - ratio) * 100) : 0;

	tally->bars[bar < BARS ? bar : BARS - 1]++;
	tally->sum += ratio;
	if (!tally->n++ || ratio < tally->least) {
		tally->least = ratio;
		tally->least_seed = seed;
		tally->least_hosts = hosts;
	}
}

static double seconds(clock_t ticks)
{
	return (double)ticks / CLOCKS_PER_SEC;
}

/* Checks one cluster. The optimum with this many trees is at most the smaller of two bounds. */
static trib_status check_one(const struct plan_options *options, uint64_t seed, unsigned n,
                             void *work, struct tally *tally)
{
	struct plan_cluster cluster;
	struct plan_verdict verdict;
	double exact;
	clock_t start, between, end; /* CPU time of this process: other processes do not count */
	trib_status status = cluster_draw(seed, n, &cluster);

	start = clock();
	if (status == TRIB_OK)
		status = plan_stripes(cluster.hosts, n, &options->limits, work,
		                      plan_work_bytes(n, &options->limits), NULL, &verdict);
	between = clock();
	if (status == TRIB_OK)
		status = exact_rate ? exact_rate(cluster.hosts, n, &options->limits, &exact)
		                    : TRIB_ERR_CONFIG; /* plan_check() has said so */
	end = clock();
	cluster_free(&cluster);
	if (status != TRIB_OK)
		return status;
	tally->plan_s += seconds(between - start);
	tally->exact_s += seconds(end - between);
	tally->longest_s = fmax(tally->longest_s, seconds(between - start));
	tally_add(tally, verdict.rate_bps / fmin(exact, verdict.within_bps), seed, n);
	tally->near_program += verdict.rate_bps >= NEAR * exact;
	return TRIB_OK;
}

static unsigned within(const struct tally *tally, unsigned percent)
{
	unsigned n = 0;

	for (unsigned i = 0; i < percent; i++)
		n += tally->bars[i];
	return n;
}

static void print_text(const struct tally *tally, const struct plan_options *options)
{
	printf("%u random clusters of %u to %u hosts, seed %llu, %u trees at most\n", tally->n,
	       HOSTS_MIN, HOSTS_MAX, (unsigned long long)options->seed, options->limits.trees);
	printf("plan / optimum: mean %.4f, least %.4f (--random %u --seed %llu); %u within 3 %%\n",
	       tally->sum / tally->n, tally->least, tally->least_hosts,
	       (unsigned long long)tally->least_seed, within(tally, 3));
	printf("%u within 3 %% of the linear program's optimum, which has no limit on trees\n",
	       tally->near_program);
	for (unsigned i = 0; i < BARS; i++) {
		unsigned long stars = tally->bars[i] ? 1 + tally->bars[i] * 49ul / tally->n : 0;

		printf("  %s%u %% below  %5u  ", i + 1 == BARS ? "over " : "up to ",
		       i + 1 == BARS ? i : i + 1, tally->bars[i]);
		while (stars--)
			putchar('*');
		putchar('\n');
	}
	printf("CPU time: plans %.1f ms on average, %.1f ms at most; linear programs %.1f ms\n",
	       tally->plan_s / tally->n * 1e3, tally->longest_s * 1e3,
	       tally->exact_s / tally->n * 1e3);
}

static void print_json(const struct tally *tally, const struct plan_options *options)
{
	struct json_writer writer = { .out = stdout }, *json = &writer;

	json_open_object(json, NULL);
	json_put_count(json, "clusters", tally->n);
	json_put_count(json, "seed", options->seed);
	json_put_count(json, "trees", options->limits.trees);
	json_put_number(json, "mean", "%.6f", tally->sum / tally->n);
	json_put_number(json, "least", "%.6f", tally->least);
	json_put_count(json, "least_seed", tally->least_seed);
	json_put_count(json, "least_hosts", tally->least_hosts);
	json_put_count(json, "within_3_percent", within(tally, 3));
	json_put_count(json, "of_program_within_3_percent", tally->near_program);
	json_open_list(json, "percents");
	for (unsigned i = 0; i < BARS; i++)
		json_put_count(json, NULL, tally->bars[i]);
	json_close(json);
	json_put_number(json, "plan_s", "%.6f", tally->plan_s / tally->n);
	json_put_number(json, "plan_max_s", "%.6f", tally->longest_s);
	json_put_number(json, "exact_s", "%.6f", tally->exact_s / tally->n);
	json_close(json);
}

int plan_check(const struct plan_options *options)
{
	struct tally tally = { 0 };
	uint64_t random = options->seed;
	void *work = malloc(plan_work_bytes(HOSTS_MAX, &options->limits));
	trib_status status = work ? TRIB_OK : TRIB_ERR_NO_MEMORY;

	if (!exact_rate)
		status = status_fail(TRIB_ERR_CONFIG,
		                     "this build has no linear programs: it was built without GLPK "
		                     "(Debian: libglpk-dev)");

	for (unsigned i = 0; status == TRIB_OK && i < options->check; i++) {
		unsigned n = HOSTS_MIN + draw_below(&random, HOSTS_MAX - HOSTS_MIN + 1);

		progress_show(i, (unsigned)options->check);
		/* A short seed, so that a user can type it to see this cluster. */
		status = check_one(options, random_next(&random) >> 32, n, work, &tally);
	}
	progress_show(1, 1);
	free(work);
	if (status != TRIB_OK) {
		fprintf(stderr, "trib plan: %s\n", trib_last_error());
		return EXIT_FAILURE;
	}
	if (options->json)
		print_json(&tally, options);
	else
		print_text(&tally, options);
	return EXIT_SUCCESS;
}
