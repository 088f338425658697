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

struct ledger;
struct residual;
struct trib_comm;

struct trib_request {
	/* In the communicator's list. link NULL: a request of failover's own, in no list. */
	struct trib_request *next, **link;
	struct trib_comm *comm;
	struct ledger *ledger; /* NULL: the communicator keeps none */
	_Atomic unsigned rounds_left;
	bool done;   /* under the communicator's lock */
	bool posted; /* it has a number; under the communicator's lock */
	const char *what;
	uint64_t number;
	struct wire_call call;
	size_t count;
	bool fits;   /* it is small enough for slots: the same on all ranks */
	bool tiny;   /* it is, also where ranks have trees; see comm_takes_slots() */
	bool small;  /* it goes through the slot lane: who waits for it drives that lane */
	bool direct; /* it goes directly to the other ranks: who waits for it drives the channels */
	/* Used where an aggregator is shared: */
	bool shared;         /* the request goes through the shared star */
	uint32_t generation; /* of the plan in whose trees the request started; 0: not started */
	uint64_t bytes, started_at;
	/* An in-place reduce-scatter puts its result here first, and copies it at the end. */
	void *spare;
	void *copy_to;
	size_t copy_bytes;
	/* Error feedback: the residual, and the vector with it added. */
	struct residual *residual;
	float *fed;
};

/* In the communicator's list, not started; NULL: no memory. */
struct trib_request *request_new(struct trib_comm *comm, const char *what, size_t count);
/* A round of the request has finished. Any lane's thread. */
void request_round_finished(struct trib_request *request);
/* The user's last step: copies the result if there is a spare one, says how it went, frees. */
trib_status request_end(struct trib_request *request);
void request_free(struct trib_request *request);

#endif
