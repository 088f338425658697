/* SPDX-License-Identifier: Apache-2.0 */
#include "control/sharing/turn_server.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/sharing/share_table.h"
#include "control/sharing/star_migration.h"
#include "control/sharing/turn_packet.h"
#include "wire/parse.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALONE_OPS 4096u /* requests of one turn, if a job has the aggregator for itself */
#define AGREE_LEAST 1000000ull
#define AGREE_MOST 25000000ull /* 25 ms: ranks that take longer get their turn late */
#define EARLY_STEP 4000000ull
#define EARLY_MOST 40000000ull
#define DECIDE_REST 10u              /* pause after a decision, in multiples of its duration */
#define DECIDE_REST_MOST 10000000ull /* 10 ms: longest such pause */
#define FORGET_NS (30 * NSEC_PER_SEC)
#define FENCE_EVERY 20000000ull
#define IDLE_NS 250000000ull /* 250 ms: a job that does not use its turn loses it to others */

/* ---- messages ---- */

static void send_turn(struct controller *controller, const struct sharer *sharer,
                      struct wire_turn turn, const struct udp_address *to)
{
	turn.key = sharer->key;
	turn.peer_key = sharer->peer_key;
	turn.generation = sharer->generation;
	turn.star = sharer->star;
	turn_packet_send(controller, sharer->job, sharer->cookie, &turn, NULL, to);
}

static void send_all(struct controller *controller, struct sharer *sharer, uint64_t now)
{
	struct wire_turn turn;

	for (unsigned i = 0; i < sharer->share.ranks; i++) {
		struct turns_rank *rank = &sharer->share.rank[i];

		if (!sharer->from[i].length || now < rank->told_at + TURNS_AGAIN_NS ||
		    !turns_say(&sharer->share, i, &turn))
			continue;
		rank->told_at = now;
		send_turn(controller, sharer, turn, &sharer->from[i]);
	}
}

/* A lost share: tells its aggregator to end it. True: no turn is left. */
static bool fence(struct controller *controller, const struct sharing_group *group,
                  struct sharer *sharer, uint64_t now)
{
	const struct node *node = nodes_find(&controller->nodes, group->address);
	struct wire_turn turn = { .word = WIRE_TURN_FENCE, .session = controller->session };
	struct udp_address to;

	if (!sharer->share.held)
		return true;
	if (!node || node_state(node, now, &controller->limits) >= NODE_SILENT) {
		turns_fenced(&sharer->share);
		return true;
	}
	if (now < sharer->fence_at + FENCE_EVERY ||
	    udp_resolve(group->address, UDP_DEFAULT_PORT, &to) != TRIB_OK)
		return false;
	if (!sharer->fence_at)
		log_info("job %u loses its turn at %s: a rank is silent, has failed or has left",
		         sharer->job, group->address);
	sharer->fence_at = now;
	send_turn(controller, sharer, turn, &to);
	return false;
}

/* ---- turns ---- */

/* A smoothed value: now and then a rank's core is busy with something else. */
static void note_agreed(struct sharing_group *group, uint64_t took)
{
	if (took > AGREE_MOST)
		took = AGREE_MOST;
	if (took < AGREE_LEAST)
		took = AGREE_LEAST;
	group->agree_ns += took / 8;
	group->agree_ns -= group->agree_ns / 8;
}

/* A job that was asked too late is asked sooner next time. */
static void note_early(struct turn_job *told, bool refused)
{
	if (refused && told->early_ns < EARLY_MOST)
		told->early_ns += EARLY_STEP;
	else if (!refused)
		told->early_ns -= told->early_ns / 16;
}

static void note_held(struct sharing_group *group, struct sharer *sharer, uint64_t now)
{
	struct turns_share *share = &sharer->share;

	if (share->held && !sharer->held_at) {
		sharer->held_at = now;
	} else if (!share->held && sharer->held_at) {
		sharer->told.used += now - sharer->held_at;
		group->held_ns += now - sharer->held_at;
		sharer->held_at = 0;
	}
	if (share->held_change != sharer->counted_change) {
		sharer->counted_change = share->held_change;
		group->given++;
		note_agreed(group, now - share->asked_at);
	}
	if (share->step == TURNS_IDLE && share->change > sharer->seen_change) {
		bool refused = share->change != share->held_change;

		group->refused += refused;
		note_early(&sharer->told, refused);
		sharer->seen_change = share->change;
	}
}

static unsigned count_sharers(const struct sharing_group *group)
{
	unsigned n = 0;

	EACH_SHARER(sharer, group)
	n++;
	return n;
}

