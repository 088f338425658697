/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregators that jobs share: who shares which, what ranks say and are told
 * about turns (turns.h), and who gets the next one (share.h). All with the
 * controller's lock, in the desk's thread where packets are sent.
 */
#include "control/controller_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/parse.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALONE_OPS 4096u /* a job that has the aggregator for itself gets many at once */
#define AGREE_LEAST 1000000ull
#define AGREE_MOST 25000000ull /* who takes longer is told late */
#define EARLY_STEP 4000000ull
#define EARLY_MOST 40000000ull
#define DECIDE_REST 10u /* times as long as it took is it not looked at again who is next */
#define DECIDE_REST_MOST 10000000ull
#define FORGET_NS (30 * NSEC_PER_SEC)
#define FENCE_EVERY 20000000ull
#define IDLE_NS 250000000ull /* who does nothing with its turn loses it to others */

/* ---- shares ---- */

static struct sharing_group *group_find(struct controller *controller, const char *address)
{
	struct sharing_group *group = controller->groups;

	while (group && strcmp(group->address, address))
		group = group->next;
	return group;
}

static struct sharing_group *group_make(struct controller *controller, const char *address)
{
	struct sharing_group *group = group_find(controller, address);

	if (group)
		return group;
	group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	group->agree_ns = AGREE_LEAST;
	snprintf(group->address, sizeof(group->address), "%s", address);
	group->next = controller->groups;
	controller->groups = group;
	return group;
}

static struct sharer *sharer_of(struct turns_share *share)
{
	return (struct sharer *)share; /* its first part */
}

#define EACH_SHARER(sharer, group)                                              \
	for (struct sharer *sharer = sharer_of((group)->turns.shares), *after_; \
	     sharer && (after_ = sharer_of(sharer->share.next), true); sharer = after_)

static struct sharer *sharer_find(struct controller *controller, uint16_t job, uint64_t key,
                                  uint32_t generation, uint32_t star, struct sharing_group **in)
{
	for (struct sharing_group *group = controller->groups; group; group = group->next)
		EACH_SHARER(sharer, group)
	if (sharer->job == job && sharer->key == key && sharer->generation == generation &&
	    sharer->star == star) {
		*in = group;
		return sharer;
	}
	return NULL;
}

/* What older plans of the communicator had is over. `below`: generations. */
static void lose_older(struct controller *controller, uint16_t job, bool all_keys, uint64_t key,
                       uint32_t below)
{
	for (struct sharing_group *group = controller->groups; group; group = group->next)
		EACH_SHARER(sharer, group)
	if (sharer->job == job && (all_keys || sharer->key == key) && sharer->generation < below)
		turns_lose(&sharer->share);
}

/* What the communicator still holds of an older plan, if anything: one share at most. */
static const struct turns_share *older_held(const struct controller *controller, uint16_t job,
                                            uint64_t key)
{
	for (struct sharing_group *group = controller->groups; group; group = group->next)
		EACH_SHARER(sharer, group)
	if (sharer->job == job && sharer->key == key && sharer->share.held)
		return &sharer->share;
	return NULL;
}

static void forget_before(struct controller *controller, const struct turns_share *gone)
{
	for (struct sharing_group *group = controller->groups; group; group = group->next)
		EACH_SHARER(sharer, group)
	if (sharer->share.before == gone)
		sharer->share.before = NULL;
}

void sharing_end_job(struct controller *controller, uint16_t job)
{
	lose_older(controller, job, true, 0, UINT32_MAX);
}

struct sharer *sharing_of(struct controller *controller, const struct gathering_entry *entry)
{
	const struct gathering *gathering = &entry->gathering;
	struct sharing_group *group;
	struct sharer *sharer = sharer_find(controller, gathering->job, gathering->key,
	                                    gathering->generation, gathering->star, &group);

	return sharer && !sharer->share.lost ? sharer : NULL;
}

