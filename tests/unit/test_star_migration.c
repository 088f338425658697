/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that migrate between shared aggregators, explored exhaustively, with the controller's own
 * decisions (star_policy.h) and turns (turn_protocol.h). Jobs come, end, take turns and are lost.
 * They release their turn, migrate, and join or fail to join; or they get a new plan. In every
 * reachable state: no aggregator serves more jobs than its capacity, no job holds two turns, and
 * each running job can get its turn whatever the others do. test_star.c has the ranks' side.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/policy/star_policy.h"
#include "control/policy/turn_protocol.h"
#include "short.h"

#include <stdlib.h>
#include <string.h>

#define JOBS 3u
#define SITES 2u
#define OLD 2u        /* old shares of a job that may await fencing; more than ever occur */
#define GIVES 1u      /* turns granted to a share; then it is idle */
#define SHIFTS_MAX 2u /* migrations of any job, with all trees or without */

/* In the first mix the second job can have the second one only; else all can have both. */
static const struct star_policy_site sites[SITES] = { { "a", 1 }, { "", 1 } };
static const char *const racks[][JOBS] = { { "a/1", "b", "a/2" }, { "a", "a", "a" } };
static unsigned mix;

enum stage { NOT_YET, ASKS, RUNS, OVER };

struct part {
	struct turns_share share;
	bool there;
	uint8_t site, gives;
	bool uses;  /* the truth: its requests may be in flight at the aggregator */
	bool off;   /* it was lost, and the rank has confirmed that nothing is left of it */
	uint8_t to; /* 1 + destination after its turn; 0: it stays */
};

struct state {
	struct turns turns[SITES];
	uint8_t shifts;
	struct {
		enum stage stage;
		uint8_t wanted, order;      /* order: the job with the newest plan is the highest */
		struct part parts[1 + OLD]; /* the newest first */
	} jobs[JOBS];
};

/* ---- states ---- */

#define SHARE_BYTES (offsetof(struct turns_share, rank) + sizeof(struct turns_rank))

static unsigned part_index(const struct state *state, const struct turns_share *share)
{
	return (unsigned)(((const char *)share - (const char *)state) / sizeof(uint64_t));
}

/* A pointer between shares, translated to the copy. */
static const struct turns_share *moved(const struct state *from, struct state *to,
                                       const struct turns_share *share)
{
	return share ? (const struct turns_share *)((char *)to +
	                                            ((const char *)share - (const char *)from))
	             : NULL;
}

static void state_copy(struct state *to, const struct state *from)
{
	memcpy(to->turns, from->turns, sizeof(to->turns));
	to->shifts = from->shifts;
	for (unsigned s = 0; s < SITES; s++)
		to->turns[s].shares = (struct turns_share *)moved(from, to, from->turns[s].shares);
	for (unsigned j = 0; j < JOBS; j++) {
		to->jobs[j].stage = from->jobs[j].stage;
		to->jobs[j].wanted = from->jobs[j].wanted;
		to->jobs[j].order = from->jobs[j].order;
		for (unsigned p = 0; p <= OLD; p++) {
			const struct part *old = &from->jobs[j].parts[p];
			struct part *new = &to->jobs[j].parts[p];

			memcpy(&new->share, &old->share, SHARE_BYTES);
			new->share.next = (struct turns_share *)moved(from, to, old->share.next);
			new->share.before = moved(from, to, old->share.before);
			new->there = old->there;
			new->site = old->site;
			new->gives = old->gives;
			new->uses = old->uses;
			new->off = old->off;
			new->to = old->to;
		}
	}
}

