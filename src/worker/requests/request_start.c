/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only place where a user's request starts. request_post() gives it a number, and start()
 * posts its rounds to the lanes. All ranks start requests in the order of their numbers, so the
 * lanes have one order everywhere.
 *
 * If no aggregator is shared, a request starts when it is posted, unless a trial of ways holds it
 * for a moment (request_trial.c). While failover replaces the
 * trees, the request only gets its number and its ledger; recovery starts it.
 *
 * If an aggregator is shared, requests_start() starts posted requests later, when there is room.
 * The lanes of a request, own trees or shared star, are chosen when it starts and not when it is
 * posted: programs post long before the network is free, and turns change meanwhile. The next
 * request starts a little before the previous one ends, so that there is no gap between them.
 * Small requests need not wait for that. Requests never use both sets at once: they would
 * compete for the host's link, and the turn would last longer.
 */
#include "worker/requests/requests.h"

#include "base/clock.h"
#include "worker/ranks/direct_io.h"
#include "worker/ranks/ring_thread.h"
#include "worker/ring/direct_row.h"

#include <stdlib.h>
#include <string.h>

#define AHEAD 2u                /* requests in flight, if the first of them is nearly over */
#define AHEAD_NS 500000.0       /* 0.5 ms: any number in flight, if all together take less */
#define AHEAD_BYTES (64u << 10) /* 64 KiB: replaces AHEAD_NS while the rate is unknown */
#define TAIL_NS 2000000.0       /* 2 ms: a request is nearly over this long before its end */

/* The rounds of a request. */
struct postings {
	struct posting *all; /* NULL: none */
	size_t n;
	struct posting few[8]; /* all of them, if these are enough: a small call allocates none */
};

static void postings_free(struct postings *postings)
{
	if (postings->all != postings->few)
		free(postings->all);
	postings->all = NULL;
}

/* The rounds of all vectors of a request, in one set of lanes. `specs` NULL: those of the ledger.
 * False: no memory. */
static bool make_rounds(struct trib_request *request, const struct lane_set *set,
                        struct round_spec *specs, size_t n, struct postings *made)
{
	struct trib_comm *comm = request->comm;
	size_t most = n * set->striping.n;

	made->n = 0;
	made->all = most <= sizeof(made->few) / sizeof(*made->few)
	                    ? made->few
	                    : calloc(most, sizeof(*made->all));
	for (size_t i = 0; made->all && i < n; i++) {
		struct round_place place = {
			.ledger = request->ledger, .vector = (unsigned)i, .step = 1, .split = 1
		};
		struct round_spec kept, *spec = specs ? &specs[i] : &kept;
		unsigned k;

		if (!specs)
			kept = request->ledger->vectors[i].spec;
		spec->owner = request;
		spec->call = request->call;
		spec->signature = request->signature;
		spec->slot = set->slot;
		k = rounds_make(comm, set, spec, &place, made->all + made->n);
		made->n += k;
		if (!k) {
			rounds_free(made->all, made->n);
			postings_free(made);
		}
	}
	return made->all != NULL;
}

/* From here on the lanes have the request. The caller holds `posting` and `lock`. */
static void start(struct trib_request *request, const struct postings *postings)
{
	atomic_store_explicit(&request->rounds_left, (unsigned)postings->n, memory_order_relaxed);
	if (request->ledger)
		request->ledger->pending = (unsigned)postings->n;
	rounds_post(request->comm, postings->all, postings->n, request->number);
}

/* ---- requests that start later: an aggregator is shared ---- */

/* Are all rounds in these lanes nearly over? */
static bool is_ending(const struct trib_comm *comm, const struct lane_set *set)
{
	for (unsigned i = 0; i < set->striping.n; i++) {
		const struct lane *lane = comm->lanes[set->first + i];

		if (atomic_load(&lane->ending) != atomic_load(&lane->entered))
			return false;
	}
	return true;
}

/* Sets, for each lane, how many fragments may be left when it counts as nearly over. */
static void set_nearly(struct trib_comm *comm, const struct lane_set *set, bool shared)
{
	double each = (double)comm->payload * set->striping.n;
	uint32_t nearly = (uint32_t)(step_profile_bytes_in(&comm->profile, shared, TAIL_NS) / each);

	for (unsigned i = 0; i < set->striping.n; i++)
		atomic_store_explicit(&comm->lanes[set->first + i]->nearly, nearly + 1,
		                      memory_order_relaxed);
}

