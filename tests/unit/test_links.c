/* SPDX-License-Identifier: Apache-2.0 */
/* Links judged by what they carried when they were tried; and the spans that this is counted by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/links.h"
#include "path/spans.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ull
#define GUESS 1e9

/* ---- spans ---- */

/* So many milliseconds at so many bytes in each. */
static void come(struct spans *spans, uint64_t *now, uint64_t *bytes, unsigned ms, unsigned each)
{
	for (unsigned i = 0; i < ms; i++) {
		*now += MS;
		*bytes += each;
		spans_at(spans, *now, *bytes);
	}
}

static void test_spans(void **state)
{
	struct spans spans = { 0 };
	uint64_t now = 7 * MS, bytes = 0;

	(void)state;
	spans_at(&spans, now, bytes);
	come(&spans, &now, &bytes, 59, 12500);
	assert_true(spans_bps(&spans) == 0); /* too short to tell */
	come(&spans, &now, &bytes, 1, 12500);
	assert_true(fabs(spans_bps(&spans) - 100e6) < 1e6);
}

/* A queue that fills first, a burst and a stall do not matter; nor what comes after long. */
static void test_spans_uneven(void **state)
{
	struct spans spans = { 0 };
	uint64_t now = 7 * MS, bytes = 0;

	(void)state;
	spans_at(&spans, now, bytes);
	come(&spans, &now, &bytes, 20, 500000);
	come(&spans, &now, &bytes, 40, 12500);
	come(&spans, &now, &bytes, 20, 400000);
	come(&spans, &now, &bytes, 20, 0);
	come(&spans, &now, &bytes, 40, 12500);
	assert_true(fabs(spans_bps(&spans) - 100e6) < 1e6);
	come(&spans, &now, &bytes, 1000, 1);
	assert_int_equal(spans.n, SPANS_MAX);
	/* A clock or a counter that goes back. */
	spans_at(&spans, 1, bytes);
	spans_at(&spans, now + 20 * MS, 0);
	assert_true(isfinite(spans_bps(&spans)));
}

/* ---- links ---- */

/* What is true of them, by their place among the nodes; and what is between those below a border
 * and those above. */
static double true_out[64], true_in[64], across_bps;
static unsigned border;

static struct node *add(struct nodes *nodes, unsigned i, double claim, double out_bps,
                        double in_bps)
{
	struct node_report report = { .link_bps = (uint64_t)claim, .gauge_port = 1 };

	snprintf(report.address, sizeof(report.address), "10.0.0.%02u:7700", i);
	snprintf(report.name, sizeof(report.name), "n%u", i);
	true_out[i] = out_bps;
	true_in[i] = in_bps;
	return nodes_beat(nodes, &report, 1, NULL);
}

static unsigned number(const struct node *node)
{
	return (unsigned)atoi(node->report.name + 1);
}

static void note(struct node *node, const struct node *with, double out_bps, double in_bps,
                 uint64_t at)
{
	struct node_way way = { .out_bps = out_bps, .in_bps = in_bps, .at = at };

	memcpy(way.with, with->report.address, sizeof(way.with));
	links_keep(node->ways, &node->n_ways, &way);
}

static double noisy(void)
{
	return 0.93 + 0.1 * (double)rand() / RAND_MAX;
}

static void try_both(struct node *a, struct node *b, uint64_t at)
{
	unsigned i = number(a), k = number(b);
	double there = fmin(true_out[i], true_in[k]) * noisy();
	double back = fmin(true_out[k], true_in[i]) * noisy();

	if (border && (i < border) != (k < border))
		there = back = across_bps * noisy();
	note(a, b, there, back, at);
	note(b, a, back, there, at);
}

static bool anybody(void *context, const struct node *other)
{
	(void)context;
	(void)other;
	return true;
}

/* As the controller does, one node after the other, until nothing is left to be tried. */
static unsigned try_all(struct nodes *nodes, uint64_t at)
{
	unsigned trials = 0;
	bool more = true;

	while (more) {
		more = false;
		for (unsigned i = 0; i < nodes->n; i++) {
			struct node *node = nodes->all[i];
			const struct node *other =
				links_settled(nodes, node, GUESS)
					? NULL
					: links_partner(nodes, node, GUESS, anybody, NULL);

			if (!other)
				continue;
			try_both(node, nodes_find(nodes, other->report.address), at);
			trials++;
			more = true;
		}
	}
	return trials;
}

