/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/server/table_clocks.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

bool clocks_begin(struct table_clocks *clocks, uint32_t workers)
{
	clocks_free(clocks);
	clocks->ranks = calloc(workers, sizeof(*clocks->ranks));
	clocks->workers = clocks->ranks ? workers : 0;
	return clocks->ranks != NULL;
}

void clocks_free(struct table_clocks *clocks)
{
	free(clocks->ranks);
	*clocks = (struct table_clocks){ 0 };
}

void clocks_join(struct table_clocks *clocks, uint32_t rank, uint64_t client, uint64_t clock,
                 const char *host)
{
	struct worker_clock *worker = &clocks->ranks[rank];

	clocks->present += worker->state != WORKER_PRESENT;
	*worker =
		(struct worker_clock){ .state = WORKER_PRESENT, .clock = clock, .client = client };
	snprintf(worker->host, sizeof(worker->host), "%s", host);
}

void clocks_leave(struct table_clocks *clocks, uint32_t rank, bool said_bye, uint64_t now)
{
	struct worker_clock *worker = &clocks->ranks[rank];

	clocks->present -= worker->state == WORKER_PRESENT;
	worker->state = said_bye ? WORKER_FINISHED : WORKER_LOST;
	worker->lost_at = now;
}

void clocks_step(struct table_clocks *clocks, uint32_t rank, uint64_t clock)
{
	if (clock > clocks->ranks[rank].clock)
		clocks->ranks[rank].clock = clock;
}

uint64_t clocks_lowest(const struct table_clocks *clocks, uint32_t *rank)
{
	uint64_t lowest = CLOCK_FINISHED;

	*rank = 0;
	for (uint32_t i = 0; i < clocks->workers; i++) {
		const struct worker_clock *worker = &clocks->ranks[i];
		uint64_t clock = worker->state == WORKER_PRESENT ? worker->clock : 0;

		if (worker->state == WORKER_FINISHED || clock >= lowest)
			continue;
		lowest = clock;
		*rank = i;
	}
	return lowest;
}

uint32_t clocks_overdue(struct table_clocks *clocks, uint64_t now, uint64_t ns)
{
	for (uint32_t i = 0; i < clocks->workers; i++) {
		struct worker_clock *worker = &clocks->ranks[i];

		if (worker->state != WORKER_LOST || clock_since(now, worker->lost_at) < ns)
			continue;
		worker->state = WORKER_ABSENT;
		return i;
	}
	return UINT32_MAX;
}
