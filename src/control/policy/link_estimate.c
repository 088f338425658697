/* SPDX-License-Identifier: Apache-2.0 */
#include "control/policy/link_estimate.h"

#include <math.h>
#include <string.h>

#define SAME_PROBE_NS (3 * 1000000000ull) /* 3 s: both ends report a probe within */

/* The sample to replace: the oldest, unless it has the highest rates. */
static unsigned oldest(const struct link_sample samples[LINK_SAMPLES_MAX])
{
	unsigned best = 0;

	for (unsigned i = 1; i < LINK_SAMPLES_MAX; i++)
		if (samples[i].out_bps + samples[i].in_bps >
		    samples[best].out_bps + samples[best].in_bps)
			best = i;
	return best == LINK_SAMPLES_MAX - 1 ? LINK_SAMPLES_MAX - 2 : LINK_SAMPLES_MAX - 1;
}

void link_estimate_keep(struct link_sample samples[LINK_SAMPLES_MAX], unsigned *n,
                        const struct link_sample *sample)
{
	unsigned at = 0;

	while (at < *n && strcmp(samples[at].with, sample->with) != 0)
		at++;
	if (at == *n)
		at = *n < LINK_SAMPLES_MAX ? (*n)++ : oldest(samples);
	memmove(samples + 1, samples, at * sizeof(*samples));
	samples[0] = *sample;
}

void link_estimate_steady(struct link_sample *samples, unsigned n, const struct link_sample *before,
                          unsigned m)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < m; k++)
			if (!strcmp(samples[i].with, before[k].with) &&
			    samples[i].out_bps == before[k].out_bps &&
			    samples[i].in_bps == before[k].in_bps && before[k].at < samples[i].at &&
			    samples[i].at < before[k].at + SAME_PROBE_NS)
				samples[i].at = before[k].at;
}

static double claim(const struct node *node, double guess)
{
	return node->report.link_bps ? (double)node->report.link_bps : guess;
}

double link_estimate_enough(const struct node *a, const struct node *b, double guess)
{
	return LINK_ENOUGH * fmax(claim(a, guess), claim(b, guess));
}

static double sample_bps(const struct link_sample *sample, bool outward)
{
	return outward ? sample->out_bps : sample->in_bps;
}

/* The highest rate since then, and whether cores may have limited it. */
static double most(const struct node *node, uint64_t since, bool outward, bool *strained)
{
	double best = 0;

	*strained = false;
	for (unsigned i = 0; i < node->n_samples; i++) {
		const struct link_sample *sample = &node->samples[i];

		if (sample->at < since || sample_bps(sample, outward) <= best)
			continue;
		best = sample_bps(sample, outward);
		*strained = outward ? sample->out_strained : sample->in_strained;
	}
	return best;
}

static bool has_samples_since(const struct node *node, uint64_t since)
{
	for (unsigned i = 0; i < node->n_samples; i++)
		if (node->samples[i].at >= since && (node->samples[i].out_bps > 0))
			return true;
	return false;
}

/* The highest rate of its worse direction. */
static double shown(const struct node *node)
{
	bool strained;

	return fmin(most(node, node->link_since, true, &strained),
	            most(node, node->link_since, false, &strained));
}

/* A partner with a slower link cannot show the full rate. */
static bool is_fast(const struct node *other, const struct node *node, double guess)
{
	return claim(other, guess) >= claim(node, guess);
}

/* Probes since link_since; *fast: those with partners that claim as much. */
static unsigned tries(const struct nodes *nodes, const struct node *node, double guess,
                      unsigned *fast)
{
	unsigned n = 0;

	*fast = 0;
	for (unsigned i = 0; i < node->n_samples; i++) {
		const struct node *other = nodes_find(nodes, node->samples[i].with);

		if (node->samples[i].at < node->link_since)
			continue;
		n++;
		*fast += other && is_fast(other, node, guess);
	}
	return n;
}

bool link_estimate_settled(const struct nodes *nodes, const struct node *node, double guess)
{
	unsigned fast;

	tries(nodes, node, guess, &fast);
	return fast >= LINK_TRIES || shown(node) >= LINK_ENOUGH * claim(node, guess);
}

