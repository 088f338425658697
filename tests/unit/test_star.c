/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job that migrates to another shared star while it runs, explored exhaustively: every order of
 * what its ranks, the controller, the aggregators and the network may do. Messages are delayed and
 * duplicated, joins are late or fail, stars end, and the controller restarts. In every reachable
 * state: all ranks send each request the same way; requests in flight at a star belong to a held
 * turn; a rank that leaves, joins or has no star never waits; and all requests can finish. If
 * nothing fails, all ranks end up in the newest star.
 */
#include "short.h"
#include "turn_states.h"
#include "worker/turns/star.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RANKS 2u
#define REQUESTS_MAX 4u
#define OWN 0xffu /* the way of a request outside stars */

struct limits {
	const char *name;
	unsigned requests, stars, changes;
	unsigned idles; /* limit on changes that end the turn of a seemingly idle job */
	bool late, restarts;
	unsigned fails, losses; /* limits on failed joins and on lost stars */
	unsigned walks;         /* number of random walks, for large worlds; 0: all states */
	size_t states;
};

struct member {
	struct turn turn;
	struct star star;
	uint64_t next;
	uint8_t way[REQUESTS_MAX]; /* of each begun request: a star, or OWN */
	uint8_t finished;          /* as bits */
	uint8_t steps;             /* of the star; gives its messages a serial number */
};

struct world {
	struct member member[RANKS];
	uint8_t complete; /* requests that all ranks have contributed to, as bits */
	/* The state of the controller. */
	struct turns_share share; /* at the newest star */
	bool is_shared;           /* `share` exists */
	uint32_t star;
	uint8_t off; /* ranks without open turns since the star was lost, as bits */
	uint64_t serials[RANKS];
	unsigned changes, idles;
	uint64_t session;
	bool restarted;
	bool ended; /* the newest star's aggregator is dead, or has fenced the job */
	bool hurt;  /* the job needs other trees: the end of this test */
	unsigned fails, losses;
	/* A delayed message, which may arrive more than once. */
	struct {
		uint8_t link; /* 1 + rank; 0: none */
		bool up;
		struct wire_turn word;
	} late;
};

static const struct limits *limits;

static struct turns turns_of(struct world *world)
{
	return (struct turns){ .capacity = 1, .shares = world->is_shared ? &world->share : NULL };
}

/* ---- messages ---- */

/* This rank's requests at a star that have not finished here. */
static uint8_t open_at_star(const struct member *member)
{
	uint8_t open = 0;

	for (unsigned i = 0; i < member->next; i++)
		if (member->way[i] != OWN && !(member->finished >> i & 1))
			open |= (uint8_t)(1u << i);
	return open;
}

static struct wire_turn state_of(const struct member *member)
{
	struct wire_turn word = { .session = member->turn.session,
		                  .change = member->turn.change,
		                  .phase = (uint8_t)member->turn.phase,
		                  .from = member->turn.now.from,
		                  .to = member->turn.now.to,
		                  .next = member->next,
		                  .star = member->star.number,
		                  .flags = star_flags(&member->star) };

	if (turn_is_used_up(&member->turn, member->next) && !open_at_star(member))
		word.flags |= WIRE_TURN_DONE;
	/* Every part only grows, except that change numbers start anew with a star. */
	word.serial = 1 + member->next + (unsigned)__builtin_popcount(member->finished) +
	              2 * member->turn.change + (member->turn.phase >= WIRE_TURN_SET) +
	              member->turn.session + member->steps + 64ull * member->star.number;
	return word;
}

static bool say(const struct world *world, unsigned r, struct wire_turn *word)
{
	if (world->member[r].star.number < world->star)
		*word = (struct wire_turn){ .word = WIRE_TURN_MOVE, .session = world->session };
	else if (!world->is_shared || !turns_say(&world->share, r, word))
		return false;
	word->star = world->star;
	return true;
}

static bool rank_hears(struct world *world, unsigned r, const struct wire_turn *word)
{
	struct member *member = &world->member[r];

	return star_hear(&member->star, &member->turn, word, member->next);
}

