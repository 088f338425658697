/* SPDX-License-Identifier: Apache-2.0 */
#include "control/links.h"

#include <math.h>
#include <string.h>

#define SAME_TRIAL (3 * 1000000000ull) /* both ends tell of it within */

/* Whose place a new one takes: the oldest's, unless that shows most of what the link can do. */
static unsigned oldest(const struct node_way ways[NODE_WAYS])
{
	unsigned best = 0;

	for (unsigned i = 1; i < NODE_WAYS; i++)
		if (ways[i].out_bps + ways[i].in_bps > ways[best].out_bps + ways[best].in_bps)
			best = i;
	return best == NODE_WAYS - 1 ? NODE_WAYS - 2 : NODE_WAYS - 1;
}

void links_keep(struct node_way ways[NODE_WAYS], unsigned *n, const struct node_way *way)
{
	unsigned at = 0;

	while (at < *n && strcmp(ways[at].with, way->with) != 0)
		at++;
	if (at == *n)
		at = *n < NODE_WAYS ? (*n)++ : oldest(ways);
	memmove(ways + 1, ways, at * sizeof(*ways));
	ways[0] = *way;
}

void links_steady(struct node_way *ways, unsigned n, const struct node_way *before, unsigned m)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < m; k++)
			if (!strcmp(ways[i].with, before[k].with) &&
			    ways[i].out_bps == before[k].out_bps &&
			    ways[i].in_bps == before[k].in_bps && before[k].at < ways[i].at &&
			    ways[i].at < before[k].at + SAME_TRIAL)
				ways[i].at = before[k].at;
}

static double claim(const struct node *node, double guess)
{
	return node->report.link_bps ? (double)node->report.link_bps : guess;
}

double links_enough(const struct node *a, const struct node *b, double guess)
{
	return LINKS_ENOUGH * fmax(claim(a, guess), claim(b, guess));
}

static double way_bps(const struct node_way *way, bool outward)
{
	return outward ? way->out_bps : way->in_bps;
}

/* The most that it carried since, and whether cores may have been what it was limited by. */
static double most(const struct node *node, uint64_t since, bool outward, bool *strained)
{
	double best = 0;

	*strained = false;
	for (unsigned i = 0; i < node->n_ways; i++) {
		const struct node_way *way = &node->ways[i];

		if (way->at < since || way_bps(way, outward) <= best)
			continue;
		best = way_bps(way, outward);
		*strained = outward ? way->out_strained : way->in_strained;
	}
	return best;
}

static bool has_ways_since(const struct node *node, uint64_t since)
{
	for (unsigned i = 0; i < node->n_ways; i++)
		if (node->ways[i].at >= since && (node->ways[i].out_bps > 0))
			return true;
	return false;
}

/* In its worse direction. */
static double shown(const struct node *node)
{
	bool strained;

	return fmin(most(node, node->link_since, true, &strained),
	            most(node, node->link_since, false, &strained));
}

/* Who claims less cannot show what it carries. */
static bool is_fast(const struct node *other, const struct node *node, double guess)
{
	return claim(other, guess) >= claim(node, guess);
}

/* With how many it was tried; *fast: with how many that claim as much. */
static unsigned tries(const struct nodes *nodes, const struct node *node, double guess,
                      unsigned *fast)
{
	unsigned n = 0;

	*fast = 0;
	for (unsigned i = 0; i < node->n_ways; i++) {
		const struct node *other = nodes_find(nodes, node->ways[i].with);

		if (node->ways[i].at < node->link_since)
			continue;
		n++;
		*fast += other && is_fast(other, node, guess);
	}
	return n;
}

bool links_settled(const struct nodes *nodes, const struct node *node, double guess)
{
	unsigned fast;

	tries(nodes, node, guess, &fast);
	return fast >= LINKS_TRIES || shown(node) >= LINKS_ENOUGH * claim(node, guess);
}

bool links_failed(const struct node *node)
{
	bool strained;

	return node->n_ways && most(node, 0, true, &strained) == 0 &&
	       most(node, 0, false, &strained) == 0;
}

/* ---- with whom ---- */

static const struct node_way *way_with(const struct node *node, const struct node *other)
{
	for (unsigned i = 0; i < node->n_ways; i++)
		if (!strcmp(node->ways[i].with, other->report.address))
			return &node->ways[i];
	return NULL;
}

