/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Negotiation of rates: how many messages it takes, and what they say. A real aggregator, or a tree
 * of three, with children that send control packets only. The test counts the messages to each
 * child. `trib bench rates` measures times.
 */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "bench/rates/rates_talk.h"
#include "loopback_list.h"

#include <math.h>
#include <string.h>

#define LINK 400e6
#define USED 0.96 /* as in plane/lane/link_share.c */
#define UNIT 1024.0
#define CHILDREN 4u

struct bed {
	struct aggregator *all[3]; /* the root; with two levels, also two below it */
	struct udp_address at[3];
	unsigned n;
	struct talk one, two, three; /* `three` is not used in all tests */
};

static void aggregator_make(struct bed *bed, unsigned threads)
{
	struct aggregator_options options = { .cookie = CLUSTER_COOKIE,
		                              .parents = NETWORK_LIST_LOOPBACK,
		                              .threads = threads,
		                              .link_bps = (uint64_t)LINK,
		                              .socket = { .receive_bytes = 1 << 20,
		                                          .send_bytes = 1 << 20 } };

	demand(udp_resolve("127.0.0.1:0", 0, &options.listen) == TRIB_OK);
	demand(aggregator_start(&options, &bed->all[bed->n]) == TRIB_OK);
	bed->at[bed->n] = options.listen;
	udp_set_port(&bed->at[bed->n], aggregator_port(bed->all[bed->n]));
	bed->n++;
}

static void talk_make(struct bed *bed, struct talk *talk, uint16_t job, unsigned levels)
{
	*talk = (struct talk){
		.job = job, .cookie = CLUSTER_COOKIE, .has_parent = levels > 1, .parent = bed->at[0]
	};
	for (unsigned i = 0; i < CHILDREN; i++) {
		unsigned below = levels > 1 ? 1 + i / 2 : 0;

		demand(talk_add(talk, &bed->at[below], levels > 1 ? 3ull << (i / 2 * 2) : 15) ==
		       TRIB_OK);
	}
}

static void bed_open(struct bed *bed, unsigned levels)
{
	memset(bed, 0, sizeof(*bed));
	for (unsigned i = 0; i < (levels > 1 ? 3 : 1); i++)
		aggregator_make(bed, 1);
	talk_make(bed, &bed->one, 1, levels);
	talk_make(bed, &bed->two, 2, levels);
}

static void bed_close(struct bed *bed)
{
	talk_close(&bed->one);
	talk_close(&bed->two);
	talk_close(&bed->three);
	for (unsigned i = 0; i < bed->n; i++) {
		aggregator_stop(bed->all[i]);
		aggregator_free(bed->all[i]);
	}
}

static bool one_is_near(const struct talk *talk, unsigned i, double rate)
{
	return fabs(talk->all[i].rate * UNIT - rate) <= 0.02 * rate;
}

/* Do all active children of the job have this rate? */
static bool is_near(const struct talk *talk, double rate)
{
	bool any = false;

	for (unsigned i = 0; i < talk->n; i++)
		if (!talk->all[i].is_idle && !one_is_near(talk, i, rate))
			return false;
		else
			any |= !talk->all[i].is_idle;
	return any;
}

/* All children repeat their reports for a while, as workers with much to send do. */
static void go_on(struct bed *bed)
{
	struct talk *talks[] = { &bed->one, &bed->two, &bed->three };

	for (unsigned t = 0; t < 3; t++)
		for (unsigned i = 0; i < talks[t]->n; i++)
			if (talks[t]->all[i].welcome.cookie)
				talk_say(talks[t], i, talks[t]->all[i].is_idle);
	talk_hear(talks, 3, 30, NULL, NULL);
}

static void comes_to(struct bed *bed, const struct talk *talk, double rate)
{
	for (unsigned tries = 0; tries < 200 && !is_near(talk, rate); tries++)
		go_on(bed);
	if (!is_near(talk, rate))
		fail_msg("job %u: %.1f Mb/s, not %.1f", talk->job, talk->all[0].rate * UNIT / 1e6,
		         rate / 1e6);
}

/* An idle child may hear later than the others. */
static void one_comes_to(struct bed *bed, const struct talk *talk, unsigned i, double rate)
{
	for (unsigned tries = 0; tries < 200 && !one_is_near(talk, i, rate); tries++)
		go_on(bed);
	if (!one_is_near(talk, i, rate))
		fail_msg("job %u, child %u: %.1f Mb/s, not %.1f", talk->job, i,
		         talk->all[i].rate * UNIT / 1e6, rate / 1e6);
}

