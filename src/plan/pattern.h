/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a job communicates in one training step, and when the step would end.
 * Allreduces are in a fixed order, one at a time; each has a time from the
 * step's start before which its gradients are not there, and the step ends no
 * sooner than its computation. An allreduce takes `plain` seconds, or `fast`
 * ones if it is aggregated in the network.
 */
#ifndef TRIB_PLAN_PATTERN_H
#define TRIB_PLAN_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* What an allreduce costs. */
struct wire_model {
	double bytes_per_s;
	double ratio;     /* how many times faster when aggregated */
	double latency_s; /* all that a job on one host pays */
};

#define WIRE_MODEL_DEFAULT                                            \
	(struct wire_model)                                           \
	{                                                             \
		.bytes_per_s = 12.5e9, .ratio = 2, .latency_s = 50e-6 \
	}

/* All a step needs to know of an allreduce, side by side: one line of cache. */
struct pattern_op {
	double start_s; /* not before, from the step's start */
	double plain_s, fast_s;
	/*
	 * If this one ends at t and the step began at 0, and no later one is
	 * aggregated, the step ends at max(t + rest_s, floor_s).
	 */
	double rest_s, floor_s;
	double fast_rest_s, fast_floor_s; /* the same if all later ones are */
};

struct pattern {
	const struct pattern_op *ops;
	unsigned n;
	double compute_s; /* the step is not over before */
	double plain_s;   /* a step without aggregation */
	double fast_s;    /* a step with all of it */
	double demand;    /* share of its time that a job wants to be aggregated, to be as fast */
};

/* start_s and bytes of n allreduces; ops has room for n. */
void pattern_fill(struct pattern *pattern, struct pattern_op *ops, unsigned n,
                  const double *start_s, const uint64_t *bytes, double compute_s, uint32_t hosts,
                  const struct wire_model *wire);

/* The same of allreduces whose start_s, plain_s and fast_s are there already. */
void pattern_close(struct pattern *pattern, struct pattern_op *ops, unsigned n, double compute_s);

/*
 * Seconds by which the step ends sooner if op, which begins at `now`, is
 * aggregated and no later one is. The step began at `began`.
 */
static inline double pattern_gain(const struct pattern_op *op, double began, double now)
{
	double plain = now + op->plain_s + op->rest_s, fast = now + op->fast_s + op->rest_s;
	double floor = began + op->floor_s;

	return (plain > floor ? plain : floor) - (fast > floor ? fast : floor);
}

/* The same if all later ones are aggregated too: what is won early may be lost in a gap later. */
static inline double pattern_gain_fast(const struct pattern_op *op, double began, double now)
{
	double plain = now + op->plain_s + op->fast_rest_s,
	       fast = now + op->fast_s + op->fast_rest_s;
	double floor = began + op->fast_floor_s;

	return (plain > floor ? plain : floor) - (fast > floor ? fast : floor);
}

#endif
