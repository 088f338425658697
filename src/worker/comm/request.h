/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request: one collective operation, as the user started it. It consists of rounds in lanes;
 * the lane that finishes the last round ends the request.
 */
#ifndef TRIB_WORKER_COMM_REQUEST_H
#define TRIB_WORKER_COMM_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

#include <tributary.h>

#define REQUEST_NAME_MAX 64

struct lane_engine;
struct ledger;
struct residual;
struct round_spec;
struct trib_comm;

struct trib_request {
	/* In the communicator's list; link NULL: in none. */
	struct trib_request *next, **link;
	struct trib_comm *comm;
	struct ledger *ledger; /* NULL: the communicator keeps none */
	_Atomic unsigned rounds_left;
	_Atomic bool done; /* set under the communicator's lock. If `blocks`, its user may have
	                      freed the request then */
	bool posted;       /* it has a number; under the communicator's lock */
	bool is_users;     /* false: of the library's own, never in the list */
	bool has_left;     /* nothing but its user knows it any more */
	_Atomic bool
		blocks; /* a blocking call waits for it: when it is done, it leaves all lists */
	const char *what;
	/* The lanes' engine, if the thread that waits for the request drives them; NULL: no. */
	const struct lane_engine *driven;
	uint64_t number;
	struct wire_call call;
	size_t count;
	bool fits;   /* it is small enough for slots: the same on all ranks */
	bool tiny;   /* it is, also where ranks have trees; see comm_takes_slots() */
	bool direct; /* it goes directly to the other ranks: the thread that waits drives the
	                channels */
	bool at_one; /* it is an allreduce that one rank sums */
	/* Used where an aggregator is shared: */
	bool shared;         /* the request goes through the shared star */
	uint32_t generation; /* of the plan in whose trees the request started; 0: not started */
	uint32_t signature;  /* of a user's call, wire_call_sign(); 0: not computed */
	uint64_t bytes, started_at;
	/* It waits for its start: its vectors, and its place in trib_comm.trial. Until then the
	 * trial's thread owns `driven` and `direct`. */
	_Atomic bool is_held;
	struct round_spec *held;
	size_t n_held;
	struct trib_request *held_next, **held_link;
	bool starting;  /* the trial's thread starts it; under the communicator's lock */
	uint64_t *took; /* gets its time in nanoseconds; NULL: it is not measured */
	/* An in-place reduce-scatter puts its result here first, and copies it at the end. */
	void *spare;
	void *copy_to;
	size_t copy_bytes;
	/* Error feedback: the residual, and the vector with it added. */
	struct residual *residual;
	float *fed;
};

/* Not started, and in no list; NULL: no memory. */
struct trib_request *request_new(struct trib_comm *comm, const char *what, size_t count);
/* Puts a user's request into the communicator's list. The caller holds `lock`. */
void request_list(struct trib_request *request);
/* Takes the request out of all lists: it is about to end. The caller holds `lock`. */
void request_leave(struct trib_request *request);
/* Takes it out of the requests that wait for their start. The caller holds `lock`. */
void request_unhold(struct trib_request *request);
/* A round of the request has finished. Any lane's thread. */
void request_round_finished(struct trib_request *request);
/* "allreduce #7"; "allreduce" while it waits for its start, and has no number. */
const char *request_name(struct trib_request *request, char out[REQUEST_NAME_MAX]);
/* The user's last step: copies the result if there is a spare one, says how it went, frees. */
trib_status request_end(struct trib_request *request);
void request_free(struct trib_request *request);

#endif
