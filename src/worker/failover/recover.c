/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery: requests that were in flight in lost trees are completed in new ones. failover.c has
 * joined those; users only wait a little longer.
 *
 * Invariants, whatever is lost and however often:
 *
 *  1. A request has a ledger from its post until no rank can need anything of it. That is known
 *     when `low` has passed all its rounds. So a request without a ledger is over at all ranks.
 *  2. A block is done at a rank when its result is in the buffer. Until then the rank's input is
 *     untouched, also in place. So for each block that a rank lacks, either some rank has the
 *     result, or all inputs are there.
 *  3. A rank that has finished has copies of what others may lack: results that all ranks want,
 *     else its input (comm/ledger.c).
 *  4. Requests have the same numbers on all ranks, and blocks do not depend on trees. So ranks can
 *     compare what they have, whichever trees it came through.
 *
 * The ranks agree by ordinary rounds in the new trees, before anything else:
 *
 *  - how many requests all ranks have posted (`posted`), and the first request that some rank has
 *    not finished (`first`);
 *  - which requests between these are over;
 *  - for each block of the others, which rank has it and whether a rank lacks it; recover_plan.h
 *    makes repairs from that.
 *
 * A request that not all ranks have posted is posted anew as a whole. A rank that has finished it
 * contributes what it contributed before, and takes nothing. If the new trees are lost as well, all
 * of this is repeated; the ledgers do not depend on how far it had come.
 */
#include "worker/failover/failover.h"
#include "worker/failover/recover_plan.h"
#include "worker/requests/requests.h"
#include "worker/trees/trees.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct recovery {
	struct trib_comm *comm;
	uint64_t deadline;
	uint64_t rotation; /* chooses lanes for small rounds */
	uint64_t first, posted;
	uint8_t *over;          /* for each request from `first` to `posted` - 1 */
	uint8_t *owner, *lacks; /* for each block of requests that are not over */
	size_t blocks;
};

static trib_status fail_memory(void)
{
	return status_fail(TRIB_ERR_NO_MEMORY, "no memory to recover requests in other trees");
}

/* ---- rounds of failover's own ---- */

/* False: the trees are lost, the communicator has ended, or the deadline has passed. */
static bool wait_done(struct recovery *recovery, const struct trib_request *request)
{
	struct trib_comm *comm = recovery->comm;
	struct timespec until = clock_span(recovery->deadline);
	int error = 0;
	bool done;

	pthread_mutex_lock(&comm->lock);
	while (!(done = request->done) && !comm->trees_lost && comm->failed == TRIB_OK &&
	       !atomic_load(&comm->closing) && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&comm->changed, &comm->lock, &until);
	pthread_mutex_unlock(&comm->lock);
	return done;
}

/* An allreduce in the new trees. */
static trib_status agree(struct recovery *recovery, void *vector, size_t count, trib_type type,
                         trib_op op)
{
	struct trib_comm *comm = recovery->comm;
	struct trib_request request = { .comm = comm, .what = "recovery" };
	struct round_spec spec = { .source = vector,
		                   .target = vector,
		                   .count = count,
		                   .type = type,
		                   .op = op,
		                   .from = WIRE_ALL,
		                   .to = WIRE_ALL,
		                   .owner = &request };
	struct posting postings[LANES_MAX];
	unsigned n = rounds_make(comm, &comm->own, &spec, NULL, postings);

	if (!n)
		return fail_memory();
	atomic_store(&request.rounds_left, n);
	rounds_post(comm, postings, n, recovery->rotation);
	recovery->rotation += n;
	if (wait_done(recovery, &request))
		return TRIB_OK;
	/* The rounds point to memory of this call: no lane may use them any more. */
	atomic_store(&comm->stop_lanes, true);
	trunks_stop(comm);
	if (clock_now() >= recovery->deadline)
		return status_fail(TRIB_ERR_TIMEOUT, "not all ranks have joined the new trees");
	pthread_mutex_lock(&comm->lock);
	status_fail(TRIB_ERR_AGGREGATOR, "%s", comm->failure);
	pthread_mutex_unlock(&comm->lock);
	return TRIB_ERR_AGGREGATOR;
}

/* ---- agreement ---- */