static bool controller_hears(struct world *world, unsigned r, const struct wire_turn *word)
{
	uint8_t bit = (uint8_t)(1u << r), off = world->off;

	if (word->star != world->star)
		return false;
	if (world->is_shared)
		return turns_hear(&world->share, r, word, 0);
	if (word->serial <= world->serials[r])
		return false;
	world->serials[r] = word->serial;
	world->off = turns_is_off(word) ? off | bit : off & (uint8_t)~bit;
	return true;
}

/* ---- actions ---- */

static bool begin_request(struct world *world, unsigned r)
{
	struct member *member = &world->member[r];
	const struct member *other = &world->member[!r];
	uint64_t i = member->next;

	if (i >= limits->requests || turn_waits(&member->turn, i))
		return false;
	member->way[i] = turn_uses(&member->turn, i) ? (uint8_t)member->star.number : OWN;
	if (member->way[i] == OWN) /* nothing depends on its end */
		member->finished |= (uint8_t)(1u << i);
	member->next++;
	if (i < other->next && !world->hurt)
		assert_int_equal(member->way[i], other->way[i]);
	return true;
}

static bool complete(struct world *world, unsigned i)
{
	uint8_t bit = (uint8_t)(1u << i), way = world->member[0].way[i];

	if (world->complete & bit || i >= world->member[0].next || i >= world->member[1].next ||
	    way == OWN || (way == world->star && world->ended))
		return false;
	world->complete |= bit;
	return true;
}

static bool finish(struct world *world, unsigned r, unsigned i)
{
	struct member *member = &world->member[r];
	uint8_t bit = (uint8_t)(1u << i);

	if (member->finished & bit || !(world->complete & bit))
		return false;
	member->finished |= bit;
	return true;
}

static bool tell(struct world *world, unsigned r)
{
	struct wire_turn word;

	return say(world, r, &word) && rank_hears(world, r, &word);
}

static bool speak(struct world *world, unsigned r)
{
	struct wire_turn word = state_of(&world->member[r]);

	return controller_hears(world, r, &word);
}

static bool delay(struct world *world, unsigned r, bool up)
{
	struct wire_turn word = state_of(&world->member[r]);

	if (!limits->late || (!up && !say(world, r, &word)))
		return false;
	if (world->late.link == 1 + r && world->late.up == up &&
	    !memcmp(&world->late.word, &word, sizeof(word)))
		return false;
	world->late.link = (uint8_t)(1 + r);
	world->late.up = up;
	world->late.word = word;
	return true;
}

static bool arrive(struct world *world)
{
	unsigned r = world->late.link - 1u;

	if (!world->late.link)
		return false;
	return world->late.up ? controller_hears(world, r, &world->late.word)
	                      : rank_hears(world, r, &world->late.word);
}

static bool give(struct world *world, unsigned ahead)
{
	struct turns turns = turns_of(world);
	uint64_t from = turns_next(&world->share) + ahead;

	if (!world->is_shared || world->changes == limits->changes || from >= limits->requests ||
	    !turns_may_give(&turns, &world->share) || world->share.held)
		return false;
	world->changes++;
	turns_give(&world->share, from, limits->requests, 0);
	return true;
}

/*
 * The controller decides on another star and releases the turn. `idle`: the job seems idle to it.
 */
static bool release(struct world *world, bool idle)
{
	struct turns_share before = world->share;

	if (!world->is_shared || world->star + 1 == limits->stars || world->share.lost ||
	    (!world->share.leaving && !turns_is_joined(&world->share)))
		return false;
	turns_release(&world->share, idle, 0);
	world->idles += idle && world->share.change > before.change;
	return memcmp(&before, &world->share, sizeof(before)) != 0;
}

static void star_new(struct world *world)
{
	struct turns turns = { .capacity = 1 };

	world->star++;
	world->off = 0;
	world->ended = false;
	world->is_shared = true;
	turns_add(&turns, &world->share, RANKS, world->session, false, 0);
	turns_await(&world->share);
}

static bool shift(struct world *world)
{
	if (!world->is_shared || !world->share.leaving || !turns_is_free(&world->share))
		return false;
	star_new(world);
	return true;
}

/* A lost star: if its share is held, the aggregator fences it. Then it is removed. */
static bool remove_lost(struct world *world)
{
	if (!world->is_shared || !world->share.lost)
		return false;
	if (world->share.held)
		world->ended = true;
	turns_fenced(&world->share);
	for (unsigned r = 0; r < RANKS; r++)
		world->serials[r] = world->share.rank[r].serial;
	world->off = 0;
	world->is_shared = false;
	memset(&world->share, 0, sizeof(world->share));
	return true;
}

