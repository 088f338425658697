/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of turns, explored exhaustively: every order of what ranks, the controller, the
 * aggregator and the network may do. Messages are lost, duplicated and delayed, ranks die, and the
 * controller restarts. In every reachable state: the aggregator serves no more communicators than
 * its capacity, all ranks of a communicator agree on each request, and all requests can finish.
 */
#include "turn_states.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define JOBS 2u
#define RANKS 2u
#define REQUESTS_MAX 4u
#define LATE_MAX 2u

struct limits {
	const char *name;
	unsigned jobs, requests, capacity, late, changes;
	bool deaths, restarts, cuts;
	unsigned walks; /* random walks, if the world is too large to explore; 0: explore all */
	size_t states;  /* fewest states that must be seen: a smaller world would prove little */
};

/* A message in flight; it may arrive at any time, and more than once. */
struct late {
	uint8_t link; /* 1 + rank; 0: none */
	bool up;
	struct wire_turn word;
};

struct member {
	struct turn turn;
	uint64_t next;
	uint8_t finished; /* requests that this rank knows to be finished, as bits */
	uint8_t shared;   /* requests that were begun at the aggregator */
	bool dead;
};

struct job {
	struct member member[RANKS];
	uint8_t complete; /* requests to which all ranks have contributed */
	bool fenced;      /* the aggregator has ended it */
	unsigned changes;
};

struct world {
	struct job job[JOBS];
	struct turns_share share[JOBS];
	struct late late[LATE_MAX];
	uint64_t session;
	bool restarted, died;
};

static const struct limits *limits;

/* ---- messages ---- */

static bool is_done(const struct member *member)
{
	return turn_is_used_up(&member->turn, member->next) &&
	       !(member->shared & ~member->finished);
}

/* A rank's message now. Its fields only grow, so their sum can be the serial number. */
static struct wire_turn state_of(const struct member *member)
{
	return (struct wire_turn){ .serial = 1 + member->next +
		                             (unsigned)__builtin_popcount(member->finished) +
		                             2 * member->turn.change +
		                             (member->turn.phase >= WIRE_TURN_SET) +
		                             member->turn.session,
		                   .session = member->turn.session,
		                   .change = member->turn.change,
		                   .phase = (uint8_t)member->turn.phase,
		                   .from = member->turn.now.from,
		                   .to = member->turn.now.to,
		                   .next = member->next,
		                   .flags = is_done(member) ? WIRE_TURN_DONE : 0 };
}

static bool hear(struct member *member, const struct wire_turn *word)
{
	return turn_hear(&member->turn, word, member->next);
}

/* ---- actions ---- */

static struct turns turns_of(struct world *world)
{
	struct turns turns = { .capacity = limits->capacity };

	for (unsigned j = limits->jobs; j--;) {
		world->share[j].next = turns.shares;
		turns.shares = &world->share[j];
	}
	return turns;
}

static void demand_agreement(const struct job *job, uint64_t request)
{
	const struct member *a = &job->member[0], *b = &job->member[1];

	if (request < a->next && request < b->next)
		assert_int_equal(a->shared >> request & 1, b->shared >> request & 1);
}

static bool begin_request(struct world *world, unsigned j, unsigned r)
{
	struct member *member = &world->job[j].member[r];

	if (member->dead || member->next >= limits->requests ||
	    turn_waits(&member->turn, member->next))
		return false;
	if (turn_uses(&member->turn, member->next))
		member->shared |= (uint8_t)(1u << member->next);
	else /* a request in its own trees may end at any time */
		member->finished |= (uint8_t)(1u << member->next);
	member->next++;
	demand_agreement(&world->job[j], member->next - 1);
	return true;
}

static bool complete(struct world *world, unsigned j, unsigned request)
{
	struct job *job = &world->job[j];
	uint8_t bit = (uint8_t)(1u << request);

	if (job->complete & bit || job->fenced ||
	    !(job->member[0].shared & job->member[1].shared & bit))
		return false;
	job->complete |= bit;
	return true;
}

static bool finish(struct world *world, unsigned j, unsigned r, unsigned request)
{
	struct member *member = &world->job[j].member[r];
	uint8_t bit = (uint8_t)(1u << request);

	if (member->dead || member->finished & bit || !(world->job[j].complete & bit))
		return false;
	member->finished |= bit;
	return true;
}

