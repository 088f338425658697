/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates that follow losses. Senders share a link with a short queue, in steps of a millisecond, and
 * the link changes. TRIB_SEED: the seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/cluster/draw.h"
#include "plan/rates/losses.h"
#include "plan/rates/rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ull
#define SENDERS_MAX 64
#define FOUND_MS 30 /* delay until a loss is known */
#define HEARD_MS 10 /* time between two reports */
#define QUEUE_MS 20

static uint64_t seed = 1;

struct sender {
	double owed, sent, lost; /* packets */
	double found[FOUND_MS];  /* losses of the last milliseconds, as a ring */
	struct losses losses;
	double noise; /* random loss ratio of its path */
	double most;  /* packets a millisecond that its path carries; 0: no limit */
};

struct world {
	unsigned senders;
	double share;    /* a sender's share, in packets a millisecond */
	double capacity; /* packets a millisecond of the link */
	double queue;
	bool unfair; /* the queue drops packets of the same senders for a while */
	unsigned first;
	uint64_t now; /* ms */
	uint64_t random;
	struct losses losses;
	struct sender all[SENDERS_MAX];
	/* Results of the last run. */
	double delivered, offered, dropped, lowest; /* lowest: of 50 ms, relative to capacity */
	double factor;                              /* average */
	unsigned changes; /* changes of the factor by more than 0.15, beyond a failed rise */
};

static void world_init(struct world *world, unsigned senders, double capacity)
{
	memset(world, 0, sizeof(*world));
	world->senders = senders;
	world->capacity = capacity;
	world->share = 0.96 * capacity / senders;
	world->random = seed;
	world->now = 1;
	losses_init(&world->losses);
}

/* The packets of one millisecond, with those of all senders mixed. */
static double sender_step(struct world *world, struct sender *sender, double room)
{
	unsigned at = (unsigned)(world->now % FOUND_MS);
	double old = world->losses.factor, lost, n;

	sender->owed += world->share * old;
	n = floor(sender->owed);
	sender->owed -= n;
	lost = fmax(n - (sender->most > 0 ? fmin(room, sender->most) : room), 0);
	for (unsigned i = 0; sender->noise > 0 && i < (unsigned)(n - lost); i++)
		lost += draw_below(&world->random, 1000000) < sender->noise * 1e6;
	sender->lost += sender->found[at];
	sender->found[at] = lost;
	sender->sent += n;
	world->offered += n;
	world->dropped += lost;
	if ((world->now + (unsigned)(sender - world->all)) % HEARD_MS == 0)
		losses_hear(&world->losses, (unsigned)(sender - world->all), world->now * MS,
		            (uint32_t)sender->sent, (uint32_t)sender->lost);
	world->changes += fabs(world->losses.factor - old) > 0.15 * old;
	return n - lost;
}

static void world_run(struct world *world, unsigned ms)
{
	double window = 0;

	world->delivered = world->offered = world->dropped = world->factor = 0;
	world->lowest = INFINITY;
	world->changes = 0;
	for (unsigned t = 1; t <= ms; t++, world->now++) {
		double room = world->capacity * (1 + QUEUE_MS) - world->queue, out;

		/* In turn, so that all senders lose alike. */
		if (!world->unfair)
			world->first = (unsigned)(world->now % world->senders);
		else if (world->now % 30 == 0)
			world->first = (unsigned)draw_below(&world->random, world->senders);
		for (unsigned k = 0; k < world->senders; k++) {
			unsigned i = (world->first + k) % world->senders;
			double in = sender_step(world, &world->all[i], room);

			world->queue += in;
			room -= in;
		}
		world->factor += world->losses.factor / ms;
		out = fmin(world->queue, world->capacity);
		world->queue -= out;
		world->delivered += out;
		window += out;
		if (t % 50 == 0) {
			world->lowest = fmin(world->lowest, window / 50 / world->capacity);
			window = 0;
		}
	}
	world->delivered /= ms * world->capacity;
}

static void show(const char *what, const struct world *world)
{
	printf("%-28s %3.0f %% of the link, at least %3.0f %% in 50 ms, %4.1f %% lost, factor "
	       "%.2f, %u large changes\n",
	       what, world->delivered * 100, world->lowest * 100,
	       world->dropped / world->offered * 100, world->factor, world->changes);
}

