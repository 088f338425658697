/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that ask for a number of hosts: who waits, who has which (admission.h),
 * and until when. Hosts are a job's until it is ended, or until its ranks have
 * been there and are gone and nobody has a lease on it. Gone they are when there
 * is no sign of them and every aggregator of their plan lives and says that it
 * does not have them: who is merely out of reach keeps its hosts.
 */
#include "control/controller_internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADMIT_EVERY (NSEC_PER_SEC / 2) /* where somebody waits: hosts may have come */
#define JUDGE_EVERY (NSEC_PER_SEC / 5)
#define STATS_LAG (2 * NSEC_PER_SEC) /* what an agent says of its aggregator may be so old */
#define DEAD_NS (60 * NSEC_PER_SEC)  /* an aggregator that is silent for longer has no job */
#define AGAIN_NS (10 * NSEC_PER_SEC) /* since a start: whoever has a lease has said so again */

/* ---- hosts ---- */

/* A machine that takes jobs. */
struct machine_row {
	char where[TREE_NAME_MAX];
	const struct node *node;
	struct admission_host host;
};

struct machines {
	struct machine_row *all; /* sorted by address */
	struct admission_host *hosts;
	unsigned n;
};

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

/* Calls `each` for every address of a job's hosts, in the order of ranks. */
static void placed_each(const struct hosting *hosting,
                        void (*each)(void *context, const char *where, size_t length),
                        void *context)
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

static void machines_free(struct machines *machines)
{
	free(machines->all);
	free(machines->hosts);
}

static bool machines_make(const struct controller *controller, uint64_t now,
                          struct machines *machines)
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

/* ---- who gets hosts ---- */

static bool is_waiting(const struct job_entry *entry)
{
	return entry && entry->hosting.hosts && !entry->hosting.placed;
}

static int waiting_order(const void *a, const void *b)
{
	const struct job_entry *x = *(struct job_entry *const *)a,
			       *y = *(struct job_entry *const *)b;

	return x->hosting.ordinal < y->hosting.ordinal ? -1 : 1;
}

/* In their order; the caller gives the list up. NULL: nobody waits, or there is no memory. */
static struct job_entry **waiting_list(const struct controller *controller, unsigned *n)
{
	struct job_entry **list;

	*n = 0;
	for (unsigned id = 0; id < JOBS_MAX; id++)
		*n += is_waiting(controller->jobs[id]);
	list = *n ? calloc(*n, sizeof(*list)) : NULL;
	if (!list)
		return NULL;
	*n = 0;
	for (unsigned id = 0; id < JOBS_MAX; id++)
		if (is_waiting(controller->jobs[id]))
			list[(*n)++] = controller->jobs[id];
	qsort(list, *n, sizeof(struct job_entry *), waiting_order);
	return list;
}

static trib_status placement_store(struct controller *controller, const struct job_entry *entry,
                                   const char *placed)
{
	const struct placement_row row = { entry->job.id, entry->hosting.hosts,
		                           entry->hosting.per_host, entry->hosting.ordinal,
		                           placed };

	return store_put_placement(controller->store, &row);
}

/* Stored, and only then told. */
static bool job_place(struct controller *controller, struct job_entry *entry,
                      const struct machines *machines, const uint32_t *chosen, uint64_t now)
{
	size_t room = (size_t)entry->hosting.hosts * TREE_NAME_MAX + 1, used = 0;
	char *placed = calloc(1, room), names[256] = "";

	if (!placed) {
		log_error("job %u: no memory for its hosts", entry->job.id);
		return false;
	}
	for (uint32_t i = 0; i < entry->hosting.hosts; i++) {
		const struct machine_row *row = &machines->all[chosen[i]];
		size_t said = strlen(names);

		used += (size_t)snprintf(placed + used, room - used, "%s%s", i ? "," : "",
		                         row->where);
		snprintf(names + said, sizeof(names) - said, "%s%s", i ? ", " : "",
		         row->node->report.name);
	}
	if (placement_store(controller, entry, placed) != TRIB_OK) {
		log_error("job %u gets no hosts: %s", entry->job.id, trib_last_error());
		free(placed);
		return false;
	}
	entry->hosting.placed = placed;
	entry->hosting.placed_at = entry->hosting.heard_at = now;
	log_notice("job %u (%s) gets %u host%s: %s", entry->job.id, entry->job.name,
	           entry->hosting.hosts, entry->hosting.hosts > 1 ? "s" : "", names);
	return true;
}

