/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates are agreed on: which words it takes, and what they say. A real
 * aggregator, or three of them as a tree, and children that only speak. Times
 * are for `trib bench rates`; here it is counted who is told what, and that
 * nobody else is.
 */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "cli/rates_talk.h"

#include <math.h>
#include <string.h>

#define LINK 400e6
#define USED 0.96 /* as in plane/core/rates.c */
#define UNIT 1024.0
#define CHILDREN 4u

struct bed {
	struct aggregator *all[3]; /* the root; with levels, two below it */
	struct udp_address at[3];
	unsigned n;
	struct talk one, two, three; /* the third is not in all tests */
};

static void aggregator_make(struct bed *bed, unsigned threads)
{
	struct aggregator_options options = { .cookie = CLUSTER_COOKIE,
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

/* The link shared so many ways, to all of the job's that send. */
static bool is_near(const struct talk *talk, double rate)
{
	bool any = false;

	for (unsigned i = 0; i < talk->n; i++)
		if (!talk->all[i].rests && !one_is_near(talk, i, rate))
			return false;
		else
			any |= !talk->all[i].rests;
	return any;
}

/* A while in which all say again what they do, as workers with much to send would. */
static void go_on(struct bed *bed)
{
	struct talk *talks[] = { &bed->one, &bed->two, &bed->three };

	for (unsigned t = 0; t < 3; t++)
		for (unsigned i = 0; i < talks[t]->n; i++)
			if (talks[t]->all[i].welcome.cookie)
				talk_say(talks[t], i, talks[t]->all[i].rests);
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

static void forget_words(struct bed *bed)
{
	for (unsigned i = 0; i < CHILDREN; i++)
		bed->one.all[i].words = bed->two.all[i].words = 0;
}

/* Answers to reports are none of them. */
static void words_are_at_most(const struct talk *talk, unsigned most)
{
	for (unsigned i = 0; i < talk->n; i++)
		if (talk->all[i].words > most)
			fail_msg("job %u rank %u was told %u times, not %u at most", talk->job, i,
			         talk->all[i].words, most);
}

static void all_send(struct talk *talk, bool rests)
{
	for (unsigned i = 0; i < talk->n; i++)
		talk->all[i].rests = rests;
}

static void test_star(void **state)
{
	double all = LINK * USED;
	static struct bed bed;

	(void)state;
	bed_open(&bed, 1);
	/* The answer to JOIN has the first rate: no further word is needed. */
	demand(talk_join(&bed.one) == TRIB_OK);
	demand(is_near(&bed.one, all / 4));
	/* What changes nothing is told to nobody. */
	for (unsigned k = 0; k < 20; k++)
		go_on(&bed);
	words_are_at_most(&bed.one, 0);
	demand(is_near(&bed.one, all / 4));
	/* Another job: everyone is told once, its own children by their WELCOME. */
	demand(talk_join(&bed.two) == TRIB_OK);
	demand(is_near(&bed.two, all / 8));
	comes_to(&bed, &bed.one, all / 8);
	words_are_at_most(&bed.one, 1);
	words_are_at_most(&bed.two, 0);
	/* One child rests: the others get its share, and are told once. */
	bed.two.all[3].rests = true;
	comes_to(&bed, &bed.one, all / 7);
	comes_to(&bed, &bed.two, all / 7);
	demand(one_is_near(&bed.two, 3, all / 8)); /* what it could have, were it to begin */
	words_are_at_most(&bed.one, 2);
	words_are_at_most(&bed.two, 1);
	/* It begins again. */
	bed.two.all[3].rests = false;
	comes_to(&bed, &bed.one, all / 8);
	comes_to(&bed, &bed.two, all / 8);
	words_are_at_most(&bed.one, 3);
	words_are_at_most(&bed.two, 2);
	/* All but one are done, and then that one too: they know what all could have at once. */
	forget_words(&bed);
	for (unsigned i = 0; i < 3; i++)
		bed.two.all[i].rests = true;
	bed.two.all[3].want = (uint32_t)(1e6 / UNIT); /* which does not bind the others */
	comes_to(&bed, &bed.two, 1e6);
	demand(one_is_near(&bed.two, 0, all / 8));
	bed.two.all[3].want = 0;
	comes_to(&bed, &bed.two, all / 5);
	demand(one_is_near(&bed.two, 0, all / 8));
	bed.two.all[3].rests = true;
	comes_to(&bed, &bed.one, all / 4);
	for (unsigned i = 0; i < CHILDREN; i++)
		demand(one_is_near(&bed.two, i, all / 8));
	words_are_at_most(&bed.two, 4);
	all_send(&bed.two, false);
	comes_to(&bed, &bed.one, all / 8);
	comes_to(&bed, &bed.two, all / 8);
	/* The job ends: all is for the first one again. Four leave, one after the other. */
	forget_words(&bed);
	talk_leave(&bed.two);
	talk_close(&bed.two);
	comes_to(&bed, &bed.one, all / 4);
	words_are_at_most(&bed.one, 4);
	bed_close(&bed);
}

/* Two levels: the root's link and those below it are shared, and the least of them holds. */
static void test_tree(void **state)
{
	double all = LINK * USED;
	static struct bed bed;

	(void)state;
	bed_open(&bed, 2);
	demand(talk_join(&bed.one) == TRIB_OK);
	/* Below: two children and the results from above. The root: two children. */
	demand(is_near(&bed.one, all / 3));
	comes_to(&bed, &bed.one, all / 3);
	demand(talk_join(&bed.two) == TRIB_OK);
	comes_to(&bed, &bed.one, all / 6);
	comes_to(&bed, &bed.two, all / 6);
	/* Once for the own aggregator's link, perhaps once more for the root's. */
	words_are_at_most(&bed.one, 3);
	/* All of the second job rest: its aggregators say so to the root, which says it to all. */
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

/* Two trees of one job, of three quarters and a quarter of its vectors, at one link. */
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
	/* Nobody has said what he could send by each. */
	comes_to(&bed, &bed.one, all / 8);
	comes_to(&bed, &bed.two, all / 8);
	/* Far more than the link bears: this is the limit, and is shared as the vectors are. */
	all_want(&bed.one, 3e12);
	all_want(&bed.two, 1e12);
	comes_to(&bed, &bed.one, all / 4 * 0.75);
	comes_to(&bed, &bed.two, all / 4 * 0.25);
	/* Ranks of unlike limits, of which some do not bind: the shares are the same. */
	bed.one.all[3].want = (uint32_t)(300e6 / UNIT);
	bed.two.all[3].want = (uint32_t)(100e6 / UNIT);
	forget_words(&bed);
	for (unsigned k = 0; k < 10; k++)
		go_on(&bed);
	words_are_at_most(&bed.one, 0);
	/* Another job has as much as before: an equal part for each of its streams. */
	talk_make(&bed, &bed.three, 3, 1);
	demand(talk_join(&bed.three) == TRIB_OK);
	comes_to(&bed, &bed.three, all / 12);
	comes_to(&bed, &bed.one, all / 6 * 0.75);
	comes_to(&bed, &bed.two, all / 6 * 0.25);
	/* The small tree is done with its part: its streams' is for all others alike. */
	all_send(&bed.two, true);
	comes_to(&bed, &bed.one, all / 8);
	comes_to(&bed, &bed.three, all / 8);
	for (unsigned i = 0; i < CHILDREN; i++) /* but it knows its share of what all could have */
		demand(one_is_near(&bed.two, i, all / 6 * 0.25));
	all_send(&bed.two, false);
	comes_to(&bed, &bed.one, all / 6 * 0.75);
	comes_to(&bed, &bed.two, all / 6 * 0.25);
	bed_close(&bed);
}

/* Children who say that they lose much get less, all alike, and get it back. */
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
