/* SPDX-License-Identifier: Apache-2.0 */
#include "control/migration/migration.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/sharing/star_choice.h"
#include "control/sharing/star_migration.h"
#include "control/telemetry/probe_scheduler.h"
#include "control/telemetry/rank_telemetry.h"
#include "wire/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_EVERY 1000000000ull /* 1 s: shortest time between two judgements of a node */
/* 2 s: if a plan is late for this long, its nodes probe their links */
#define LATE_LASTED (2 * 1000000000ull)
#define LATE_AGAIN_LEAST (30 * 1000000000ull)
#define LATE_AGAIN_MOST (600 * 1000000000ull)

/* Is this the key by which aggregators know the communicator? Its epoch is any of its plans. */
static bool entry_has_key(struct membership_entry *entry, uint64_t key)
{
	const struct membership *membership = &entry->membership;

	if (entry->epoch && wire_key(membership->key, entry->epoch) == key)
		return true;
	for (uint32_t epoch = membership->generation; epoch; epoch--) {
		if (wire_key(membership->key, epoch) != key)
			continue;
		entry->epoch = epoch;
		return true;
	}
	return false;
}

/* The communicator that an aggregator reports; NULL: unknown, or its plan is not the newest. */
static struct membership_entry *entry_find(struct controller *controller, const json_t *comm,
                                           const char *address)
{
	json_int_t job = json_integer_value(json_object_get(comm, "job"));
	json_int_t generation = json_integer_value(json_object_get(comm, "generation"));
	const char *state = json_string_value(json_object_get(comm, "state"));
	const char *key = json_string_value(json_object_get(comm, "key"));
	struct job_entry *owner = job > 0 && job < JOBS_MAX ? controller->jobs[job] : NULL;

	if (!owner || !key || !state || strcmp(state, "running") != 0)
		return NULL;
	for (struct membership_entry *at = owner->memberships; at; at = at->next)
		if (at->membership.generation == generation &&
		    plan_has(at->membership.plan, address) &&
		    entry_has_key(at, strtoull(key, NULL, 16)))
			return at;
	return NULL;
}

/* A stay is logged once for each plan, a migration when it is decided. */
static void tell(const struct membership_entry *entry, const struct node *node,
                 enum migration_decision decision, bool about_node, const char *why)
{
	const struct membership *membership = &entry->membership;

	if (decision == MIGRATION_LEAVE && !about_node)
		log_notice("job %u gets a new plan instead of plan %u: %s", membership->job,
		           membership->generation, why);
	else
		log_notice("job %u %s node %s (%s): %s", membership->job,
		           decision == MIGRATION_LEAVE ? "leaves" : "stays at",
		           node->report.address, node->report.name, why);
}

static struct migration_policy policy_now(const struct controller *controller, uint64_t now)
{
	return (struct migration_policy){ .nodes = &controller->nodes,
		                          .limits = &controller->limits,
		                          .now = now,
		                          .exit_below = controller->exit_below,
		                          .children = controller->fan_in,
		                          .trees = controller->stripes };
}

/* A plan from the store counts as made when this controller started. */
static uint64_t made_at(const struct controller *controller, const struct membership_entry *entry)
{
	return entry->planned_at ? entry->planned_at : controller->started_at;
}

static struct running_plan running_plan_of(const struct controller *controller,
                                           const struct membership_entry *entry)
{
	struct running_plan running = { .plan = entry->membership.plan,
		                        .rate_bps = entry->verdict.rate_bps,
		                        .made_at = made_at(controller, entry),
		                        .share = entry->telemetry.share,
		                        .since = entry->telemetry.since,
		                        .tried_frugal = entry->tried_frugal,
		                        .links_changed_at = entry->telemetry.links_changed_at };

	membership_wish(&entry->membership, entry->membership.members, &running.wish);
	return running;
}

/*
 * If a plan has been late for a while, one of its links may be slow, and nobody knows it yet. There
 * may be other reasons, so links are not probed all the time. The pause between two probes is the
 * age of the plan, from LATE_AGAIN_LEAST (30 s) to LATE_AGAIN_MOST (600 s).
 */
static void recheck_links(struct controller *controller, struct membership_entry *entry,
                          uint64_t now)
{
	struct rank_telemetry *telemetry = &entry->telemetry;
	uint64_t again = clock_since(telemetry->rechecked_at, made_at(controller, entry));
	struct migration_policy policy;
	struct running_plan running;
	double rate_bps;

	again = again < LATE_AGAIN_LEAST  ? LATE_AGAIN_LEAST
	        : again > LATE_AGAIN_MOST ? LATE_AGAIN_MOST
	                                  : again;
	if (!controller->probes_links || !telemetry->late_since ||
	    now < telemetry->late_since + LATE_LASTED ||
	    (telemetry->rechecked_at && now < telemetry->rechecked_at + again))
		return;
	policy = policy_now(controller, now);
	running = running_plan_of(controller, entry);
	telemetry->rechecked_at = now;
	rate_bps = migration_rate(&policy, &running);
	if (!rank_health_late(telemetry->rate_bps, telemetry->share, rate_bps))
		return;
	log_notice("job %u: plan %u runs at %.0f Mb/s while it communicates, but %.0f Mb/s were "
	           "planned: its nodes probe their links",
	           entry->membership.job, entry->membership.generation,
	           telemetry->rate_bps / telemetry->share / 1e6, rate_bps / 1e6);
	probe_scheduler_recheck_plan(controller, &entry->membership, now);
}

