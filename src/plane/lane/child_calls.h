/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What children have called. A collective can never be complete if its ranks have called
 * different ones. They then wait, and say in their reports what for: here these calls meet.
 */
#ifndef TRIB_PLANE_LANE_CHILD_CALLS_H
#define TRIB_PLANE_LANE_CHILD_CALLS_H

#include "plane/lane/agg_lane.h"

/* Takes the call of a child's report. If another child has called something else, all fails. */
void child_calls_take(struct agg_lane *lane, unsigned child, const struct wire_call *call,
                      uint64_t now);
/* The call that children should name next, as in struct wire_status. */
uint32_t child_calls_asked(const struct agg_lane *lane);
/* The call for a report to the parent. */
struct wire_call child_calls_above(const struct agg_lane *lane);
/*
 * A child's packet does not fit those of others. Their reports will say what they called. If
 * they do not, all fails with these words.
 */
void child_calls_dispute(struct agg_lane *lane, unsigned child, uint64_t now, const char *format,
                         ...) __attribute__((format(printf, 4, 5)));

#endif