/* May another request start in the shared star (`shared`) or in the own trees? */
static bool is_room(const struct trib_comm *comm, bool shared)
{
	double most = step_profile_bytes_in(&comm->profile, shared, AHEAD_NS);

	if (comm->started[!shared])
		return false;
	if (!comm->started[shared] || (double)comm->started_bytes < (most > 0 ? most : AHEAD_BYTES))
		return true;
	return comm->started[shared] < AHEAD &&
	       is_ending(comm, shared ? &comm->shared : &comm->own);
}

static void enter_lane_set(struct trib_request *request, bool shared)
{
	struct trib_comm *comm = request->comm;

	request->shared = shared;
	request->generation = comm->config.generation;
	request->started_at = clock_now();
	if (!comm->started[0] && !comm->started[1])
		comm->busy_at = request->started_at;
	comm->started[shared]++;
	comm->started_bytes += request->bytes;
	set_nearly(comm, shared ? &comm->shared : &comm->own, shared);
}

/* The caller holds `lock`. False: no memory. */
static bool start_on(struct trib_request *request, bool shared)
{
	const struct lane_set *set = shared ? &request->comm->shared : &request->comm->own;
	struct postings postings;

	if (!make_rounds(request, set, NULL, request->ledger->n, &postings))
		return false;
	enter_lane_set(request, shared);
	start(request, &postings);
	postings_free(&postings);
	return true;
}

/* Starts the next request if it may start. False: it may not. */
static bool start_next(struct trib_comm *comm, bool *no_memory)
{
	bool shared, may;

	pthread_mutex_lock(&comm->lock);
	may = comm->next_start < comm->posts && !comm->recovering && !comm->trees_lost &&
	      comm->failed == TRIB_OK && !turn_waits(&comm->turn, comm->next_start);
	/* While it recovers, failover changes the lanes. */
	shared = may && comm->shared.striping.n && turn_uses(&comm->turn, comm->next_start);
	may = may && is_room(comm, shared);
	if (may) {
		struct ledger *ledger = ledger_find(comm, comm->next_start);

		*no_memory = !ledger || !ledger->request || !start_on(ledger->request, shared);
		may = !*no_memory;
		comm->next_start += may;
	}
	pthread_mutex_unlock(&comm->lock);
	return may;
}

void requests_start(struct trib_comm *comm)
{
	bool no_memory = false, any = false;

	while (start_next(comm, &no_memory))
		any = true;
	if (no_memory)
		comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory to begin request #%llu",
		          (unsigned long long)comm->next_start);
	if (any && comm->config.rank == 0)
		comm_wake_turns(comm);
}

void requests_started_anew(struct trib_comm *comm)
{
	uint64_t session = comm->turn.session;

	comm->turn = (struct turn){ .session = session };
	pthread_mutex_lock(&comm->lock);
	comm->next_start = comm->posts;
	comm->started[0] = comm->started[1] = 0;
	comm->started_bytes = 0;
	pthread_mutex_unlock(&comm->lock);
}

/* ---- posting ---- */

/* With one rank, the result is the input. */
static trib_status finish_alone(struct trib_request *request, const struct round_spec *specs,
                                size_t n, trib_request **out)
{
	for (size_t i = 0; i < n; i++) {
		size_t bytes = specs[i].count * (specs[i].copy ? 1 : number_size(specs[i].type));

		if (bytes && specs[i].target && specs[i].target != specs[i].source)
			memmove(specs[i].target, specs[i].source, bytes);
	}
	pthread_mutex_lock(&request->comm->lock);
	request->comm->rounds++;
	request_list(request);
	pthread_mutex_unlock(&request->comm->lock);
	request->done = true;
	*out = request;
	return TRIB_OK;
}

/* The request gets its number and, if there are rounds, starts. */
static trib_status enter(struct trib_request *request, const struct postings *postings)
{
	struct trib_comm *comm = request->comm;
	trib_status status = TRIB_OK;

	pthread_mutex_lock(&comm->lock);
	if (comm->failed != TRIB_OK) {
		status = status_fail(comm->failed, "%s: the communicator has failed: %s",
		                     request->what, comm->failure);
		comm->unhurt = false;
	} else {
		if (comm->turn_client)
			step_profile_post(&comm->profile, comm->posts, request->bytes,
			                  !comm->in_flight, clock_now());
		request->number = comm->posts++;
		request->posted = true;
		if (request->call.kind && request != &comm->trial.vote) {
			comm->calls[comm->n_calls++ % COMM_CALLS] = request->call;
			comm->signature = request->signature;
		}
		request_list(request);
		comm->in_flight += request->is_users;
		if (request->ledger) {
			request->ledger->number = request->number;
			request->ledger->call = request->call; /* recovery signs packets by it */
			request->ledger->request = request;
			ledger_append(comm, request->ledger);
		}
		if (postings)
			start(request, postings);
	}
	pthread_mutex_unlock(&comm->lock);
	return status;
}