static void admit_waiting(struct controller *controller, uint64_t now)
{
	unsigned n, admitted = 0;
	struct job_entry **waiting = waiting_list(controller, &n);
	struct machines machines = { 0 };
	uint32_t *wants = NULL, *chosen = NULL;

	controller->admit_at = now + ADMIT_EVERY;
	if (!waiting)
		return;
	wants = calloc(n, sizeof(*wants));
	if (machines_make(controller, now, &machines))
		chosen = calloc(machines.n + 1, sizeof(*chosen));
	if (wants && chosen) {
		const struct admission admission = { machines.hosts, machines.n,
			                             controller->placement, now };

		for (unsigned i = 0; i < n; i++)
			wants[i] = waiting[i]->hosting.hosts;
		if (admission_run(&admission, wants, n, chosen, &admitted) != TRIB_OK)
			log_error("jobs get no hosts: %s", trib_last_error());
	}
	for (unsigned i = 0, used = 0; i < admitted; used += wants[i++])
		if (!job_place(controller, waiting[i], &machines, chosen + used, now))
			break;
	machines_free(&machines);
	free(waiting);
	free(wants);
	free(chosen);
}

/* Why a job that waits has no hosts. */
static void say_why(const struct controller *controller, const struct job_entry *entry, char *out,
                    size_t size)
{
	struct machines machines;
	struct admission admission;
	uint32_t unused, busy;
	unsigned before = 0;

	for (unsigned id = 0; id < JOBS_MAX; id++)
		before += is_waiting(controller->jobs[id]) &&
		          controller->jobs[id]->hosting.ordinal < entry->hosting.ordinal;
	*out = '\0';
	if (machines_make(controller, clock_now(), &machines)) {
		admission = (struct admission){ .hosts = machines.hosts, .n = machines.n };
		unused = admission_count(&admission, HOST_FREE);
		busy = admission_count(&admission, HOST_BUSY);
		snprintf(out, size,
		         "%u host%s asked for; of %u that take jobs %u %s free, jobs have %u%s",
		         entry->hosting.hosts, entry->hosting.hosts > 1 ? "s are" : " is",
		         machines.n, unused, unused == 1 ? "is" : "are", busy,
		         unused + busy < machines.n ? ", and the others are silent or drained"
		                                    : "");
		if (before)
			snprintf(out + strlen(out), size - strlen(out), "; %u job%s before it",
			         before, before > 1 ? "s are" : " is");
	}
	machines_free(&machines);
}

trib_status admitting_ask(struct controller *controller, struct job_entry *entry, bool waits)
{
	uint64_t now = clock_now();
	struct machines machines;
	char why[SENTENCE_MAX];
	trib_status status;
	unsigned n = 0;

	if (machines_make(controller, now, &machines))
		n = machines.n;
	machines_free(&machines);
	if (entry->hosting.hosts > n)
		return status_fail(TRIB_ERR_REFUSED,
		                   "%u hosts are asked for, and %u machines take jobs: those whose "
		                   "tribd --join has a --rack",
		                   entry->hosting.hosts, n);
	entry->hosting.ordinal = ++controller->last_ordinal;
	if ((status = placement_store(controller, entry, "")) != TRIB_OK)
		return status;
	admit_waiting(controller, now);
	if (entry->hosting.placed)
		return TRIB_OK;
	say_why(controller, entry, why, sizeof(why));
	if (!waits)
		return status_fail(TRIB_ERR_REFUSED, "%s: it could wait for them (--wait)", why);
	log_notice("job %u (%s) waits: %s", entry->job.id, entry->job.name, why);
	return TRIB_OK;
}

trib_status admitting_load(struct controller *controller, struct job_entry *entry,
                           const struct placement_row *row)
{
	uint64_t now = clock_now();

	entry->hosting = (struct hosting){ .hosts = row->hosts,
		                           .per_host = row->per_host,
		                           .ordinal = row->ordinal,
		                           .placed_at = now,
		                           .heard_at = now,
		                           .lease_until = now + AGAIN_NS };
	if (row->ordinal > controller->last_ordinal)
		controller->last_ordinal = row->ordinal;
	if (*row->placed && !(entry->hosting.placed = strdup(row->placed)))
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for the jobs in the store");
	return TRIB_OK;
}

void admitting_end_job(struct controller *controller, struct job_entry *entry)
{
	if (entry->hosting.hosts)
		controller->admit_at = 0;
}

/* ---- until when ---- */

void admitting_lease(struct job_entry *entry, double lease_s, uint64_t now)
{
	entry->hosting.lease_until = lease_s > 0 ? now + (uint64_t)(lease_s * 1e9) : 0;
}

void admitting_hear(struct job_entry *entry, uint64_t now)
{
	if (!entry->hosting.hosts)
		return;
	entry->hosting.heard_at = now;
	entry->hosting.has_come = true;
}

