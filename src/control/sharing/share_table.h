/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sharing: aggregators with a capacity, which jobs use in turns.
 *
 * This folder owns which jobs share which aggregator (share_table), the packets about turns
 * (turn_packet), granting turns (turn_server), the choice of an aggregator (star_choice) and
 * migration to another one while a job runs (star_migration). Decisions are in
 * policy/{turn_protocol,turn_policy,star_policy}. This folder makes no plan and ends no job. Calls
 * go one way: turn_server, star_migration, star_choice, then share_table and turn_packet.
 *
 * All functions need the controller's lock.
 */
#ifndef TRIB_CONTROL_SHARING_SHARE_TABLE_H
#define TRIB_CONTROL_SHARING_SHARE_TABLE_H

#include "control/state/controller_state.h"

/* All sharers of a sharing group; the body may free the current sharer. */
#define EACH_SHARER(sharer, group)                                                    \
	for (struct sharer *sharer = (struct sharer *)(group)->turns.shares, *after_; \
	     sharer && (after_ = (struct sharer *)sharer->share.next, true); sharer = after_)

/* A communicator has a new plan: shares of older plans are lost. `restored`: from the store. */
void share_table_take_plan(struct controller *controller, const struct job_entry *job,
                           const struct membership *membership, bool restored);
void share_table_end_job(struct controller *controller, uint16_t job);
void share_table_free(struct controller *controller);

/* The share with exactly these numbers, and its group; NULL: there is none. */
struct sharer *share_table_find(struct controller *controller, uint16_t job, uint64_t key,
                                uint32_t generation, uint32_t star, struct sharing_group **in);
/* The share of the communicator's newest star; NULL: it has none, or lost it. */
struct sharer *share_table_newest(struct controller *controller,
                                  const struct membership_entry *entry);
/* Adds a share for the star of the plan; NULL: the plan has no star, or there is no memory. */
struct sharer *share_table_add(struct controller *controller, const struct job_entry *job,
                               const struct membership *membership, bool restored);
/* Removes and frees a share that is not held. */
void share_table_remove(struct controller *controller, struct sharing_group *group,
                        struct sharer *sharer);

#endif
