/* SPDX-License-Identifier: Apache-2.0 */
#include "control/jobs/plan_server.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/placement/host_lease_show.h"
#include "control/sharing/share_table.h"
#include "control/sharing/star_choice.h"
#include "control/state/plan_history.h"
#include "control/telemetry/probe_scheduler.h"
#include "control/telemetry/rank_telemetry.h"

#include <stdio.h>

#define SEEN_NS NSEC_PER_SEC         /* a rank at work is heard at least twice within this time */
#define AWAITS_NS (3 * NSEC_PER_SEC) /* longest wait of a first plan for link probes */

trib_status plan_server_leave(struct controller *controller, struct job_entry *job, uint64_t nonce)
{
	struct membership_entry *entry = job->memberships;
	struct membership before;
	trib_status status;

	while (entry && entry->membership.key)
		entry = entry->next;
	if (!entry)
		return TRIB_OK;
	before = entry->membership;
	membership_leave(&entry->membership, nonce, WIRE_POSITION_MASK);
	if (entry->membership.left == before.left)
		return TRIB_OK;
	status = store_put_left(controller->store, &entry->membership);
	if (status != TRIB_OK) {
		controller->unstored.count++; /* the rank repeats it */
		if (tally_due(&controller->unstored, clock_now()))
			log_error("a goodbye could not be stored: %s", trib_last_error());
		entry->membership = before;
	}
	return status;
}

struct making {
	struct controller *controller;
	struct membership_entry *entry;
	const struct planner *planner;
	char why_ring[SENTENCE_MAX]; /* "": the plan has trees */
};

/* A first plan waits up to AWAITS_NS for link probes that are due soon. */
static bool first_waits(const struct making *making)
{
	struct membership_entry *entry = making->entry;
	uint64_t now = making->planner->now;

	if (entry->membership.generation ||
	    (entry->first_plan_waits_since && now > entry->first_plan_waits_since + AWAITS_NS) ||
	    !probe_scheduler_awaited(making->controller, now))
		return false;
	if (!entry->first_plan_waits_since)
		entry->first_plan_waits_since = now;
	return true;
}

static trib_status make_plan(void *context, const struct plan_wish *wish, char out[PLAN_TEXT_MAX])
{
	struct making *making = context;
	trib_status status;

	if (first_waits(making))
		return TRIB_IN_PROGRESS;
	status = planner_plan(making->planner, wish, out);
	if (status == TRIB_OK && ring_seats_are(out))
		snprintf(making->why_ring, sizeof(making->why_ring), "%s", trib_last_error());
	return status;
}

/* A plan that cannot be stored is not made. */
static trib_status no_plan(void *context, const struct plan_wish *wish, char out[PLAN_TEXT_MAX])
{
	(void)context;
	(void)wish;
	(void)out;
	return TRIB_IN_PROGRESS;
}

static bool job_rings(const struct job_entry *job)
{
	const struct membership_entry *entry = job ? job->memberships : NULL;

	while (entry && entry->membership.key)
		entry = entry->next;
	return entry && ring_seats_are(entry->membership.plan);
}

/* A node of the plan that gives no sign of life, or has left; NULL: none. */
static const struct node *lost_node(const struct controller *controller, const char *plan,
                                    uint64_t now)
{
	const struct node *node;

	while ((node = plan_node(&controller->nodes, &plan))) {
		enum node_state state = node_state(node, now, &controller->limits);

		if (state == NODE_SILENT || state == NODE_LEFT)
			return node;
	}
	return NULL;
}

/* Why ranks of the plan `before` asked for the next one. */
static void find_cause(const struct controller *controller, const struct membership *before,
                       const struct membership *after, uint64_t now, char *out, size_t size)
{
	const struct node *node = lost_node(controller, before->plan, now);
	uint64_t gone = before->members & ~after->members, left = gone & before->left;
	char ranks[300];

	if (membership_is_over(before))
		snprintf(out, size, "the job started again: the ranks of plan %u had left",
		         before->generation);
	else if (gone & ~left)
		snprintf(out, size, "%s was lost",
		         seats_describe(before, gone & ~left, ranks, sizeof(ranks)));
	else if (gone)
		snprintf(out, size, "%s had left",
		         seats_describe(before, gone, ranks, sizeof(ranks)));
	else if (node)
		snprintf(out, size, "node %s (%s) was lost", node->report.name,
		         node->report.address);
	else if (after->members & ~before->members)
		snprintf(out, size, "%s came",
		         seats_describe(after, after->members & ~before->members, ranks,
		                        sizeof(ranks)));
	else
		snprintf(out, size, "its ranks gave up plan %u, or called trib_regroup",
		         before->generation);
}

static void note_plan(struct membership_entry *entry, const char *cause, const char *why_ring)
{
	plan_history_note_plan(entry, cause);
	if (*why_ring)
		plan_history_note(entry, "among the ranks: %s", why_ring);
	log_info("job %u: plan %u for %d ranks: %s", entry->membership.job,
	         entry->membership.generation, __builtin_popcountll(entry->membership.members),
	         entry->membership.plan);
}

trib_status plan_server_ask(struct controller *controller, struct membership_entry *entry,
                            const struct ask *ask, uint64_t now, struct answer *answer)
{
	const struct job_entry *job = controller->jobs[entry->membership.job];
	struct star_choice choice = { controller, entry, now };
	struct plan_verdict verdict;
	struct planner planner = { .nodes = &controller->nodes,
		                   .limits = &controller->limits,
		                   .now = now,
		                   .verdict = &verdict,
		                   .children = controller->fan_in,
		                   .trees = controller->stripes,
		                   .root = star_choice_for_plan,
		                   .context = &choice };
	struct making making = { controller, entry, &planner, "" };
	struct world world = { .now = now,
		               .seen_ns = SEEN_NS + controller->limits.dead_after,
		               .plan = make_plan,
		               .context = &making,
		               .rings = job_rings(job) };
	struct membership before = entry->membership;
	char cause[SENTENCE_MAX];
	trib_status status;

	entry->asked_at = now;
	membership_ask(&entry->membership, ask, &world, answer);
	if (!answer->changed)
		return TRIB_OK;
	status = store_put_membership(controller->store, &entry->membership, &verdict);
	if (status != TRIB_OK) {
		controller->unstored.count++; /* ranks ask again and again */
		if (tally_due(&controller->unstored, now))
			log_error("a plan is not given out, because it could not be stored: %s",
			          trib_last_error());
		/* The rank has asked all the same: the next one to ask tries to store the plan
		 * again. */
		entry->membership = before;
		world.plan = no_plan;
		membership_ask(&entry->membership, ask, &world, answer);
		return status;
	}
	entry->verdict = verdict;
	if (job) {
		share_table_take_plan(controller, job, &entry->membership, false);
		host_lease_check(job, &entry->membership);
	}
	entry->planned_at = now;
	rank_telemetry_clear(&entry->telemetry);
	find_cause(controller, &before, &entry->membership, now, cause, sizeof(cause));
	note_plan(entry, cause, making.why_ring);
	return TRIB_OK;
}
