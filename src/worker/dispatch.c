/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an aggregator is shared, requests are begun one after the other, and by
 * which way one goes is found when it begins, not when it is posted: a program
 * posts long before the network is free, and turns change meanwhile. All ranks
 * begin in the order of numbers, so lanes have one order everywhere.
 *
 * The next one is begun a little before the one before it is over: there is no gap
 * between them, and the way is found as late as can be. Small ones need not wait
 * for that. Never two by both ways, which would share the host's link and hold the
 * turn for longer.
 */
#include "worker/comm.h"

#include "base/clock.h"

#include <stdlib.h>

#define AHEAD 2u                /* requests under way */
#define AHEAD_NS 500000.0       /* ... or more of them where all take no longer */
#define AHEAD_BYTES (64u << 10) /* ... or are no larger, where that is not known */
#define TAIL_NS 2000000.0       /* so long before its end is one nearly over */

/* Is what was begun this way nearly over? */
static bool is_ending(const struct trib_comm *comm, const struct way *way)
{
	for (unsigned i = 0; i < way->shares.n; i++) {
		const struct lane *lane = comm->lanes[way->first + i];

		if (atomic_load(&lane->ending) != atomic_load(&lane->entered))
			return false;
	}
	return true;
}

/* In fragments of each lane. */
static void set_nearly(struct trib_comm *comm, const struct way *way, bool shared)
{
	double each = (double)comm->payload * way->shares.n;
	uint32_t nearly = (uint32_t)(rhythm_bytes_in(&comm->rhythm, shared, TAIL_NS) / each);

	for (unsigned i = 0; i < way->shares.n; i++)
		atomic_store_explicit(&comm->lanes[way->first + i]->nearly, nearly + 1,
		                      memory_order_relaxed);
}

static bool is_room(const struct trib_comm *comm, bool shared)
{
	double most = rhythm_bytes_in(&comm->rhythm, shared, AHEAD_NS);

	if (comm->under_way[!shared])
		return false;
	if (!comm->under_way[shared] ||
	    (double)comm->under_way_bytes < (most > 0 ? most : AHEAD_BYTES))
		return true;
	return comm->under_way[shared] < AHEAD &&
	       is_ending(comm, shared ? &comm->shared : &comm->own);
}

/* Under the lock. False: no memory. */
static bool begin(struct trib_comm *comm, struct ledger *ledger, bool shared)
{
	const struct way *way = shared ? &comm->shared : &comm->own;
	struct trib_request *request = ledger->request;
	struct posting *postings = calloc((size_t)ledger->n * way->shares.n, sizeof(*postings));
	size_t n = 0;

	for (unsigned v = 0; postings && v < ledger->n; v++) {
		struct round_place place = { .ledger = ledger, .vector = v, .step = 1 };
		struct round_spec spec = ledger->vectors[v].spec;
		unsigned made;

		spec.owner = request;
		made = rounds_make_by(comm, way, &spec, &place, postings + n);
		if (!made) {
			rounds_free(postings, n);
			free(postings);
			return false;
		}
		n += made;
	}
	if (!postings)
		return false;
	request->shared = shared;
	request->generation = comm->config.generation;
	request->begun_at = clock_now();
	if (!comm->under_way[0] && !comm->under_way[1])
		comm->busy_at = request->begun_at;
	atomic_store(&request->rounds_left, (unsigned)n);
	ledger->pending = (unsigned)n;
	comm->under_way[shared]++;
	comm->under_way_bytes += request->bytes;
	set_nearly(comm, way, shared);
	rounds_post(comm, postings, n, request->number);
	free(postings);
	return true;
}

/* The next one, if it may; false: not now. */
static bool begin_next(struct trib_comm *comm, bool *no_memory)
{
	bool shared = comm->shared.shares.n && turn_uses(&comm->turn, comm->begun), may;

	pthread_mutex_lock(&comm->lock);
	may = comm->begun < comm->posts && !comm->recovering && !comm->hurt &&
	      comm->failed == TRIB_OK && !turn_waits(&comm->turn, comm->begun) &&
	      is_room(comm, shared);
	if (may) {
		struct ledger *ledger = ledger_find(comm, comm->begun);

		*no_memory = !ledger || !ledger->request || !begin(comm, ledger, shared);
		may = !*no_memory;
		comm->begun += may;
	}
	pthread_mutex_unlock(&comm->lock);
	return may;
}

void dispatch(struct trib_comm *comm)
{
	bool no_memory = false, any = false;

	while (begin_next(comm, &no_memory))
		any = true;
	if (no_memory)
		comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory to begin request #%llu",
		          (unsigned long long)comm->begun);
	if (any && comm->config.rank == 0)
		turner_wake(comm);
}

void dispatch_anew(struct trib_comm *comm)
{
	uint64_t session = comm->turn.session;

	comm->turn = (struct turn){ .session = session };
	pthread_mutex_lock(&comm->lock);
	comm->begun = comm->posts;
	comm->under_way[0] = comm->under_way[1] = 0;
	comm->under_way_bytes = 0;
	pthread_mutex_unlock(&comm->lock);
}

void dispatch_ended(struct trib_request *request)
{
	struct trib_comm *comm = request->comm;
	uint64_t now = clock_now(), since = request->begun_at;
	bool behind;

	if (!request->generation || request->generation != comm->config.generation)
		return; /* it was made whole in other trees */
	comm->under_way[request->shared]--;
	comm->under_way_bytes -= request->bytes;
	behind = comm->came_at > since;
	if (behind)
		since = comm->came_at;
	comm->came_at = comm->busy_at = now;
	rhythm_took(&comm->rhythm, request->shared, behind, request->bytes, now - since);
	turner_wake(comm);
}