static bool again(struct world *world)
{
	if (world->is_shared || world->off != (1u << RANKS) - 1 || world->star + 1 == limits->stars)
		return false;
	star_new(world);
	return true;
}

/* At once: see check_left. */
static bool leave(struct world *world, unsigned r)
{
	struct member *member = &world->member[r];

	if (member->star.step != STAR_LEAVING)
		return false;
	member->star.step = STAR_JOINING;
	member->steps++;
	return true;
}

/* An aggregator admits ranks when all have asked. */
static bool join(struct world *world, unsigned r)
{
	struct member *member = &world->member[r];
	const struct star *other = &world->member[!r].star;

	if (member->star.step != STAR_JOINING || other->number != member->star.number ||
	    other->step == STAR_LEAVING || other->step == STAR_ASTRAY ||
	    (world->ended && member->star.number == world->star))
		return false;
	member->star.step = STAR_JOINED;
	member->steps++;
	return true;
}

static bool fail_join(struct world *world, unsigned r)
{
	struct member *member = &world->member[r];

	bool gone = world->ended && member->star.number == world->star;

	if (member->star.step != STAR_JOINING || (!gone && world->fails == limits->fails))
		return false;
	world->fails += !gone;
	member->star.step = STAR_ASTRAY;
	member->steps++;
	return true;
}

static bool end_star(struct world *world)
{
	if (world->losses == limits->losses || world->ended)
		return false;
	world->losses++;
	world->ended = true;
	return true;
}

/* A rank learns that its star is lost, or that another rank has not joined it. */
static bool lose(struct world *world, unsigned r)
{
	struct member *member = &world->member[r];
	const struct star *other = &world->member[!r].star;
	bool alone = other->number == member->star.number && other->step == STAR_ASTRAY;

	if (member->star.step != STAR_JOINED || member->star.number != world->star ||
	    !(world->ended || alone))
		return false;
	if (star_lose(&member->star, &member->turn, member->next,
	              !open_at_star(member) && !open_at_star(&world->member[!r])))
		member->steps++;
	else
		world->hurt = true;
	return true;
}

static bool restart(struct world *world)
{
	struct turns turns = { .capacity = 1 };

	if (!limits->restarts || world->restarted)
		return false;
	world->restarted = true;
	world->session++;
	world->off = 0;
	world->is_shared = true;
	turns_add(&turns, &world->share, RANKS, world->session, true, 0);
	return true;
}

#define ACTIONS 36u

static bool act(struct world *world, unsigned a)
{
	if (world->hurt)
		return false;
	if (a < 2)
		return begin_request(world, a);
	if (a < 6)
		return complete(world, a - 2);
	if (a < 14)
		return finish(world, (a - 6) / 4, (a - 6) % 4);
	if (a < 16)
		return tell(world, a - 14);
	if (a < 18)
		return speak(world, a - 16);
	if (a < 22)
		return delay(world, (a - 18) / 2, (a - 18) % 2);
	if (a < 24)
		return leave(world, a - 22);
	if (a < 26)
		return join(world, a - 24);
	if (a < 28)
		return fail_join(world, a - 26);
	if (a < 30)
		return lose(world, a - 28);
	switch (a) {
	case 30:
		return arrive(world);
	case 31:
		return give(world, 0) || give(world, 1);
	case 32:
		return release(world, false) || shift(world);
	case 33:
		return world->share.held && world->idles < limits->idles && release(world, true);
	case 34:
		return remove_lost(world) || again(world) ||
		       (world->is_shared && share_time_out(&world->share, RANKS));
	default:
		return end_star(world) || restart(world);
	}
}

/* ---- invariants ---- */

/* A rank that was told of another star forgets its state of the old one: no rank can need it. */
static void check_left(const struct world *world)
{
	uint32_t a = world->member[0].star.number, b = world->member[1].star.number;

	for (unsigned r = 0; r < RANKS && !world->hurt; r++)
		for (unsigned i = 0; i < limits->requests; i++)
			if (open_at_star(&world->member[r]) >> i & 1)
				assert_true(world->member[r].way[i] >= (a > b ? a : b));
}

