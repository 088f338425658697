/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs and their gatherings, in memory as they are in the store. */
#include "control/controller_internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEN_NS NSEC_PER_SEC /* a rank at work speaks at least twice within it */

static struct job_entry *job_add(struct controller *controller, const struct job *job)
{
	struct job_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->job = *job;
	entry->cookie = secret_cookie(&controller->secret, job->id);
	controller->jobs[job->id] = entry;
	return entry;
}

static void job_free(struct job_entry *entry)
{
	while (entry->gatherings) {
		struct gathering_entry *next = entry->gatherings->next;

		free(entry->gatherings);
		entry->gatherings = next;
	}
	free(entry->hosting.placed);
	free(entry);
}

/* ---- from the store ---- */

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
	               ? admitting_load(controller, controller->jobs[row->job], row)
	               : TRIB_OK;
}

static trib_status load_gathering(void *context, const struct gathering *gathering,
                                  const struct plan_verdict *verdict)
{
	struct controller *controller = context;
	struct job_entry *job = controller->jobs[gathering->job];
	struct gathering_entry *entry =
		job ? jobs_gathering(controller, job, gathering->key) : NULL;

	if (!entry)
		return no_memory();
	entry->gathering = *gathering;
	entry->verdict = *verdict;
	/* Who was at work may still be: aggregators will say. */
	for (unsigned i = 0; i < SEATS_MAX; i++)
		entry->gathering.seats[i].seen_at = clock_now();
	sharing_plan(controller, job, gathering, true);
	return TRIB_OK;
}

/* It is silent until it beats. */
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

trib_status jobs_load(struct controller *controller)
{
	const struct store_visitor visitor = { load_job, load_placement, load_gathering, load_node,
		                               controller };
	trib_status status = store_last_job(controller->store, &controller->last_job);

	return status == TRIB_OK ? store_load(controller->store, &visitor) : status;
}

void jobs_free(struct controller *controller)
{
	for (unsigned i = 0; i < JOBS_MAX; i++)
		if (controller->jobs[i])
			job_free(controller->jobs[i]);
}

/* ---- making and ending ---- */

trib_status jobs_make(struct controller *controller, const struct job *wish, struct job_entry **out)
{
	struct job job = *wish;
	trib_status status;
	unsigned tries = 0;

	/* 0 is for questions about no job. */
	for (job.id = (uint16_t)(controller->last_job + 1); !job.id || controller->jobs[job.id];
	     job.id++)
		if (++tries == JOBS_MAX)
			return status_fail(TRIB_ERR_REFUSED, "there are %u jobs, no more fit",
			                   JOBS_MAX - 1);
	if ((status = store_put_job(controller->store, &job)) != TRIB_OK)
		return status;
	controller->last_job = job.id;
	*out = job_add(controller, &job);
	return *out ? TRIB_OK : no_memory();
}

trib_status jobs_end(struct controller *controller, uint16_t id)
{
	trib_status status = store_drop_job(controller->store, id);

	if (status != TRIB_OK)
		return status;
	sharing_end_job(controller, id);
	admitting_end_job(controller, controller->jobs[id]);
	job_free(controller->jobs[id]);
	controller->jobs[id] = NULL;
	return TRIB_OK;
}

/* ---- gatherings ---- */

/* Splits come and go without a word: the one that nobody has asked for longest makes room. */
static void forget_oldest(struct controller *controller, struct job_entry *job)
{
	struct gathering_entry **oldest = NULL, *gone;

	for (struct gathering_entry **at = &job->gatherings; *at; at = &(*at)->next)
		if ((*at)->gathering.key && (!oldest || (*at)->asked_at < (*oldest)->asked_at))
			oldest = at;
	if (!oldest)
		return;
	gone = *oldest;
	store_drop_gathering(controller->store, job->job.id, gone->gathering.key);
	*oldest = gone->next;
	free(gone);
	job->n_gatherings--;
}