/* A link as fast as announced: the factor never falls. */
static void test_clean(void **state)
{
	static struct world world;

	(void)state;
	world_init(&world, 4, 33);
	world_run(&world, 5000);
	show("as it should be", &world);
	assert_true(world.dropped == 0);
	assert_true(world.delivered > 0.95 && world.losses.factor == 1);
}

/* The link loses half of its rate, and gets it back. */
static void halve(unsigned senders, double capacity, bool unfair)
{
	static struct world world;

	world_init(&world, senders, capacity);
	world.unfair = unfair;
	world_run(&world, 2000);
	world.capacity /= 2;
	world_run(&world, 300);
	show("half, at first", &world);
	assert_true(world.lowest > 0.7); /* no collapse during the search */
	world_run(&world, 4000);
	show("half, later", &world);
	assert_true(world.delivered > 0.9);
	assert_true(world.lowest > 0.7);
	assert_true(world.dropped < 0.025 * world.offered); /* failed rises */
	assert_true(world.changes <= 2);                    /* no oscillation */
	world.capacity *= 2;
	world_run(&world, 3000); /* it pauses up to 1 s before a rise */
	world_run(&world, 1000);
	show("all of it again", &world);
	assert_true(world.delivered > 0.95);
	assert_true(world.dropped == 0);
}

static void test_halved(void **state)
{
	(void)state;
	for (int unfair = 0; unfair < 2; unfair++) {
		halve(4, 33, unfair);
		halve(1, 10, unfair);
		halve(8, 200, unfair);
		halve(64, 500, unfair);
		halve(8, 4, unfair); /* too few packets to distinguish senders */
	}
}

/* One sender's link is slow. All wait for its part, so the others need not be faster. */
static void test_one_is_slow(void **state)
{
	static struct world world;

	(void)state;
	for (unsigned senders = 2; senders <= SENDERS_MAX; senders *= 4) {
		for (double most = 2; most <= 4; most++) {
			bool fell = false;

			world_init(&world, senders, senders * 8);
			world_run(&world, 1000);
			world.all[senders / 2].most = most;
			for (unsigned i = 0; i < 75; i++) { /* it falls, and stays low */
				world_run(&world, 20);
				assert_true(!fell || world.losses.factor < 0.95);
				fell |= world.losses.factor < 0.9;
			}
			world_run(&world, 3000);
			show("one is slow", &world);
			assert_true(fabs(world.factor - most / 7.68) < 0.1 * most / 7.68);
			world.all[senders / 2].most = 0;
			world_run(&world, 4000);
			assert_true(world.losses.factor == 1);
		}
	}
}

/* Down to a tenth: more than one cut. */
static void tenth(unsigned senders)
{
	static struct world world;

	world_init(&world, senders, 100);
	world_run(&world, 1000);
	world.capacity /= 10;
	world_run(&world, 1500);
	show("a tenth, at first", &world);
	assert_true(world.lowest > 0.6);
	world_run(&world, 4000);
	show("a tenth, later", &world);
	assert_true(world.delivered > 0.85);
	assert_true(world.dropped < 0.02 * world.offered);
}

static void test_tenth(void **state)
{
	(void)state;
	tenth(4);
	tenth(64);
}

/* A path with random loss: a lower rate does not help. */
static void test_noise(void **state)
{
	static const double noises[] = { 0.005, 0.01, 0.012, 0.015, 0.02, 0.05, 0.1 };
	static struct world world;

	(void)state;
	for (unsigned i = 0; i < sizeof(noises) / sizeof(noises[0]); i++) {
		world_init(&world, 4, 33);
		world.all[0].noise = noises[i];
		world_run(&world, 22000);
		show("noise on one path", &world);
		assert_true(world.factor > 0.85);
	}
	/* The random loss ends, then the link becomes slower: this is noticed as usual. */
	world.all[0].noise = 0;
	world_run(&world, 3000);
	world.capacity /= 2;
	world_run(&world, 1000);
	world_run(&world, 4000);
	show("half, after noise", &world);
	assert_true(world.delivered > 0.85);
	assert_true(world.dropped < 0.02 * world.offered);
}