static trib_status agree_on_requests(struct recovery *recovery)
{
	struct trib_comm *comm = recovery->comm;
	uint64_t both[2];
	trib_status status;

	pthread_mutex_lock(&comm->lock);
	both[0] = ledger_first_open(comm);
	both[1] = comm->posts;
	pthread_mutex_unlock(&comm->lock);
	status = agree(recovery, both, 2, TRIB_U64, TRIB_MIN);
	recovery->first = both[0];
	recovery->posted = both[1];
	return status;
}

static trib_status agree_on_over(struct recovery *recovery)
{
	struct trib_comm *comm = recovery->comm;
	size_t n = recovery->posted - recovery->first;

	recovery->over = calloc(n + 1, 1);
	if (!recovery->over)
		return fail_memory();
	if (!n)
		return TRIB_OK;
	pthread_mutex_lock(&comm->lock);
	for (size_t i = 0; i < n; i++)
		recovery->over[i] = !ledger_find(comm, recovery->first + i);
	pthread_mutex_unlock(&comm->lock);
	return agree(recovery, recovery->over, n, TRIB_U8, TRIB_MAX);
}

static bool is_over(const struct recovery *recovery, const struct ledger *ledger)
{
	return ledger->number < recovery->first || recovery->over[ledger->number - recovery->first];
}

/* The next ledger of a request that is not over; NULL: none. Under `lock`. */
static struct ledger *next_open(const struct recovery *recovery, struct ledger *ledger)
{
	while (ledger && ledger->number < recovery->posted && is_over(recovery, ledger))
		ledger = ledger->next;
	return ledger && ledger->number < recovery->posted ? ledger : NULL;
}

static struct holding holding_of(const struct trib_comm *comm, const struct ledger *ledger,
                                 const struct vector *vector)
{
	return (struct holding){ .finished = !ledger->request,
		                 .wants = vector->spec.target != NULL,
		                 .copies = vector->spec.from != WIRE_ALL,
		                 .gives = vector->spec.from == comm->config.rank,
		                 .empty = !vector->spec.count };
}

static void fill_rows(struct recovery *recovery)
{
	const struct trib_comm *comm = recovery->comm;
	size_t at = 0;

	for (struct ledger *ledger = next_open(recovery, comm->ledgers); ledger;
	     ledger = next_open(recovery, ledger->next)) {
		for (unsigned v = 0; v < ledger->n; v++) {
			const struct vector *vector = &ledger->vectors[v];
			struct holding holding = holding_of(comm, ledger, vector);

			for (size_t block = 0; block < vector->blocks; block++, at++) {
				bool have = bitmap_get(vector->have, block);

				recovery->lacks[at] = holding_lacks(&holding, have);
				if (holding_owns(&holding, have))
					recovery->owner[at] = (uint8_t)(comm->config.rank + 1);
			}
		}
	}
}

static trib_status agree_on_blocks(struct recovery *recovery)
{
	struct trib_comm *comm = recovery->comm;
	uint8_t *rows;

	pthread_mutex_lock(&comm->lock);
	for (struct ledger *ledger = next_open(recovery, comm->ledgers); ledger;
	     ledger = next_open(recovery, ledger->next))
		for (unsigned v = 0; v < ledger->n; v++)
			recovery->blocks += ledger->vectors[v].blocks;
	rows = calloc(2 * recovery->blocks + 1, 1);
	recovery->owner = rows;
	if (rows) {
		recovery->lacks = rows + recovery->blocks;
		fill_rows(recovery);
	}
	pthread_mutex_unlock(&comm->lock);
	if (!rows)
		return fail_memory();
	return recovery->blocks ? agree(recovery, rows, 2 * recovery->blocks, TRIB_U8, TRIB_MAX)
	                        : TRIB_OK;
}

/* ---- repairs ---- */

struct work {
	struct posting *postings;
	size_t n, room;
};

/* Rounds for a part of a vector. */
static bool work_add(struct recovery *recovery, struct work *work, const struct lane_set *set,
                     struct round_spec *spec, const struct round_place *place)
{
	unsigned n;

	if (work->n + LANES_MAX > work->room) {
		size_t room = 2 * work->room + LANES_MAX;
		struct posting *more = realloc(work->postings, room * sizeof(*more));

		if (!more)
			return false;
		work->postings = more;
		work->room = room;
	}
	n = rounds_make(recovery->comm, set, spec, place, work->postings + work->n);
	work->n += n;
	return n > 0;
}

