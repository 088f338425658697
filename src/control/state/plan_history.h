/* SPDX-License-Identifier: Apache-2.0 */
/* The last plans of a communicator, and why each was made: for `trib explain` and the API. */
#ifndef TRIB_CONTROL_STATE_PLAN_HISTORY_H
#define TRIB_CONTROL_STATE_PLAN_HISTORY_H

#include "control/state/controller_state.h"

#include <jansson.h>

/* Adds a note to the newest plan. */
void plan_history_note(struct membership_entry *entry, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Notes that a plan was made; the reason comes from the last migration decision. */
void plan_history_note_plan(struct membership_entry *entry, const char *cause);
/* The newest note is last. */
json_t *plan_history_to_json(const struct membership_entry *entry);

#endif
