/* SPDX-License-Identifier: Apache-2.0 */
#include "control/placement/host_lease.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/placement/host_table.h"
#include "control/placement/host_lease_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADMIT_EVERY (NSEC_PER_SEC / 2) /* 0.5 s: how often waiting jobs are looked at */
#define JUDGE_EVERY (NSEC_PER_SEC / 5) /* 0.2 s: how often leases are looked at */
#define GONE_NS NSEC_PER_SEC           /* 1 s without a sign of life: ranks may be gone */
/* 5 s instead of GONE_NS, if all ranks said goodbye: another run may follow. */
#define LINGER_NS (5 * NSEC_PER_SEC)
#define LATER_NS \
	(NSEC_PER_SEC / 10) /* 0.1 s: a report must be newer than the last sign of life by this */
#define DEAD_NS (60 * NSEC_PER_SEC)  /* 60 s: an aggregator that is silent for longer has no job */
#define AGAIN_NS (10 * NSEC_PER_SEC) /* 10 s after the start, owners have renewed their leases */

/* ---- giving hosts ---- */

static int waiting_order(const void *a, const void *b)
{
	const struct job_entry *x = *(struct job_entry *const *)a,
			       *y = *(struct job_entry *const *)b;

	return x->hosting.ordinal < y->hosting.ordinal ? -1 : 1;
}

/* Waiting jobs in their order; the caller frees the list. NULL: none waits, or no memory. */
static struct job_entry **waiting_list(const struct controller *controller, unsigned *n)
{
	struct job_entry **list;

	*n = 0;
	for (unsigned id = 0; id < JOBS_MAX; id++)
		*n += hosting_waits(controller->jobs[id]);
	list = *n ? calloc(*n, sizeof(void *)) : NULL;
	if (!list)
		return NULL;
	*n = 0;
	for (unsigned id = 0; id < JOBS_MAX; id++)
		if (hosting_waits(controller->jobs[id]))
			list[(*n)++] = controller->jobs[id];
	qsort(list, *n, sizeof(void *), waiting_order);
	return list;
}

static trib_status placement_store(struct controller *controller, const struct job_entry *entry,
                                   const char *placed)
{
	const struct placement_row row = { entry->job.id,
		                           entry->hosting.hosts,
		                           entry->hosting.per_host,
		                           entry->hosting.ordinal,
		                           entry->hosting.lease_until != 0,
		                           placed };

	return store_put_placement(controller->store, &row);
}