static uint8_t *offset(void *buffer, size_t bytes)
{
	return buffer ? (uint8_t *)buffer + bytes : NULL;
}

/* A data fragment of a copy carries whole blocks, or a block has whole fragments. */
static void copy_in_blocks(const struct trib_comm *comm, const struct vector *vector,
                           struct round_spec *spec, struct round_place *place)
{
	size_t block = vector->per * vector_element(vector);

	place->split = (unsigned)((block + comm->payload - 1) / comm->payload);
	place->step = place->split > 1 ? 1 : (unsigned)(comm->payload / block);
	spec->piece = (uint32_t)(block * place->step / place->split);
}

/* A rank that has the result sends it, or the collective is done again. */
static bool add_repair(struct recovery *recovery, struct ledger *ledger, unsigned v,
                       const struct repair *repair, struct work *work)
{
	const struct trib_comm *comm = recovery->comm;
	const struct vector *vector = &ledger->vectors[v];
	size_t size = vector_element(vector), first = repair->first * vector->per;
	size_t left = vector->spec.count - first, count = repair->count * vector->per;
	struct round_place place = {
		.ledger = ledger, .vector = v, .step = 1, .split = 1, .block = repair->first
	};
	struct round_spec spec = vector->spec;
	bool gives;

	if (!vector->spec.count && !repair->again)
		return true; /* an empty collective is over when one rank has finished it */
	if (count > left)
		count = left;
	spec.owner = ledger->request;
	spec.call = ledger->call;
	spec.target = ledger->request ? offset(spec.target, first * size) : NULL;
	spec.count = count;
	spec.first = first;
	spec.residual = ledger->request && spec.residual ? spec.residual + first : NULL;
	if (!repair->again) {
		spec.residual = NULL;
		spec.copy = true;
		spec.count = count * size;
		spec.from = (uint8_t)repair->from;
		spec.to = WIRE_ALL;
		copy_in_blocks(comm, vector, &spec, &place);
	}
	gives = spec.from == WIRE_ALL || spec.from == comm->config.rank;
	spec.source = NULL;
	if (gives && count) {
		spec.source =
			ledger_bytes(ledger, v, first, count, !repair->again && !vector->spec.copy);
		if (!spec.source)
			return false;
	}
	return work_add(recovery, work, &comm->own, &spec, &place);
}

static bool add_repairs(struct recovery *recovery, struct ledger *ledger, size_t *at,
                        struct work *work)
{
	for (unsigned v = 0; v < ledger->n; v++) {
		size_t blocks = ledger->vectors[v].blocks, from = 0;
		struct repair repair;

		for (; repair_next(recovery->owner + *at, recovery->lacks + *at, blocks, from,
		                   &repair);
		     from = repair.first + repair.count)
			if (!add_repair(recovery, ledger, v, &repair, work))
				return false;
		*at += blocks;
	}
	return true;
}

/*
 * Not all ranks have posted the request: all of it is done again, in the lanes that ranks will use
 * which post it later.
 */
static bool add_whole(struct recovery *recovery, struct ledger *ledger, struct work *work)
{
	struct trib_comm *comm = recovery->comm;
	unsigned rank = (unsigned)comm->config.rank;
	bool small = comm_takes_slots(comm, ledger->fits, ledger->tiny);

	for (unsigned v = 0; v < ledger->n; v++) {
		struct round_place place = { .ledger = ledger, .vector = v, .step = 1, .split = 1 };
		struct round_spec spec = ledger->vectors[v].spec;

		spec.owner = ledger->request;
		spec.call = ledger->call;
		if (!ledger->request) {
			bool gives = spec.from == WIRE_ALL || spec.from == rank;

			spec.target = NULL;
			spec.residual = NULL;
			spec.source = NULL;
			if (gives && spec.count &&
			    !(spec.source = ledger_bytes(ledger, v, 0, spec.count, false)))
				return false;
		}
		spec.slot = small;
		if (!work_add(recovery, work, small ? &comm->small : &comm->own, &spec, &place))
			return false;
	}
	return true;
}