/* At one address they share a link, and what is between them is none. */
static bool is_beside(const struct node *a, const struct node *b)
{
	const char *one, *two;
	size_t length = node_where(a, &one);

	return length == node_where(b, &two) && !strncmp(one, two, length);
}

bool links_may_try(const struct nodes *nodes, const struct node *node, const struct node *other,
                   double guess)
{
	const struct node_way *way = way_with(node, other);
	unsigned fast;

	return other->report.gauge_port && !is_beside(node, other) &&
	       (!way || way->at < node->link_since) &&
	       (is_fast(other, node, guess) || tries(nodes, node, guess, &fast) < LINKS_TRIES);
}

/* One that may be tried with a node. */
struct choice {
	const struct node *node;
	bool is_fast;      /* it claims as much as that one */
	double shown;      /* it is known to carry so much */
	unsigned distance; /* from it, by addresses */
};

/*
 * Who has shown most is the best witness. The second time it is the nearest, for there may be
 * something narrow between this one and those far away.
 */
static bool is_better(const struct choice *a, const struct choice *b, bool nearest)
{
	if (a->is_fast != b->is_fast)
		return a->is_fast;
	if (nearest)
		return a->distance < b->distance;
	return a->shown != b->shown ? a->shown > b->shown
	                            : a->node->report.link_bps > b->node->report.link_bps;
}

const struct node *links_partner(const struct nodes *nodes, const struct node *node, double guess,
                                 bool (*is_free)(void *context, const struct node *other),
                                 void *context)
{
	struct choice best = { 0 };
	unsigned own = 0, fast, tried = tries(nodes, node, guess, &fast);

	while (own < nodes->n && nodes->all[own] != node)
		own++;
	for (unsigned i = 0; i < nodes->n; i++) {
		const struct node *other = nodes->all[i];
		const struct choice this = { .node = other,
			                     .is_fast = is_fast(other, node, guess),
			                     .shown = shown(other),
			                     .distance = i > own ? i - own : own - i };

		if (links_may_try(nodes, node, other, guess) &&
		    (!best.node || is_better(&this, &best, tried % 2)) && is_free(context, other))
			best = this;
	}
	return best.node;
}

/* ---- what it is ---- */

/*
 * Can the other end of the way carry more than this node ever did, and could it have in this very
 * trial? What it was seen to do counts until it is seen again.
 */
static bool is_witness(const struct nodes *nodes, const struct node *node,
                       const struct node_way *way, double guess, bool outward, double bps)
{
	const struct node *other = nodes_find(nodes, way->with);
	const struct node_way *back = other ? way_with(other, node) : NULL;
	double there = way_bps(way, outward), can;
	uint64_t since;
	bool strained;

	/* Both have to have told of it; and what carried much less than this one can, was not
	 * limited by it. */
	if (!back || back->at > way->at + SAME_TRIAL || way->at > back->at + SAME_TRIAL ||
	    there * LINKS_APART < bps)
		return false;
	since = has_ways_since(other, other->link_since) ? other->link_since : 0;
	can = fmin(most(other, since, !outward, &strained), claim(other, guess));
	there = fmax(there, way_bps(back, !outward)); /* others were there too */
	return can >= LINKS_APART * bps && can >= LINKS_APART * there;
}

enum link links_judge(const struct nodes *nodes, const struct node *node, double guess,
                      bool outward, double *bps)
{
	double sorted[NODE_WAYS], best;
	bool strained;
	unsigned n = 0;

	*bps = best = most(node, node->link_since, outward, &strained);
	if (best >= LINKS_ENOUGH * claim(node, guess))
		return LINK_AS_CLAIMED;
	if (!(best > 0) || strained)
		return LINK_UNKNOWN;
	for (unsigned i = 0; i < node->n_ways; i++) {
		const struct node_way *way = &node->ways[i];
		unsigned at = n;

		if (way->at < node->link_since ||
		    !is_witness(nodes, node, way, guess, outward, best))
			continue;
		for (n++; at && sorted[at - 1] < way_bps(way, outward); at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = way_bps(way, outward);
	}
	if (!n)
		return LINK_UNKNOWN;
	*bps = sorted[(n - 1) / 2]; /* the middle one of those that it was the limit of */
	return LINK_SLOW;
}
