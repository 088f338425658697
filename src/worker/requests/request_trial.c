/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trials of ways (ways/way_choice.h). A call of a trial is measured alone: it starts when all calls
 * before it have ended on all ranks, and the next one starts when it has ended. A user's thread
 * must not wait for that in a call that does not block. So a thread starts these calls, and until
 * the trial is over also the calls behind them. A request that waits has no number yet: to all
 * other rooms, the user has not made the call.
 *
 * All ranks start requests in the order of their calls, and decide by what they have agreed on. So
 * a request takes the same way everywhere.
 */
#include "worker/requests/requests.h"

#include "base/clock.h"
#include "base/log.h"
#include "worker/ranks/direct_io.h"
#include "worker/ranks/ring_thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REACH_SHARE 6.0 /* ranks reach each other within 1/6 of the timeout */
#define REACH_MAX 5.0   /* s: the longest that ranks try to reach each other */
#define AWAY_MAX 4000.0 /* in sixteenths it fits 16 bits */

#define DRIVE_NS 10000000ull /* 10 ms: a thread that drives a call looks whether all is over */

static enum way_kind kind_of(const struct round_spec *spec)
{
	if (spec->copy)
		return WAY_BROADCAST;
	return spec->to == WIRE_ALL ? WAY_ALLREDUCE : WAY_REDUCE;
}

/* May the communicator choose? It may depend only on what is the same on all ranks. */
static bool may_choose(const struct trib_comm *comm)
{
	return comm->config.ring == RING_AUTO && !comm->config.tcp && !comm->turn_client &&
	       !comm_is_ring(comm) && !comm->trial.apart;
}

/* NULL: the request's way does not depend on trials. */
static struct way_class *class_of(const struct trib_request *request,
                                  const struct round_spec *specs, size_t n)
{
	struct trib_comm *comm = request->comm;

	if (request->bytes < WAY_SHORTEST || n != 1 || comm->config.way != WAYS_AUTO ||
	    !may_choose(comm))
		return NULL;
	return way_class_of(&comm->trial.choice, kind_of(specs), request->bytes,
	                    comm->config.engine == ENGINE_AUTO && round_is_small(request->bytes),
	                    comm->config.size > 2);
}

/* Does the request need to know whether all ranks can reach each other? */
static bool needs_meeting(const struct trib_request *request)
{
	const struct trib_comm *comm = request->comm;

	return request->bytes >= WAY_SHORTEST && comm->config.way == WAYS_AUTO &&
	       may_choose(comm) && !comm->trial.met;
}

enum way trial_way_of_long(struct trib_request *request, const struct round_spec *specs, size_t n)
{
	const struct trib_comm *comm = request->comm;
	struct way_class *class = class_of(request, specs, n);

	if (comm->config.way == WAYS_RING && n == 1 && may_choose(comm))
		return WAY_RANKS;
	return class ? way_take(class) : WAY_AGGREGATOR;
}

bool trial_holds_long(struct trib_request *request, const struct round_spec *specs, size_t n)
{
	const struct way_class *class = class_of(request, specs, n);

	return (class && way_is_trial(class)) || needs_meeting(request);
}

/* ---- the thread ---- */

/* The caller holds `lock`. */
static bool is_over(struct trib_comm *comm)
{
	return comm->failed != TRIB_OK || atomic_load(&comm->closing);
}

/* There is no request. Those that end elsewhere must not wake this thread: it would cost as much as
 * a small sum. The caller holds `lock`. */
static void rest(struct trib_comm *comm)
{
	pthread_cond_broadcast(&comm->changed); /* trib_finalize may wait for it */
	while (!comm->trial.first && !is_over(comm))
		pthread_cond_wait(&comm->trial.wake, &comm->lock);
}

/*
 * Waits until the next request may start. *class: of a request that is a part of a trial, else
 * NULL. NULL: the communicator is over.
 */
static struct trib_request *next_request(struct trib_comm *comm, struct way_class **class)
{
	struct trial *trial = &comm->trial;
	struct trib_request *request = NULL;

	pthread_mutex_lock(&comm->lock);
	while (!is_over(comm)) {
		request = trial->first;
		trial->busy = request != NULL;
		atomic_store(&trial->holds, trial->busy);
		*class = request ? class_of(request, request->held, request->n_held) : NULL;
		if (*class && !way_is_trial(*class))
			*class = NULL;
		if (request && !(*class && comm->in_flight))
			break;
		request = NULL;
		if (trial->busy)
			pthread_cond_wait(&comm->changed, &comm->lock);
		else
			rest(comm);
	}
	if (request) {
		request->starting = true;
		request_unhold(request);
	}
	pthread_mutex_unlock(&comm->lock);
	return request;
}