/* A hash of everything that the future depends on. Growing numbers count by their differences. */
static uint64_t state_key(const struct state *state)
{
	uint64_t key = 0xcbf29ce484222325;

#define ADD(x) (key = (key ^ (uint64_t)(x)) * 0x100000001b3)
	ADD(state->shifts);
	for (unsigned j = 0; j < JOBS; j++) {
		unsigned older = 0;

		for (unsigned k = 0; k < JOBS; k++)
			older += state->jobs[k].order < state->jobs[j].order;
		ADD(state->jobs[j].stage);
		ADD(state->jobs[j].stage == ASKS ? state->jobs[j].wanted : 0);
		ADD(state->jobs[j].stage == RUNS ? older : 0);
		for (unsigned p = 0; p <= OLD; p++) {
			const struct part *part = &state->jobs[j].parts[p];
			const struct turns_share *share = &part->share;

			ADD(part->there << 1 | part->off);
			if (!part->there)
				continue;
			ADD(part->to << 8 | part->site << 4 | part->gives);
			/* After a refusal, the turn is too short to be cut. */
			ADD(share->joining << 8 | !!share->refused << 1 | share->leaving);
			ADD(share->step << 8 | part->uses << 4 | share->held << 3 |
			    share->was_held << 2 | share->lost << 1 | share->rank[0].done);
			ADD(share->change - share->held_change);
			ADD(share->change - share->rank[0].change);
			ADD(share->rank[0].phase);
			ADD(share->before ? part_index(state, share->before) : 0);
		}
	}
#undef ADD
	return key ? key : 1;
}

/* ---- events ---- */

static void say_more(struct turns_share *share, uint64_t change, enum wire_turn_phase phase,
                     unsigned flags)
{
	const struct wire_turn word = { .word = WIRE_TURN_STATE,
		                        .session = 1,
		                        .serial = share->rank[0].serial + 1,
		                        .change = change,
		                        .phase = phase,
		                        .flags = (uint8_t)flags };

	assert_true(turns_hear(share, 0, &word, 1));
}

static void say(struct turns_share *share, uint64_t change, enum wire_turn_phase phase, bool done)
{
	say_more(share, change, phase, done ? WIRE_TURN_DONE : 0);
}

/* Removes shares that are lost and not held. */
static void sweep(struct state *state)
{
	for (unsigned j = 0; j < JOBS; j++)
		for (unsigned p = 0; p <= OLD; p++) {
			struct part *part = &state->jobs[j].parts[p];

			if (!part->there || !part->share.lost || part->share.held)
				continue;
			turns_remove(&state->turns[part->site], &part->share);
			part->there = false;
			for (unsigned k = 0; k < JOBS * (1 + OLD); k++) {
				struct part *other =
					&state->jobs[k / (1 + OLD)].parts[k % (1 + OLD)];

				if (other->share.before == &part->share)
					other->share.before = NULL;
			}
		}
}

/* For other jobs, a job that migrates is already at its destination. */
static uint32_t where(const struct part *part)
{
	return part->to ? part->to - 1u : part->site;
}

/* The aggregator that each running job should use, and that of a job that asks. */
static void decide(const struct state *state, unsigned who, uint32_t roots[JOBS])
{
	struct star_policy_job jobs[JOBS];
	unsigned at[JOBS], n = 0;
	uint32_t found[JOBS];

	for (unsigned order = 0; order < JOBS; order++)
		for (unsigned j = 0; j < JOBS; j++) {
			const struct part *part = &state->jobs[j].parts[0];

			if (state->jobs[j].stage != RUNS || state->jobs[j].order != order ||
			    !part->there || part->share.lost || j == who)
				continue;
			at[n] = j;
			jobs[n++] = (struct star_policy_job){ .rack = racks[mix][j],
				                              .root = where(part),
				                              .stays = part->to,
				                              .worth = 5,
				                              .migration_s = 0.2,
				                              .demand = 0.3 };
		}
	if (who < JOBS) {
		at[n] = who;
		jobs[n] = (struct star_policy_job){ .rack = racks[mix][who],
			                            .root = STAR_POLICY_NONE,
			                            .worth = 5,
			                            .migration_s = 0.2,
			                            .demand = 0.3 };
		n++;
	}
	assert_int_equal(star_policy_assign(sites, SITES, jobs, n, found), TRIB_OK);
	for (unsigned j = 0; j < JOBS; j++)
		roots[j] = STAR_POLICY_NONE;
	for (unsigned i = 0; i < n; i++)
		roots[at[i]] = found[i];
}