struct sharer *sharing_make(struct controller *controller, const struct job_entry *job,
                            const struct gathering *gathering, bool restored)
{
	char address[TREE_NAME_MAX];
	struct sharing_group *group;
	struct sharer *sharer;
	const struct turns_share *before;
	unsigned ranks = 0;

	if (!plan_shared(gathering->plan, address))
		return NULL;
	group = group_make(controller, address);
	sharer = group ? calloc(1, sizeof(*sharer)) : NULL;
	if (!sharer) {
		log_error("job %u shares %s, but there is no memory for that: it gets no turns",
		          job->job.id, address);
		return NULL;
	}
	for (uint64_t seats = gathering->members; seats; seats &= seats - 1)
		sharer->nonces[ranks++] = gathering->seats[__builtin_ctzll(seats)].nonce;
	before = older_held(controller, job->job.id, gathering->key);
	turns_add(&group->turns, &sharer->share, ranks, controller->session, restored, clock_now());
	sharer->share.before = before;
	sharer->heard_at = clock_now();
	sharer->job = job->job.id;
	sharer->cookie = job->cookie;
	sharer->key = gathering->key;
	sharer->generation = gathering->generation;
	sharer->star = gathering->star;
	return sharer;
}

void sharing_plan(struct controller *controller, const struct job_entry *job,
                  const struct gathering *gathering, bool restored)
{
	lose_older(controller, job->job.id, false, gathering->key, gathering->generation);
	sharing_make(controller, job, gathering, restored);
}

void sharing_free(struct controller *controller)
{
	while (controller->groups) {
		struct sharing_group *group = controller->groups;

		controller->groups = group->next;
		EACH_SHARER(sharer, group)
		free(sharer);
		free(group);
	}
}

/* ---- words ---- */

struct packet {
	struct wire_control header;
	struct wire_turn turn;
	struct wire_hop hop; /* of a MOVE */
};

void sharing_send(struct controller *controller, uint16_t job, uint64_t cookie,
                  const struct wire_turn *turn, const struct wire_hop *hop,
                  const struct udp_address *to)
{
	struct packet packet = { .header = { .type = WIRE_TURN, .cookie = cookie, .job = job },
		                 .turn = *turn };
	size_t bytes = hop ? sizeof(packet) : offsetof(struct packet, hop);

	if (hop)
		packet.hop = *hop;
	wire_seal(&packet, bytes);
	/* Lost or not sent is the same: it is said again. */
	sendto(controller->fd, &packet, bytes, MSG_DONTWAIT, (const void *)&to->storage,
	       to->length);
}

static void send_turn(struct controller *controller, const struct sharer *sharer,
                      struct wire_turn turn, const struct udp_address *to)
{
	turn.key = sharer->key;
	turn.peer_key = sharer->peer_key;
	turn.generation = sharer->generation;
	turn.star = sharer->star;
	sharing_send(controller, sharer->job, sharer->cookie, &turn, NULL, to);
}

static void say_all(struct controller *controller, struct sharer *sharer, uint64_t now)
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

/* Of one that is lost: its aggregator is told to end it, where that lives. True: it is over. */
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

/* ---- who is next ---- */

/* Of late, and what is common: once in a while a rank's core is busy elsewhere. */
static void note_agreed(struct sharing_group *group, uint64_t took)
{
	if (took > AGREE_MOST)
		took = AGREE_MOST;
	if (took < AGREE_LEAST)
		took = AGREE_LEAST;
	group->agree_ns += took / 8;
	group->agree_ns -= group->agree_ns / 8;
}

