/* SPDX-License-Identifier: Apache-2.0 */
#include "control/placed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int machine_order(const void *a, const void *b)
{
	return strcmp(((const struct machine_row *)a)->where,
	              ((const struct machine_row *)b)->where);
}

static struct machine_row *machine_find(const struct machines *machines, const char *where,
                                        size_t length)
{
	struct machine_row key;

	snprintf(key.where, sizeof(key.where), "%.*s", (int)length, where);
	return bsearch(&key, machines->all, machines->n, sizeof(key), machine_order);
}

void placed_each(const struct hosting *hosting,
                 void (*each)(void *context, const char *where, size_t length), void *context)
{
	for (const char *at = hosting->placed ? hosting->placed : ""; *at;) {
		size_t length = strcspn(at, ",");

		each(context, at, length);
		at += length + (at[length] == ',');
	}
}

static void mark_busy(void *context, const char *where, size_t length)
{
	struct machine_row *row = machine_find(context, where, length);

	if (row)
		row->host.state = HOST_BUSY;
}

void machines_free(struct machines *machines)
{
	free(machines->all);
	free(machines->hosts);
}

bool machines_make(const struct controller *controller, uint64_t now, struct machines *machines)
{
	const struct nodes *nodes = &controller->nodes;

	*machines = (struct machines){ calloc(nodes->n + 1, sizeof(*machines->all)),
		                       calloc(nodes->n + 1, sizeof(*machines->hosts)), 0 };
	if (!machines->all || !machines->hosts)
		return false;
	for (unsigned i = 0; i < nodes->n; i++) {
		const struct node *node = nodes->all[i];
		struct machine_row *row = &machines->all[machines->n];
		const char *where;
		size_t length = node_where(node, &where);

		if (!length || !*node->report.rack)
			continue;
		snprintf(row->where, sizeof(row->where), "%.*s", (int)length, where);
		row->node = node;
		row->host = (struct admission_host){
			node->report.rack, node_state(node, now, &controller->limits) <= NODE_LOADED
						   ? HOST_FREE
						   : HOST_AWAY
		};
		/* Several aggregators of one machine stand side by side. */
		if (machines->n && !strcmp(row[-1].where, row->where)) {
			if (row->host.state == HOST_FREE)
				row[-1] = *row;
			continue;
		}
		machines->n++;
	}
	qsort(machines->all, machines->n, sizeof(*machines->all), machine_order);
	for (unsigned id = 0; id < JOBS_MAX; id++)
		if (controller->jobs[id])
			placed_each(&controller->jobs[id]->hosting, mark_busy, machines);
	for (unsigned i = 0; i < machines->n; i++)
		machines->hosts[i] = machines->all[i].host;
	return true;
}