/* All paths have a little random loss and few packets: a different sender loses much each time. */
static void test_noise_on_all(void **state)
{
	static const double noises[] = { 0.003, 0.01, 0.02 };
	static struct world world;

	(void)state;
	for (unsigned senders = 8; senders <= 64; senders *= 8)
		for (unsigned i = 0; i < sizeof(noises) / sizeof(noises[0]); i++) {
			world_init(&world, senders, senders);
			for (unsigned k = 0; k < senders; k++)
				world.all[k].noise = noises[i];
			world_run(&world, 20000);
			show("noise on all paths", &world);
			assert_true(world.factor > 0.85);
		}
}

/* Two trees share the link: one ends, and the shares of the other grow (plan/rates/rates.h). */
static void test_two_trees(void **state)
{
	static struct world world;
	struct rate_child children[8];
	double rates[8];

	(void)state;
	world_init(&world, 8, 40);
	for (unsigned i = 0; i < 8; i++)
		children[i] = (struct rate_child){ .max = INFINITY, .active = true };
	rates_share(0.96 * 40, INFINITY, children, 8, rates);
	world.share = rates[0];
	world_run(&world, 1000);
	assert_true(world.dropped == 0);
	world.capacity = 20;
	world_run(&world, 3000);
	show("two trees, half a link", &world);
	assert_true(world.lowest > 0.7);
	for (unsigned i = 4; i < 8; i++)
		children[i].active = false;
	rates_share(0.96 * 40, INFINITY, children, 8, rates);
	world.senders = 4;
	world.share = rates[0];
	world_run(&world, 300);
	world_run(&world, 4000);
	show("one of them has ended", &world);
	assert_true(world.delivered > 0.85);
	assert_true(world.dropped < 0.02 * world.offered);
}

/* A link that nearly fails for a moment recovers soon, even if few packets show it. */
static void dip(double capacity, double to, unsigned ms, unsigned found_ms)
{
	static struct world world;

	world_init(&world, 4, capacity);
	world_run(&world, 2000);
	world.capacity *= to;
	world_run(&world, ms);
	world.capacity = capacity;
	world_run(&world, found_ms);
	show("back after a dip", &world);
	assert_true(world.losses.factor > 0.95);
}

static void test_dip(void **state)
{
	(void)state;
	dip(33, 0.25, 500, 3500);
	dip(33, 0.1, 500, 4500);
	dip(33, 0.1, 3000, 3500);
	dip(33, 0.01, 3000, 7000);
	dip(2, 0.01, 4000, 30000);
}

/*
 * A tenth is lost at any rate, so it counts as random. With the old rate far more is lost: it was
 * not random.
 */
static void test_not_noise(void **state)
{
	struct losses losses;
	uint32_t judged = 0, lost = 0;
	uint64_t now = 1000 * MS;
	double lowest = 1;

	(void)state;
	losses_init(&losses);
	losses_hear(&losses, 0, now, judged, lost);
	for (unsigned i = 0; i < 100 && (losses.factor < 1 || lowest == 1); i++) {
		lowest = fmin(lowest, losses.factor);
		losses_hear(&losses, 0, now += 50 * MS, judged += 500, lost += 50);
	}
	assert_true(losses.factor == 1 && lowest < 0.75);
	for (unsigned i = 0; i < 4 && losses.factor == 1; i++)
		losses_hear(&losses, 0, now += 50 * MS, judged += 500, lost += 250);
	assert_true(fabs(losses.factor - lowest) < 0.001);
	assert_true(losses.failed == 1);
	/* Now a tenth counts again. */
	for (unsigned i = 0; i < 8; i++)
		losses_hear(&losses, 0, now += 50 * MS, judged += 500, lost += 50);
	assert_true(losses.factor < 0.95 * lowest);
}

/*
 * Losses from before the cut are found long after it. The factor falls too far, and is corrected.
 */
