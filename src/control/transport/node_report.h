/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of heartbeats: node reports, communicators, link samples; and of verdicts of plans. */
#ifndef TRIB_CONTROL_TRANSPORT_NODE_REPORT_H
#define TRIB_CONTROL_TRANSPORT_NODE_REPORT_H

#include "control/policy/node_table.h"
#include "plan/cluster/plan.h"
#include "plane/stats/stats.h"

#include <jansson.h>

#define NODE_REPORT_BYTES_MAX 8192u /* upper bound of a report as text */

json_t *node_report_to_json(const struct node_report *report);
/* A list of ranks or seats, from bits. */
json_t *seats_to_json(uint64_t seats);
/*
 * The aggregator's communicators that have not failed, with their children. If all would take more
 * than `room` bytes, the last `*untold` communicators come without children.
 */
json_t *stats_to_json(const struct stats *stats, size_t room, unsigned *untold);
/* The ranks below an aggregator in one communicator, as bits; 0: unknown. */
uint64_t ranks_from_json(const json_t *comm);
/* Input is hostile until parsed. An error names the wrong field. */
trib_status node_report_from_json(struct node_report *report, const json_t *json);

/* Samples of link probes. Malformed samples are skipped. */
json_t *link_samples_to_json(const struct link_sample *samples, unsigned n, uint64_t now);
unsigned link_samples_from_json(struct link_sample samples[LINK_SAMPLES_MAX], json_t *json,
                                uint64_t now);

/* The estimate of a plan; false: malformed. */
json_t *verdict_to_json(const struct plan_verdict *verdict);
bool verdict_from_json(struct plan_verdict *verdict, json_t *json);

/* Has the name only characters that are safe in plans, logs and tables? */
bool name_is_good(const char *name);

#endif
