/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts that run ranks, and which of them are in use. A table is made for each decision. */
#ifndef TRIB_CONTROL_PLACEMENT_HOST_TABLE_H
#define TRIB_CONTROL_PLACEMENT_HOST_TABLE_H

#include "control/state/controller_state.h"

struct host_row {
	char where[TREE_NAME_MAX]; /* the host's address, without a port */
	const struct node *node;
	struct host_candidate host;
};

struct host_table {
	struct host_row *all; /* sorted by address */
	struct host_candidate *hosts;
	unsigned n;
};

/* Needs the controller's lock. False: no memory. Free the table in any case. */
bool host_table_make(const struct controller *controller, uint64_t now, struct host_table *table);
void host_table_free(struct host_table *table);

/* Calls `each` for the address of every host of a job, in the order of ranks. */
void host_table_each(const struct hosting *hosting,
                     void (*each)(void *context, const char *where, size_t length), void *context);

/* Does the job wait for hosts? */
static inline bool hosting_waits(const struct job_entry *entry)
{
	return entry && entry->hosting.hosts && !entry->hosting.placed;
}

#endif