/* A message arrives at once. */
static bool tell(struct world *world, unsigned j, unsigned r)
{
	struct member *member = &world->job[j].member[r];
	struct wire_turn word;

	return !member->dead && turns_say(&world->share[j], r, &word) && hear(member, &word);
}

static bool speak(struct world *world, unsigned j, unsigned r)
{
	const struct member *member = &world->job[j].member[r];
	struct wire_turn word = state_of(member);

	return !member->dead && turns_hear(&world->share[j], r, &word, 0);
}

/* A message is delayed. */
static bool delay(struct world *world, unsigned slot, unsigned j, unsigned r, bool up)
{
	struct late late = { .link = (uint8_t)(1 + j * RANKS + r), .up = up };

	if (slot >= limits->late || (slot && !world->late[slot - 1].link))
		return false;
	if (up)
		late.word = state_of(&world->job[j].member[r]);
	else if (!turns_say(&world->share[j], r, &late.word))
		return false;
	if (!memcmp(&late, &world->late[slot], sizeof(late)))
		return false;
	world->late[slot] = late;
	return true;
}

static bool arrive(struct world *world, unsigned slot)
{
	const struct late *late = &world->late[slot];
	unsigned j, r;

	if (!late->link)
		return false;
	j = (late->link - 1) / RANKS;
	r = (late->link - 1) % RANKS;
	if (late->up)
		return turns_hear(&world->share[j], r, &late->word, 0);
	return !world->job[j].member[r].dead && hear(&world->job[j].member[r], &late->word);
}

static bool give(struct world *world, unsigned j, unsigned ahead, unsigned count)
{
	struct turns turns = turns_of(world);
	struct turns_share *share = &world->share[j];
	uint64_t from = turns_next(share) + ahead;

	if (world->job[j].changes == limits->changes || from + count > limits->requests ||
	    !turns_may_give(&turns, share) || share->held)
		return false;
	world->job[j].changes++;
	turns_give(share, from, from + count, 0);
	return true;
}

static bool cut(struct world *world, unsigned j)
{
	struct turns_share *share = &world->share[j];

	if (!limits->cuts || world->job[j].changes == limits->changes || !share->held ||
	    share->lost || !share->known || share->step != TURNS_IDLE)
		return false;
	world->job[j].changes++;
	turns_cut(share, turns_next(share), 0);
	return true;
}

/* A rank is silent for long, dead or alive. Then the aggregator ends the communicator. */
static bool lose(struct world *world, unsigned j)
{
	struct turns_share share = world->share[j];

	if (!limits->deaths || share.lost || !(share.held || !share.known))
		return false;
	turns_tick(&share, TURNS_LEASE_NS + 1, TURNS_LEASE_NS);
	if (!share.lost)
		return false;
	world->share[j] = share;
	return true;
}

static bool fence(struct world *world, unsigned j)
{
	if (!world->share[j].lost || (world->job[j].fenced && !world->share[j].held))
		return false;
	world->job[j].fenced = true;
	turns_fenced(&world->share[j]);
	return true;
}

static bool die(struct world *world, unsigned j, unsigned r)
{
	if (!limits->deaths || world->died)
		return false;
	world->died = world->job[j].member[r].dead = true;
	return true;
}

static bool restart(struct world *world)
{
	struct turns turns = { .capacity = limits->capacity };

	if (!limits->restarts || world->restarted)
		return false;
	world->restarted = true;
	world->session++;
	for (unsigned j = 0; j < limits->jobs; j++)
		turns_add(&turns, &world->share[j], RANKS, world->session, true, 0);
	return true;
}

/* Runs action number `which`. False: it changes nothing here. */
#define ACTIONS_A_JOB 40u
#define ACTIONS (2 * ACTIONS_A_JOB + 1)

static bool act(struct world *world, unsigned which)
{
	unsigned j = which / ACTIONS_A_JOB, a = which % ACTIONS_A_JOB;

	if (j >= limits->jobs)
		return which == ACTIONS - 1 && restart(world);
	if (a < 2)
		return begin_request(world, j, a);
	if (a < 6)
		return complete(world, j, a - 2);
	if (a < 14)
		return finish(world, j, (a - 6) / 4, (a - 6) % 4);
	if (a < 16)
		return tell(world, j, a - 14);
	if (a < 18)
		return speak(world, j, a - 16);
	if (a < 20)
		return arrive(world, a - 18);
	if (a < 28)
		return delay(world, (a - 20) / 4, j, (a - 20) / 2 % 2, (a - 20) % 2);
	if (a < 32)
		return give(world, j, (a - 28) / 2, 1 + (a - 28) % 2);
	switch (a) {
	case 32:
		return cut(world, j);
	case 33:
		return share_time_out(&world->share[j], RANKS);
	case 34:
		return lose(world, j);
	case 35:
		return fence(world, j);
	case 36:
	case 37:
		return die(world, j, a - 36);
	default:
		return false;
	}
}