/* Loses the job's share. If it is held, it will be fenced. */
static void leave(struct state *state, unsigned j)
{
	struct part *parts = state->jobs[j].parts;

	if (!parts[0].there)
		return;
	turns_lose(&parts[0].share);
}

/* An older share that the job still holds. */
static const struct turns_share *held_before(const struct part *parts)
{
	for (unsigned p = 1; p <= OLD; p++)
		if (parts[p].there && parts[p].share.held)
			return &parts[p].share;
	return NULL;
}

static void plan(struct state *state, unsigned j, unsigned site)
{
	struct part *parts = state->jobs[j].parts, *old = NULL;

	if (parts[0].there) { /* to be fenced: make room */
		for (unsigned p = 1; p <= OLD; p++)
			if (!parts[p].there)
				old = &parts[p];
		assert_non_null(old);
		turns_remove(&state->turns[parts[0].site], &parts[0].share);
		memcpy(&old->share, &parts[0].share, SHARE_BYTES);
		old->there = true;
		old->site = parts[0].site;
		old->gives = parts[0].gives;
		old->uses = parts[0].uses;
		old->share.next = state->turns[old->site].shares;
		state->turns[old->site].shares = &old->share;
	}
	turns_add(&state->turns[site], &parts[0].share, 1, 1, false, 1);
	parts[0].share.before = held_before(parts);
	parts[0].there = true;
	parts[0].site = (uint8_t)site;
	parts[0].gives = 0;
	parts[0].uses = parts[0].off = false;
	parts[0].to = 0;
	say(&parts[0].share, 0, WIRE_TURN_SET, true);
	state->jobs[j].stage = RUNS;
	for (unsigned k = 0; k < JOBS; k++)
		state->jobs[k].order -= k != j && state->jobs[k].order > state->jobs[j].order;
	state->jobs[j].order = JOBS - 1;
}

/*
 * Migrates the job's share to another star, which its rank has not joined yet. The old share is
 * free or lost.
 */
static void shift(struct state *state, unsigned j, unsigned site)
{
	struct part *part = &state->jobs[j].parts[0];

	if (part->there)
		turns_remove(&state->turns[part->site], &part->share);
	turns_add(&state->turns[site], &part->share, 1, 1, false, 1);
	turns_await(&part->share);
	part->share.before = held_before(state->jobs[j].parts);
	part->there = true;
	part->site = (uint8_t)site;
	part->gives = part->to = 0;
	part->uses = part->off = false;
}

enum action {
	COMES,   /* a job comes and asks for a plan */
	PLANNED, /* a job that asked gets its plan */
	MOVES,   /* a job is to migrate, and gives up its turn */
	SHIFTS,  /* its turn is over, and it migrates */
	JOINS,   /* its rank joins the new star */
	FAILS,   /* its rank fails to join, and takes no turns */
	AGAIN,   /* it gets another star */
	LEAVES,  /* it gives up all its trees: its turn is lost, and it asks for a plan */
	GIVEN,   /* it is granted a turn */
	AGREES,  /* its rank promises */
	REFUSES,
	SETS,
	DONE,   /* its turn is over */
	FENCED, /* the aggregator confirms that a lost share is fenced */
	ENDS,   /* it ends or is killed */
	ACTIONS
};

