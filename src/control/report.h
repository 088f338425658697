/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent says of itself, as JSON. */
#ifndef TRIB_CONTROL_REPORT_H
#define TRIB_CONTROL_REPORT_H

#include "control/nodes.h"
#include "plan/plan.h"
#include "plane/core/stats.h"

#include <jansson.h>

#define REPORT_BYTES_MAX 8192u /* of a report as text, whatever it says */

json_t *report_to_json(const struct node_report *report);
/* Ranks, or seats, that are bits. */
json_t *seats_to_json(uint64_t seats);
/*
 * What its aggregator has: communicators that have not failed, and their children. These are
 * left out of the last `*untold` communicators where all would be more than `room` bytes.
 */
json_t *stats_to_json(const struct stats *stats, size_t room, unsigned *untold);
/* The ranks that come together in one of these, as bits; 0: it does not say. */
uint64_t ranks_from_json(const json_t *comm);
/* Hostile until read: an error's sentence says which field is wrong. */
trib_status report_from_json(struct node_report *report, const json_t *json);

/* What its link carried. Of what is read, what makes no sense is left out. */
json_t *ways_to_json(const struct node_way *ways, unsigned n, uint64_t now);
unsigned ways_from_json(struct node_way ways[NODE_WAYS], json_t *json, uint64_t now);

/* Why a plan is as it is; false: that is no verdict. */
json_t *verdict_to_json(const struct plan_verdict *verdict);
bool verdict_from_json(struct plan_verdict *verdict, json_t *json);

/* Letters that a name may have where it goes into plans, logs and tables. */
bool name_is_good(const char *name);

#endif