/* ---- invariants ---- */

static bool is_at_aggregator(const struct job *job)
{
	uint8_t shared = 0;

	for (unsigned r = 0; r < RANKS; r++)
		shared |= job->member[r].shared;
	return !job->fenced && (shared & ~job->complete);
}

static void check_capacity(const struct world *world)
{
	unsigned n = 0;

	for (unsigned j = 0; j < limits->jobs; j++)
		n += is_at_aggregator(&world->job[j]);
	assert_true(n <= limits->capacity);
}

static bool is_over(const struct world *world)
{
	uint8_t all = (uint8_t)((1u << limits->requests) - 1);

	for (unsigned j = 0; j < limits->jobs; j++)
		for (unsigned r = 0; r < RANKS; r++)
			if (!world->job[j].fenced && !world->job[j].member[r].dead &&
			    !world->job[j].member[!r].dead &&
			    world->job[j].member[r].finished != all)
				return false;
	return true;
}

/* Without further loss, all requests finish. */
static void check_progress(const struct world *from)
{
	struct world world = *from;

	for (unsigned round = 0; round < 60 && !is_over(&world); round++) {
		for (unsigned j = 0; j < limits->jobs; j++) {
			for (unsigned r = 0; r < RANKS; r++) {
				tell(&world, j, r);
				begin_request(&world, j, r);
				speak(&world, j, r);
			}
			for (unsigned i = 0; i < limits->requests; i++) {
				complete(&world, j, i);
				for (unsigned r = 0; r < RANKS; r++)
					finish(&world, j, r, i);
			}
			if (world.job[j].member[0].dead || world.job[j].member[1].dead) {
				lose(&world, j);
				fence(&world, j);
			}
			fence(&world, j);
		}
	}
	assert_true(is_over(&world));
	/* The turn is free again. */
	for (unsigned j = 0; j < limits->jobs; j++) {
		if (world.job[j].fenced || world.job[j].member[0].dead ||
		    world.job[j].member[1].dead || world.share[j].step == TURNS_ASKING)
			continue;
		for (unsigned i = 0; i < 8; i++)
			for (unsigned r = 0; r < RANKS; r++) {
				tell(&world, j, r);
				speak(&world, j, r);
			}
		if (world.share[j].step == TURNS_IDLE && world.share[j].known)
			assert_false(world.share[j].held);
	}
}

/* ---- exploration ---- */

static uint64_t hash_late(uint64_t hash, const struct late *late)
{
	hash = hash_more(hash, (uint64_t)(late->link << 1 | late->up));
	return late->link ? hash_word(hash, &late->word) : hash;
}

static uint64_t hash_world(const struct world *world)
{
	uint64_t hash = 1 + world->restarted + 2 * world->died;

	for (unsigned j = 0; j < limits->jobs; j++) {
		const struct job *job = &world->job[j];

		hash = hash_more(hash, job->complete << 8 | job->changes << 1 | job->fenced);
		hash = hash_share(hash, &world->share[j], RANKS);
		for (unsigned r = 0; r < RANKS; r++) {
			const struct member *member = &job->member[r];

			hash = hash_more(hash, member->next << 24 | member->dead << 16 |
			                               member->finished << 8 | member->shared);
			hash = hash_turn(hash, &member->turn);
		}
	}
	for (unsigned i = 0; i < limits->late; i++)
		hash = hash_late(hash, &world->late[i]);
	return hash ? hash : 1;
}

static void world_start(struct world *world)
{
	struct turns turns = { 0 };

	memset(world, 0, sizeof(*world));
	world->session = 1;
	for (unsigned j = 0; j < limits->jobs; j++) {
		turns_add(&turns, &world->share[j], RANKS, 1, false, 0);
		for (unsigned r = 0; r < RANKS; r++)
			world->job[j].member[r].turn.session = 1;
	}
}

static void check(const struct world *world)
{
	check_capacity(world);
	check_progress(world);
}

#include "explore.h"

static void explore(void **state)
{
	limits = *state;
	explore_world(limits->name, limits->walks, limits->states);
}

