/* SPDX-License-Identifier: Apache-2.0 */
/* Links judged by probes; and the spans that count what a probe carried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/policy/link_estimate.h"
#include "path/spans.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ull
#define GUESS 1e9

/* ---- spans ---- */

/* Receives for so many milliseconds, with so many bytes in each. */
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
	assert_true(spans_bps(&spans) == 0); /* too short for a rate */
	come(&spans, &now, &bytes, 1, 12500);
	assert_true(fabs(spans_bps(&spans) - 100e6) < 1e6);
}

/* A queue that fills first, a burst, a stall and late bytes do not matter. */
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

/* The true rates, by node index, and the rate between the nodes below and above a border. */
static double true_out[64], true_in[64], across_bps;
static unsigned border;

static struct node *add(struct nodes *nodes, unsigned i, double claim, double out_bps,
                        double in_bps)
{
	struct node_report report = { .link_bps = (uint64_t)claim, .probe_port = 1 };

	snprintf(report.address, sizeof(report.address), "10.0.0.%02u:7700", i);
	snprintf(report.name, sizeof(report.name), "n%u", i);
	true_out[i] = out_bps;
	true_in[i] = in_bps;
	return nodes_heartbeat(nodes, &report, 1, NULL);
}

static unsigned number(const struct node *node)
{
	return (unsigned)atoi(node->report.name + 1);
}

static void note(struct node *node, const struct node *with, double out_bps, double in_bps,
                 uint64_t at)
{
	struct link_sample sample = { .out_bps = out_bps, .in_bps = in_bps, .at = at };

	memcpy(sample.with, with->report.address, sizeof(sample.with));
	link_estimate_keep(node->samples, &node->n_samples, &sample);
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

/* Probes as the controller orders them, until no useful probe is left. */
static unsigned probe_all(struct nodes *nodes, uint64_t at)
{
	unsigned trials = 0;
	bool more = true;

	while (more) {
		more = false;
		for (unsigned i = 0; i < nodes->n; i++) {
			struct node *node = nodes->all[i];
			const struct node *other =
				link_estimate_settled(nodes, node, GUESS)
					? NULL
					: link_estimate_partner(nodes, node, GUESS, anybody, NULL);

			if (!other)
				continue;
			try_both(node, nodes_find(nodes, other->report.address), at);
			trials++;
			more = true;
		}
	}
	return trials;
}

/* The estimate of a slow link; 0: not slow, as far as known. */
static double judge(const struct nodes *nodes, const struct node *node, bool outward)
{
	double bps;

	return link_estimate_judge(nodes, node, GUESS, outward, &bps) == LINK_SLOW ? bps : 0;
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
	assert_true(probe_all(&nodes, 1) < 8); /* at most one probe for each node */
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
	probe_all(&nodes, 1);
	for (unsigned i = 0; i < 4; i++)
		judged(&nodes, nodes.all[i], i == 2 ? 60e6 : 0, i == 2 ? 50e6 : 0);
	/* Slow in one direction only. */
	true_out[2] = 300e6;
	for (unsigned i = 0; i < 4; i++)
		nodes.all[i]->link_since = 2; /* older samples do not count */
	for (unsigned i = 0; i < 4; i++)
		judged(&nodes, nodes.all[i], 0, 0);
	probe_all(&nodes, 2);
	judged(&nodes, nodes.all[2], 0, 50e6);
	nodes_free(&nodes, NULL);
}

/* With two nodes, it is unknown which link is slow; a third node shows it. */
static void test_two(void **state)
{
	struct nodes nodes = { 0 };

	(void)state;
	add(&nodes, 0, 300e6, 60e6, 60e6);
	add(&nodes, 1, 300e6, 300e6, 300e6);
	assert_int_equal(probe_all(&nodes, 1), 1);
	judged(&nodes, nodes.all[0], 0, 0);
	judged(&nodes, nodes.all[1], 0, 0);
	add(&nodes, 2, 300e6, 300e6, 300e6);
	probe_all(&nodes, 1);
	judged(&nodes, nodes.all[0], 60e6, 60e6);
	judged(&nodes, nodes.all[1], 0, 0);
	judged(&nodes, nodes.all[2], 0, 0);
	nodes_free(&nodes, NULL);
}

/*
 * A fast link is not slow because its peers in probes are slow. If all links carry less than
 * claimed, the network between them is the limit, and plans stay the same.
 */
static void test_unlike(void **state)
{
	struct nodes nodes = { 0 };

	(void)state;
	add(&nodes, 0, 1e9, 1e9, 1e9);
	for (unsigned i = 1; i < 6; i++)
		add(&nodes, i, 400e6, 400e6, 400e6);
	probe_all(&nodes, 1);
	for (unsigned i = 0; i < 6; i++)
		judged(&nodes, nodes.all[i], 0, 0);
	nodes_free(&nodes, NULL);
	for (unsigned i = 0; i < 6; i++)
		add(&nodes, i, 10e9, 1e9, 1e9);
	probe_all(&nodes, 1);
	for (unsigned i = 0; i < 6; i++)
		judged(&nodes, nodes.all[i], 0, 0);
	nodes_free(&nodes, NULL);
}

/* If cores were short, a probe tells nothing about the link. */
static void test_strained(void **state)
{
	struct nodes nodes = { 0 };

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		add(&nodes, i, 300e6, i == 2 ? 60e6 : 300e6, i == 2 ? 60e6 : 300e6);
	probe_all(&nodes, 1);
	for (unsigned i = 0; i < nodes.all[2]->n_samples; i++)
		nodes.all[2]->samples[i].out_strained = true;
	judged(&nodes, nodes.all[2], 0, 60e6);
	nodes_free(&nodes, NULL);
}

/*
 * Peers whose links are suspected themselves, or that are gone, do not prove that a link is slow.
 */
static void test_doubted_witnesses(void **state)
{
	struct nodes nodes = { 0 };
	double bps;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		add(&nodes, i, 300e6, i == 2 ? 60e6 : 300e6, i == 2 ? 60e6 : 300e6);
	probe_all(&nodes, 1);
	for (unsigned i = 0; i < 4; i++)
		if (i != 2)
			nodes.all[i]->link_since = 2;
	judged(&nodes, nodes.all[2], 60e6, 60e6);
	for (unsigned i = 0; i < 4; i++)
		if (i != 2)
			nodes.all[i]->n_samples = 0;
	assert_int_equal(link_estimate_judge(&nodes, nodes.all[2], GUESS, true, &bps),
	                 LINK_UNKNOWN);
	assert_true(bps > 50e6 && bps < 70e6); /* a lower bound */
	nodes_free(&nodes, NULL);
}

/* A failed probe shows nothing about the other end. */
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

/* The other end's link was full of other traffic: the probe does not show this link's limit. */
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
	/* If it had room left, the probe counts in spite of other traffic. */
	note(busy, good, 150e6, 150e6, 1);
	note(busy, add(&nodes, 2, 300e6, 300e6, 300e6), 300e6, 300e6, 1);
	judged(&nodes, good, 90e6, 90e6);
	nodes_free(&nodes, NULL);
}

