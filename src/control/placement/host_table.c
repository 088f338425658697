/* SPDX-License-Identifier: Apache-2.0 */
#include "control/placement/host_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int host_order(const void *a, const void *b)
{
	return strcmp(((const struct host_row *)a)->where, ((const struct host_row *)b)->where);
}

static struct host_row *host_find(const struct host_table *table, const char *where, size_t length)
{
	struct host_row key;

	snprintf(key.where, sizeof(key.where), "%.*s", (int)length, where);
	return bsearch(&key, table->all, table->n, sizeof(key), host_order);
}

void host_table_each(const struct hosting *hosting,
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
	struct host_row *row = host_find(context, where, length);

	if (row)
		row->host.state = HOST_BUSY;
}

void host_table_free(struct host_table *table)
{
	free(table->all);
	free(table->hosts);
}

bool host_table_make(const struct controller *controller, uint64_t now, struct host_table *table)
{
	const struct nodes *nodes = &controller->nodes;

	*table = (struct host_table){ calloc(nodes->n + 1, sizeof(*table->all)),
		                      calloc(nodes->n + 1, sizeof(*table->hosts)), 0 };
	if (!table->all || !table->hosts)
		return false;
	for (unsigned i = 0; i < nodes->n; i++) {
		const struct node *node = nodes->all[i];
		struct host_row *row = &table->all[table->n];
		const char *where;
		size_t length = node_where(node, &where);

		if (!length || !*node->report.rack)
			continue;
		snprintf(row->where, sizeof(row->where), "%.*s", (int)length, where);
		row->node = node;
		row->host = (struct host_candidate){
			node->report.rack, node_state(node, now, &controller->limits) <= NODE_LOADED
						   ? HOST_FREE
						   : HOST_AWAY
		};
		/* Several aggregators of one host are adjacent. */
		if (table->n && !strcmp(row[-1].where, row->where)) {
			if (row->host.state == HOST_FREE)
				row[-1] = *row;
			continue;
		}
		table->n++;
	}
	qsort(table->all, table->n, sizeof(*table->all), host_order);
	for (unsigned id = 0; id < JOBS_MAX; id++)
		if (controller->jobs[id])
			host_table_each(&controller->jobs[id]->hosting, mark_busy, table);
	for (unsigned i = 0; i < table->n; i++)
		table->hosts[i] = table->all[i].host;
	return true;
}