/* Who was asked too late is asked sooner the next time. */
static void note_early(struct share_job *told, bool refused)
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
	if (share->step == TURNS_REST && share->change > sharer->seen_change) {
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

/* It keeps the turn: nobody else wants it. */
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

/* A turn that is too long for one who is not alone, or of which nothing is made. */
static void shorten(struct sharer *sharer, uint64_t now)
{
	struct turns_share *share = &sharer->share;
	uint64_t next = turns_next(share);
	bool is_long = share->held_to > next + WIRE_TURN_OPS_MAX + 2, idle = is_idle(sharer, now);

	if (share->held && share->step == TURNS_REST && !share->lost && share->known &&
	    share->held_to > next + !idle && (is_long || idle))
		turns_cut(share, next + !idle, now);
}

/* What of it matters for who is next. */
static void tell_share(const struct sharing_group *group, struct sharer *sharer)
{
	const struct turns_share *share = &sharer->share;
	struct share_job *told = &sharer->told;

	told->next = turns_next(share);
	told->held = share->held;
	told->held_to = share->held_to;
	told->agree_ns = group->agree_ns;
	told->open = turns_is_open(share);
}

static void serve_many(struct controller *controller, struct sharing_group *group, uint64_t now)
{
	struct share_job *jobs[SHARERS_MAX];
	struct sharer *sharers[SHARERS_MAX], *chosen;
	struct share_move move;
	uint64_t began, rest;
	unsigned n = 0;
	bool is_any;

	EACH_SHARER(sharer, group)
	{
		shorten(sharer, now);
		if (n == SHARERS_MAX || sharer->share.leaving)
			continue;
		tell_share(group, sharer);
		jobs[n] = &sharer->told;
		sharers[n++] = sharer;
	}
	if (now < group->rests_until)
		return;
	began = clock_now();
	is_any = share_decide(jobs, n, controller->sharing, group->turns.capacity, now, &move);
	rest = DECIDE_REST * (clock_now() - began);
	group->rests_until = now + (rest < DECIDE_REST_MOST ? rest : DECIDE_REST_MOST);
	if (!is_any)
		return;
	chosen = sharers[move.job];
	if (!turns_may_give(&group->turns, &chosen->share))
		return;
	log_debug("job %u gets requests %" PRIu64 " to %" PRIu64 " at %s", chosen->job, move.from,
	          move.to, group->address);
	turns_give(&chosen->share, move.from, move.to, now);
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
		turns_tick(&sharer->share, now);
		if (*sharer->to && !sharer->share.lost)
			turns_release(&sharer->share, is_idle(sharer, now), now);
		note_held(group, sharer, now);
		if (sharer->share.lost ? fence(controller, group, sharer, now)
		                       : *sharer->to && shifting_end(controller, sharer, now)) {
			note_held(group, sharer, now);
			if (sharer->share.lost)
				shifting_lost(controller, sharer, now);
			turns_remove(&group->turns, &sharer->share);
			forget_before(controller, &sharer->share);
			free(sharer);
		}
	}
	if (count_sharers(group) == 1 && controller->sharing != SHARE_NONE)
		serve_alone(group, sharer_of(group->turns.shares), now);
	else if (group->turns.shares && controller->sharing != SHARE_NONE)
		serve_many(controller, group, now);
	EACH_SHARER(sharer, group)
	say_all(controller, sharer, now);
}

bool sharing_tick(struct controller *controller, uint64_t now)
{
	bool any = false;

	for (struct sharing_group *group = controller->groups; group; group = group->next) {
		group_serve(controller, group, now);
		any |= group->turns.shares != NULL;
	}
	return any;
}

/* ---- what comes ---- */

static void take_rhythm(struct sharer *sharer, const struct wire_turn *state, uint64_t now)
{
	struct share_job *told = &sharer->told;

	if (state->next != told->next)
		sharer->moved_at = now;
	told->ops = state->ops;
	memcpy(told->op, state + 1, state->ops * sizeof(told->op[0]));
	told->compute = (uint64_t)state->compute_us * 1000;
	share_learn(told);
	told->base = state->base;
	told->next = state->next;
	told->finished = state->finished;
	told->began_at = now - (uint64_t)state->age_us * 1000;
	told->busy_at = state->busy_us ? now - (uint64_t)state->busy_us * 1000 : 0;
	told->fast = sharer->share.held && !(state->flags & WIRE_TURN_DONE);
}

void sharing_take(struct controller *controller, const struct wire_control *header,
                  const struct udp_address *from)
{
	const struct wire_turn *turn = wire_payload(header);
	const struct job_entry *job = controller->jobs[header->job];
	struct sharing_group *group;
	struct sharer *sharer;
	uint64_t now = clock_now();

	sharer = sharer_find(controller, header->job, turn->key, turn->generation, turn->star,
	                     &group);
	if (!sharer || sharer->cookie != header->cookie) {
		/* Of a star that was left or lost, or of a plan that is over. */
		if (!job || job->cookie != header->cookie)
			controller->counts[DESK_DROPS]++;
		else if (turn->word == WIRE_TURN_STATE)
			shifting_hear(controller, header, from, now);
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
			take_rhythm(sharer, turn, now);
		if (!sharer->is_in && turns_is_joined(&sharer->share))
			shifting_joined(controller, sharer);
	} else {
		controller->counts[DESK_DROPS]++;
	}
	group_serve(controller, group, now);
}

/* ---- what is seen ---- */

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

json_t *sharing_to_json(const struct controller *controller)
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
	return json_pack("{s:s, s:o}", "policy", share_policy_name(controller->sharing), "groups",
	                 list);
}
