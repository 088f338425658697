/* SPDX-License-Identifier: Apache-2.0 */
#include "control/state/plan_history.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

void plan_history_note(struct membership_entry *entry, const char *format, ...)
{
	struct plan_note *note = &entry->history[entry->n_history++ % HISTORY_MAX];
	va_list args;

	*note = (struct plan_note){ .generation = entry->membership.generation,
		                    .made_at = time(NULL) };
	va_start(args, format);
	vsnprintf(note->why, sizeof(note->why), format, args);
	va_end(args);
}

void plan_history_note_plan(struct membership_entry *entry, const char *cause)
{
	const struct membership *membership = &entry->membership;
	const struct migration_note *migration = &entry->migration;

	bool migrated = migration->leaves && migration->generation + 1 == membership->generation;

	if (migrated && migration->about_node)
		plan_history_note(entry, "node %s (%s) left: %s", migration->name, migration->node,
		                  migration->why);
	else if (migrated)
		plan_history_note(entry, "%s", migration->why);
	else if (membership->generation > 1)
		plan_history_note(entry, "%s", cause);
	else
		plan_history_note(entry, "all ranks had joined");
}

json_t *plan_history_to_json(const struct membership_entry *entry)
{
	unsigned first = entry->n_history > HISTORY_MAX ? entry->n_history - HISTORY_MAX : 0;
	json_t *list = json_array();

	for (unsigned i = first; i < entry->n_history; i++) {
		const struct plan_note *note = &entry->history[i % HISTORY_MAX];

		json_array_append_new(list, json_pack("{s:i, s:I, s:s}", "generation",
		                                      (int)note->generation, "made_at",
		                                      (json_int_t)note->made_at, "why", note->why));
	}
	return list;
}
