/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that move while they run. An agent's beat says which communicators its
 * aggregator has; the answer says which of them it is to leave, as often as it
 * takes: nothing has to be remembered but what was decided for a plan.
 */
#include "control/controller_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/mover.h"
#include "wire/key.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_EVERY 1000000000ull        /* a plan is not made for nothing more often */
#define LATE_LASTED (2 * 1000000000ull) /* then links are tried, */
#define LATE_AGAIN_LEAST (30 * 1000000000ull)
#define LATE_AGAIN_MOST (600 * 1000000000ull)

/* Is this how aggregators know the communicator? It may have begun with any of its plans. */
static bool entry_has_key(struct gathering_entry *entry, uint64_t key)
{
	const struct gathering *gathering = &entry->gathering;

	if (entry->epoch && wire_key(gathering->key, entry->epoch) == key)
		return true;
	for (uint32_t epoch = gathering->generation; epoch; epoch--) {
		if (wire_key(gathering->key, epoch) != key)
			continue;
		entry->epoch = epoch;
		return true;
	}
	return false;
}

/* The communicator that an aggregator speaks of, where this plan is its newest. */
static struct gathering_entry *entry_find(struct controller *controller, const json_t *comm,
                                          const char *address)
{
	json_int_t job = json_integer_value(json_object_get(comm, "job"));
	json_int_t generation = json_integer_value(json_object_get(comm, "generation"));
	const char *state = json_string_value(json_object_get(comm, "state"));
	const char *key = json_string_value(json_object_get(comm, "key"));
	struct job_entry *owner = job > 0 && job < JOBS_MAX ? controller->jobs[job] : NULL;

	if (!owner || !key || !state || strcmp(state, "running") != 0)
		return NULL;
	for (struct gathering_entry *at = owner->gatherings; at; at = at->next)
		if (at->gathering.generation == generation &&
		    plan_has(at->gathering.plan, address) &&
		    entry_has_key(at, strtoull(key, NULL, 16)))
			return at;
	return NULL;
}

/* A stay is told once a plan, a move when it is decided. */
static void tell(const struct gathering_entry *entry, const struct node *node, enum move move,
                 const char *why)
{
	if (move == MOVE_LEAVES)
		log_notice("job %u leaves node %s (%s): %s", entry->gathering.job,
		           node->report.address, node->report.name, why);
	else
		log_notice("job %u stays at node %s (%s): %s", entry->gathering.job,
		           node->report.address, node->report.name, why);
}

struct mover moves_mover(const struct controller *controller, uint64_t now)
{
	return (struct mover){ .nodes = &controller->nodes,
		               .limits = &controller->limits,
		               .now = now,
		               .exit_below = controller->exit_below,
		               .children = controller->fan_in,
		               .trees = controller->stripes };
}

/* A plan from the store is as old as this controller. */
static uint64_t made_at(const struct controller *controller, const struct gathering_entry *entry)
{
	return entry->planned_at ? entry->planned_at : controller->started_at;
}

static struct moving moving_of(const struct controller *controller,
                               const struct gathering_entry *entry)
{
	struct moving moving = { .plan = entry->gathering.plan,
		                 .rate_bps = entry->verdict.rate_bps,
		                 .made_at = made_at(controller, entry),
		                 .share = entry->words.share,
		                 .since = entry->words.since,
		                 .has_tried = entry->has_tried,
		                 .links_at = entry->words.links_at };

	gathering_wish(&entry->gathering, entry->gathering.members, &moving.wish);
	return moving;
}

/*
 * A plan that has been late for a while: is a link slow of which that is not known? It may be late
 * for other reasons, so it is not asked for ever and ever, but after as long as the plan is old.
 */
static void doubt_links(struct controller *controller, struct gathering_entry *entry, uint64_t now)
{
	struct words *words = &entry->words;
	uint64_t again = clock_since(words->doubted_at, made_at(controller, entry));
	struct mover mover;
	struct moving moving;
	double rate_bps;

	again = again < LATE_AGAIN_LEAST  ? LATE_AGAIN_LEAST
	        : again > LATE_AGAIN_MOST ? LATE_AGAIN_MOST
	                                  : again;
	if (!controller->gauges || !words->late_since || now < words->late_since + LATE_LASTED ||
	    (words->doubted_at && now < words->doubted_at + again))
		return;
	mover = moves_mover(controller, now);
	moving = moving_of(controller, entry);
	words->doubted_at = now;
	rate_bps = mover_rate(&mover, &moving);
	if (!ranks_late(words->rate_bps, words->share, rate_bps))
		return;
	log_notice("job %u: plan %u runs at %.0f Mb/s while it communicates, and should at %.0f: "
	           "its nodes try their links",
	           entry->gathering.job, entry->gathering.generation,
	           words->rate_bps / words->share / 1e6, rate_bps / 1e6);
	gauging_doubt_plan(controller, &entry->gathering, now);
}

/* Ranks ask for a plan when one of their own trees' nodes leaves; once for each change of links. */
static enum move reckon(const struct mover *mover, const struct moving *moving,
                        struct gathering_entry *entry, const struct node *node, char why[MOVE_WHY])
{
	char shared[TREE_NAME_MAX];
	enum move move;