/* Recovery starts the request if trees are replaced at the moment. The caller holds `posting`. */
static trib_status start_in_lanes(struct trib_request *request, struct round_spec *specs, size_t n,
                                  const struct lane_set *set)
{
	const struct trib_comm *comm = request->comm;
	bool now = !comm->recovering && !comm->turn_client;
	struct postings made;
	trib_status status;

	if (!now)
		return enter(request, NULL);
	if (!make_rounds(request, set, specs, n, &made))
		return status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory for %zu elements",
		                   request->what, request->count);
	status = enter(request, &made);
	if (status != TRIB_OK)
		rounds_free(made.all, made.n);
	postings_free(&made);
	return status;
}

#define TINY_BYTES 8192u /* of a request that uses slots also where ranks have trees */

/* Is the request small enough for slots? Every vector has to fit them, and all together as well. */
static bool fits_slots(const struct trib_request *request, const struct round_spec *specs, size_t n)
{
	const struct trib_comm *comm = request->comm;

	if (!round_is_small(request->bytes) && comm->config.engine != ENGINE_SLOT_FIRST)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!specs[i].small)
			return false;
	return true;
}

/* ---- around the ring ---- */

/* Bytes of all vectors of a request around the ring; shorter ones meet sooner at the aggregator. It
 * decides for sums in packed integers alone: takes_direct() has the others up to DIRECT_LONGEST. */
#define RING_SHORTEST 131072u

/*
 * Does the request go around the ring? It may depend only on what is the same on all ranks. Through
 * an aggregator, a reduce-scatter or an allgather takes the whole vector on each link, around the
 * ring (N - 1) / N of it. A ring takes no turns. Requests around it do not need trees, so they have
 * no ledger, and recovery leaves them alone.
 */
static bool takes_ring(const struct trib_request *request, size_t n, bool by_ranks)
{
	const struct trib_comm *comm = request->comm;

	if (by_ranks)
		return true;
	if (comm->config.ring == RING_NEVER || comm->turn_client || comm->trial.apart)
		return false;
	return comm->config.ring == RING_ALWAYS ||
	       (n > 1 && request->bytes >= RING_SHORTEST && comm->config.size > 2);
}

/* Most bytes of all vectors of a direct request. A longer one goes around the ring, unless it is an
 * allreduce. */
#define DIRECT_LONGEST 1048576u
/* Least bytes of a direct request if there is an aggregator. A shorter one goes through slots. */
#define DIRECT_SHORTEST 16384u
/* Bytes of an allreduce that is not cut into parts. */
#define DIRECT_WHOLE 4096u
/* Bytes of a segment of a long allreduce. Short segments stay in the cache. A segment is longer if
 * there would be more than SEGMENTS_MOST, or if ranks had shares below SHARE_LEAST bytes. A vector
 * up to SEGMENT_WHOLE is one segment: a second one takes more messages and wake-ups than it saves.
 */
#define SEGMENT (512u << 10)        /* 512 KiB */
#define SEGMENT_WHOLE (1024u << 10) /* 1 MiB */
#define SEGMENTS_MOST 512u
#define SHARE_LEAST (16u << 10) /* 16 KiB */

static enum direct_what what_of(const struct round_spec *specs, size_t n)
{
	if (n > 1)
		return specs[0].copy ? DIRECT_GATHER : DIRECT_SCATTER;
	if (specs[0].copy)
		return DIRECT_BROADCAST;
	return specs[0].to == WIRE_ALL ? DIRECT_ALLREDUCE : DIRECT_REDUCE;
}

/* RDMA costs less than direct calls, and only the ring has it. A rank with trees knows the devices
 * of the others when a trial has met them: if the user chose the ring, there is no trial. */
static bool long_takes_ring(const struct trib_comm *comm)
{
	bool rdma = true;

	if (!comm_is_ring(comm) && comm->config.way == WAYS_RING)
		return true;
	for (int r = 0; r < comm->config.size; r++)
		rdma = rdma && comm->ring_mail->seats[r].rdma;
	return rdma;
}