struct gathering_entry *jobs_gathering(struct controller *controller, struct job_entry *job,
                                       uint64_t key)
{
	struct gathering_entry *entry = job->gatherings;

	while (entry && entry->gathering.key != key)
		entry = entry->next;
	if (entry)
		return entry;
	if (job->n_gatherings == GATHERINGS_MAX)
		forget_oldest(controller, job);
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	/* A split is of some ranks: how many, they say themselves. */
	words_clear(&entry->words);
	gathering_start(&entry->gathering, job->job.id, key, job->job.policy,
	                key ? 0 : job->job.size, job->job.min);
	entry->next = job->gatherings;
	job->gatherings = entry;
	job->n_gatherings++;
	return entry;
}

trib_status jobs_leave(struct controller *controller, struct job_entry *job, uint64_t nonce)
{
	struct gathering_entry *entry = job->gatherings;
	struct gathering before;
	trib_status status;

	while (entry && entry->gathering.key)
		entry = entry->next;
	if (!entry)
		return TRIB_OK;
	before = entry->gathering;
	gathering_leave(&entry->gathering, nonce, WIRE_POSITION_MASK);
	if (entry->gathering.left == before.left)
		return TRIB_OK;
	status = store_put_left(controller->store, &entry->gathering);
	if (status != TRIB_OK) {
		log_error("a good-bye is not taken: %s", trib_last_error());
		entry->gathering = before;
	}
	return status;
}

#define AWAITS_NS                                                                      \
	(3 * 1000000000ull) /* at most, for what links of nodes carry that just joined \
	                     */

struct making {
	struct controller *controller;
	struct gathering_entry *entry;
	const struct planner *planner;
};

/* A job's first plan can wait a little for what is about to be known. */
static bool first_waits(const struct making *making)
{
	struct gathering_entry *entry = making->entry;
	uint64_t now = making->planner->now;

	if (entry->gathering.generation ||
	    (entry->awaits_since && now > entry->awaits_since + AWAITS_NS) ||
	    !gauging_awaited(making->controller, now))
		return false;
	if (!entry->awaits_since)
		entry->awaits_since = now;
	return true;
}

static trib_status make_plan(void *context, const struct plan_wish *wish, char out[PLAN_TEXT_MAX])
{
	const struct making *making = context;

	if (first_waits(making))
		return TRIB_IN_PROGRESS;
	return planner_plan(making->planner, wish, out);
}

trib_status jobs_ask(struct controller *controller, struct gathering_entry *entry,
                     const struct ask *ask, uint64_t now, struct answer *answer)
{
	const struct job_entry *job = controller->jobs[entry->gathering.job];
	struct rooting rooting = { controller, entry, now };
	struct plan_verdict verdict;
	struct planner planner = { .nodes = &controller->nodes,
		                   .limits = &controller->limits,
		                   .now = now,
		                   .verdict = &verdict,
		                   .children = controller->fan_in,
		                   .trees = controller->stripes,
		                   .root = rooting_choose,
		                   .context = &rooting };
	struct making making = { controller, entry, &planner };
	const struct world world = { .now = now,
		                     .seen_ns = SEEN_NS + controller->limits.dead_after,
		                     .plan = make_plan,
		                     .context = &making };
	struct gathering before = entry->gathering;
	trib_status status;

	entry->asked_at = now;
	gathering_ask(&entry->gathering, ask, &world, answer);
	if (!answer->changed)
		return TRIB_OK;
	status = store_put_gathering(controller->store, &entry->gathering, &verdict);
	if (status != TRIB_OK) {
		log_error("a plan is not given out: %s", trib_last_error());
		entry->gathering = before;
		return status;
	}
	entry->verdict = verdict;
	if (job) {
		sharing_plan(controller, job, &entry->gathering, false);
		admitting_check(job, &entry->gathering);
	}
	moves_note_plan(entry, now);
	log_info("job %u: plan %u for %u ranks: %s", entry->gathering.job,
	         entry->gathering.generation, answer->size, entry->gathering.plan);
	return TRIB_OK;
}
