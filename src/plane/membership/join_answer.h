/* SPDX-License-Identifier: Apache-2.0 */
/* The answers to a JOIN: joined, wait, refused, or the tree is lost. */
#ifndef TRIB_PLANE_MEMBERSHIP_JOIN_ANSWER_H
#define TRIB_PLANE_MEMBERSHIP_JOIN_ANSWER_H

#include "plane/core/aggregator_state.h"

#define OWN_NAME_MAX 64

/* The aggregator's own address, as the peer knows it. */
const char *own_name(const struct aggregator *aggregator, const struct udp_address *towards,
                     char out[OWN_NAME_MAX]);
/* To a child that has asked: it has joined, or has to wait. */
void join_answer(struct aggregator *aggregator, const struct comm *comm, unsigned index);
/* To a sender that is not a child: it has to wait. `present`: ranks that have arrived. */
void join_answer_wait(struct aggregator *aggregator, const struct wire_control *header,
                      uint32_t bytes, const struct udp_address *to, uint64_t present);
/* Refuses, without a word in the log. The answer has `bytes`, or as many as it needs. */
void join_tell(struct aggregator *aggregator, const struct wire_control *header, uint32_t bytes,
               const struct udp_address *to, const char *why);
void join_refuse(struct aggregator *aggregator, const struct wire_control *header, uint32_t bytes,
                 const struct udp_address *to, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* Refuses every child, and ends the communicator before it runs. */
void join_refuse_all(struct aggregator *aggregator, struct comm *comm, const char *why);
/* Tells every child that the tree is lost: another tree may help. Ends the communicator. */
void join_abort_all(struct aggregator *aggregator, struct comm *comm, const char *why);
/* All have joined: starts the sums and tells every child, or refuses every child. */
void join_complete(struct aggregator *aggregator, struct comm *comm);
/* Ranks that have arrived: here, below, and elsewhere in the tree as far as is known. */
uint64_t comm_arrived(const struct comm *comm);

#endif