static void forget_words(struct bed *bed)
{
	for (unsigned i = 0; i < CHILDREN; i++)
		bed->one.all[i].unasked = bed->two.all[i].unasked = 0;
}

/* Answers to reports do not count. */
static void words_are_at_most(const struct talk *talk, unsigned most)
{
	for (unsigned i = 0; i < talk->n; i++)
		if (talk->all[i].unasked > most)
			fail_msg("job %u rank %u was told %u times, not %u at most", talk->job, i,
			         talk->all[i].unasked, most);
}

static void all_send(struct talk *talk, bool is_idle)
{
	for (unsigned i = 0; i < talk->n; i++)
		talk->all[i].is_idle = is_idle;
}

static void test_star(void **state)
{
	double all = LINK * USED;
	static struct bed bed;

	(void)state;
	bed_open(&bed, 1);
	/* The answer to JOIN has the first rate, so no other message is needed. */
	demand(talk_join(&bed.one) == TRIB_OK);
	demand(is_near(&bed.one, all / 4));
	/* A report that changes nothing causes no message. */
	for (unsigned k = 0; k < 20; k++)
		go_on(&bed);
	words_are_at_most(&bed.one, 0);
	demand(is_near(&bed.one, all / 4));
	/*
	 * Another job joins: each child of the first job gets one message. Its own children learn
	 * the rate from WELCOME.
	 */
	demand(talk_join(&bed.two) == TRIB_OK);
	demand(is_near(&bed.two, all / 8));
	comes_to(&bed, &bed.one, all / 8);
	words_are_at_most(&bed.one, 1);
	words_are_at_most(&bed.two, 0);
	/* One child rests: the others get its share, and are told once. */
	bed.two.all[3].is_idle = true;
	comes_to(&bed, &bed.one, all / 7);
	comes_to(&bed, &bed.two, all / 7);
	one_comes_to(&bed, &bed.two, 3, all / 8); /* its rate if it became active */
	words_are_at_most(&bed.one, 2);
	words_are_at_most(&bed.two, 1);
	/* It begins again. */
	bed.two.all[3].is_idle = false;
	comes_to(&bed, &bed.one, all / 8);
	comes_to(&bed, &bed.two, all / 8);
	words_are_at_most(&bed.one, 3);
	words_are_at_most(&bed.two, 2);
	/*
	 * All but one are idle, then that one too: each knows the rate if all became active at
	 * once.
	 */
	forget_words(&bed);
	for (unsigned i = 0; i < 3; i++)
		bed.two.all[i].is_idle = true;
	bed.two.all[3].want = (uint32_t)(1e6 / UNIT); /* which does not bind the others */
	comes_to(&bed, &bed.two, 1e6);
	one_comes_to(&bed, &bed.two, 0, all / 8);
	bed.two.all[3].want = 0;
	comes_to(&bed, &bed.two, all / 5);
	one_comes_to(&bed, &bed.two, 0, all / 8);
	bed.two.all[3].is_idle = true;
	comes_to(&bed, &bed.one, all / 4);
	for (unsigned i = 0; i < CHILDREN; i++)
		one_comes_to(&bed, &bed.two, i, all / 8);
	words_are_at_most(&bed.two, 4);
	all_send(&bed.two, false);
	comes_to(&bed, &bed.one, all / 8);
	comes_to(&bed, &bed.two, all / 8);
	/*
	 * The job ends, so the first one gets the whole link. Four children leave, one after the
	 * other.
	 */
	forget_words(&bed);
	talk_leave(&bed.two);
	talk_close(&bed.two);
	comes_to(&bed, &bed.one, all / 4);
	words_are_at_most(&bed.one, 4);
	bed_close(&bed);
}

/*
 * Two levels: the links of the root and of the aggregators below are shared. The lowest rate holds.
 */
