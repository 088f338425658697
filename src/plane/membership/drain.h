/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draining: an aggregator leaves trees because its machine is wanted for
 * something else. To the ranks it is the loss of an aggregator that says so
 * itself. Ranks that have a controller continue in other trees, and sums stay
 * exact. Any thread leaves a request; thread 0 serves it at its next tick.
 */
#ifndef TRIB_PLANE_MEMBERSHIP_DRAIN_H
#define TRIB_PLANE_MEMBERSHIP_DRAIN_H

#include "plane/core/aggregator_state.h"

/* Any thread may call it. False: too many requests wait. */
bool drain_comm(struct aggregator *aggregator, uint16_t job, uint64_t key, uint32_t generation,
                const char *why);
/* Drains everything; returns when the ranks have been told. */
void drain_all(struct aggregator *aggregator, const char *why);
/* Thread 0: serves the requests. */
void drain_serve(struct aggregator *aggregator);

#endif
