/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requests: how a request becomes rounds in lanes. request_rounds.c splits vectors over the
 * lanes; request_start.c is the only place where a user's request starts; request_trial.c tries
 * which way is faster, through the aggregator or among the ranks.
 *
 * The room owns the order in which requests start, which is the same on all ranks. It posts
 * rounds to the lanes' mailboxes (comm) and never waits, but for the thread of trials. It must not
 * touch sockets, trees, or the rooms above: sharing, failover, api.
 */
#ifndef TRIB_WORKER_REQUESTS_REQUESTS_H
#define TRIB_WORKER_REQUESTS_REQUESTS_H

#include "worker/comm/comm.h"

/* A round, and the lane that it is for. */
struct posting {
	const struct lane_set *set;
	struct round *round;
	unsigned lane; /* within the set */
	bool is_small; /* the lane is chosen in rotation when the round is posted */
};

/*
 * request_rounds.c: the rounds of one vector, or of the part of it that `place` names (NULL: no
 * ledger). Completes the spec. Gives their number; 0: no memory. The caller holds `posting`.
 */
unsigned rounds_make(struct trib_comm *comm, const struct lane_set *set, struct round_spec *spec,
                     const struct round_place *place, struct posting *postings);
/* To the lanes. `rotation` chooses lanes for small rounds and has to be the same on all ranks. */
void rounds_post(struct trib_comm *comm, const struct posting *postings, size_t n,
                 uint64_t rotation);
void rounds_free(const struct posting *postings, size_t n);

/*
 * request_start.c: gives the request its number and starts it, now or when it may. Takes the
 * request over, also if it fails. Completes the specs with what the request knows.
 */
trib_status request_post(struct trib_request *request, struct round_spec *specs, size_t n,
                         trib_request **out);
/* The user's call that comes next, as ranks compare it. */
void request_number_call(struct trib_request *request);
/* Gives it its number and starts it. The caller holds `posting`. */
trib_status request_start(struct trib_request *request, struct round_spec *specs, size_t n);
/* Opens the ring, if it is not open. The caller holds `posting`. */
trib_status request_open_ring(struct trib_comm *comm);
/* A request of the library's own, through the aggregator. The caller holds `posting`. */
trib_status request_start_own(struct trib_request *request, struct round_spec *specs, size_t n);

/*
 * request_trial.c: which way a request of WAY_SHORTEST bytes or more takes, which is counted: it
 * starts now. The caller holds `posting` in these functions.
 */
enum way trial_way_of_long(struct trib_request *request, const struct round_spec *specs, size_t n);
/* Does the request have to wait for its start, as a part of a trial? */
bool trial_holds_long(struct trib_request *request, const struct round_spec *specs, size_t n);

/* The same of any request: short ones all go through the aggregator, and there are no trials. */
static inline enum way trial_take_way(struct trib_request *request, const struct round_spec *specs,
                                      size_t n)
{
	return request->bytes < WAY_SHORTEST ? WAY_AGGREGATOR
	                                     : trial_way_of_long(request, specs, n);
}

/* It may also be behind a part of a trial. */
static inline bool trial_holds(struct trib_request *request, const struct round_spec *specs,
                               size_t n)
{
	return atomic_load(&request->comm->trial.holds) ||
	       (request->bytes >= WAY_SHORTEST && trial_holds_long(request, specs, n));
}

/* The trial's thread starts it. */
trib_status trial_hold(struct trib_request *request, const struct round_spec *specs, size_t n);
/* Waits for the end of the trial's thread. The caller has set closing, and holds no lock. */
void trial_stop(struct trib_comm *comm);

/* Where an aggregator is shared: starts requests that may start, in the order of their numbers.
 * The caller holds `posting`. */
void requests_start(struct trib_comm *comm);
/* Recovery has started all posted requests in new trees; the caller holds `posting`. */
void requests_started_anew(struct trib_comm *comm);

#endif