static void test_found_late(void **state)
{
	struct losses losses;
	uint32_t judged = 0, lost = 0;
	uint64_t now = 1000 * MS;
	double before = 0, highest = 0;

	(void)state;
	losses_init(&losses);
	losses_hear(&losses, 0, now, judged, lost);
	losses_hear(&losses, 0, now += 60 * MS, judged += 500, lost += 250);
	losses_hear(&losses, 0, now += 60 * MS, judged += 500, lost += 200);
	losses_hear(&losses, 0, now += 60 * MS, judged += 500, lost += 200);
	assert_true(losses.factor < 0.32); /* the link carries 0.5 */
	/* It rises slowly, because the limit is unknown. */
	for (unsigned i = 0; i < 100 && losses.factor < 0.6; i++) {
		assert_true(losses.factor < 1.1 * before || before == 0);
		before = losses.factor;
		losses_hear(&losses, 0, now += 100 * MS, judged += 500, lost);
	}
	assert_true(losses.factor >= 0.6);
	/* That was too much. The factor does not return to where the rise began. */
	losses_hear(&losses, 0, now += 60 * MS, judged += 500, lost += 300);
	assert_true(losses.factor > 0.38 && losses.factor < 0.55);
	before = losses.factor;
	for (unsigned i = 0; i < 10; i++) {
		losses_hear(&losses, 0, now += 100 * MS, judged += 500, lost);
		highest = fmax(highest, losses.factor);
	}
	assert_true(highest < 1.2 * before);
}

static void test_counters(void **state)
{
	struct losses losses;

	(void)state;
	losses_init(&losses);
	/* The first report is the start, also near the end of the numbers. */
	assert_false(losses_hear(&losses, 3, 1000 * MS, UINT32_MAX - 100, UINT32_MAX - 5));
	/* 1 % is not too much. */
	assert_false(losses_hear(&losses, 3, 1100 * MS, 899, 4));
	/* 3 % is too much, but not of ten packets. */
	assert_false(losses_hear(&losses, 3, 1200 * MS, 909, 7));
	assert_false(losses_hear(&losses, 3, 1250 * MS, 1199, 16));
	/* One period of moderate loss may be chance. */
	assert_false(losses_hear(&losses, 3, 1300 * MS, 1199, 16));
	assert_true(losses_hear(&losses, 3, 1400 * MS, 1599, 28));
	assert_true(losses.factor < 0.96 && losses.factor > 0.92);
	/* Losses found right after the cut are from before it. */
	assert_false(losses_hear(&losses, 3, 1420 * MS, 2000, 800));
	assert_false(losses_hear(&losses, 3, 1440 * MS, 2100, 800));
	losses_hear(&losses, 3, 1565 * MS, 2400, 800);
	assert_true(losses.factor > 0.92);
	/* Heavy loss ends a period sooner. */
	losses_init(&losses);
	losses_hear(&losses, 3, 1000 * MS, 0, 0);
	assert_false(losses_hear(&losses, 3, 1021 * MS, 400, 200));
	assert_true(losses_hear(&losses, 3, 1051 * MS, 400, 200));
	assert_true(losses.factor > 0.48 && losses.factor < 0.5);
	/* A moment in which everything is lost halves the factor, and no more. */
	losses_init(&losses);
	losses_hear(&losses, 3, 1000 * MS, 0, 0);
	assert_true(losses_hear(&losses, 3, 1051 * MS, 400, 400));
	assert_true(losses.factor > 0.48 && losses.factor < 0.5);
	/* Counters that go back say nothing. */
	losses_init(&losses);
	losses_hear(&losses, 3, 1000 * MS, 5000, 100);
	assert_false(losses_hear(&losses, 3, 1100 * MS, 4000, 100));
	assert_false(losses_hear(&losses, 3, 1200 * MS, 4000, 50));
	assert_false(losses_hear(&losses, 3, 1300 * MS, 4800, 50));
	assert_true(losses.factor == 1);
	/* The factor never reaches 0. */
	for (uint64_t t = 2000; t < 100000; t += 100)
		losses_hear(&losses, 3, t * MS, (uint32_t)t * 10, (uint32_t)t * 10);
	assert_true(losses.factor >= LOSSES_LEAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),        cmocka_unit_test(test_halved),
		cmocka_unit_test(test_one_is_slow),  cmocka_unit_test(test_tenth),
		cmocka_unit_test(test_noise),        cmocka_unit_test(test_two_trees),
		cmocka_unit_test(test_noise_on_all), cmocka_unit_test(test_not_noise),
		cmocka_unit_test(test_found_late),   cmocka_unit_test(test_dip),
		cmocka_unit_test(test_counters),
	};

	if (getenv("TRIB_SEED"))
		seed = strtoull(getenv("TRIB_SEED"), NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