static void test_tree(void **state)
{
	double all = LINK * USED;
	static struct bed bed;

	(void)state;
	bed_open(&bed, 2);
	demand(talk_join(&bed.one) == TRIB_OK);
	/*
	 * An aggregator below receives from two children and gets results from the root. The root
	 * has two children.
	 */
	demand(is_near(&bed.one, all / 3));
	comes_to(&bed, &bed.one, all / 3);
	demand(talk_join(&bed.two) == TRIB_OK);
	comes_to(&bed, &bed.one, all / 6);
	comes_to(&bed, &bed.two, all / 6);
	/* One message for the own aggregator's link, perhaps another for the root's. */
	words_are_at_most(&bed.one, 3);
	/*
	 * All children of the second job are idle. Its aggregators tell the root, and the root
	 * tells all.
	 */
	forget_words(&bed);
	all_send(&bed.two, true);
	comes_to(&bed, &bed.one, all / 3);
	words_are_at_most(&bed.one, 4);
	all_send(&bed.two, false);
	comes_to(&bed, &bed.one, all / 6);
	talk_leave(&bed.two);
	talk_close(&bed.two);
	comes_to(&bed, &bed.one, all / 3);
	bed_close(&bed);
}

static void all_want(struct talk *talk, double bps)
{
	for (unsigned i = 0; i < talk->n; i++)
		talk->all[i].want = (uint32_t)(bps / UNIT);
}

/* Two trees of one job on one link, with three quarters and one quarter of its vectors. */
static void test_two_trees(void **state)
{
	double all = LINK * USED;
	static struct bed bed;

	(void)state;
	bed_open(&bed, 1);
	bed.two.job = bed.one.job;
	bed.two.tree = 1;
	demand(talk_join(&bed.one) == TRIB_OK);
	demand(talk_join(&bed.two) == TRIB_OK);
	/* No child has reported how much it could send in each tree. */
	comes_to(&bed, &bed.one, all / 8);
	comes_to(&bed, &bed.two, all / 8);
	/*
	 * More than the link can carry: the link is the limit, and is divided in proportion to the
	 * vectors.
	 */
	all_want(&bed.one, 3e12);
	all_want(&bed.two, 1e12);
	comes_to(&bed, &bed.one, all / 4 * 0.75);
	comes_to(&bed, &bed.two, all / 4 * 0.25);
	/* Ranks with different limits, some of which do not bind: the shares stay the same. */
	bed.one.all[3].want = (uint32_t)(300e6 / UNIT);
	bed.two.all[3].want = (uint32_t)(100e6 / UNIT);
	forget_words(&bed);
	for (unsigned k = 0; k < 10; k++)
		go_on(&bed);
	words_are_at_most(&bed.one, 0);
	/* Another job gets an equal part for each of its streams, as before. */
	talk_make(&bed, &bed.three, 3, 1);
	demand(talk_join(&bed.three) == TRIB_OK);
	comes_to(&bed, &bed.three, all / 12);
	comes_to(&bed, &bed.one, all / 6 * 0.75);
	comes_to(&bed, &bed.two, all / 6 * 0.25);
	/* The small tree has finished its part: all others share its streams' rate equally. */
	all_send(&bed.two, true);
	comes_to(&bed, &bed.one, all / 8);
	comes_to(&bed, &bed.three, all / 8);
	for (unsigned i = 0; i < CHILDREN; i++) /* it still knows its share if all became active */
		one_comes_to(&bed, &bed.two, i, all / 6 * 0.25);
	all_send(&bed.two, false);
	comes_to(&bed, &bed.one, all / 6 * 0.75);
	comes_to(&bed, &bed.two, all / 6 * 0.25);
	bed_close(&bed);
}

/* Children that report heavy loss get less, all alike, and get it back later. */
static void test_losses(void **state)
{
	double share = LINK * USED / 4;
	static struct bed bed;

	(void)state;
	bed_open(&bed, 1);
	demand(talk_join(&bed.one) == TRIB_OK);
	for (unsigned k = 0; k < 100 && is_near(&bed.one, share); k++) {
		bed.one.all[1].judged += 1000;
		bed.one.all[1].lost += 400;
		go_on(&bed);
	}
	comes_to(&bed, &bed.one, share * 0.6 * 0.97);
	for (unsigned k = 0; k < 100 && !is_near(&bed.one, share); k++) {
		bed.one.all[1].judged += 1000;
		go_on(&bed);
	}
	comes_to(&bed, &bed.one, share);
	bed_close(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_star),
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_two_trees),
		cmocka_unit_test(test_losses),
	};

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