/* The only sharer keeps the turn. */
static void serve_alone(struct sharing_group *group, struct sharer *sharer, uint64_t now)
{
	struct turns_share *share = &sharer->share;
	uint64_t next = turns_next(share);

	if (!turns_may_give(&group->turns, share) || !share->rank[0].heard ||
	    (share->held && share->held_to > next + ALONE_OPS / 2))
		return;
	turns_give(share, next + 1, next + 1 + ALONE_OPS, now);
}

static bool is_idle(const struct sharer *sharer, uint64_t now)
{
	return !sharer->told.busy_at && now > sharer->moved_at + IDLE_NS &&
	       now > sharer->held_at + IDLE_NS;
}

/* Cuts a turn that is too long for a shared aggregator, or that is not used. */
static void shorten(struct sharer *sharer, uint64_t now)
{
	struct turns_share *share = &sharer->share;
	uint64_t next = turns_next(share);
	bool is_long = share->held_to > next + WIRE_TURN_OPS_MAX + 2, idle = is_idle(sharer, now);

	if (share->held && share->step == TURNS_IDLE && !share->lost && share->known &&
	    share->held_to > next + !idle && (is_long || idle))
		turns_cut(share, next + !idle, now);
}

/* Updates the input of turn_policy_decide. */
static void update_job(const struct sharing_group *group, struct sharer *sharer)
{
	const struct turns_share *share = &sharer->share;
	struct turn_job *told = &sharer->told;

	told->next = turns_next(share);
	told->held = share->held;
	told->held_to = share->held_to;
	told->agree_ns = group->agree_ns;
	told->open = turns_is_open(share);
}

static void serve_many(struct controller *controller, struct sharing_group *group, uint64_t now)
{
	struct turn_job *jobs[SHARERS_MAX];
	struct sharer *sharers[SHARERS_MAX], *chosen;
	struct turn_grant grant;
	uint64_t began, rest;
	unsigned n = 0;
	bool is_any;

	EACH_SHARER(sharer, group)
	{
		shorten(sharer, now);
		if (n == SHARERS_MAX || sharer->share.leaving)
			continue;
		update_job(group, sharer);
		jobs[n] = &sharer->told;
		sharers[n++] = sharer;
	}
	if (now < group->idle_until)
		return;
	began = clock_now();
	is_any = turn_policy_decide(jobs, n, controller->turn_policy, group->turns.capacity, now,
	                            &grant);
	rest = DECIDE_REST * (clock_now() - began);
	group->idle_until = now + (rest < DECIDE_REST_MOST ? rest : DECIDE_REST_MOST);
	if (!is_any)
		return;
	chosen = sharers[grant.job];
	if (!turns_may_give(&group->turns, &chosen->share))
		return;
	log_debug("job %u gets requests %" PRIu64 " to %" PRIu64 " at %s", chosen->job, grant.from,
	          grant.to, group->address);
	turns_give(&chosen->share, grant.from, grant.to, now);
}

/* A long TRIB_BEAT says that processes may be late: then ranks may be silent for longer, too. */
static uint64_t lease_of(const struct controller *controller)
{
	uint64_t beats = 2 * controller->heartbeat_ns;

	return beats > TURNS_LEASE_NS ? beats : TURNS_LEASE_NS;
}

static void group_serve(struct controller *controller, struct sharing_group *group, uint64_t now)
{
	const struct node *node = nodes_find(&controller->nodes, group->address);

	if (node)
		group->turns.capacity = node->report.capacity;
	EACH_SHARER(sharer, group)
	{
		if (now > sharer->heard_at + FORGET_NS)
			turns_lose(&sharer->share);
		turns_tick(&sharer->share, now, lease_of(controller));
		if (*sharer->to && !sharer->share.lost)
			turns_release(&sharer->share, is_idle(sharer, now), now);
		note_held(group, sharer, now);
		if (sharer->share.lost
		            ? fence(controller, group, sharer, now)
		            : *sharer->to && star_migration_end(controller, sharer, now)) {
			note_held(group, sharer, now);
			if (sharer->share.lost)
				star_migration_lost(controller, sharer, now);
			share_table_remove(controller, group, sharer);
		}
	}
	if (count_sharers(group) == 1 && controller->turn_policy != TURN_POLICY_NONE)
		serve_alone(group, (struct sharer *)group->turns.shares, now);
	else if (group->turns.shares && controller->turn_policy != TURN_POLICY_NONE)
		serve_many(controller, group, now);
	EACH_SHARER(sharer, group)
	send_all(controller, sharer, now);
}