/* False: the event cannot happen now. */
static bool act(struct state *state, unsigned j, enum action action)
{
	struct part *parts = state->jobs[j].parts;
	struct turns_share *share = &parts[0].share;
	bool runs = state->jobs[j].stage == RUNS;
	uint32_t roots[JOBS];
	struct wire_turn word;

	if (action >= SHIFTS && action <= DONE && action != AGAIN && action != LEAVES &&
	    (!runs || !parts[0].there || share->lost))
		return false;
	switch (action) {
	case COMES:
		if (state->jobs[j].stage != NOT_YET)
			return false;
		decide(state, j, roots);
		state->jobs[j].stage = ASKS;
		state->jobs[j].wanted = (uint8_t)roots[j];
		return true;
	case PLANNED:
		if (state->jobs[j].stage != ASKS)
			return false;
		plan(state, j, state->jobs[j].wanted);
		return true;
	case MOVES:
		if (!runs)
			return false;
		decide(state, JOBS, roots);
		if (!parts[0].there || share->lost || !turns_is_joined(share) || parts[0].to ||
		    roots[j] == parts[0].site || state->shifts == SHIFTS_MAX)
			return false;
		state->shifts++;
		parts[0].to = (uint8_t)(1 + roots[j]);
		turns_release(share, !parts[0].uses, 1);
		return true;
	case SHIFTS:
		if (!parts[0].to)
			return false;
		if (turns_is_free(share)) {
			shift(state, j, parts[0].to - 1u);
			return true;
		}
		if (!share->held || share->step != TURNS_IDLE || share->held_to < 2)
			return false;
		turns_release(share, !parts[0].uses, 1);
		return share->step == TURNS_ASKING;
	case JOINS:
	case FAILS:
		if (!share->joining)
			return false;
		say_more(share, 0, WIRE_TURN_SET,
		         WIRE_TURN_DONE | (action == FAILS ? WIRE_TURN_ASTRAY : 0));
		parts[0].off = action == FAILS;
		return true;
	case LEAVES:
		if (!runs || !parts[0].there || share->lost || !share->held ||
		    state->shifts == SHIFTS_MAX)
			return false;
		state->shifts++;
		decide(state, j, roots);
		leave(state, j);
		state->jobs[j].stage = ASKS;
		state->jobs[j].wanted = (uint8_t)roots[j];
		return true;
	case AGAIN:
		if (!runs || parts[0].there || !parts[0].off || state->shifts == SHIFTS_MAX)
			return false;
		state->shifts++;
		decide(state, j, roots);
		shift(state, j, roots[j]);
		return true;
	case GIVEN:
		if (parts[0].gives == GIVES || share->held ||
		    !turns_may_give(&state->turns[parts[0].site], share))
			return false;
		parts[0].gives++;
		turns_give(share, 1, 2, 1);
		return true;
	case AGREES:
	case REFUSES:
		if (!turns_say(share, 0, &word) || word.word != WIRE_TURN_PREPARE)
			return false;
		say(share, word.change, action == AGREES ? WIRE_TURN_ASKED : WIRE_TURN_DROPPED,
		    !parts[0].uses);
		return true;
	case SETS:
		if (!turns_say(share, 0, &word) || word.word != WIRE_TURN_COMMIT)
			return false;
		parts[0].uses |= word.from < word.to; /* else the turn is cut short */
		say(share, word.change, WIRE_TURN_SET, !parts[0].uses);
		return true;
	case DONE:
		if (!parts[0].uses)
			return false;
		parts[0].uses = false;
		say(share, share->rank[0].change, WIRE_TURN_SET, true);
		return true;
	case FENCED:
		for (unsigned p = 0; p <= OLD; p++)
			if (parts[p].there && parts[p].share.lost && parts[p].share.held) {
				parts[p].uses = false;
				turns_fenced(&parts[p].share);
				return true;
			}
		return false;
	case ENDS:
		if (!runs && state->jobs[j].stage != ASKS)
			return false;
		leave(state, j);
		state->jobs[j].stage = OVER;
		return true;
	default:
		return false;
	}
}

/* ---- invariants ---- */

static void state_check(const struct state *state)
{
	unsigned uses[SITES] = { 0 };

	for (unsigned s = 0; s < SITES; s++)
		assert_true(turns_holders(&state->turns[s]) <= state->turns[s].capacity);
	for (unsigned j = 0; j < JOBS; j++) {
		unsigned held = 0;

		for (unsigned p = 0; p <= OLD; p++) {
			const struct part *part = &state->jobs[j].parts[p];

			if (!part->there)
				continue;
			held += part->share.held;
			uses[part->site] += part->uses;
			assert_true(part->share.held || !part->uses);
		}
		assert_true(held <= 1);
	}
	for (unsigned s = 0; s < SITES; s++)
		assert_true(uses[s] <= state->turns[s].capacity);
}

