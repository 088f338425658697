/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that ask for a number of hosts: who waits, who has which (admission.h),
 * and until when. Hosts are a job's until it is ended, or until its ranks have
 * been there and are gone and nobody has a lease on it. Gone they are when there
 * is no sign of them and every aggregator of their plan has said since the last
 * one that it does not have them: who is merely out of reach keeps its hosts.
 */
#include "control/controller_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/placed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADMIT_EVERY (NSEC_PER_SEC / 2) /* where somebody waits: hosts may have come */
#define JUDGE_EVERY (NSEC_PER_SEC / 5)
#define GONE_NS NSEC_PER_SEC /* no sign of its ranks for so long, */
#define LINGER_NS                                                                                 \
	(5 * NSEC_PER_SEC)           /* or for so long where all said good-bye: others may follow \
	                              */
#define LATER_NS (NSEC_PER_SEC / 10) /* what is said of the time after that sign counts */
#define DEAD_NS (60 * NSEC_PER_SEC)  /* an aggregator that is silent for longer has no job */
#define AGAIN_NS (10 * NSEC_PER_SEC) /* since a start: whoever has a lease has said so again */

/* ---- who gets hosts ---- */

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

/* What is told to those who wait, as often as they ask. */
static void note_waiting(struct controller *controller, struct job_entry *const *waiting,
                         unsigned n, const struct machines *machines)
{
	uint32_t before = 0;

	memset(controller->hosts, 0, sizeof(controller->hosts));
	for (unsigned i = 0; i < machines->n; i++)
		controller->hosts[machines->hosts[i].state]++;
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
	struct admission_result result = { 0 };
	unsigned n;
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
		const struct admission admission = { .hosts = machines.hosts,
			                             .n = machines.n,
			                             .policy = controller->placement,
			                             .alpha = controller->alpha,
			                             .seed = now };

		for (unsigned i = 0; i < n; i++)
			wants[i] = waiting[i]->hosting.hosts;
		if (admission_run(&admission, wants, n, chosen, &result) != TRIB_OK)
			log_error("jobs get no hosts: %s", trib_last_error());
		if (result.is_cut && !controller->told_cut)
			log_warn("racks are so unlike in size that their last names do not count "
			         "when "
			         "jobs are placed");
		controller->told_cut = result.is_cut;
	}
	for (unsigned i = 0, used = 0; i < result.admitted; used += wants[i++])
		if (!job_place(controller, waiting[i], &machines, chosen + used, now))
			break;
	note_waiting(controller, waiting, n, &machines);
	machines_free(&machines);
	free(waiting);
	free(wants);
	free(chosen);
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
	admitting_why(controller, entry, why, sizeof(why));
	if (!waits)
		return status_fail(TRIB_ERR_REFUSED, "%s: it could wait for them (--wait)", why);
	log_notice("job %u (%s) waits: %s", entry->job.id, entry->job.name, why);
	return TRIB_OK;
}

trib_status admitting_load(struct controller *controller, struct job_entry *entry,
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
	if (now > entry->hosting.heard_at)
		entry->hosting.heard_at = now;
	entry->hosting.has_come = true;
}

void admitting_hear_node(struct controller *controller, const struct node *node)
{
	const json_t *comms = node->detail;

	for (size_t i = 0; i < json_array_size(comms); i++) {
		const json_t *comm = json_array_get(comms, i);
		json_int_t job = json_integer_value(json_object_get(comm, "job"));
		const char *state = json_string_value(json_object_get(comm, "state"));

		if (job > 0 && job < JOBS_MAX && controller->jobs[job] && state &&
		    strcmp(state, "failed") != 0)
			admitting_hear(controller->jobs[job], node->detail_at);
	}
}

/* Could this aggregator have the job, for all that is known? */
static bool may_have(const struct controller *controller, const struct job_entry *entry,
                     const struct node *node, uint64_t now)
{
	uint64_t last = node->beat_at ? node->beat_at : controller->started_at;

	switch (node_state(node, now, &controller->limits)) {
	case NODE_LEFT:
		return false;
	case NODE_SILENT:
		return now < last + DEAD_NS;
	default:
		return node->detail_at < entry->hosting.heard_at + LATER_NS;
	}
}

static bool is_denied(const struct controller *controller, const struct job_entry *entry,
                      uint64_t now)
{
	for (const struct gathering_entry *at = entry->gatherings; at; at = at->next) {
		const char *plan = at->gathering.plan;
		const struct node *node;

		while ((node = plan_node(&controller->nodes, &plan)))
			if (may_have(controller, entry, node, now))
				return false;
	}
	return true;
}

/* All ranks of the job's own communicator: then its next run may come. */
static bool have_left(const struct job_entry *entry)
{
	for (const struct gathering_entry *at = entry->gatherings; at; at = at->next)
		if (!at->gathering.key)
			return !(at->gathering.members & ~at->gathering.left);
	return false;
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
	if (now < hosting->heard_at + (have_left(entry) ? LINGER_NS : GONE_NS) ||
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
