/* SPDX-License-Identifier: Apache-2.0 */
#include "control/links.h"

#include <math.h>
#include <string.h>

static double claim(const struct node *node, double guess)
{
	return node->report.link_bps ? (double)node->report.link_bps : guess;
}

double links_enough(const struct node *a, const struct node *b, double guess)
{
	return LINKS_ENOUGH * fmax(claim(a, guess), claim(b, guess));
}

static bool counts(const struct node *node, const struct node_way *way)
{
	return way->at >= node->link_since;
}

/* The most that it carried, and whether cores may have been what it was limited by. */
static double most(const struct node *node, bool outward, bool *strained)
{
	double best = 0;

	*strained = false;
	for (unsigned i = 0; i < node->n_ways; i++) {
		const struct node_way *way = &node->ways[i];
		double bps = outward ? way->out_bps : way->in_bps;

		if (!counts(node, way) || bps <= best)
			continue;
		best = bps;
		*strained = outward ? way->out_strained : way->in_strained;
	}
	return best;
}

static unsigned tries(const struct node *node)
{
	unsigned n = 0;

	for (unsigned i = 0; i < node->n_ways; i++)
		n += counts(node, &node->ways[i]);
	return n;
}

/* In its worse direction. */
static double shown(const struct node *node)
{
	bool strained;

	return fmin(most(node, true, &strained), most(node, false, &strained));
}

bool links_settled(const struct node *node, double guess)
{
	return tries(node) >= LINKS_TRIES || shown(node) >= LINKS_ENOUGH * claim(node, guess);
}

static bool was_tried(const struct node *node, const struct node *other)
{
	for (unsigned i = 0; i < node->n_ways; i++)
		if (counts(node, &node->ways[i]) &&
		    !strcmp(node->ways[i].with, other->report.address))
			return true;
	return false;
}

/* At one address they share a link, and what is between them is none. */
static bool is_beside(const struct node *a, const struct node *b)
{
	const char *one, *two;
	size_t length = node_where(a, &one);

	return length == node_where(b, &two) && !strncmp(one, two, length);
}

/* Who has shown most is the best witness, then who claims most. */
static bool is_better(const struct node *a, const struct node *b)
{
	double one = shown(a), two = shown(b);

	return one != two ? one > two : a->report.link_bps > b->report.link_bps;
}

const struct node *links_partner(const struct nodes *nodes, const struct node *node,
                                 bool (*is_free)(void *context, const struct node *other),
                                 void *context)
{
	const struct node *best = NULL;

	for (unsigned i = 0; i < nodes->n; i++) {
		const struct node *other = nodes->all[i];

		if (!other->report.gauge_port || is_beside(node, other) || was_tried(node, other) ||
		    (best && !is_better(other, best)))
			continue;
		if (is_free(context, other))
			best = other;
	}
	return best;
}

/* Did one of its ways lead to a node that carries more than it does? */
static bool has_witness(const struct nodes *nodes, const struct node *node, bool outward,
                        double bps)
{
	bool strained;

	for (unsigned i = 0; i < node->n_ways; i++) {
		const struct node *other =
			counts(node, &node->ways[i]) ? nodes_find(nodes, node->ways[i].with) : NULL;

		if (other && most(other, !outward, &strained) >= LINKS_APART * bps)
			return true;
	}
	return false;
}

/* What it carries as a rule: the middle one of its ways. */
static double usual(const struct node *node, bool outward)
{
	double sorted[NODE_WAYS];
	unsigned n = 0;

	for (unsigned i = 0; i < node->n_ways; i++) {
		double bps = outward ? node->ways[i].out_bps : node->ways[i].in_bps;
		unsigned at = n;

		if (!counts(node, &node->ways[i]) || !(bps > 0))
			continue;
		for (n++; at && sorted[at - 1] < bps; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = bps;
	}
	return n ? sorted[(n - 1) / 2] : 0;
}

static double judge(const struct nodes *nodes, const struct node *node, double claimed,
                    bool outward)
{
	bool strained;
	double bps = most(node, outward, &strained);

	if (strained || bps >= LINKS_ENOUGH * claimed || !has_witness(nodes, node, outward, bps))
		return 0;
	return usual(node, outward);
}

void links_judge(const struct nodes *nodes, const struct node *node, double guess, double *out_bps,
                 double *in_bps)
{
	*out_bps = judge(nodes, node, claim(node, guess), true);
	*in_bps = judge(nodes, node, claim(node, guess), false);
}
