/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane: the aggregator. This folder owns its start and stop, and the list of
 * planes (planes.c): it is the one place that names carriers and XDP. The work
 * is in the rooms below, each of which may use those after it only:
 *
 *   udp, tcp    carriers: move packets             xdp    sums in the kernel
 *   pisa        small vectors on a model of a switch
 *   common      what the carriers share
 *   loop        a thread's loop, packets to rooms
 *   stats       counters for people and programs
 *   membership  which children and parents a communicator has
 *   lane        fragments of one lane: children, parent, rates
 *   core        the data, the tables, small helpers
 *
 * It must not touch the controller, nor decide what a sum is: src/engine does.
 */
#ifndef TRIB_PLANE_AGGREGATOR_H
#define TRIB_PLANE_AGGREGATOR_H

#include "plane/core/job_roster.h"
#include "base/secret.h"
#include "plane/core/aggregator_options.h"

struct aggregator;

trib_status aggregator_start(const struct aggregator_options *options, struct aggregator **out);
/* Ends the threads. */
void aggregator_stop(struct aggregator *aggregator);
void aggregator_free(struct aggregator *aggregator);
/* The port in use, also if port 0 was asked for. */
uint16_t aggregator_port(const struct aggregator *aggregator);
/* "xdp: on eth0 (driver mode)", or "udp: XDP was asked for, but ...". */
const char *aggregator_plane(const struct aggregator *aggregator);
/*
 * From now on, cookies made from this secret may join, and cookie 0 may not. The
 * cookie in the options stays valid. Any thread may call it.
 */
void aggregator_set_secret(struct aggregator *aggregator, const struct secret *secret);
/*
 * From now on, the controller's jobs that are not in the roster may not join: they have ended.
 * Any thread may call it.
 */
void aggregator_set_roster(struct aggregator *aggregator, const struct job_roster *roster);
/*
 * Takes this aggregator out of the trees of one plan of a communicator. The ranks
 * are told which aggregator leaves and why. Any thread may call it; it takes
 * effect within a tick. False: too many requests wait, ask again.
 */
bool aggregator_drain(struct aggregator *aggregator, uint16_t job, uint64_t key,
                      uint32_t generation, const char *why);
/* Takes it out of all trees; returns when the ranks have been told, before aggregator_stop(). */
void aggregator_drain_all(struct aggregator *aggregator, const char *why);
/* One line of JSON with all counters, after aggregator_stop(); gives its length. */
int aggregator_describe(struct aggregator *aggregator, char *out, size_t size);

#endif