bool link_estimate_failed(const struct node *node)
{
	bool strained;

	return node->n_samples && most(node, 0, true, &strained) == 0 &&
	       most(node, 0, false, &strained) == 0;
}

/* ---- partners ---- */

static const struct link_sample *sample_with(const struct node *node, const struct node *other)
{
	for (unsigned i = 0; i < node->n_samples; i++)
		if (!strcmp(node->samples[i].with, other->report.address))
			return &node->samples[i];
	return NULL;
}

/* Nodes at one address share a link: a probe between them would not use it. */
static bool is_beside(const struct node *a, const struct node *b)
{
	const char *one, *two;
	size_t length = node_where(a, &one);

	return length == node_where(b, &two) && !strncmp(one, two, length);
}

bool link_estimate_may_probe(const struct nodes *nodes, const struct node *node,
                             const struct node *other, double guess)
{
	const struct link_sample *sample = sample_with(node, other);
	unsigned fast;

	return other->report.probe_port && !is_beside(node, other) &&
	       (!sample || sample->at < node->link_since) &&
	       (is_fast(other, node, guess) || tries(nodes, node, guess, &fast) < LINK_TRIES);
}

/* A possible partner of a node. */
struct choice {
	const struct node *node;
	bool is_fast;      /* it claims at least the node's rate */
	double shown;      /* its known rate */
	unsigned distance; /* from the node, in the order of addresses */
};

/*
 * The partner with the highest known rate is the best witness. Every second probe takes the nearest
 * partner, because the network may be narrow between distant nodes.
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

const struct node *link_estimate_partner(const struct nodes *nodes, const struct node *node,
                                         double guess,
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

		if (link_estimate_may_probe(nodes, node, other, guess) &&
		    (!best.node || is_better(&this, &best, tried % 2)) && is_free(context, other))
			best = this;
	}
	return best.node;
}

/* ---- the estimate ---- */

/*
 * Is the other end of this probe known to carry more than this node ever did, and had it room for
 * more in this probe? Its older samples count until it has new ones.
 */
static bool is_witness(const struct nodes *nodes, const struct node *node,
                       const struct link_sample *sample, double guess, bool outward, double bps)
{
	const struct node *other = nodes_find(nodes, sample->with);
	const struct link_sample *back = other ? sample_with(other, node) : NULL;
	double there = sample_bps(sample, outward), can;
	uint64_t since;
	bool strained;

	/* Both ends must have reported the probe. If it was much slower than this node's best, this
	 * node was not the limit. */
	if (!back || back->at > sample->at + SAME_PROBE_NS ||
	    sample->at > back->at + SAME_PROBE_NS || there * LINK_APART < bps)
		return false;
	since = has_samples_since(other, other->link_since) ? other->link_since : 0;
	can = fmin(most(other, since, !outward, &strained), claim(other, guess));
	there = fmax(there, sample_bps(back, !outward)); /* other traffic counts, too */
	return can >= LINK_APART * bps && can >= LINK_APART * there;
}

enum link link_estimate_judge(const struct nodes *nodes, const struct node *node, double guess,
                              bool outward, double *bps)
{
	double sorted[LINK_SAMPLES_MAX], best;
	bool strained;
	unsigned n = 0;

	*bps = best = most(node, node->link_since, outward, &strained);
	if (best >= LINK_ENOUGH * claim(node, guess))
		return LINK_AS_CLAIMED;
	if (!(best > 0) || strained)
		return LINK_UNKNOWN;
	for (unsigned i = 0; i < node->n_samples; i++) {
		const struct link_sample *sample = &node->samples[i];
		unsigned at = n;

		if (sample->at < node->link_since ||
		    !is_witness(nodes, node, sample, guess, outward, best))
			continue;
		for (n++; at && sorted[at - 1] < sample_bps(sample, outward); at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = sample_bps(sample, outward);
	}
	if (!n)
		return LINK_UNKNOWN;
	*bps = sorted[(n - 1) / 2]; /* the median of the probes that this link limited */
	return LINK_SLOW;
}
