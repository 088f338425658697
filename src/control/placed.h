/* SPDX-License-Identifier: Apache-2.0 */
/* The machines that take jobs, as the controller knows them, and which of them jobs have. */
#ifndef TRIB_CONTROL_PLACED_H
#define TRIB_CONTROL_PLACED_H

#include "control/controller_internal.h"

struct machine_row {
	char where[TREE_NAME_MAX]; /* its address, without a port */
	const struct node *node;
	struct admission_host host;
};

struct machines {
	struct machine_row *all; /* sorted by address */
	struct admission_host *hosts;
	unsigned n;
};

/* With the lock held. False: no memory; to be given up in any case. */
bool machines_make(const struct controller *controller, uint64_t now, struct machines *machines);
void machines_free(struct machines *machines);

/* Calls `each` for every address of a job's hosts, in the order of ranks. */
void placed_each(const struct hosting *hosting,
                 void (*each)(void *context, const char *where, size_t length), void *context);

/* Has it asked for hosts, and none yet? */
static inline bool hosting_waits(const struct job_entry *entry)
{
	return entry && entry->hosting.hosts && !entry->hosting.placed;
}

#endif
