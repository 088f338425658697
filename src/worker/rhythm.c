/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/rhythm.h"

#define SMALL_BYTES (16u << 10) /* below, a request's time says nothing of the rate */
#define FADE 0.95               /* with each request */
#define RATIO_FEW 1.3           /* what few hosts gain, or so */
#define RATIO_LEAST 1.1
#define STRIPES_COST 1.2 /* a ring's share is split over many, with more packets and waits */
#define LATENCY_NS 100000.0

static bool is_like(const struct rhythm_step *a, const struct rhythm_step *b)
{
	if (a->n != b->n || a->n > WIRE_TURN_OPS_MAX)
		return false;
	for (unsigned i = 0; i < a->n; i++)
		if (a->ops[i].bytes != b->ops[i].bytes)
			return false;
	return true;
}

static void begin_step(struct rhythm *rhythm, uint64_t number, uint64_t now)
{
	if (rhythm->now.n) {
		rhythm->known = is_like(&rhythm->now, &rhythm->last);
		rhythm->last = rhythm->now;
	}
	rhythm->now.n = 0;
	rhythm->now.compute = 0;
	rhythm->base = number;
	rhythm->began_at = rhythm->ended_at ? rhythm->ended_at : now;
	rhythm->waited = false;
}

void rhythm_post(struct rhythm *rhythm, uint64_t number, uint64_t bytes, bool idle, uint64_t now)
{
	struct rhythm_step *step = &rhythm->now;

	if (!rhythm->began_at || (idle && rhythm->waited))
		begin_step(rhythm, number, now);
	if (step->n < WIRE_TURN_OPS_MAX)
		step->ops[step->n] = (struct rhythm_op){ bytes, now - rhythm->began_at };
	if (step->n <= WIRE_TURN_OPS_MAX)
		step->n++;
}

void rhythm_wait(struct rhythm *rhythm, uint64_t now)
{
	if (!rhythm->waited && rhythm->began_at)
		rhythm->now.compute = now - rhythm->began_at;
	rhythm->waited = true;
}

void rhythm_waited(struct rhythm *rhythm, uint64_t now)
{
	rhythm->ended_at = now;
}

void rhythm_took(struct rhythm *rhythm, bool shared, bool behind, uint64_t bytes, uint64_t ns)
{
	if (bytes < SMALL_BYTES || (rhythm->sure[shared] && !behind))
		return;
	if (behind && !rhythm->sure[shared]) {
		rhythm->sure[shared] = true;
		rhythm->ns[shared] = rhythm->bytes[shared] = 0;
	}
	rhythm->ns[shared] = rhythm->ns[shared] * FADE + (double)ns;
	rhythm->bytes[shared] = rhythm->bytes[shared] * FADE + (double)bytes;
}

static uint32_t to_us(double ns)
{
	double us = ns / 1000;

	return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

/* Nanoseconds a byte; 0: not known. */
static double rate(const struct rhythm *rhythm, unsigned way)
{
	return rhythm->bytes[way] > 0 ? rhythm->ns[way] / rhythm->bytes[way] : 0;
}

double rhythm_bytes_in(const struct rhythm *rhythm, bool shared, double ns)
{
	double each = rate(rhythm, shared);

	return each > 0 ? ns / each : 0;
}

void rhythm_tell(const struct rhythm *rhythm, int ranks, uint64_t next, bool idle, uint64_t now,
                 struct wire_turn *out, struct wire_turn_op *ops)
{
	double plain = rate(rhythm, 0), fast = rate(rhythm, 1), ring;
	bool over = idle && rhythm->waited && rhythm->ended_at > rhythm->began_at;
	uint64_t began = over ? rhythm->ended_at : rhythm->began_at;

	out->ops = 0;
	out->base = over ? next : rhythm->base;
	out->age_us = began && now > began ? to_us((double)(now - began)) : 0;
	if (!rhythm->known || !(plain > 0 || fast > 0))
		return;
	if (!(plain > 0))
		plain = fast * RATIO_FEW;
	ring = 2.0 * (ranks - 1) / ranks;
	if (ring < RATIO_FEW)
		ring = RATIO_FEW;
	/* Much more than a ring's share cannot be gained; where it seemed slower, that was chance.
	 */
	if (!(fast > 0))
		fast = plain / ring;
	else if (fast < plain / (ring * STRIPES_COST))
		fast = plain / (ring * STRIPES_COST);
	else if (fast > plain / RATIO_LEAST)
		fast = plain / RATIO_LEAST;
	out->ops = (uint16_t)rhythm->last.n;
	out->compute_us = to_us((double)rhythm->last.compute);
	for (unsigned i = 0; i < rhythm->last.n; i++) {
		const struct rhythm_op *op = &rhythm->last.ops[i];

		ops[i] = (struct wire_turn_op){
			.start_us = to_us((double)op->start),
			.plain_us = to_us(LATENCY_NS + (double)op->bytes * plain),
			.fast_us = to_us(LATENCY_NS + (double)op->bytes * fast),
		};
	}
}