/* Is it slow, and how much? 0: for all that is known, it is not. */
static double judge(const struct nodes *nodes, const struct node *node, bool outward)
{
	double bps;

	return links_judge(nodes, node, GUESS, outward, &bps) == LINK_SLOW ? bps : 0;
}

static void judged(const struct nodes *nodes, const struct node *node, double out_bps,
                   double in_bps)
{
	assert_true(fabs(judge(nodes, node, true) - out_bps) <= 0.1 * out_bps);
	assert_true(fabs(judge(nodes, node, false) - in_bps) <= 0.1 * in_bps);
}

static void test_all_well(void **state)
{
	struct nodes nodes = { 0 };

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		add(&nodes, i, 300e6, 300e6, 300e6);
	assert_true(try_all(&nodes, 1) < 8); /* each asks once at most */
	for (unsigned i = 0; i < 8; i++)
		judged(&nodes, nodes.all[i], 0, 0);
	nodes_free(&nodes, NULL);
}

static void test_slow_one(void **state)
{
	struct nodes nodes = { 0 };

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		add(&nodes, i, 300e6, i == 2 ? 60e6 : 300e6, i == 2 ? 50e6 : 300e6);
	try_all(&nodes, 1);
	for (unsigned i = 0; i < 4; i++)
		judged(&nodes, nodes.all[i], i == 2 ? 60e6 : 0, i == 2 ? 50e6 : 0);
	/* One direction only. */
	true_out[2] = 300e6;
	for (unsigned i = 0; i < 4; i++)
		nodes.all[i]->link_since = 2; /* what was seen does not count any more, */
	for (unsigned i = 0; i < 4; i++)
		judged(&nodes, nodes.all[i], 0, 0);
	try_all(&nodes, 2);
	judged(&nodes, nodes.all[2], 0, 50e6);
	nodes_free(&nodes, NULL);
}

/* Of two nobody can tell whose link it is; the third one shows it. */
static void test_two(void **state)
{
	struct nodes nodes = { 0 };

	(void)state;
	add(&nodes, 0, 300e6, 60e6, 60e6);
	add(&nodes, 1, 300e6, 300e6, 300e6);
	assert_int_equal(try_all(&nodes, 1), 1);
	judged(&nodes, nodes.all[0], 0, 0);
	judged(&nodes, nodes.all[1], 0, 0);
	add(&nodes, 2, 300e6, 300e6, 300e6);
	try_all(&nodes, 1);
	judged(&nodes, nodes.all[0], 60e6, 60e6);
	judged(&nodes, nodes.all[1], 0, 0);
	judged(&nodes, nodes.all[2], 0, 0);
	nodes_free(&nodes, NULL);
}

/* A fast link is not slow because those that it was tried with are; nor one where all alike carry
 * less than they claim: that is the network between them, and plans are the same. */
static void test_unlike(void **state)
{
	struct nodes nodes = { 0 };

	(void)state;
	add(&nodes, 0, 1e9, 1e9, 1e9);
	for (unsigned i = 1; i < 6; i++)
		add(&nodes, i, 400e6, 400e6, 400e6);
	try_all(&nodes, 1);
	for (unsigned i = 0; i < 6; i++)
		judged(&nodes, nodes.all[i], 0, 0);
	nodes_free(&nodes, NULL);
	for (unsigned i = 0; i < 6; i++)
		add(&nodes, i, 10e9, 1e9, 1e9);
	try_all(&nodes, 1);
	for (unsigned i = 0; i < 6; i++)
		judged(&nodes, nodes.all[i], 0, 0);
	nodes_free(&nodes, NULL);
}

/* Where cores were short, nothing is said of the link. */
static void test_strained(void **state)
{
	struct nodes nodes = { 0 };

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		add(&nodes, i, 300e6, i == 2 ? 60e6 : 300e6, i == 2 ? 60e6 : 300e6);
	try_all(&nodes, 1);
	for (unsigned i = 0; i < nodes.all[2]->n_ways; i++)
		nodes.all[2]->ways[i].out_strained = true;
	judged(&nodes, nodes.all[2], 0, 60e6);
	nodes_free(&nodes, NULL);
}

/* Others whose links are in doubt themselves, or are gone, are no reason to believe in a slow one.
 */
