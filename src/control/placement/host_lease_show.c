/* SPDX-License-Identifier: Apache-2.0 */
#include "control/placement/host_lease_show.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/placement/host_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void host_lease_why(const struct controller *controller, const struct job_entry *entry, char *out,
                    size_t size)
{
	const uint32_t *hosts = controller->hosts;
	uint32_t before = entry->hosting.before;

	snprintf(out, size, "%u host%s asked for; %u of %u hosts %s free, jobs have %u%s",
	         entry->hosting.hosts, entry->hosting.hosts > 1 ? "s are" : " is", hosts[HOST_FREE],
	         hosts[HOST_FREE] + hosts[HOST_BUSY] + hosts[HOST_AWAY],
	         hosts[HOST_FREE] == 1 ? "is" : "are", hosts[HOST_BUSY],
	         hosts[HOST_AWAY] ? ", and the others are silent or drained" : "");
	if (before)
		snprintf(out + strlen(out), size - strlen(out), "; %u job%s ahead of it", before,
		         before > 1 ? "s wait" : " waits");
}

void host_lease_count(const struct controller *controller, uint64_t now, uint32_t *hosts,
                      unsigned *waiting)
{
	struct host_table table;

	*waiting = 0;
	memset(hosts, 0, HOST_STATES_END * sizeof(*hosts));
	for (unsigned id = 0; id < JOBS_MAX; id++)
		*waiting += hosting_waits(controller->jobs[id]);
	if (host_table_make(controller, now, &table))
		for (unsigned i = 0; i < table.n; i++)
			hosts[table.hosts[i].state]++;
	host_table_free(&table);
}

struct check {
	const char *where;
	bool found;
};

static void check_one(void *context, const char *where, size_t length)
{
	struct check *check = context;

	check->found |= strlen(check->where) == length && !strncmp(check->where, where, length);
}

void host_lease_check(const struct job_entry *entry, const struct membership *membership)
{
	bool looks = entry->hosting.placed && !membership->key;

	for (uint64_t seats = looks ? membership->members : 0; seats; seats &= seats - 1) {
		const struct seat *seat = &membership->seats[__builtin_ctzll(seats)];
		struct check check = { seat->where, false };

		host_table_each(&entry->hosting, check_one, &check);
		if (!check.found)
			log_warn("job %u: rank %d asks from %s, which is not one of its hosts: %s",
			         entry->job.id, __builtin_ctzll(seats), seat->where,
			         entry->hosting.placed);
	}
}

struct marks {
	const struct nodes *nodes;
	uint16_t job, *jobs;
};

static void mark_one(void *context, const char *where, size_t length)
{
	struct marks *marks = context;
	char text[TREE_NAME_MAX];
	unsigned n, first;

	snprintf(text, sizeof(text), "%.*s", (int)length, where);
	first = nodes_at(marks->nodes, text, &n);
	for (unsigned i = first; i < first + n; i++)
		marks->jobs[i] = marks->job;
}

void host_lease_mark(const struct controller *controller, uint16_t *jobs)
{
	struct marks marks = { &controller->nodes, 0, jobs };

	for (unsigned id = 1; id < JOBS_MAX; id++) {
		marks.job = (uint16_t)id;
		if (controller->jobs[id])
			host_table_each(&controller->jobs[id]->hosting, mark_one, &marks);
	}
}

struct telling {
	const struct nodes *nodes;
	json_t *list;
};

static void tell_one(void *context, const char *where, size_t length)
{
	struct telling *telling = context;
	const struct node *node = NULL;
	char text[TREE_NAME_MAX];
	unsigned n, first;

	snprintf(text, sizeof(text), "%.*s", (int)length, where);
	first = nodes_at(telling->nodes, text, &n);
	if (n)
		node = telling->nodes->all[first];
	json_array_append_new(telling->list, json_pack("{s:s, s:s, s:s}", "address", text, "name",
	                                               node ? node->report.name : text, "rack",
	                                               node ? node->report.rack : ""));
}

void host_lease_to_json(const struct controller *controller, const struct job_entry *entry,
                        json_t *json)
{
	struct telling telling = { &controller->nodes, json_array() };
	char why[SENTENCE_MAX];

	if (!entry->hosting.hosts) {
		json_decref(telling.list);
		return;
	}
	host_table_each(&entry->hosting, tell_one, &telling);
	json_object_set_new(json, "hosts", json_integer(entry->hosting.hosts));
	json_object_set_new(json, "per_host", json_integer(entry->hosting.per_host));
	json_object_set_new(json, "state",
	                    json_string(entry->hosting.placed ? "placed" : "waiting"));
	json_object_set_new(json, "placed", telling.list);
	if (entry->hosting.placed)
		return;
	host_lease_why(controller, entry, why, sizeof(why));
	json_object_set_new(json, "why", json_string(why));
}