/* Waits until a request has ended, which writes its time. False: the communicator is over. */
static bool wait_for(struct trib_comm *comm, const uint64_t *took)
{
	bool ended;

	pthread_mutex_lock(&comm->lock);
	while (!(ended = *took != 0) && !is_over(comm))
		pthread_cond_wait(&comm->changed, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
	return ended;
}

/*
 * Drives a call of a trial. If the user's thread did it, the trial would also measure how long that
 * thread takes to wake up. While `starting` is set, nobody frees the request. While trees are
 * replaced, other threads drive.
 */
static void drive(struct trib_comm *comm, const struct trib_request *request)
{
	bool over = false;

	while (!over && atomic_load(&request->rounds_left)) {
		uint64_t now = clock_now(), until = now + DRIVE_NS;

		if (request->direct)
			direct_drive(comm, request, until);
		else if (!request->driven || atomic_load(&comm->stop_lanes))
			break;
		else
			request->driven->drive(comm, request, now, until);
		pthread_mutex_lock(&comm->lock);
		over = is_over(comm);
		pthread_mutex_unlock(&comm->lock);
	}
}

/*
 * All ranks get the highest values, when all are here. False: the communicator is over. `values`
 * are in the communicator: lanes may still use them then. `call`: of the trial. If a rank has
 * called something else, it is named.
 */
static bool agree(struct trib_comm *comm, const struct wire_call *call, uint64_t *values, size_t n)
{
	struct trib_request *vote = &comm->trial.vote;
	struct round_spec spec = { .source = values,
		                   .target = values,
		                   .count = n,
		                   .type = TRIB_U64,
		                   .op = TRIB_MAX,
		                   .from = WIRE_ALL,
		                   .to = WIRE_ALL,
		                   .small = (uint8_t)comm->config.size };
	trib_status status;

	pthread_mutex_lock(&comm->posting);
	pthread_mutex_lock(&comm->lock); /* lanes look at it */
	*vote = (struct trib_request){ .comm = comm,
		                       .what = "choice of a way",
		                       .call = *call,
		                       .bytes = n * sizeof(*values),
		                       .took = &comm->trial.voted };
	comm->trial.voted = 0;
	pthread_mutex_unlock(&comm->lock);
	status = request_start_own(vote, &spec, 1);
	if (status == TRIB_OK && vote->driven)
		vote->driven->push(comm);
	pthread_mutex_unlock(&comm->posting);
	if (status != TRIB_OK)
		comm_fail(comm, status, "%s", trib_last_error());
	else
		drive(comm, vote); /* if a rank slept, it would start later than the others */
	return status == TRIB_OK && wait_for(comm, vote->took);
}

/* Until all ranks have answered, or the time is up. */
static bool wait_for_ranks(struct trib_comm *comm)
{
	double seconds = comm->config.timeout_s / REACH_SHARE;
	struct timespec until = clock_span(
		clock_now() + (uint64_t)((seconds < REACH_MAX ? seconds : REACH_MAX) * 1e9));
	int error = 0;
	bool open;

	pthread_mutex_lock(&comm->lock);
	while (!(open = comm->ring_mail->open) && !is_over(comm) && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&comm->changed, &comm->lock, &until);
	pthread_mutex_unlock(&comm->lock);
	return open;
}

/* Ends the ring's thread: it would fail the communicator. */
static void give_ring_up(struct trib_comm *comm)
{
	comm->trial.apart = true;
	atomic_store(&comm->stop_ring, true);
	ring_stop(comm);
	pthread_mutex_lock(&comm->lock);
	atomic_store(&comm->stop_ring, comm->failed != TRIB_OK);
	pthread_mutex_unlock(&comm->lock);
}

/*
 * Before the first call that may leave the aggregator: can all ranks reach each other? Ranks behind
 * a firewall may reach the aggregator alone, and then there is no choice. `call`: as for agree().
 */
static void meet(struct trib_comm *comm, const struct wire_call *call)
{
	uint64_t *missing = &comm->trial.value;
	trib_status status;

	comm->trial.met = true;
	if (!agree(comm, call, missing, 1)) /* all ranks have made this call */
		return;
	pthread_mutex_lock(&comm->posting);
	status = request_open_ring(comm);
	pthread_mutex_unlock(&comm->posting);
	if (status != TRIB_OK)
		return;
	*missing = !wait_for_ranks(comm);
	if (*missing)
		log_notice("rank %d cannot reach all other ranks: vectors go through the "
		           "aggregator alone (TRIB_WAY=aggregator saves the attempt)",
		           comm->config.rank);
	if (agree(comm, call, missing, 1) && *missing)
		give_ring_up(comm);
}

/* True: the request has started, and is a part of a trial. */
static bool start(struct trib_request *request, struct way_class *class)
{
	struct trib_comm *comm = request->comm;
	struct round_spec *specs = request->held;
	trib_status status;
	bool tries;

	request_number_call(request); /* votes name it; no other thread starts a call now */
	if (needs_meeting(request))
		meet(comm, &request->call);
	tries = class && !comm->trial.apart;
	if (tries)
		agree(comm, &request->call, &comm->trial.value, 1);
	pthread_mutex_lock(&comm->posting);
	if (tries) {
		comm->trial.took = 0;
		request->took = &comm->trial.took;
		request->started_at = clock_now();
	}
	status = request_start(request, specs, request->n_held);
	if (status == TRIB_OK && request->driven)
		request->driven->push(comm);
	pthread_mutex_unlock(&comm->posting);
	if (status != TRIB_OK)
		comm_fail(comm, status, "%s", trib_last_error());
	else if (tries)
		drive(comm, request);
	pthread_mutex_lock(&comm->lock);
	if (status != TRIB_OK) {
		ledger_free(request->ledger);
		request->ledger = NULL;
	}
	request->held = NULL;
	atomic_store(&request->is_held, false);
	request->starting = false;
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	free(specs);
	return status == TRIB_OK && tries;
}

/* "the aggregator 10.0.0.9:7700" */
static void name_trees(struct trib_comm *comm, char *out, size_t room)
{
	const struct forest *trees;
	char address[64];

	pthread_mutex_lock(&comm->lock); /* failover may take another plan */
	trees = comm->config.trees;
	if (comm->config.generation)
		snprintf(out, room, "the trees of plan %u", comm->config.generation);
	else if (trees && trees->n_trees > 1)
		snprintf(out, room, "%u trees", trees->n_trees);
	else
		snprintf(out, room, "the aggregator %s",
		         udp_text(&comm->first_aggregator, address, sizeof(address)));
	pthread_mutex_unlock(&comm->lock);
}

static void tell_choice(struct trib_comm *comm, const struct way_class *class)
{
	static const char *const kinds[WAY_KINDS] = { "allreduces", "reduces", "broadcasts" };
	static const char *const names[WAYS] = { "through the aggregator", "among the ranks",
		                                 "through the aggregator, not in slots",
		                                 "among the ranks, and one of them sums" };
	double through = (double)way_best_through(class) / 1e6 / class->block;
	double among = (double)way_best_among(class) / 1e6 / class->block;
	unsigned from = (unsigned)(way_class_from(&comm->trial.choice, class) >> 10);
	const char *kind = kinds[way_class_kind(&comm->trial.choice, class)];
	char where[100];

	name_trees(comm, where, sizeof(where));
	if (way_is_among(class->way) && !comm->trial.told) {
		comm->trial.told = true;
		log_notice("%s from %u KiB go among the ranks: %.1f times faster than through %s "
		           "(%.2f ms instead of %.2f ms for %u KiB); a switch or more aggregators "
		           "would be faster still",
		           kind, from, through / among, where, among, through, from);
	} else {
		log_info("%s from %u KiB go %s: %.2f ms through %s, %.2f ms among the ranks", kind,
		         from, names[class->way], through, where, among);
	}
}

/* A call of a trial has started. When a turn has ended, the ranks agree on its times. */
static void settle(struct trib_comm *comm, struct way_class *class, uint64_t bytes)
{
	const struct wire_call *last = &comm->calls[(comm->n_calls - 1) % COMM_CALLS];
	double gain;

	if (!wait_for(comm, &comm->trial.took))
		return;
	way_note(class,
	         way_scaled(comm->trial.took, way_class_from(&comm->trial.choice, class), bytes));
	if (!way_turn(class) || !agree(comm, last, way_turn(class), class->ways) ||
	    !way_settle(class))
		return;
	gain = way_gain(&comm->trial.choice);
	atomic_store(&comm->away, (uint16_t)(16 * (gain < AWAY_MAX ? gain : AWAY_MAX)));
	if (comm->config.rank == 0)
		tell_choice(comm, class);
}

static void *trial_main(void *argument)
{
	struct trib_comm *comm = argument;
	struct trib_request *request;
	struct way_class *class;

	while ((request = next_request(comm, &class))) {
		uint64_t bytes = request->bytes;

		if (start(request, class))
			settle(comm, class, bytes);
	}
	return NULL;
}

trib_status trial_hold(struct trib_request *request, const struct round_spec *specs, size_t n)
{
	struct trib_comm *comm = request->comm;
	struct trial *trial = &comm->trial;

	request->held = malloc(n * sizeof(*specs));
	if (!request->held)
		return status_fail(TRIB_ERR_NO_MEMORY, "%s: no memory", request->what);
	memcpy(request->held, specs, n * sizeof(*specs));
	request->n_held = n;
	atomic_store(&request->is_held, true);
	if (!trial->runs && pthread_create(&trial->thread, NULL, trial_main, comm))
		return status_fail(TRIB_ERR_SYSTEM, "cannot start a thread for trials of ways");
	trial->runs = true;
	pthread_mutex_lock(&comm->lock);
	request_list(request);
	request->held_link = trial->end;
	*trial->end = request;
	trial->end = &request->held_next;
	atomic_store(&trial->holds, true);
	pthread_cond_signal(&trial->wake);
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	return TRIB_OK;
}

void trial_stop(struct trib_comm *comm)
{
	if (!comm->trial.runs)
		return;
	pthread_mutex_lock(&comm->lock);
	pthread_cond_signal(&comm->trial.wake);
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	pthread_join(comm->trial.thread, NULL);
	comm->trial.runs = false;
}