/* Does the request go directly? It may depend only on what is the same on all ranks. */
static bool takes_direct(const struct trib_request *request, const struct round_spec *specs,
                         size_t n, bool by_ranks)
{
	const struct trib_comm *comm = request->comm;
	/* A root sends or gets a vector for each rank. */
	bool has_root = n == 1 && (specs[0].from != WIRE_ALL || specs[0].to != WIRE_ALL);
	uint64_t most = DIRECT_LONGEST / (has_root ? (uint64_t)comm->config.size - 1 : 1);

	if (comm->config.ring != RING_AUTO || specs[0].per_word)
		return false;
	if (request->bytes > most)
		return by_ranks && what_of(specs, n) == DIRECT_ALLREDUCE && !long_takes_ring(comm);
	if (by_ranks)
		return true;
	return n > 1 && request->bytes >= DIRECT_SHORTEST && !comm->turn_client &&
	       !comm->trial.apart;
}

/* `fits`: it may use slots. */
static trib_status start_through_aggregator(struct trib_request *request, struct round_spec *specs,
                                            size_t n, bool fits)
{
	struct trib_comm *comm = request->comm;
	const struct lane_set *set = &comm->own;

	if (comm->keeps_ledgers && !(request->ledger = ledger_new(specs, n, comm->payload)))
		return status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory", request->what);
	request->fits = fits;
	request->tiny = request->bytes <= TINY_BYTES;
	if (request->ledger) {
		request->ledger->fits = request->fits;
		request->ledger->tiny = request->tiny;
	}
	if (!comm->recovering && !comm->turn_client &&
	    comm_takes_slots(comm, request->fits, request->tiny))
		set = &comm->small;
	request->driven = set->driven;
	return start_in_lanes(request, specs, n, set);
}

trib_status request_start_own(struct trib_request *request, struct round_spec *specs, size_t n)
{
	return start_through_aggregator(request, specs, n, fits_slots(request, specs, n));
}

/* The ranks tell each other where they listen, through the aggregator. */
static trib_status exchange_seats(struct trib_comm *comm)
{
	struct ring_mail *mail = comm->ring_mail;
	struct round_spec specs[WIRE_CHILDREN_MAX];
	size_t n = (size_t)comm->config.size;

	for (size_t r = 0; r < n; r++)
		specs[r] = (struct round_spec){ .copy = true,
			                        .count = sizeof(mail->seats[r]),
			                        .source = &mail->seats[r],
			                        .target = &mail->seats[r],
			                        .from = (uint8_t)r,
			                        .to = WIRE_ALL };
	mail->exchange.what = "exchange of addresses";
	return request_start_own(&mail->exchange, specs, n);
}

/* If this rank has no ring, all have to know. */
trib_status request_open_ring(struct trib_comm *comm)
{
	struct channel_listener *listener;
	struct ring_seat seat;
	trib_status status;

	if (comm->ring_mail)
		return TRIB_OK;
	status = ring_listen(&comm->config, &comm->first_aggregator, &listener, &seat);
	if (status == TRIB_OK)
		status = ring_open(comm, listener);
	if (status == TRIB_OK) {
		comm->ring_mail->seats[comm->config.rank] = seat;
		status = exchange_seats(comm);
	}
	if (status == TRIB_OK)
		status = ring_run(comm);
	if (status == TRIB_OK)
		return TRIB_OK;
	comm_fail(comm, status, "%s", trib_last_error());
	pthread_mutex_lock(&comm->lock);
	if (comm->ring_mail) /* there is no thread that could touch buffers */
		comm->ring_mail->quiet = true;
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	return status;
}

/* The rounds of the request, one for each vector. The caller holds `posting`. */
static trib_status start_ring(struct trib_request *request, const struct round_spec *specs,
                              size_t n)
{
	struct trib_comm *comm = request->comm;
	struct round *rounds[WIRE_CHILDREN_MAX];
	trib_status status = TRIB_OK;
	size_t made = 0;

	while (status == TRIB_OK && made < n) {
		struct round_spec spec = specs[made];

		spec.owner = request;
		spec.call = request->call;
		spec.ring = true;
		rounds[made] = round_new(&spec, (unsigned)comm->config.rank, comm->payload);
		if (rounds[made])
			made++;
		else
			status = status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory", request->what);
	}
	atomic_store(&request->rounds_left, (unsigned)n);
	if (status == TRIB_OK)
		status = enter(request, NULL);
	if (status == TRIB_OK)
		direct_note_ring(comm, &request->call);
	for (size_t i = 0; i < made; i++)
		if (status == TRIB_OK)
			ring_mail_post(comm->ring_mail, rounds[i]);
		else
			round_free(rounds[i]);
	return status;
}

