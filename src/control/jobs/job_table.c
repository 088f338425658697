/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs and their communicators, in memory as they are in the store. */
#include "control/jobs/job_table.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/jobs/job_state.h"
#include "control/placement/host_lease.h"
#include "control/sharing/share_table.h"
#include "control/telemetry/rank_telemetry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The jobs have changed. */
static void roster_drop(struct controller *controller)
{
	json_decref(controller->roster);
	controller->roster = NULL;
}

static struct job_entry *job_add(struct controller *controller, const struct job *job)
{
	struct job_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->job = *job;
	entry->cookie = secret_cookie(&controller->secret, job->id);
	roster_drop(controller);
	controller->jobs[job->id] = entry;
	return entry;
}

static void job_free(struct job_entry *entry)
{
	while (entry->memberships) {
		struct membership_entry *next = entry->memberships->next;

		free(entry->memberships);
		entry->memberships = next;
	}
	free(entry->hosting.placed);
	free(entry);
}

/* ---- loading ---- */

static trib_status no_memory(void)
{
	return status_fail(TRIB_ERR_NO_MEMORY, "no memory for the jobs in the store");
}

static trib_status load_job(void *context, const struct job *job)
{
	return job_add(context, job) ? TRIB_OK : no_memory();
}

static trib_status load_placement(void *context, const struct placement_row *row)
{
	struct controller *controller = context;

	return controller->jobs[row->job]
	               ? host_lease_load(controller, controller->jobs[row->job], row)
	               : TRIB_OK;
}

static trib_status load_membership(void *context, const struct membership *membership,
                                   const struct plan_verdict *verdict)
{
	struct controller *controller = context;
	struct job_entry *job = controller->jobs[membership->job];
	struct membership_entry *entry =
		job ? job_table_membership(controller, job, membership->key) : NULL;

	if (!entry)
		return no_memory();
	entry->membership = *membership;
	entry->verdict = *verdict;
	/* Ranks may still be at work: aggregators will report them. */
	for (unsigned i = 0; i < SEATS_MAX; i++)
		entry->membership.seats[i].seen_at = clock_now();
	share_table_take_plan(controller, job, membership, true);
	return TRIB_OK;
}

/* The node counts as silent until its first heartbeat. */
static trib_status load_node(void *context, const struct node *stored)
{
	struct controller *controller = context;
	struct node *node = nodes_add(&controller->nodes, stored->report.address);

	if (!node)
		return no_memory();
	node->report = stored->report;
	node->left = stored->left;
	node->drained = stored->drained;
	return TRIB_OK;
}

trib_status job_table_load(struct controller *controller)
{
	const struct store_loader loader = { load_job, load_placement, load_membership, load_node,
		                             controller };
	trib_status status = store_last_job(controller->store, &controller->last_job);

	return status == TRIB_OK ? store_load(controller->store, &loader) : status;
}

void job_table_free(struct controller *controller)
{
	for (unsigned i = 0; i < JOBS_MAX; i++)
		if (controller->jobs[i])
			job_free(controller->jobs[i]);
	roster_drop(controller);
}

/* ---- making and ending ---- */

trib_status job_table_add(struct controller *controller, const struct job *wish,
                          struct job_entry **out)
{
	struct job job = *wish;
	trib_status status;
	unsigned tries = 0;

	/* Id 0 means no job. */
	for (job.id = (uint16_t)(controller->last_job + 1); !job.id || controller->jobs[job.id];
	     job.id++)
		if (++tries == JOBS_MAX)
			return status_fail(TRIB_ERR_REFUSED, "the limit of %u jobs is reached",
			                   JOBS_MAX - 1);
	if ((status = store_put_job(controller->store, &job)) != TRIB_OK)
		return status;
	controller->last_job = job.id;
	*out = job_add(controller, &job);
	return *out ? TRIB_OK : no_memory();
}

trib_status job_table_end(struct controller *controller, uint16_t id)
{
	trib_status status = store_drop_job(controller->store, id);

	if (status != TRIB_OK)
		return status;
	share_table_end_job(controller, id);
	host_lease_end_job(controller, controller->jobs[id]);
	job_free(controller->jobs[id]);
	controller->jobs[id] = NULL;
	roster_drop(controller);
	return TRIB_OK;
}

/* Jobs whose ranks have left are kept for a while: they may run again. */
static void end_old(struct controller *controller, uint64_t now)
{
	for (unsigned id = 1; id < JOBS_MAX; id++) {
		struct job_entry *entry = controller->jobs[id];

		if (!entry || entry->hosting.hosts) /* see host_lease_next_ended() */
			continue;
		if (job_state(entry, now) != JOB_ENDED)
			entry->ended_at = 0;
		else if (!entry->ended_at)
			entry->ended_at = now;
		else if (now >= entry->ended_at + controller->keep_ended) {
			log_info("job %u (%s) has ended: its ranks have left", id, entry->job.name);
			if (job_table_end(controller, (uint16_t)id) != TRIB_OK)
				log_error("%s", trib_last_error());
		}
	}
}

void job_table_tick(struct controller *controller, uint64_t now)
{
	const char *why;

	if (host_lease_is_due(controller, now)) {
		end_old(controller, now);
		for (uint16_t id = 0; (id = host_lease_next_ended(controller, id, now, &why));) {
			log_notice("job %u (%s) has ended: %s", id, controller->jobs[id]->job.name,
			           why);
			if (job_table_end(controller, id) != TRIB_OK)
				log_error("%s", trib_last_error());
		}
	}
	host_lease_admit(controller, now);
}

/* ---- the roster ---- */

static json_t *roster_make(const struct controller *controller)
{
	json_t *live = json_array();

	for (unsigned id = 1; id < JOBS_MAX; id++) {
		unsigned first = id;

		while (id < JOBS_MAX && controller->jobs[id])
			id++;
		if (id > first)
			json_array_append_new(live, json_pack("[i, i]", (int)first, (int)(id - 1)));
	}
	return json_pack("{s:i, s:o}", "last", (int)controller->last_job, "live", live);
}

json_t *job_table_roster(struct controller *controller)
{
	if (!controller->roster)
		controller->roster = roster_make(controller);
	return json_deep_copy(controller->roster); /* another thread prints it */
}

/* ---- communicators ---- */

/* Communicators of trib_split end silently: the one that asked longest ago makes room. */
static void forget_oldest(struct controller *controller, struct job_entry *job)
{
	struct membership_entry **oldest = NULL, *gone;

	for (struct membership_entry **at = &job->memberships; *at; at = &(*at)->next)
		if ((*at)->membership.key && (!oldest || (*at)->asked_at < (*oldest)->asked_at))
			oldest = at;
	if (!oldest)
		return;
	gone = *oldest;
	store_drop_membership(controller->store, job->job.id, gone->membership.key);
	*oldest = gone->next;
	free(gone);
	job->n_memberships--;
}

struct membership_entry *job_table_membership(struct controller *controller, struct job_entry *job,
                                              uint64_t key)
{
	struct membership_entry *entry = job->memberships;

	while (entry && entry->membership.key != key)
		entry = entry->next;
	if (entry)
		return entry;
	if (job->n_memberships == MEMBERSHIPS_MAX)
		forget_oldest(controller, job);
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	/* The ranks of a split tell its size themselves. */
	rank_telemetry_clear(&entry->telemetry);
	membership_start(&entry->membership, job->job.id, key, job->job.policy,
	                 key ? 0 : job->job.size, job->job.min);
	entry->next = job->memberships;
	job->memberships = entry;
	job->n_memberships++;
	return entry;
}
