/* SPDX-License-Identifier: Apache-2.0 */
/* Which vectors an aggregator reports as finished, whatever lanes they use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster.h"
#include "plane/stats/stats.h"

#include <string.h>

#define COUNT 500000u
#define ROUNDS 4u

static uint64_t finished(const struct cluster *cluster)
{
	struct stats *stats;
	uint64_t bytes;

	demand(aggregator_stats(cluster->aggregator, &stats) == TRIB_OK);
	demand(stats->n_comms == 1 && !strcmp(stats->comms[0].state, "running"));
	bytes = stats->comms[0].finished_bytes;
	stats_free(stats);
	return bytes;
}

static void body(struct rank *rank)
{
	uint64_t before = 0, all = 0;
	float *vector = calloc(COUNT, sizeof(*vector));

	demand(vector);
	for (unsigned i = 0; i < ROUNDS; i++) {
		demand(trib_allreduce(rank->comm, TRIB_IN_PLACE, vector, COUNT, TRIB_F32,
		                      TRIB_SUM) == TRIB_OK);
		all += COUNT * sizeof(*vector);
		if (rank->rank == 0) {
			uint64_t now = 0;

			/* Until all children have confirmed that they have it. */
			for (unsigned k = 0; k < 1000; k++) {
				now = finished(rank->cluster);
				if (now > all - all / 10)
					break;
				nap_ms(10);
			}
			demand(now > before && now > all - all / 10);
			demand(now < all + all / 10);
			before = now;
		}
		demand(trib_barrier(rank->comm) == TRIB_OK);
	}
	free(vector);
}

static void test_finished(void **state)
{
	struct cluster cluster;

	(void)state;
	for (int lanes = 1; lanes <= 2; lanes++) {
		trib_options options = TRIB_OPTIONS_INIT;

		options.lanes = lanes;
		cluster_start(&cluster, 2, 0);
		cluster_run(&cluster, 3, &options, body, NULL);
		cluster_stop(&cluster);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_finished) };

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
