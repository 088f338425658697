/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern: how a job communicates in one training step, and when the step ends.
 * Allreduces run in a fixed order, one at a time. Each has an earliest start, when its
 * gradients are ready. The step ends when its computation and all allreduces have ended. An
 * allreduce takes `plain` seconds, or `fast` seconds if the network aggregates it.
 */
#ifndef TRIB_PLAN_TURNS_PATTERN_H
#define TRIB_PLAN_TURNS_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The cost of an allreduce. */
struct wire_model {
	double bytes_per_s;
	double ratio;     /* speed-up by aggregation */
	double latency_s; /* fixed cost; a job on one host pays only this */
};

#define WIRE_MODEL_DEFAULT                                            \
	(struct wire_model)                                           \
	{                                                             \
		.bytes_per_s = 12.5e9, .ratio = 2, .latency_s = 50e-6 \
	}

/* One allreduce of a step. It fits one cache line. */
struct pattern_op {
	double start_s; /* earliest start, from the start of the step */
	double plain_s, fast_s;
	/*
	 * If this allreduce ends at t, the step began at 0, and no later one is
	 * aggregated, the step ends at max(t + rest_s, floor_s).
	 */
	double rest_s, floor_s;
	double fast_rest_s, fast_floor_s; /* the same two, if all later ones are aggregated */
	/* The part of floor_s and fast_floor_s that is computation, and changes with the pace. */
	float floor_compute_s, fast_floor_compute_s;
};

struct pattern {
	const struct pattern_op *ops;
	unsigned n;
	double compute_s; /* duration of the computation */
	double plain_s;   /* duration of a step without aggregation */
	double fast_s;    /* duration of a step with everything aggregated */
	double demand;    /* share of the time that the job needs the aggregator for fast_s */
};

/* Fills the pattern from start_s and bytes of n allreduces; ops has room for n. */
void pattern_fill(struct pattern *pattern, struct pattern_op *ops, unsigned n,
                  const double *start_s, const uint64_t *bytes, double compute_s, uint32_t hosts,
                  const struct wire_model *wire);

/* Completes a pattern whose ops have start_s, plain_s and fast_s. */
void pattern_close(struct pattern *pattern, struct pattern_op *ops, unsigned n, double compute_s);

/*
 * Duration of a step with all allreduces aggregated, or none, if its computation takes `pace` times
 * as long as usual.
 */
double pattern_step_s(const struct pattern *pattern, double pace, bool is_fast);

/* Is the network the job's bottleneck by far, even with everything aggregated? */
static inline bool pattern_is_bound(const struct pattern *pattern)
{
	return pattern->compute_s < 0.7 * pattern->fast_s;
}

/*
 * Seconds that the step gains if op, which starts at `now`, is aggregated and no later one
 * is. The step started at `began`, and has this pace.
 */
static inline double pattern_gain(const struct pattern_op *op, double began, double now,
                                  double pace)
{
	double plain = now + op->plain_s + op->rest_s, fast = now + op->fast_s + op->rest_s;
	double floor = began + op->floor_s + (pace - 1) * op->floor_compute_s;

	return (plain > floor ? plain : floor) - (fast > floor ? fast : floor);
}

/* The earliest end of the step, if all allreduces after op are aggregated. */
static inline double pattern_floor_fast(const struct pattern_op *op, double began, double pace)
{
	return began + op->fast_floor_s + (pace - 1) * op->fast_floor_compute_s;
}

/* The gain if all later ones are aggregated too: a later gap may swallow an early gain. */
static inline double pattern_gain_fast(const struct pattern_op *op, double began, double now,
                                       double pace)
{
	double plain = now + op->plain_s + op->fast_rest_s,
	       fast = now + op->fast_s + op->fast_rest_s;
	double floor = pattern_floor_fast(op, began, pace);

	return (plain > floor ? plain : floor) - (fast > floor ? fast : floor);
}

#endif