/* Judges once for each change of links. A shared star is not in the plan's own trees. */
static enum migration_decision judge_links(const struct migration_policy *policy,
                                           const struct running_plan *running,
                                           struct membership_entry *entry, const struct node *node,
                                           char why[MIGRATION_WHY_MAX])
{
	char shared[TREE_NAME_MAX];
	enum migration_decision decision;

	if (plan_shared(running->plan, shared) && !strcmp(shared, node->report.address))
		return MIGRATION_NONE;
	decision = migration_judge_links(policy, running, why);
	if (decision != MIGRATION_NONE)
		entry->telemetry.links_changed_at = 0;
	return decision == MIGRATION_LEAVE ? decision : MIGRATION_NONE;
}

/*
 * Is the node unfit (*about_node), are other trees faster, or are servers such as this node not
 * worth their use?
 */
static enum migration_decision judge(struct controller *controller, struct membership_entry *entry,
                                     const struct node *node, uint64_t now, bool *about_node,
                                     char why[MIGRATION_WHY_MAX])
{
	const struct migration_policy policy = policy_now(controller, now);
	const struct running_plan running = running_plan_of(controller, entry);
	bool frugal = entry->membership.frugal;
	char root[TREE_NAME_MAX], shared[TREE_NAME_MAX];
	enum migration_decision decision = migration_judge_node(&policy, &running, node, why);

	*about_node = decision != MIGRATION_NONE;
	/* If the node serves only turns, the star migrates and the trees stay. */
	if (decision == MIGRATION_NONE && star_choice_better(controller, entry, node, now, root)) {
		star_migration_begin(controller, entry, root, "fewer jobs share it", now);
		return MIGRATION_NONE;
	}
	if (decision == MIGRATION_LEAVE && plan_shared(entry->membership.plan, shared) &&
	    !strcmp(shared, node->report.address) &&
	    star_choice_after_loss(controller, entry, now, root) && strcmp(shared, root) != 0) {
		star_migration_begin(controller, entry, root, why, now);
		return MIGRATION_NONE;
	}
	if (decision == MIGRATION_NONE)
		decision = judge_links(&policy, &running, entry, node, why);
	if (decision != MIGRATION_NONE || (!frugal && planner_is_ranks(&running.wish, node)))
		return decision;
	decision = migration_judge_servers(&policy, &running, why);
	if (decision != MIGRATION_LEAVE)
		return decision;
	entry->membership.frugal = !frugal;
	entry->tried_frugal |= frugal;
	return decision;
}

/* True: the node has to leave the trees of this plan. */
static bool decide(struct controller *controller, struct membership_entry *entry,
                   const struct node *node, uint64_t now, bool look)
{
	struct migration_note *note = &entry->migration;
	bool is_new = note->generation != entry->membership.generation;
	char why[MIGRATION_WHY_MAX];
	enum migration_decision decision;
	bool about_node;

	if (!is_new && note->leaves) /* one node is enough: the next plan avoids all unfit ones */
		return !strcmp(note->node, node->report.address);
	if (!look)
		return false;
	decision = judge(controller, entry, node, now, &about_node, why);
	if (decision == MIGRATION_NONE)
		return false;
	controller->counts[COUNT_MIGRATIONS] += decision == MIGRATION_LEAVE;
	if (is_new || decision == MIGRATION_LEAVE)
		tell(entry, node, decision, about_node, why);
	*note = (struct migration_note){ .generation = entry->membership.generation,
		                         .leaves = decision == MIGRATION_LEAVE,
		                         .about_node = about_node };
	snprintf(note->node, sizeof(note->node), "%s", node->report.address);
	snprintf(note->name, sizeof(note->name), "%s", node->report.name);
	snprintf(note->why, sizeof(note->why), "%s", why);
	return note->leaves;
}

json_t *migration_for_node(struct controller *controller, struct node *node, uint64_t now)
{
	bool look = now >= node->judged_at + LOOK_EVERY;
	const json_t *comms = node->detail;
	json_t *list = NULL;

	if (look)
		node->judged_at = now;
	for (size_t i = 0; i < json_array_size(comms); i++) {
		const json_t *comm = json_array_get(comms, i);
		struct membership_entry *entry = entry_find(controller, comm, node->report.address);

		if (!entry)
			continue;
		rank_telemetry_take(controller, entry, node, comm, now);
		recheck_links(controller, entry, now);
		if (!decide(controller, entry, node, now, look))
			continue;
		if (!list)
			list = json_array();
		json_array_append_new(list, json_pack("{s:O, s:O, s:O, s:s}", "job",
		                                      json_object_get(comm, "job"), "key",
		                                      json_object_get(comm, "key"), "generation",
		                                      json_object_get(comm, "generation"), "why",
		                                      entry->migration.why));
	}
	return list;
}
