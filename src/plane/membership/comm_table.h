/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane/membership: which children and parents a communicator has. It owns the
 * table of communicators (comm_table), JOIN and its answers (join_server,
 * join_answer), joining the parent (parent_session), the start of sums
 * (comm_start), silence and death (liveness), orderly leaving (drain), and
 * packets of communicators that are not here (unknown_comm).
 *
 * It must not touch fragments or cells (plane/lane). All of it runs in thread 0,
 * the slow path, unless a header says otherwise.
 */
#ifndef TRIB_PLANE_MEMBERSHIP_COMM_TABLE_H
#define TRIB_PLANE_MEMBERSHIP_COMM_TABLE_H

#include "plane/core/aggregator_state.h"

#define COMM_WHY_MAX ENGINE_WHY_MAX

/* NULL: there is none. */
struct comm *comm_table_find(struct aggregator *aggregator, uint16_t job,
                             const struct wire_join *join);
/* NULL: it cannot be, and `why` says so. */
struct comm *comm_table_new(struct aggregator *aggregator, uint16_t job,
                            const struct wire_join *join, const struct udp_address *from,
                            char why[COMM_WHY_MAX]);
/* Gives a communicator that begins to run the lowest free id: the kernel part has few. */
void comm_table_promote(struct aggregator *aggregator, struct comm *comm);
/* Bytes that the pool of one more communicator may have. */
uint64_t comm_table_pool_left(const struct aggregator *aggregator);
/* Settles the terms that every child, the parent and this aggregator can keep. */
void comm_table_settle(const struct aggregator *aggregator, struct comm *comm);
/* The memory of one cell of the communicator. */
uint64_t comm_table_cell_bytes(const struct comm *comm);
/* Memory of all its cells. */
uint64_t comm_table_pool_bytes(const struct comm *comm);
/* Ends the communicator here. Its memory is freed when no lane holds it any more. */
void comm_table_retire(struct aggregator *aggregator, struct comm *comm);
void comm_table_free(struct aggregator *aggregator);

#endif