bool turn_server_tick(struct controller *controller, uint64_t now)
{
	bool any = false;

	for (struct sharing_group *group = controller->groups; group; group = group->next) {
		group_serve(controller, group, now);
		any |= group->turns.shares != NULL;
	}
	return any;
}

/* ---- packets ---- */

static void take_profile(struct sharer *sharer, const struct wire_turn *state, uint64_t now)
{
	struct turn_job *told = &sharer->told;

	if (state->next != told->next)
		sharer->moved_at = now;
	told->ops = state->ops;
	memcpy(told->op, state + 1, state->ops * sizeof(told->op[0]));
	told->compute = (uint64_t)state->compute_us * 1000;
	turn_policy_learn(told);
	told->base = state->base;
	told->next = state->next;
	told->finished = state->finished;
	told->began_at = now - (uint64_t)state->age_us * 1000;
	told->busy_at = state->busy_us ? now - (uint64_t)state->busy_us * 1000 : 0;
	told->fast = sharer->share.held && !(state->flags & WIRE_TURN_DONE);
}

void turn_server_take(struct controller *controller, const struct wire_control *header,
                      const struct udp_address *from)
{
	const struct wire_turn *turn = wire_payload(header);
	const struct job_entry *job = controller->jobs[header->job];
	struct sharing_group *group;
	struct sharer *sharer;
	uint64_t now = clock_now();

	sharer = share_table_find(controller, header->job, turn->key, turn->generation, turn->star,
	                          &group);
	if (!sharer || sharer->cookie != header->cookie) {
		/* A former star, or a former plan. */
		if (!job || job->cookie != header->cookie)
			controller->counts[COUNT_DROPS]++;
		else if (turn->word == WIRE_TURN_STATE)
			star_migration_hear(controller, header, from, now);
		return;
	}
	if (turn->word == WIRE_TURN_FENCED) {
		group->fenced += sharer->share.lost && sharer->share.held;
		turns_fenced(&sharer->share);
	} else if (turn->word == WIRE_TURN_STATE && turn->rank < sharer->share.ranks &&
	           turn->nonce == sharer->nonces[turn->rank]) {
		sharer->from[turn->rank] = *from;
		if (turn->rank == 0)
			sharer->heard_at = now;
		sharer->peer_key = turn->peer_key;
		if (turns_hear(&sharer->share, turn->rank, turn, now) && turn->rank == 0)
			take_profile(sharer, turn, now);
		if (!sharer->is_in && turns_is_joined(&sharer->share))
			star_migration_joined(controller, sharer);
	} else {
		controller->counts[COUNT_DROPS]++;
	}
	group_serve(controller, group, now);
}

/* ---- JSON ---- */

static json_t *sharer_to_json(const struct sharer *sharer, uint64_t now)
{
	uint64_t used = sharer->told.used + (sharer->held_at ? now - sharer->held_at : 0);
	char key[20];

	snprintf(key, sizeof(key), "%" PRIx64, sharer->key);
	return json_pack("{s:i, s:s, s:i, s:i, s:i, s:i, s:b, s:b, s:i, s:f, s:I, s:I}", "job",
	                 (int)sharer->job, "key", key, "generation", (int)sharer->generation,
	                 "star", (int)sharer->star, "ranks", (int)sharer->share.ranks, "joining",
	                 __builtin_popcountll(sharer->share.joining), "holds",
	                 (int)sharer->share.held, "known", (int)sharer->share.known,
	                 "step_requests", (int)sharer->told.ops, "held_s", (double)used / 1e9,
	                 "next", (json_int_t)turns_next(&sharer->share), "to",
	                 (json_int_t)sharer->share.held_to);
}

json_t *turn_server_to_json(const struct controller *controller)
{
	json_t *list = json_array();
	uint64_t now = clock_now();

	for (const struct sharing_group *group = controller->groups; group; group = group->next) {
		json_t *sharers = json_array();

		EACH_SHARER(sharer, group)
		json_array_append_new(sharers, sharer_to_json(sharer, now));
		json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:f, s:I, s:I, s:I, s:o}",
		                                      "aggregator", group->address, "capacity",
		                                      (int)group->turns.capacity, "holders",
		                                      (int)turns_holders(&group->turns), "agree_s",
		                                      (double)group->agree_ns / 1e9, "given",
		                                      (json_int_t)group->given, "refused",
		                                      (json_int_t)group->refused, "fenced",
		                                      (json_int_t)group->fenced, "jobs", sharers));
	}
	return json_pack("{s:s, s:o}", "policy", turn_policy_name(controller->turn_policy),
	                 "groups", list);
}
