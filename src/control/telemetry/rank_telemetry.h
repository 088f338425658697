/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry: what is measured of jobs and links.
 *
 * This folder owns what ranks and aggregators report (rank_telemetry) and the schedule of link
 * probes (probe_scheduler). It writes its findings into the records of state/. It makes no plan,
 * migrates no job and sends nothing: its callers answer the heartbeats.
 *
 * All functions need the controller's lock.
 */
#ifndef TRIB_CONTROL_TELEMETRY_RANK_TELEMETRY_H
#define TRIB_CONTROL_TELEMETRY_RANK_TELEMETRY_H

#include "control/state/controller_state.h"

#include <jansson.h>

/* Forgets all reports: there is a new plan. */
void rank_telemetry_clear(struct rank_telemetry *telemetry);
/* Takes what an aggregator's heartbeat says of one communicator (`comm`) and its ranks. */
void rank_telemetry_take(struct controller *controller, struct membership_entry *entry,
                         const struct node *node, const json_t *comm, uint64_t now);
/* Measured throughput in bits of vectors per second; 0: unknown, as is that of a ring. */
double rank_telemetry_rate(const struct membership_entry *entry, uint64_t now);
/* One object for each rank of the newest plan. */
json_t *rank_telemetry_to_json(const struct controller *controller,
                               const struct membership_entry *entry);

#endif