/*
 * A probe does not count until the other end has reported it too. Nor does a probe over a path so
 * window_probe that this link cannot have been the limit.
 */
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
	/* It carries more with its neighbour: the network to the distant node is window_probe. */
	note(one, two, 650e6, 650e6, 1);
	note(two, one, 650e6, 650e6, 1);
	judged(&nodes, one, 0, 0);
	nodes_free(&nodes, NULL);
}

/* A probe that is reported again keeps its time. */
static void test_steady(void **state)
{
	struct link_sample before = { .with = "a:1", .out_bps = 7, .in_bps = 8, .at = 1000 * MS };
	struct link_sample samples[2] = { before, before };

	(void)state;
	samples[0].at += 40 * MS;
	samples[1].at += 40 * MS;
	samples[1].out_bps = 9;
	link_estimate_steady(samples, 2, &before, 1);
	assert_true(samples[0].at == before.at && samples[1].at == before.at + 40 * MS);
	samples[0].at += 60000 * MS;
	link_estimate_steady(samples, 1, &before, 1);
	assert_true(samples[0].at > before.at);
}

/* Few nodes claim fast links, and one of these is slow: it is probed with the other fast ones. */
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
		probe_all(&nodes, 1);
		for (unsigned i = 0; i < 24; i++)
			judged(&nodes, nodes.all[i], i == liar ? 40e9 : 0, 0);
		nodes_free(&nodes, NULL);
	}
}

/* Two sites with a window_probe link between them: all nodes are as claimed within their site. */
static void test_two_sites(void **state)
{
	struct nodes nodes = { 0 };

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		add(&nodes, i, 10e9, 10e9, 10e9);
	border = 12, across_bps = 1e9;
	probe_all(&nodes, 1);
	border = 0;
	for (unsigned i = 0; i < 16; i++)
		judged(&nodes, nodes.all[i], 0, 0);
	nodes_free(&nodes, NULL);
}

/* No probe with a node at the same address, or without a probe port. */
static void test_nobody(void **state)
{
	struct node_report report = { .address = "10.0.0.00:7701", .probe_port = 1 };
	struct nodes nodes = { 0 };
	struct node *node;

	(void)state;
	node = add(&nodes, 0, 1e9, 1e9, 1e9);
	nodes_heartbeat(&nodes, &report, 1, NULL);
	add(&nodes, 1, 1e9, 1e9, 1e9)->report.probe_port = 0;
	assert_null(link_estimate_partner(&nodes, node, GUESS, anybody, NULL));
	judged(&nodes, node, 0, 0);
	/* Failed probes count as failed, and tell no rate. */
	for (unsigned i = 2; i < 2 + LINK_TRIES; i++)
		note(node, add(&nodes, i, 1e9, 1e9, 1e9), 0, 0, 1);
	assert_true(link_estimate_settled(&nodes, node, GUESS));
	assert_true(link_estimate_failed(node));
	judged(&nodes, node, 0, 0);
	nodes_free(&nodes, NULL);
}

/* Random claims, some of them wrong: honest ones are believed, greatly exaggerated ones are not. */
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

			/* The first two nodes are honest, and as fast as any. */
			lies[i] = i > 1 && rand() % 4 == 0;
			honest += !lies[i];
			add(&nodes, i, i > 1 ? claim : 400e6,
			    (i > 1 ? claim : 400e6) * (lies[i] ? 0.3 : 1), i > 1 ? claim : 400e6);
		}
		assert_true(probe_all(&nodes, 1) <= LINK_TRIES * n);
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