static void test_doubted_witnesses(void **state)
{
	struct nodes nodes = { 0 };
	double bps;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		add(&nodes, i, 300e6, i == 2 ? 60e6 : 300e6, i == 2 ? 60e6 : 300e6);
	try_all(&nodes, 1);
	for (unsigned i = 0; i < 4; i++)
		if (i != 2)
			nodes.all[i]->link_since = 2;
	judged(&nodes, nodes.all[2], 60e6, 60e6);
	for (unsigned i = 0; i < 4; i++)
		if (i != 2)
			nodes.all[i]->n_ways = 0;
	assert_int_equal(links_judge(&nodes, nodes.all[2], GUESS, true, &bps), LINK_UNKNOWN);
	assert_true(bps > 50e6 && bps < 70e6); /* so much at least */
	nodes_free(&nodes, NULL);
}

/* A trial that failed shows nothing of the other end. */
static void test_failed_is_no_witness(void **state)
{
	struct nodes nodes = { 0 };
	struct node *good, *slow, *fast;

	(void)state;
	good = add(&nodes, 0, 300e6, 300e6, 300e6);
	slow = add(&nodes, 1, 300e6, 60e6, 60e6);
	fast = add(&nodes, 2, 300e6, 300e6, 300e6);
	note(fast, add(&nodes, 3, 300e6, 300e6, 300e6), 300e6, 300e6, 1);
	try_both(good, slow, 1);
	note(good, fast, 0, 0, 1);
	judged(&nodes, good, 0, 0);
	nodes_free(&nodes, NULL);
}

/* The other end's link was full of other things: what was left for this one says nothing of it. */
static void test_busy_witness(void **state)
{
	struct nodes nodes = { 0 };
	struct node *good, *busy;

	(void)state;
	good = add(&nodes, 0, 300e6, 300e6, 300e6);
	busy = add(&nodes, 1, 300e6, 300e6, 300e6);
	note(good, busy, 90e6, 90e6, 1);
	note(busy, good, 300e6, 300e6, 1);
	judged(&nodes, good, 0, 0);
	/* With room to spare it is another matter, although others are there. */
	note(busy, good, 150e6, 150e6, 1);
	note(busy, add(&nodes, 2, 300e6, 300e6, 300e6), 300e6, 300e6, 1);
	judged(&nodes, good, 90e6, 90e6);
	nodes_free(&nodes, NULL);
}

/* Until the other end has told of the trial too, it is none; nor is one by a way so narrow that
 * this link cannot have been the limit. */
static void test_no_witness_yet(void **state)
{
	struct nodes nodes = { 0 };
	struct node *one, *two, *far;

	(void)state;
	one = add(&nodes, 0, 1e9, 1e9, 1e9);
	two = add(&nodes, 1, 1e9, 1e9, 1e9);
	far = add(&nodes, 2, 1e9, 1e9, 1e9);
	note(far, add(&nodes, 3, 1e9, 1e9, 1e9), 950e6, 950e6, 1);
	note(one, far, 300e6, 300e6, 1);
	judged(&nodes, one, 0, 0);
	note(far, one, 300e6, 300e6, 1);
	judged(&nodes, one, 300e6, 300e6);
	/* With its neighbour it carries more: what is between them and the far one is narrow. */
	note(one, two, 650e6, 650e6, 1);
	note(two, one, 650e6, 650e6, 1);
	judged(&nodes, one, 0, 0);
	nodes_free(&nodes, NULL);
}

/* The same trial told again is no newer for that. */
static void test_steady(void **state)
{
	struct node_way before = { .with = "a:1", .out_bps = 7, .in_bps = 8, .at = 1000 * MS };
	struct node_way ways[2] = { before, before };

	(void)state;
	ways[0].at += 40 * MS;
	ways[1].at += 40 * MS;
	ways[1].out_bps = 9;
	links_steady(ways, 2, &before, 1);
	assert_true(ways[0].at == before.at && ways[1].at == before.at + 40 * MS);
	ways[0].at += 60000 * MS;
	links_steady(ways, 1, &before, 1);
	assert_true(ways[0].at > before.at);
}