/* The job gets a turn if the others only do what they do anyway: there is no circular wait. */
static void progress_check(const struct state *from, unsigned j)
{
	static struct state state;

	state_copy(&state, from);
	state.jobs[j].parts[0].gives = 0;
	state.shifts = 0;
	for (unsigned round = 0; round < 16; round++) {
		for (unsigned k = 0; k < JOBS; k++) {
			act(&state, k, FENCED);
			sweep(&state);
			act(&state, k, PLANNED);
			act(&state, k, SHIFTS);
			act(&state, k, JOINS);
			act(&state, k, AGAIN);
			act(&state, k, AGREES);
			act(&state, k, SETS);
			if (k != j)
				act(&state, k, DONE);
		}
		if (state.jobs[j].stage == RUNS && state.jobs[j].parts[0].uses)
			return;
		act(&state, j, GIVEN);
	}
	fail_msg("job %u gets no turn", j);
}

/* ---- all states ---- */

#define SEEN_BITS 20u
#define STACK_MAX 256u

static uint64_t *seen;
static size_t n_seen;

static bool see(uint64_t key)
{
	size_t at = key * 0x9e3779b97f4a7c15 >> (64 - SEEN_BITS);

	for (; seen[at]; at = (at + 1) & ((1u << SEEN_BITS) - 1))
		if (seen[at] == key)
			return false;
	seen[at] = key;
	assert_true(++n_seen < 1u << (SEEN_BITS - 1));
	return true;
}

static void explore(void **unused)
{
	struct state *stack = calloc(STACK_MAX, sizeof(*stack)), *next = calloc(1, sizeof(*next));
	uint8_t *tried = calloc(STACK_MAX, 1);
	size_t states = 0, moves = 0;
	unsigned deepest = 0;
	size_t least = test_cases("states", 400000);
	size_t enough = test_is_short() ? least / 2 + 1 : SIZE_MAX; /* in each of two mixes */

	(void)unused;
	assert_true(stack && next && tried);
	for (mix = 0; mix < 2; mix++) {
		unsigned depth = 1;

		seen = calloc(1u << SEEN_BITS, sizeof(*seen));
		assert_non_null(seen);
		n_seen = 0;
		memset(&stack[0], 0, sizeof(stack[0]));
		for (unsigned s = 0; s < SITES; s++)
			stack[0].turns[s].capacity = sites[s].capacity;
		for (unsigned j = 0; j < JOBS; j++)
			stack[0].jobs[j].order = (uint8_t)j;
		see(state_key(&stack[0]));
		tried[0] = 0;
		while (depth && n_seen < enough) {
			unsigned try = tried[depth - 1]++;

			if (try == JOBS * ACTIONS) {
				depth--;
				continue;
			}
			state_copy(next, &stack[depth - 1]);
			if (!act(next, try % JOBS, (enum action)(try / JOBS)))
				continue;
			moves += try / JOBS == MOVES;
			state_check(next);
			sweep(next);
			if (!see(state_key(next)))
				continue;
			for (unsigned j = 0; j < JOBS; j++)
				if (next->jobs[j].stage == RUNS || next->jobs[j].stage == ASKS)
					progress_check(next, j);
			assert_true(depth < STACK_MAX);
			tried[depth] = 0;
			state_copy(&stack[depth++], next);
			deepest = depth > deepest ? depth : deepest;
		}
		states += n_seen;
		free(seen);
	}
	print_message("%zu states, %zu moves of jobs, %u deep\n", states, moves, deepest);
	assert_true(states >= least && moves > least / 100);
	free(stack);
	free(next);
	free(tried);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(explore),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