void admitting_hear_node(struct controller *controller, const struct node *node, uint64_t now)
{
	const json_t *comms = node->detail;

	for (size_t i = 0; i < json_array_size(comms); i++) {
		const json_t *comm = json_array_get(comms, i);
		json_int_t job = json_integer_value(json_object_get(comm, "job"));
		const char *state = json_string_value(json_object_get(comm, "state"));

		if (job > 0 && job < JOBS_MAX && controller->jobs[job] && state &&
		    strcmp(state, "failed") != 0)
			admitting_hear(controller->jobs[job], now);
	}
}

/* Has every aggregator that could have it said a moment ago that it does not? */
static bool is_denied(const struct controller *controller, const struct job_entry *entry,
                      uint64_t now)
{
	for (const struct gathering_entry *at = entry->gatherings; at; at = at->next)
		for (unsigned i = 0; i < controller->nodes.n; i++) {
			const struct node *node = controller->nodes.all[i];

			if (node_state(node, now, &controller->limits) == NODE_SILENT &&
			    now < (node->beat_at ? node->beat_at : controller->started_at) +
			                    DEAD_NS &&
			    plan_has(at->gathering.plan, node->report.address))
				return false;
		}
	return true;
}

/* NULL: it is not over. */
static const char *why_over(struct controller *controller, struct job_entry *entry, uint64_t now)
{
	struct hosting *hosting = &entry->hosting;

	if (now < hosting->lease_until)
		return NULL;
	if (!hosting->placed)
		return hosting->lease_until ? "who waited for it is gone" : NULL;
	if (!hosting->has_come && !entry->gatherings)
		return now > hosting->placed_at + controller->start_within
		               ? "its ranks have not come (TRIB_START_WITHIN)"
		               : NULL;
	if (now < hosting->heard_at + STATS_LAG + controller->limits.dead_after ||
	    !is_denied(controller, entry, now))
		return NULL;
	return "its ranks are gone";
}

static void end_over(struct controller *controller, uint64_t now)
{
	for (unsigned id = 1; id < JOBS_MAX; id++) {
		struct job_entry *entry = controller->jobs[id];
		const char *why;

		why = entry && entry->hosting.hosts ? why_over(controller, entry, now) : NULL;
		if (!why)
			continue;
		log_notice("job %u (%s) is over: %s", id, entry->job.name, why);
		if (jobs_end(controller, (uint16_t)id) != TRIB_OK)
			log_error("%s", trib_last_error());
	}
}

void admitting_tick(struct controller *controller, uint64_t now)
{
	if (now >= controller->judge_at) {
		controller->judge_at = now + JUDGE_EVERY;
		end_over(controller, now);
	}
	if (now >= controller->admit_at)
		admit_waiting(controller, now);
}

/* ---- what is seen ---- */

struct check {
	const char *where;
	bool found;
};

static void check_one(void *context, const char *where, size_t length)
{
	struct check *check = context;

	check->found |= strlen(check->where) == length && !strncmp(check->where, where, length);
}

void admitting_check(const struct job_entry *entry, const struct gathering *gathering)
{
	for (uint64_t seats = entry->hosting.placed ? gathering->members : 0; seats;
	     seats &= seats - 1) {
		const struct seat *seat = &gathering->seats[__builtin_ctzll(seats)];
		struct check check = { seat->where, false };

		placed_each(&entry->hosting, check_one, &check);
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

void admitting_mark(const struct controller *controller, uint16_t *jobs)
{
	struct marks marks = { &controller->nodes, 0, jobs };

	for (unsigned id = 1; id < JOBS_MAX; id++) {
		marks.job = (uint16_t)id;
		if (controller->jobs[id])
			placed_each(&controller->jobs[id]->hosting, mark_one, &marks);
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

void admitting_to_json(const struct controller *controller, const struct job_entry *entry,
                       json_t *json)
{
	struct telling telling = { &controller->nodes, json_array() };
	char why[SENTENCE_MAX];

	if (!entry->hosting.hosts) {
		json_decref(telling.list);
		return;
	}
	placed_each(&entry->hosting, tell_one, &telling);
	json_object_set_new(json, "hosts", json_integer(entry->hosting.hosts));
	json_object_set_new(json, "per_host", json_integer(entry->hosting.per_host));
	json_object_set_new(json, "state",
	                    json_string(entry->hosting.placed ? "placed" : "waiting"));
	json_object_set_new(json, "placed", telling.list);
	if (entry->hosting.placed)
		return;
	say_why(controller, entry, why, sizeof(why));
	json_object_set_new(json, "why", json_string(why));
}