/* Ranks that only meet, as in a barrier, gather nothing: that may take fewer messages. */
static struct direct_call *gather_nothing(struct trib_request *request,
                                          const struct round_spec *spec)
{
	struct round_spec share[WIRE_CHILDREN_MAX], nothing[WIRE_CHILDREN_MAX];
	unsigned size = (unsigned)request->comm->config.size;

	direct_cut(spec, size, request->comm->payload, share, nothing);
	return direct_call_new(DIRECT_GATHER, nothing, size, request);
}

/* It may depend only on what is the same on all ranks. */
static size_t segment_bytes(const struct trib_request *request)
{
	size_t size = (size_t)request->comm->config.size;
	/* A share is longer than the mean by less than a block. */
	size_t most = DIRECT_MOST / 2 * (size > 2 ? size : 1);
	size_t segment = request->bytes / SEGMENTS_MOST;

	segment = segment > SEGMENT ? segment : SEGMENT;
	segment = request->bytes > SEGMENT_WHOLE ? segment : SEGMENT_WHOLE;
	segment = segment > SHARE_LEAST * size ? segment : SHARE_LEAST * size;
	return segment < most ? segment : most;
}

/* NULL: no memory. */
static struct direct_call *direct_calls(struct trib_request *request,
                                        const struct round_spec *specs, size_t n, unsigned *made)
{
	const struct trib_comm *comm = request->comm;
	enum direct_what what = what_of(specs, n);
	struct round_spec first = specs[0];
	struct direct_call *call;

	first.call = request->call;
	if (what == DIRECT_ALLREDUCE && request->at_one)
		return direct_row_at(&first, 0, request, made);
	if (what == DIRECT_ALLREDUCE && request->bytes > DIRECT_WHOLE)
		return direct_row_new(&first, (unsigned)comm->config.size, comm->payload,
		                      segment_bytes(request), request, made);
	*made = 1;
	if (what == DIRECT_ALLREDUCE && !first.count)
		call = gather_nothing(request, specs);
	else
		call = direct_call_new(what, specs, (unsigned)n, request);
	if (call)
		call->vectors[0].call = request->call;
	return call;
}

/* The caller holds `posting`. */
static trib_status start_direct(struct trib_request *request, const struct round_spec *specs,
                                size_t n)
{
	unsigned made;
	struct direct_call *calls = direct_calls(request, specs, n, &made);
	trib_status status;

	request->direct = true;
	atomic_store(&request->rounds_left, made);
	status = calls ? enter(request, NULL)
	               : status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory", request->what);
	if (status == TRIB_OK)
		direct_start(request->comm, calls);
	else
		direct_row_free(calls);
	return status;
}

void request_number_call(struct trib_request *request)
{
	const struct trib_comm *comm = request->comm;

	request->call.number = comm->n_calls;
	request->call.rank = (uint16_t)comm->config.rank;
	request->call.before = comm->signature;
	request->signature = wire_call_sign(&request->call);
}

trib_status request_start(struct trib_request *request, struct round_spec *specs, size_t n)
{
	struct trib_comm *comm = request->comm;
	enum way way = comm_is_ring(comm) ? WAY_RANKS : trial_take_way(request, specs, n);
	bool by_ranks = way_is_among(way);
	bool direct = takes_direct(request, specs, n, by_ranks);
	bool ring = !direct && takes_ring(request, n, by_ranks);
	trib_status status = direct || ring ? request_open_ring(comm) : TRIB_OK;

	if (status != TRIB_OK)
		return status;
	/* Calls are numbered one after the other while `posting` is held. */
	request_number_call(request);
	request->at_one = way == WAY_ONE;
	if (direct)
		return start_direct(request, specs, n);
	if (ring)
		return start_ring(request, specs, n);
	status = start_through_aggregator(request, specs, n,
	                                  way != WAY_DENSE && fits_slots(request, specs, n));
	if (status == TRIB_OK && comm->turn_client)
		requests_start(comm);
	return status;
}

trib_status request_post(struct trib_request *request, struct round_spec *specs, size_t n,
                         trib_request **out)
{
	struct trib_comm *comm = request->comm;
	trib_status status;

	request->call = specs[0].call;
	if (comm->config.size == 1)
		return finish_alone(request, specs, n, out);
	for (size_t i = 0; i < n; i++)
		request->bytes += specs[i].count * (specs[i].copy ? 1 : number_size(specs[i].type));
	pthread_mutex_lock(&comm->posting);
	status = trial_holds(request, specs, n) ? trial_hold(request, specs, n)
	                                        : request_start(request, specs, n);
	pthread_mutex_unlock(&comm->posting);
	if (status != TRIB_OK) {
		ledger_free(request->ledger);
		request->ledger = NULL;
		request_free(request);
		return status;
	}
	*out = request;
	return TRIB_OK;
}