/* Stores the placement before anyone can see it. */
static bool job_place(struct controller *controller, struct job_entry *entry,
                      const struct host_table *table, const uint32_t *chosen, uint64_t now)
{
	size_t room = (size_t)entry->hosting.hosts * TREE_NAME_MAX + 1, used = 0;
	char *placed = calloc(1, room), names[256] = "";

	if (!placed) {
		log_error("job %u: no memory for its hosts", entry->job.id);
		return false;
	}
	for (uint32_t i = 0; i < entry->hosting.hosts; i++) {
		const struct host_row *row = &table->all[chosen[i]];
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

/* Updates what waiting jobs are told: counts of hosts, and their position in the queue. */
static void note_waiting(struct controller *controller, struct job_entry *const *waiting,
                         unsigned n, const struct host_table *table)
{
	uint32_t before = 0;

	memset(controller->hosts, 0, sizeof(controller->hosts));
	for (unsigned i = 0; i < table->n; i++)
		controller->hosts[table->hosts[i].state]++;
	for (unsigned i = 0; i < n; i++) {
		if (waiting[i]->hosting.placed) {
			controller->hosts[HOST_FREE] -= waiting[i]->hosting.hosts;
			controller->hosts[HOST_BUSY] += waiting[i]->hosting.hosts;
		} else {
			waiting[i]->hosting.before = before++;
		}
	}
}

static void admit_waiting(struct controller *controller, uint64_t now)
{
	struct host_policy_result result = { 0 };
	unsigned n;
	struct job_entry **waiting = waiting_list(controller, &n);
	struct host_table table = { 0 };
	uint32_t *wants = NULL, *chosen = NULL;

	controller->next_admission_at = now + ADMIT_EVERY;
	if (!waiting)
		return;
	wants = calloc(n, sizeof(*wants));
	if (host_table_make(controller, now, &table))
		chosen = calloc(table.n + 1, sizeof(*chosen));
	if (wants && chosen) {
		const struct host_policy_input input = { .hosts = table.hosts,
			                                 .n = table.n,
			                                 .policy = controller->placement,
			                                 .alpha = controller->alpha,
			                                 .seed = now };

		for (unsigned i = 0; i < n; i++)
			wants[i] = waiting[i]->hosting.hosts;
		if (host_policy_run(&input, wants, n, chosen, &result) != TRIB_OK)
			log_error("jobs get no hosts: %s", trib_last_error());
		if (result.is_cut && !controller->told_cut)
			log_warn("racks differ so much in size that their last names are ignored "
			         "when jobs are placed");
		controller->told_cut = result.is_cut;
	}
	for (unsigned i = 0, used = 0; i < result.admitted; used += wants[i++])
		if (!job_place(controller, waiting[i], &table, chosen + used, now))
			break;
	note_waiting(controller, waiting, n, &table);
	host_table_free(&table);
	free(waiting);
	free(wants);
	free(chosen);
}

trib_status host_lease_ask(struct controller *controller, struct job_entry *entry, bool waits)
{
	uint64_t now = clock_now();
	struct host_table table;
	char why[SENTENCE_MAX];
	trib_status status;
	unsigned n = 0;

	if (host_table_make(controller, now, &table))
		n = table.n;
	host_table_free(&table);
	if (entry->hosting.hosts > n)
		return status_fail(TRIB_ERR_REFUSED,
		                   "%u hosts are asked for, but only %u machines run ranks (those "
		                   "with tribd --join --rack)",
		                   entry->hosting.hosts, n);
	entry->hosting.ordinal = ++controller->last_ordinal;
	if ((status = placement_store(controller, entry, "")) != TRIB_OK)
		return status;
	admit_waiting(controller, now);
	if (entry->hosting.placed)
		return TRIB_OK;
	host_lease_why(controller, entry, why, sizeof(why));
	if (!waits)
		return status_fail(TRIB_ERR_REFUSED, "%s (with --wait the job would wait for them)",
		                   why);
	log_notice("job %u (%s) waits: %s", entry->job.id, entry->job.name, why);
	return TRIB_OK;
}

trib_status host_lease_load(struct controller *controller, struct job_entry *entry,
                            const struct placement_row *row)
{
	uint64_t now = clock_now();

	entry->hosting =
		(struct hosting){ .hosts = row->hosts,
		                  .per_host = row->per_host,
		                  .ordinal = row->ordinal,
		                  .placed_at = now,
		                  .heard_at = now,
		                  .lease_until = row->leased || *row->placed ? now + AGAIN_NS : 0 };
	if (row->ordinal > controller->last_ordinal)
		controller->last_ordinal = row->ordinal;
	if (*row->placed && !(entry->hosting.placed = strdup(row->placed)))
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for the jobs in the store");
	return TRIB_OK;
}

void host_lease_end_job(struct controller *controller, struct job_entry *entry)
{
	if (entry->hosting.hosts)
		controller->next_admission_at = 0;
}

/* ---- the end of a lease ---- */

void host_lease_renew(struct job_entry *entry, double lease_s, uint64_t now)
{
	entry->hosting.lease_until = lease_s > 0 ? now + (uint64_t)(lease_s * 1e9) : 0;
}

void host_lease_hear(struct job_entry *entry, uint64_t now)
{
	if (!entry->hosting.hosts)
		return;
	if (now > entry->hosting.heard_at)
		entry->hosting.heard_at = now;
	entry->hosting.has_come = true;
}

void host_lease_hear_node(struct controller *controller, const struct node *node)
{
	const json_t *comms = node->detail;

	for (size_t i = 0; i < json_array_size(comms); i++) {
		const json_t *comm = json_array_get(comms, i);
		json_int_t job = json_integer_value(json_object_get(comm, "job"));
		const char *state = json_string_value(json_object_get(comm, "state"));

		if (job > 0 && job < JOBS_MAX && controller->jobs[job] && state &&
		    strcmp(state, "failed") != 0)
			host_lease_hear(controller->jobs[job], node->detail_at);
	}
}

/* Could this aggregator still have the job, as far as is known? */
static bool may_have(const struct controller *controller, const struct job_entry *entry,
                     const struct node *node, uint64_t now)
{
	uint64_t last = node->heartbeat_at ? node->heartbeat_at : controller->started_at;

	switch (node_state(node, now, &controller->limits)) {
	case NODE_LEFT:
		return false;
	case NODE_SILENT:
		return now < last + DEAD_NS;
	default:
		return node->detail_at < entry->hosting.heard_at + LATER_NS;
	}
}

static bool all_deny(const struct controller *controller, const struct job_entry *entry,
                     uint64_t now)
{
	for (const struct membership_entry *at = entry->memberships; at; at = at->next) {
		const char *plan = at->membership.plan;
		const struct node *node;

		while ((node = plan_node(&controller->nodes, &plan)))
			if (may_have(controller, entry, node, now))
				return false;
	}
	return true;
}

/* Have all ranks of the job's own communicator said goodbye? Then another run may follow. */
static bool have_left(const struct job_entry *entry)
{
	for (const struct membership_entry *at = entry->memberships; at; at = at->next)
		if (!at->membership.key)
			return !(at->membership.members & ~at->membership.left);
	return false;
}

/* Why the job ends now; NULL: it does not. */
static const char *why_over(struct controller *controller, struct job_entry *entry, uint64_t now)
{
	struct hosting *hosting = &entry->hosting;

	if (now < hosting->lease_until)
		return NULL;
	if (!hosting->placed)
		return hosting->lease_until ? "its lease was not renewed" : NULL;
	if (!hosting->has_come && !entry->memberships)
		return now > hosting->placed_at + controller->start_within
		               ? "its ranks did not start in time (TRIB_START_WITHIN)"
		               : NULL;
	if (now < hosting->heard_at + (have_left(entry) ? LINGER_NS : GONE_NS) ||
	    !all_deny(controller, entry, now))
		return NULL;
	return "its ranks are gone";
}

bool host_lease_is_due(struct controller *controller, uint64_t now)
{
	if (now < controller->next_expiry_at)
		return false;
	controller->next_expiry_at = now + JUDGE_EVERY;
	return true;
}

uint16_t host_lease_next_ended(struct controller *controller, uint16_t after, uint64_t now,
                               const char **why)
{
	for (unsigned id = after + 1u; id < JOBS_MAX; id++) {
		struct job_entry *entry = controller->jobs[id];

		*why = entry && entry->hosting.hosts ? why_over(controller, entry, now) : NULL;
		if (*why)
			return (uint16_t)id;
	}
	return 0;
}

void host_lease_admit(struct controller *controller, uint64_t now)
{
	if (now >= controller->next_admission_at)
		admit_waiting(controller, now);
}
