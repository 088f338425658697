/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/turns/pattern.h"

#include <math.h>

double pattern_step_s(const struct pattern *pattern, double pace, bool is_fast)
{
	double t = 0;

	for (unsigned i = 0; i < pattern->n; i++) {
		const struct pattern_op *op = &pattern->ops[i];

		t = fmax(t, op->start_s * pace) + (is_fast ? op->fast_s : op->plain_s);
	}
	return fmax(t, pattern->compute_s * pace);
}

/*
 * The least aggregated time for which the step is as short as with all allreduces aggregated.
 * Counts the last allreduces, because time gained early is often lost in a later gap.
 */
static double step_demand(const struct pattern *pattern)
{
	double sum = 0;

	for (unsigned first = pattern->n; first > 0; first--) {
		double t = 0;

		for (unsigned i = 0; i < pattern->n; i++) {
			const struct pattern_op *op = &pattern->ops[i];

			t = fmax(t, op->start_s) + (i < first ? op->plain_s : op->fast_s);
		}
		if (fmax(t, pattern->compute_s) <= pattern->fast_s * (1 + 1e-9))
			break;
		sum += pattern->ops[first - 1].fast_s;
	}
	return sum / pattern->fast_s;
}

void pattern_fill(struct pattern *pattern, struct pattern_op *ops, unsigned n,
                  const double *start_s, const uint64_t *bytes, double compute_s, uint32_t hosts,
                  const struct wire_model *wire)
{
	for (unsigned i = 0; i < n; i++) {
		struct pattern_op *op = &ops[i];
		double latency = wire->latency_s, size = (double)bytes[i];

		*op = (struct pattern_op){ .start_s = start_s[i],
			                   .plain_s = latency,
			                   .fast_s = latency };
		if (hosts > 1) {
			op->plain_s = latency + size / wire->bytes_per_s;
			op->fast_s = latency + size / (wire->bytes_per_s * wire->ratio);
		}
	}
	pattern_close(pattern, ops, n, compute_s);
}

/* The floor of the allreduce before `after`, from that of `after`. */
static double floor_of(const struct pattern_op *after, double rest, double floor, float compute,
                       float *part)
{
	bool is_later = after->start_s + rest > floor;

	*part = is_later ? (float)after->start_s : compute;
	return is_later ? after->start_s + rest : floor;
}

void pattern_close(struct pattern *pattern, struct pattern_op *ops, unsigned n, double compute_s)
{
	const struct pattern_op *after = NULL;

	for (unsigned i = n; i-- > 0; after = &ops[i]) {
		struct pattern_op *op = &ops[i];

		op->rest_s = op->fast_rest_s = 0;
		op->floor_s = op->fast_floor_s = compute_s;
		op->floor_compute_s = op->fast_floor_compute_s = (float)compute_s;
		if (!after)
			continue;
		op->rest_s = after->plain_s + after->rest_s;
		op->floor_s = floor_of(after, op->rest_s, after->floor_s, after->floor_compute_s,
		                       &op->floor_compute_s);
		op->fast_rest_s = after->fast_s + after->fast_rest_s;
		op->fast_floor_s = floor_of(after, op->fast_rest_s, after->fast_floor_s,
		                            after->fast_floor_compute_s, &op->fast_floor_compute_s);
	}
	*pattern = (struct pattern){ .ops = ops, .n = n, .compute_s = compute_s };
	pattern->plain_s = pattern_step_s(pattern, 1, false);
	pattern->fast_s = pattern_step_s(pattern, 1, true);
	pattern->demand = step_demand(pattern);
}
