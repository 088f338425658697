/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/turns/step_profile.h"

#define SMALL_BYTES (16u << 10) /* the time of smaller requests says nothing about the rate */
#define FADE 0.95               /* factor for older measurements, with each request */
#define RATIO_FEW 1.3           /* typical gain of few hosts by the shared star */
#define RATIO_LEAST 1.1         /* least gain that is believed */
#define STRIPES_COST 1.2        /* own trees: smaller parts, more packets and waits */
#define LATENCY_NS 100000.0
#define MEAN_STEPS 4u  /* steps in the mean: some, as steps vary; few, as they also change */
#define PACE_LEAST 0.5 /* a step that differs by more is not another one at another pace */
#define PACE_MOST 2.0

static bool is_like(const struct profile_step *a, const struct profile_step *b)
{
	if (a->n != b->n || a->n > WIRE_TURN_OPS_MAX)
		return false;
	for (unsigned i = 0; i < a->n; i++)
		if (a->ops[i].bytes != b->ops[i].bytes)
			return false;
	return true;
}

/* Moves a mean towards a new value. `n`: how much the value counts, as 1 / n. */
static void mean_move(uint64_t *mean, uint64_t value, unsigned n)
{
	if (value >= *mean)
		*mean += (value - *mean) / n;
	else
		*mean -= (*mean - value) / n;
}

/* The step is over. */
static void mean_update(struct step_profile *profile)
{
	struct profile_step *mean = &profile->mean;

	if (!is_like(&profile->now, mean)) {
		*mean = profile->now;
		profile->alike = 1;
		return;
	}
	/* The first of them does not count: first steps differ from the others. */
	mean_move(&mean->compute, profile->now.compute, profile->alike);
	for (unsigned i = 0; i < mean->n; i++)
		mean_move(&mean->ops[i].start, profile->now.ops[i].start, profile->alike);
	if (profile->alike < MEAN_STEPS)
		profile->alike++;
}

static void begin_step(struct step_profile *profile, uint64_t number, uint64_t now)
{
	if (profile->now.n)
		mean_update(profile);
	profile->now.n = 0;
	profile->now.compute = 0;
	profile->base = number;
	profile->began_at = profile->ended_at ? profile->ended_at : now;
	profile->waited = false;
}

void step_profile_post(struct step_profile *profile, uint64_t number, uint64_t bytes, bool idle,
                       uint64_t now)
{
	struct profile_step *step = &profile->now;

	if (!profile->began_at || (idle && profile->waited))
		begin_step(profile, number, now);
	if (step->n < WIRE_TURN_OPS_MAX)
		step->ops[step->n] = (struct profile_op){ bytes, now - profile->began_at };
	if (step->n <= WIRE_TURN_OPS_MAX)
		step->n++;
}

void step_profile_wait(struct step_profile *profile, uint64_t now)
{
	if (!profile->waited && profile->began_at)
		profile->now.compute = now - profile->began_at;
	profile->waited = true;
}

void step_profile_waited(struct step_profile *profile, uint64_t now)
{
	profile->ended_at = now;
}

void step_profile_took(struct step_profile *profile, bool shared, bool behind, uint64_t bytes,
                       uint64_t ns)
{
	if (bytes < SMALL_BYTES || (profile->sure[shared] && !behind))
		return;
	if (behind && !profile->sure[shared]) {
		profile->sure[shared] = true;
		profile->ns[shared] = profile->bytes[shared] = 0;
	}
	profile->ns[shared] = profile->ns[shared] * FADE + (double)ns;
	profile->bytes[shared] = profile->bytes[shared] * FADE + (double)bytes;
}

static uint32_t to_us(double ns)
{
	double us = ns / 1000;

	return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

/* Nanoseconds for each byte; 0: unknown. */
static double rate(const struct step_profile *profile, unsigned shared)
{
	return profile->bytes[shared] > 0 ? profile->ns[shared] / profile->bytes[shared] : 0;
}

double step_profile_bytes_in(const struct step_profile *profile, bool shared, double ns)
{
	double each = rate(profile, shared);

	return each > 0 ? ns / each : 0;
}

/* How long the present step takes, of the mean: as its newest request shows. */
static double pace(const struct step_profile *profile)
{
	const struct profile_step *now = &profile->now, *mean = &profile->mean;
	unsigned at = now->n - 1;
	double is;

	if (!now->n || now->n > mean->n || !mean->ops[at].start)
		return 1;
	is = (double)now->ops[at].start / (double)mean->ops[at].start;
	return is < PACE_LEAST ? PACE_LEAST : is > PACE_MOST ? PACE_MOST : is;
}

void step_profile_tell(const struct step_profile *profile, int ranks, uint64_t next, bool idle,
                       uint64_t now, struct wire_turn *out, struct wire_turn_op *ops)
{
	double plain = rate(profile, 0), fast = rate(profile, 1), ring, each;
	bool over = idle && profile->waited && profile->ended_at > profile->began_at;
	uint64_t began = over ? profile->ended_at : profile->began_at;

	out->ops = 0;
	out->base = over ? next : profile->base;
	out->age_us = began && now > began ? to_us((double)(now - began)) : 0;
	if (profile->alike < 2 || !(plain > 0 || fast > 0))
		return;
	if (!(plain > 0))
		plain = fast * RATIO_FEW;
	ring = 2.0 * (ranks - 1) / ranks;
	if (ring < RATIO_FEW)
		ring = RATIO_FEW;
	/* The gain is bounded by that of a ring. A measured loss is taken for chance. */
	if (!(fast > 0))
		fast = plain / ring;
	else if (fast < plain / (ring * STRIPES_COST))
		fast = plain / (ring * STRIPES_COST);
	else if (fast > plain / RATIO_LEAST)
		fast = plain / RATIO_LEAST;
	each = over ? 1 : pace(profile);
	out->ops = (uint16_t)profile->mean.n;
	out->compute_us = to_us((double)profile->mean.compute * each);
	for (unsigned i = 0; i < profile->mean.n; i++) {
		const struct profile_op *op = &profile->mean.ops[i];

		ops[i] = (struct wire_turn_op){
			.start_us = to_us((double)op->start * each),
			.plain_us = to_us(LATENCY_NS + (double)op->bytes * plain),
			.fast_us = to_us(LATENCY_NS + (double)op->bytes * fast),
		};
	}
}