/* Sets the counts before a round can finish. Under `lock`. Gives the request if it is finished. */
static struct trib_request *count_work(struct trib_comm *comm, struct ledger *ledger, size_t n)
{
	struct trib_request *request = ledger->request;

	ledger->pending = (unsigned)n;
	if (request)
		atomic_store(&request->rounds_left, n ? (unsigned)n : 1);
	if (n)
		return NULL;
	if (request)
		request->ledger = NULL;
	ledger_drop(comm, ledger);
	return request;
}

/*
 * Other ranks may know that a request is over while this rank has not learned it: they agreed in
 * trees that were lost before the news came here. Does this rank still lack data of it?
 */
static bool lacks_data(const struct trib_comm *comm, const struct ledger *ledger)
{
	for (unsigned v = 0; v < ledger->n; v++) {
		const struct vector *vector = &ledger->vectors[v];
		struct holding holding = holding_of(comm, ledger, vector);

		for (size_t block = 0; vector->spec.count && block < vector->blocks; block++)
			if (holding_lacks(&holding, bitmap_get(vector->have, block)))
				return true;
	}
	return false;
}

static trib_status add_work(struct recovery *recovery, struct ledger *ledger, size_t *at,
                            struct work *work)
{
	bool ok;

	if (ledger->number >= recovery->posted)
		ok = add_whole(recovery, ledger, work);
	else if (!is_over(recovery, ledger))
		ok = add_repairs(recovery, ledger, at, work);
	else if (ledger->request && lacks_data(recovery->comm, ledger))
		return status_fail(TRIB_ERR_MISMATCH,
		                   "request #%llu has ended on other ranks, but not on rank %d",
		                   (unsigned long long)ledger->number, recovery->comm->config.rank);
	else
		ok = true;
	return ok ? TRIB_OK : fail_memory();
}

static trib_status post_work(struct recovery *recovery, struct ledger *ledger, size_t *at)
{
	struct trib_comm *comm = recovery->comm;
	bool is_whole = ledger->number >= recovery->posted;
	uint64_t rotation = is_whole ? ledger->number : recovery->rotation;
	struct trib_request *finished;
	struct work work = { 0 };
	trib_status status;

	pthread_mutex_lock(&comm->lock);
	status = add_work(recovery, ledger, at, &work);
	if (status != TRIB_OK) {
		pthread_mutex_unlock(&comm->lock);
		rounds_free(work.postings, work.n);
		free(work.postings);
		return status;
	}
	finished = count_work(comm, ledger, work.n);
	rounds_post(comm, work.postings, work.n, rotation);
	pthread_mutex_unlock(&comm->lock);
	if (!is_whole)
		recovery->rotation += work.n;
	if (finished)
		request_round_finished(finished);
	free(work.postings);
	return TRIB_OK;
}

/* Posts all repairs. From here on, users' requests start again. */
static trib_status post_all(struct recovery *recovery)
{
	struct trib_comm *comm = recovery->comm;
	trib_status status = TRIB_OK;
	size_t at = 0;

	pthread_mutex_lock(&comm->posting);
	for (struct ledger *ledger = comm->ledgers, *next; status == TRIB_OK && ledger;
	     ledger = next) {
		pthread_mutex_lock(&comm->lock);
		next = ledger->next; /* a ledger without counts is not removed */
		pthread_mutex_unlock(&comm->lock);
		status = post_work(recovery, ledger, &at);
	}
	if (comm->turn_client && status == TRIB_OK)
		requests_started_anew(comm);
	pthread_mutex_lock(&comm->lock);
	comm->recovering = status != TRIB_OK;
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	pthread_mutex_unlock(&comm->posting);
	if (comm->small.driven)
		comm->small.driven->push(comm);
	return status;
}

trib_status recover_requests(struct trib_comm *comm, uint64_t deadline)
{
	struct recovery recovery = { .comm = comm, .deadline = deadline };
	trib_status status;

	if ((status = agree_on_requests(&recovery)) == TRIB_OK &&
	    (status = agree_on_over(&recovery)) == TRIB_OK &&
	    (status = agree_on_blocks(&recovery)) == TRIB_OK)
		status = post_all(&recovery);
	free(recovery.over);
	free(recovery.owner);
	return status;
}