/* Few are fast, and one of these is not: it is tried with the others of them. */
static void test_few_fast(void **state)
{
	(void)state;
	srand(5);
	for (unsigned round = 0; round < 50; round++) {
		struct nodes nodes = { 0 };
		unsigned liar = (unsigned)rand() % 24, fast[4];

		for (unsigned i = 0; i < 4; i++)
			fast[i] = i ? (fast[i - 1] + 1 + (unsigned)rand() % 6) % 24 : liar;
		for (unsigned i = 0; i < 24; i++) {
			bool is_fast = i == fast[0] || i == fast[1] || i == fast[2] || i == fast[3];

			add(&nodes, i, is_fast ? 100e9 : 40e9, is_fast && i != liar ? 100e9 : 40e9,
			    is_fast ? 100e9 : 40e9);
		}
		try_all(&nodes, 1);
		for (unsigned i = 0; i < 24; i++)
			judged(&nodes, nodes.all[i], i == liar ? 40e9 : 0, 0);
		nodes_free(&nodes, NULL);
	}
}

/* Two sites with little between them: all are as they claim, each with its neighbours. */
static void test_two_sites(void **state)
{
	struct nodes nodes = { 0 };

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		add(&nodes, i, 10e9, 10e9, 10e9);
	border = 12, across_bps = 1e9;
	try_all(&nodes, 1);
	border = 0;
	for (unsigned i = 0; i < 16; i++)
		judged(&nodes, nodes.all[i], 0, 0);
	nodes_free(&nodes, NULL);
}

/* Who shares an address, or takes no trials, is nobody to be tried with. */
static void test_nobody(void **state)
{
	struct node_report report = { .address = "10.0.0.00:7701", .gauge_port = 1 };
	struct nodes nodes = { 0 };
	struct node *node;

	(void)state;
	node = add(&nodes, 0, 1e9, 1e9, 1e9);
	nodes_beat(&nodes, &report, 1, NULL);
	add(&nodes, 1, 1e9, 1e9, 1e9)->report.gauge_port = 0;
	assert_null(links_partner(&nodes, node, GUESS, anybody, NULL));
	judged(&nodes, node, 0, 0);
	/* Trials that failed count as such, and say nothing. */
	for (unsigned i = 2; i < 2 + LINKS_TRIES; i++)
		note(node, add(&nodes, i, 1e9, 1e9, 1e9), 0, 0, 1);
	assert_true(links_settled(&nodes, node, GUESS));
	assert_true(links_failed(node));
	judged(&nodes, node, 0, 0);
	nodes_free(&nodes, NULL);
}

/* Any claims, some of them wrong: who is honest is believed, and who claims much too much is not.
 */
static void test_any(void **state)
{
	(void)state;
	srand(4);
	for (unsigned round = 0; round < 300; round++) {
		unsigned n = 3 + (unsigned)rand() % 30, honest = 0;
		struct nodes nodes = { 0 };
		bool lies[64];

		for (unsigned i = 0; i < n; i++) {
			double claim = 100e6 * (1 + rand() % 4);

			/* The first two are known to be right, and are as fast as any. */
			lies[i] = i > 1 && rand() % 4 == 0;
			honest += !lies[i];
			add(&nodes, i, i > 1 ? claim : 400e6,
			    (i > 1 ? claim : 400e6) * (lies[i] ? 0.3 : 1), i > 1 ? claim : 400e6);
		}
		assert_true(try_all(&nodes, 1) <= LINKS_TRIES * n);
		for (unsigned i = 0; i < n; i++) {
			const struct node *node = nodes.all[i];
			double out = judge(&nodes, node, true);

			assert_true(judge(&nodes, node, false) == 0);
			assert_true(lies[number(node)] ? out > 0 : out == 0);
			if (lies[number(node)])
				assert_true(fabs(out / true_out[number(node)] - 0.98) < 0.06);
		}
		assert_true(honest >= 2);
		nodes_free(&nodes, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_spans_uneven),
		cmocka_unit_test(test_all_well),
		cmocka_unit_test(test_slow_one),
		cmocka_unit_test(test_two),
		cmocka_unit_test(test_unlike),
		cmocka_unit_test(test_strained),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_any),
		cmocka_unit_test(test_doubted_witnesses),
		cmocka_unit_test(test_failed_is_no_witness),
		cmocka_unit_test(test_busy_witness),
		cmocka_unit_test(test_few_fast),
		cmocka_unit_test(test_two_sites),
		cmocka_unit_test(test_no_witness_yet),
		cmocka_unit_test(test_steady),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
