/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_clocks: how many steps each worker of a table has ended, and which workers are there. Pure
 * but for memory.
 *
 * A worker that is not connected counts as 0 steps: its HELLO says how many it has ended. A worker
 * that said BYE does not count. If nobody is connected, the next new client begins a new run, and
 * all is forgotten.
 */
#ifndef TRIB_SPARSE_SERVER_TABLE_CLOCKS_H
#define TRIB_SPARSE_SERVER_TABLE_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_FINISHED UINT64_MAX /* all workers said BYE */

enum worker_state { WORKER_ABSENT, WORKER_PRESENT, WORKER_LOST, WORKER_FINISHED };

struct worker_clock {
	enum worker_state state;
	uint64_t clock;
	uint64_t client;  /* the last client with this rank */
	uint64_t lost_at; /* WORKER_LOST: when */
	char host[64];    /* where it runs or ran */
};

struct table_clocks {
	uint32_t workers, present;
	uint64_t told; /* the lowest clock that workers were told; it never falls in a run */
	struct worker_clock *ranks;
};

/* A new run. False: no memory. */
bool clocks_begin(struct table_clocks *clocks, uint32_t workers);
void clocks_free(struct table_clocks *clocks);

void clocks_join(struct table_clocks *clocks, uint32_t rank, uint64_t client, uint64_t clock,
                 const char *host);
/* The worker is gone, with BYE or without it. */
void clocks_leave(struct table_clocks *clocks, uint32_t rank, bool said_bye, uint64_t now);
void clocks_step(struct table_clocks *clocks, uint32_t rank, uint64_t clock);
/* The lowest clock of all workers, and the rank that has it. */
uint64_t clocks_lowest(const struct table_clocks *clocks, uint32_t *rank);
/* A rank that is lost since `ns`, and is forgotten by this; UINT32_MAX: none. */
uint32_t clocks_overdue(struct table_clocks *clocks, uint64_t now, uint64_t ns);

#endif