static void check_held(const struct world *world)
{
	for (unsigned r = 0; r < RANKS; r++) {
		const struct member *member = &world->member[r];

		assert_true(member->star.step == STAR_JOINED ||
		            !turn_waits(&member->turn, member->next));
		for (unsigned i = 0; i < member->next && !world->hurt; i++) {
			if (member->way[i] == OWN || world->complete >> i & 1)
				continue;
			/* In flight at the aggregator, or about to be. */
			assert_int_equal(member->way[i], world->star);
			assert_true(world->ended || (world->is_shared &&
			                             (world->share.held || !world->share.known)));
		}
	}
}

static bool is_over(const struct world *world)
{
	uint8_t all = (uint8_t)((1u << limits->requests) - 1);

	return world->hurt ||
	       (world->member[0].finished == all && world->member[1].finished == all);
}

static bool is_settled(const struct world *world)
{
	if (world->hurt)
		return true;
	for (unsigned r = 0; r < RANKS; r++)
		if (world->member[r].star.number != world->star ||
		    (world->member[r].star.step != STAR_JOINED &&
		     world->member[r].star.step != STAR_ASTRAY))
			return false;
	return true;
}

/* A rank that waits for another that will not join ends up astray too. */
static void give_up(struct world *world, unsigned r)
{
	const struct star *other = &world->member[!r].star;
	struct member *member = &world->member[r];

	if (fail_join(world, r) || member->star.step != STAR_JOINING ||
	    other->step != STAR_ASTRAY || other->number != member->star.number)
		return;
	member->star.step = STAR_ASTRAY;
	member->steps++;
}

/* If all ranks do what they can, all requests finish. */
static void check_progress(const struct world *from)
{
	struct world world = *from;

	for (unsigned round = 0; round < 60 && !(is_over(&world) && is_settled(&world)); round++) {
		for (unsigned r = 0; r < RANKS; r++) {
			tell(&world, r);
			leave(&world, r);
			join(&world, r);
			lose(&world, r);
			give_up(&world, r);
			begin_request(&world, r);
			speak(&world, r);
		}
		remove_lost(&world);
		shift(&world);
		for (unsigned i = 0; i < limits->requests; i++) {
			complete(&world, i);
			finish(&world, 0, i);
			finish(&world, 1, i);
		}
	}
	assert_true(is_over(&world));
	assert_true(is_settled(&world));
}

static bool is_idle(const struct world *world)
{
	return world->member[0].next == world->member[1].next && !open_at_star(&world->member[0]) &&
	       !open_at_star(&world->member[1]);
}

/* An idle job can be told to migrate, whatever turn it has: it need not begin a request. */
static void check_idle(const struct world *from)
{
	struct world world = *from;
	uint32_t star = world.star;

	if (!world.is_shared || !world.share.leaving || world.share.lost || !is_idle(&world) ||
	    world.hurt || world.ended)
		return;
	for (unsigned round = 0; round < 60 && world.star == star; round++) {
		for (unsigned r = 0; r < RANKS; r++) {
			tell(&world, r);
			speak(&world, r);
		}
		release(&world, true);
		shift(&world);
	}
	assert_int_equal(world.star, star + 1);
}

/* ---- exploration ---- */

static uint64_t hash_world(const struct world *world)
{
	uint64_t hash = hash_more(1, world->session << 40 | world->star << 24 |
	                                     (uint64_t)world->complete << 16 | world->off << 8 |
	                                     (uint64_t)world->is_shared << 3 |
	                                     (uint64_t)world->restarted << 2 |
	                                     (uint64_t)world->ended << 1 | world->hurt);

	hash = hash_more(hash, world->idles << 24 | world->changes << 16 | world->fails << 8 |
	                               world->losses);
	if (world->is_shared)
		hash = hash_share(hash, &world->share, RANKS);
	for (unsigned r = 0; r < RANKS; r++) {
		const struct member *member = &world->member[r];
		uint64_t ways = 0;

		for (unsigned i = 0; i < member->next; i++)
			ways = ways << 8 | member->way[i];
		hash = hash_more(hash, ways);
		hash = hash_more(hash, world->is_shared ? 0 : world->serials[r]);
		hash = hash_more(hash, member->next << 40 | (uint64_t)member->steps << 24 |
		                               member->star.number << 16 |
		                               (uint64_t)member->star.step << 8 | member->finished);
		hash = hash_turn(hash, &member->turn);
	}
	hash = hash_more(hash, (uint64_t)world->late.link << 1 | world->late.up);
	if (world->late.link)
		hash = hash_word(hash, &world->late.word);
	return hash ? hash : 1;
}

