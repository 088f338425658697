/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline: what a thread of a worker does next with the micro-batches of a mini-batch
 * (P4SGD, III-B). A micro-batch goes through
 *
 *   forward -> posted (its activations are summed over the workers) -> arrived -> backward
 *
 * The rule: forward first, backward as soon as a result is there. All forwards come before the
 * first backward, because the last post then leaves earliest, and all other backwards hide its
 * journey. Only if `window` micro-batches are on their way, a thread does backwards in between.
 * Results are taken in the order of the posts. When every backward is done, the weights are
 * updated, and the next mini-batch begins: synchronous SGD. Vanilla model parallelism is one
 * micro-batch as large as the mini-batch.
 *
 * Integer sums do not depend on the order, so every interleaving gives the same bits. Pure.
 */
#ifndef TRIB_GLM_TRAIN_PIPELINE_H
#define TRIB_GLM_TRAIN_PIPELINE_H

#include <stdint.h>

struct pipeline {
	uint32_t micros;    /* micro-batches of this mini-batch */
	uint32_t window;    /* micro-batches that may be on their way at once, at least 1 */
	uint32_t forwarded; /* micro-batches below have been through this thread's forward */
	uint32_t returned;  /* micro-batches below have been through this thread's backward */
};

enum pipeline_do { PIPELINE_FORWARD, PIPELINE_BACKWARD, PIPELINE_WAIT, PIPELINE_DONE };

struct pipeline_step {
	enum pipeline_do what;
	uint32_t micro; /* of which; PIPELINE_WAIT: until the result of this one is there */
};

/* `arrived`: the results of micro-batches below are there; it grows at any time. */
static inline struct pipeline_step pipeline_next(const struct pipeline *line, uint32_t arrived)
{
	if (line->returned == line->micros)
		return (struct pipeline_step){ PIPELINE_DONE, line->micros };
	if (line->forwarded < line->micros && line->forwarded - line->returned < line->window)
		return (struct pipeline_step){ PIPELINE_FORWARD, line->forwarded };
	if (line->returned < arrived)
		return (struct pipeline_step){ PIPELINE_BACKWARD, line->returned };
	return (struct pipeline_step){ PIPELINE_WAIT, line->returned };
}

/* What a mini-batch costs a worker, in any unit of time. */
struct pipeline_cost {
	double backward; /* of all its rows; forward takes about as long */
	double cut;      /* of one more micro-batch: to post its sum, to take the result, ... */
	double journey;  /* of a sum, from post to result */
};

/*
 * Into how many micro-batches to cut a mini-batch, `most` at most. Each cut has a cost. It hides
 * the journey of the last sum behind the backwards of all other micro-batches.
 */
static inline uint32_t pipeline_micros(const struct pipeline_cost *cost, uint32_t most)
{
	double least = cost->journey;
	uint32_t best = 1;

	for (uint32_t micros = 2; micros <= most; micros++) {
		double hidden = cost->backward * (micros - 1) / micros;
		double time = cost->cut * (micros - 1);

		if (hidden < cost->journey)
			time += cost->journey - hidden;
		if (time < least) {
			least = time;
			best = micros;
		}
	}
	return best;
}

/* The step was done. */
static inline void pipeline_take(struct pipeline *line, struct pipeline_step step)
{
	line->forwarded += step.what == PIPELINE_FORWARD;
	line->returned += step.what == PIPELINE_BACKWARD;
}

#endif
