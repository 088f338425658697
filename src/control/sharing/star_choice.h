/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the aggregator at which a communicator takes its turns: collects what is known of all
 * sharers, and asks policy/star_policy.h. All functions need the controller's lock.
 */
#ifndef TRIB_CONTROL_SHARING_STAR_CHOICE_H
#define TRIB_CONTROL_SHARING_STAR_CHOICE_H

#include "control/state/controller_state.h"

struct star_choice {
	struct controller *controller;
	struct membership_entry *entry;
	uint64_t now;
};
/* For a new plan: the `root` function of struct planner, with a struct star_choice as context. */
unsigned star_choice_for_plan(void *context, const struct plan_wish *wish,
                              const struct node *const *nodes, unsigned n);
/* True: the communicator is better off at *root than at `node`, where it takes its turns now. */
bool star_choice_better(struct controller *controller, struct membership_entry *entry,
                        const struct node *node, uint64_t now, char root[TREE_NAME_MAX]);
/* Where a communicator that has lost its star can take its turns; false: nowhere. */
bool star_choice_after_loss(struct controller *controller, struct membership_entry *entry,
                            uint64_t now, char root[TREE_NAME_MAX]);

#endif