	if (plan_shared(moving->plan, shared) && !strcmp(shared, node->report.address))
		return MOVE_NOT;
	move = mover_reckon(mover, moving, why);
	if (move != MOVE_NOT)
		entry->words.links_at = 0;
	return move == MOVE_LEAVES ? move : MOVE_NOT;
}

/* Is something wrong with the node; or are servers, of which it is one, not worth their use? */
static enum move judge(struct controller *controller, struct gathering_entry *entry,
                       const struct node *node, uint64_t now, char why[MOVE_WHY])
{
	const struct mover mover = moves_mover(controller, now);
	const struct moving moving = moving_of(controller, entry);
	bool frugal = entry->gathering.frugal;
	char root[TREE_NAME_MAX], shared[TREE_NAME_MAX];
	enum move move = mover_judge(&mover, &moving, node, why);

	/* Where only turns are taken there, the trees can stay as they are. */
	if (move == MOVE_NOT && rooting_moves(controller, entry, node, now, root)) {
		shifting_begin(controller, entry, root, "so fewer jobs share one", now);
		return MOVE_NOT;
	}
	if (move == MOVE_LEAVES && plan_shared(entry->gathering.plan, shared) &&
	    !strcmp(shared, node->report.address) && rooting_again(controller, entry, now, root) &&
	    strcmp(shared, root) != 0) {
		shifting_begin(controller, entry, root, why, now);
		return MOVE_NOT;
	}
	if (move == MOVE_NOT)
		move = reckon(&mover, &moving, entry, node, why);
	if (move != MOVE_NOT || (!frugal && planner_is_ranks(&moving.wish, node)))
		return move;
	move = mover_weigh(&mover, &moving, why);
	if (move != MOVE_LEAVES)
		return move;
	entry->gathering.frugal = !frugal;
	entry->has_tried |= frugal;
	return move;
}

/* True: the node is to leave the trees of this plan. */
static bool decide(struct controller *controller, struct gathering_entry *entry,
                   const struct node *node, uint64_t now, bool look)
{
	struct move_note *note = &entry->move;
	bool is_new = note->generation != entry->gathering.generation;
	char why[MOVE_WHY];
	enum move move;

	if (!is_new && note->leaves) /* and what comes next does without any that should */
		return !strcmp(note->node, node->report.address);
	if (!look)
		return false;
	move = judge(controller, entry, node, now, why);
	if (move == MOVE_NOT)
		return false;
	controller->counts[DESK_MOVES] += move == MOVE_LEAVES;
	if (is_new || move == MOVE_LEAVES)
		tell(entry, node, move, why);
	*note = (struct move_note){ .generation = entry->gathering.generation,
		                    .leaves = move == MOVE_LEAVES };
	snprintf(note->node, sizeof(note->node), "%s", node->report.address);
	snprintf(note->name, sizeof(note->name), "%s", node->report.name);
	snprintf(note->why, sizeof(note->why), "%s", why);
	return note->leaves;
}

json_t *moves_for(struct controller *controller, struct node *node, uint64_t now)
{
	bool look = now >= node->judged_at + LOOK_EVERY;
	const json_t *comms = node->detail;
	json_t *list = NULL;

	if (look)
		node->judged_at = now;
	for (size_t i = 0; i < json_array_size(comms); i++) {
		const json_t *comm = json_array_get(comms, i);
		struct gathering_entry *entry = entry_find(controller, comm, node->report.address);

		if (!entry)
			continue;
		words_take(controller, entry, node, comm, now);
		doubt_links(controller, entry, now);
		if (!decide(controller, entry, node, now, look))
			continue;
		if (!list)
			list = json_array();
		json_array_append_new(list, json_pack("{s:O, s:O, s:O, s:s}", "job",
		                                      json_object_get(comm, "job"), "key",
		                                      json_object_get(comm, "key"), "generation",
		                                      json_object_get(comm, "generation"), "why",
		                                      entry->move.why));
	}
	return list;
}

void moves_note(struct gathering_entry *entry, const char *format, ...)
{
	struct plan_note *note = &entry->history[entry->n_history++ % HISTORY_MAX];
	va_list args;

	*note = (struct plan_note){ .generation = entry->gathering.generation,
		                    .made_at = time(NULL) };
	va_start(args, format);
	vsnprintf(note->why, sizeof(note->why), format, args);
	va_end(args);
}

void moves_note_plan(struct gathering_entry *entry, uint64_t now)
{
	const struct gathering *gathering = &entry->gathering;
	const struct move_note *move = &entry->move;

	entry->planned_at = now;
	words_clear(&entry->words);
	if (move->leaves && move->generation + 1 == gathering->generation)
		moves_note(entry, "node %s (%s) left: %s", move->name, move->node, move->why);
	else if (gathering->generation > 1)
		moves_note(entry, "ranks asked: plan %u was over or broken",
		           gathering->generation - 1);
	else
		moves_note(entry, "all ranks had come");
}
