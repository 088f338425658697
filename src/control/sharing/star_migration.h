/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Migrates a job to another shared aggregator while it runs. The job releases before it acquires:
 *
 *   1. star_migration_begin notes the target. The turn at the old aggregator ends.
 *   2. star_migration_end stores the new star and tells the ranks.
 *   3. Ranks join the new star in the background (worker/turns/star.h). Meanwhile requests use the
 *      job's own trees.
 *   4. star_migration_joined: all ranks have joined, so the first turn may be granted.
 *
 * A star is lost if ranks cannot join it, or if it ends while no request is in flight there. Ranks
 * then use their own trees. The job gets another star after a pause, but not before every rank has
 * confirmed that no turn is left: otherwise two ranks might send one request different ways.
 *
 * All functions need the controller's lock.
 */
#ifndef TRIB_CONTROL_SHARING_STAR_MIGRATION_H
#define TRIB_CONTROL_SHARING_STAR_MIGRATION_H

#include "control/state/controller_state.h"

void star_migration_begin(struct controller *controller, struct membership_entry *entry,
                          const char *to, const char *why, uint64_t now);
/* True: the turn is released, and the job's share is at the new star now. False: not yet. */
bool star_migration_end(struct controller *controller, struct sharer *sharer, uint64_t now);
/* All ranks have joined the star. */
void star_migration_joined(struct controller *controller, struct sharer *sharer);
/* A share is lost, and about to be freed. */
void star_migration_lost(struct controller *controller, const struct sharer *sharer, uint64_t now);
/* A rank reports on a star that has no share. */
void star_migration_hear(struct controller *controller, const struct wire_control *header,
                         const struct udp_address *from, uint64_t now);

#endif