/* A rank that does not answer delays others only once. */
static void test_silent(void **state)
{
	struct turns turns = { .capacity = 1 };
	static struct turns_share share;
	struct wire_turn word = { .serial = 1, .phase = WIRE_TURN_DROPPED };

	(void)state;
	turns_add(&turns, &share, 2, 0, false, 0);
	assert_true(turns_may_give(&turns, &share));
	turns_give(&share, 1, 2, 0);
	assert_int_equal(turns_holders(&turns), 1);
	word.change = share.change;
	assert_true(turns_hear(&share, 0, &word, 1));
	turns_tick(&share, TURNS_ASK_NS + 1, TURNS_LEASE_NS);
	assert_int_equal(turns_holders(&turns), 0);
	assert_false(turns_may_give(&turns, &share));
	/* It is not lost, and its earlier messages do not count. */
	turns_tick(&share, 10 * TURNS_LEASE_NS, TURNS_LEASE_NS);
	assert_false(share.lost);
	word.serial = 2;
	assert_true(turns_hear(&share, 0, &word, 10 * TURNS_LEASE_NS));
	assert_false(turns_is_open(&share));
	assert_true(turns_hear(&share, 1, &word, 10 * TURNS_LEASE_NS));
	assert_true(turns_may_give(&turns, &share));
}

/* The cost of choosing the way of a request: two comparisons, no message. Prints the time. */
static void test_cost(void **state)
{
	volatile uint64_t request = 0; /* keeps the compiler from computing it beforehand */
	struct turn turn = { .now = { 1 << 20, 1 << 21 }, .last = { 1 << 10, 1 << 12 } };
	struct timespec from, to;
	uint64_t shared = 0;
	const uint64_t n = 1 << 22;

	(void)state;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t number = request++;

		shared += !turn_waits(&turn, number) && turn_uses(&turn, number);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	assert_int_equal(shared, (1 << 20) + (1 << 12) - (1 << 10));
	printf("which way a request goes: found in %.2f ns\n",
	       ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
	               (double)n);
}

static struct limits worlds[] = {
	{ .name = "a job whose turn is cut",
	  .states = 90000,
	  .jobs = 1,
	  .requests = 2,
	  .capacity = 1,
	  .changes = 2,
	  .cuts = true },
	{ .name = "a job, and a word that is late",
	  .states = 28000,
	  .jobs = 1,
	  .requests = 1,
	  .capacity = 1,
	  .late = 1,
	  .changes = 2 },
	{ .name = "a job, deaths and a restart",
	  .states = 240000,
	  .jobs = 1,
	  .requests = 1,
	  .capacity = 1,
	  .late = 1,
	  .changes = 1,
	  .deaths = true,
	  .restarts = true },
	{ .name = "two jobs",
	  .states = 190000,
	  .jobs = 2,
	  .requests = 1,
	  .capacity = 1,
	  .changes = 1 },
	{ .name = "two jobs, room for both",
	  .states = 230000,
	  .jobs = 2,
	  .requests = 1,
	  .capacity = 2,
	  .changes = 1 },
	{ .name = "two jobs, by chance",
	  .states = 50000,
	  .jobs = 2,
	  .requests = 4,
	  .capacity = 1,
	  .late = 2,
	  .changes = 6,
	  .cuts = true,
	  .walks = 3000 },
	{ .name = "two jobs, room for both, by chance",
	  .states = 50000,
	  .jobs = 2,
	  .requests = 4,
	  .capacity = 2,
	  .late = 2,
	  .changes = 6,
	  .cuts = true,
	  .walks = 1000 },
	{ .name = "two jobs, everything, by chance",
	  .states = 50000,
	  .jobs = 2,
	  .requests = 4,
	  .capacity = 1,
	  .late = 2,
	  .changes = 6,
	  .cuts = true,
	  .deaths = true,
	  .restarts = true,
	  .walks = 4000 },
};

int main(void)
{
	const size_t n = sizeof(worlds) / sizeof(*worlds);
	struct CMUnitTest tests[sizeof(worlds) / sizeof(*worlds) + 2];

	for (size_t i = 0; i < n; i++)
		tests[i] = (struct CMUnitTest){ .name = worlds[i].name,
			                        .test_func = explore,
			                        .initial_state = &worlds[i] };
	tests[n] = (struct CMUnitTest){ .name = "silence", .test_func = test_silent };
	tests[n + 1] = (struct CMUnitTest){ .name = "cost", .test_func = test_cost };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
