/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While a rank joins trees, it asks the controller now and then whether another rank has given
 * them up: an aggregator that this rank does not speak to may be dead. Such trees never become
 * complete, and the other ranks wait at the controller for this one.
 */
#ifndef TRIB_WORKER_TREES_PLAN_WATCH_H
#define TRIB_WORKER_TREES_PLAN_WATCH_H

#include "worker/comm/comm.h"

struct plan_watch {
	int fd; /* -1: there is no controller to ask */
	uint64_t ask_at;
};

void plan_watch_open(const struct trib_comm *comm, struct plan_watch *watch);
void plan_watch_close(struct plan_watch *watch);
/* Sends a query if one is due. */
void plan_watch_ask(const struct trib_comm *comm, struct plan_watch *watch);
/* Not TRIB_OK: another rank has given the trees up. */
trib_status plan_watch_hear(const struct trib_comm *comm, struct plan_watch *watch);

/* Does the controller's answer say that a rank has given this plan up? */
bool plan_is_given_up(const char *text, uint32_t generation);
/* Does the answer name an aggregator of this plan that the controller does not hear? */
bool plan_has_silent(const char *text, uint32_t generation, char *out, size_t size);

#define PLAN_ANSWER_BYTES WIRE_PACKET_MAX
/* Asks the controller about the communicator's state. */
void plan_query(const struct trib_comm *comm, int fd);
/* The text of an answer that has come, in `packet`, which is 8-byte aligned; NULL: none. */
const char *plan_answer(const struct trib_comm *comm, int fd, void *packet);

#endif