/* Counts of interesting states: without them a test would prove nothing. */
static struct {
	size_t moved, meanwhile, used, astray, hurt;
} counts;

static void check(const struct world *world)
{
	bool joining = false;

	check_held(world);
	check_left(world);
	check_progress(world);
	check_idle(world);
	counts.hurt += world->hurt;
	for (unsigned r = 0; r < RANKS; r++) {
		const struct member *member = &world->member[r];

		counts.moved += member->star.number > 0 && member->star.step == STAR_JOINED;
		counts.astray += member->star.step == STAR_ASTRAY;
		joining |= star_flags(&member->star) == WIRE_TURN_JOINING;
		for (unsigned i = 0; i < member->next; i++)
			counts.used += member->way[i] != OWN && member->way[i] > 0;
	}
	counts.meanwhile += joining && world->member[0].next == limits->requests;
}

static void world_start(struct world *world)
{
	struct turns turns = { 0 };

	memset(world, 0, sizeof(*world));
	world->session = 1;
	world->is_shared = true;
	turns_add(&turns, &world->share, RANKS, 1, false, 0);
	for (unsigned r = 0; r < RANKS; r++) {
		world->member[r].turn.session = 1;
		world->member[r].star.step = STAR_JOINED;
	}
}

#include "explore.h"

static void explore(void **state)
{
	limits = *state;
	memset(&counts, 0, sizeof(counts));
	explore_world(limits->name, limits->walks, limits->states);
	printf("... a rank in another star in %zu, with a turn there in %zu, all requests begun "
	       "while one joins in %zu, astray in %zu, other trees in %zu\n",
	       counts.moved, counts.used, counts.meanwhile, counts.astray, counts.hurt);
	assert_true(test_is_short() || (counts.moved && counts.meanwhile));
	/* In random walks most stars end before that. */
	assert_true(test_is_short() || counts.used || (limits->walks && limits->losses));
	assert_true(test_is_short() || !limits->fails || counts.astray);
}

static struct limits worlds[] = {
	{ .name = "a star and another",
	  .states = 350000,
	  .requests = 2,
	  .stars = 2,
	  .changes = 2,
	  .idles = 1 },
	{ .name = "a word that is late",
	  .states = 60000,
	  .requests = 1,
	  .stars = 2,
	  .changes = 1,
	  .idles = 1,
	  .late = true },
	{ .name = "joins that fail",
	  .states = 450000,
	  .requests = 2,
	  .stars = 3,
	  .changes = 1,
	  .idles = 1,
	  .fails = 2 },
	{ .name = "stars that end",
	  .states = 140000,
	  .requests = 1,
	  .stars = 2,
	  .changes = 2,
	  .idles = 1,
	  .fails = 1,
	  .losses = 1 },
	{ .name = "a controller that is started again",
	  .states = 11000,
	  .requests = 1,
	  .stars = 2,
	  .changes = 1,
	  .idles = 1,
	  .restarts = true },
	{ .name = "everything, by chance",
	  .states = 150000,
	  .requests = 4,
	  .stars = 4,
	  .changes = 6,
	  .idles = 4,
	  .late = true,
	  .fails = 1,
	  .losses = 1,
	  .restarts = true,
	  .walks = 20000 },
	{ .name = "late words, by chance",
	  .states = 50000,
	  .requests = 4,
	  .stars = 4,
	  .changes = 6,
	  .idles = 4,
	  .late = true,
	  .walks = 4000 },
};

int main(void)
{
	struct CMUnitTest tests[sizeof(worlds) / sizeof(*worlds)];

	for (size_t i = 0; i < sizeof(worlds) / sizeof(*worlds); i++)
		tests[i] = (struct CMUnitTest){ .name = worlds[i].name,
			                        .test_func = explore,
			                        .initial_state = &worlds[i] };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
