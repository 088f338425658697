/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/losses.h"

#include <math.h>

#define ENOUGH 200u   /* packets of all to judge by, */
#define ENOUGH_OF 50u /* ... and of one */
#define STALE 20u     /* periods: fewer packets in so long say nothing about a rate */
#define HEAVY 0.05
#define DRAIN 0.97            /* of what got through, so that a queue drains */
#define CUT_MAX 0.5           /* of the factor: a moment in which all is lost says little */
#define HELPS 0.5             /* a cut after which more of the losses are left has not helped, */
#define ELSE 2.0              /* and so many times the losses are others */
#define CUTS_MAX 3u           /* that do not help */
#define CUTS_NS 1000000000ull /* between two of them: they have */
#define OWN_MAX 0.2           /* more is never a path's own */
#define OWN_SPREAD 0.5        /* by which the path's own losses vary, */
#define SIGMAS 3              /* ... besides by chance */
#define OWN_FALLS 16          /* periods, when less than that is lost */
#define STEP_MIN 0.01
#define STEP_MAX 0.02
#define STEP_FREE 0.1 /* beyond every ceiling that is known */
#define BEYOND 1.15   /* of a ceiling, which then is one no longer */
#define REST_MIN 500000000ull
#define REST_MAX 2000000000ull

static void ceiling_forget(struct losses *losses)
{
	losses->ceiling = INFINITY;
	losses->rest = REST_MIN;
}

void losses_init(struct losses *losses)
{
	*losses = (struct losses){ .factor = 1, .step = STEP_MIN };
	ceiling_forget(losses);
}

/* What a period has brought. */
struct period {
	double packets;
	double sent, lost, own; /* of those children who lost too much: packets */
	double share;           /* of theirs, beyond their paths' own */
};

/* Beyond the path's own losses. */
static double too_much(double own, double n)
{
	return fmax(LOSSES_MAX, fmax(OWN_SPREAD * own, SIGMAS * sqrt(own / n)));
}

static void period_sum(const struct losses *losses, struct period *period)
{
	*period = (struct period){ 0 };
	for (uint64_t left = losses->known; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);
		uint32_t n = losses->children[child].judged - losses->children[child].from_judged;
		uint32_t lost = losses->children[child].lost - losses->children[child].from_lost;
		double own = losses->children[child].own;

		period->packets += n;
		if (n < ENOUGH_OF || (double)lost / n - own <= too_much(own, n))
			continue;
		period->sent += n;
		period->lost += lost;
		period->own += own * n;
	}
	if (period->sent > 0)
		period->share = fmin((period->lost - period->own) / period->sent, 1);
}

static void period_begin(struct losses *losses, uint64_t at)
{
	losses->since = at;
	for (uint64_t left = losses->known; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);

		losses->children[child].from_judged = losses->children[child].judged;
		losses->children[child].from_lost = losses->children[child].lost;
	}
}

/* It loses less by itself than was thought. */
static void own_lower(struct losses *losses)
{
	for (uint64_t left = losses->known; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);
		uint32_t n = losses->children[child].judged - losses->children[child].from_judged;
		uint32_t lost = losses->children[child].lost - losses->children[child].from_lost;
		double *own = &losses->children[child].own;

		if (n >= ENOUGH_OF && lost < *own * n)
			*own -= (*own - (double)lost / n) / OWN_FALLS;
	}
}

/* What was lost since the first of the cuts, is lost whatever they send. */
static void own_raise(struct losses *losses)
{
	for (uint64_t left = losses->known; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);
		uint32_t n = losses->children[child].judged - losses->children[child].cut_judged;
		uint32_t lost = losses->children[child].lost - losses->children[child].cut_lost;
		double *own = &losses->children[child].own;

		if (n >= ENOUGH_OF && (double)lost / n > *own)
			*own = fmin((double)lost / n, OWN_MAX);
	}
}

static void cuts_begin(struct losses *losses, double share)
{
	losses->cuts = 0;
	losses->before = losses->factor;
	losses->share = share;
	for (uint64_t left = losses->known; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);

		losses->children[child].cut_judged = losses->children[child].judged;
		losses->children[child].cut_lost = losses->children[child].lost;
	}
}

static void cut(struct losses *losses, uint64_t now, double share)
{
	bool tried = losses->factor > losses->ceiling;

	if (!losses->cuts || now > losses->cut_at + CUTS_NS || share < HELPS * losses->share ||
	    share > ELSE * losses->share)
		cuts_begin(losses, share);
	losses->cut_at = now;
	losses->step = STEP_MIN;
	if (losses->cuts++ == CUTS_MAX && share < OWN_MAX) {
		own_raise(losses);
		losses->factor = losses->before;
		losses->cuts = 0;
		ceiling_forget(losses);
		return;
	}
	losses->ceiling = losses->factor * (1 - fmin(share, CUT_MAX));
	losses->factor = fmax(losses->ceiling * DRAIN, LOSSES_LEAST);
	if (tried && losses->rest < REST_MAX)
		losses->rest *= 2;
	if (tried || share > HEAVY || now > losses->try_at)
		losses->try_at = now + losses->rest;
}

static void grow(struct losses *losses, uint64_t now)
{
	if (losses->factor < 0.99 * losses->ceiling && isfinite(losses->ceiling)) {
		losses->factor += (losses->ceiling - losses->factor) / 2;
	} else if (now >= losses->try_at) {
		losses->factor *= 1 + losses->step;
		losses->step =
			fmin(2 * losses->step, isfinite(losses->ceiling) ? STEP_MAX : STEP_FREE);
	}
	losses->factor = fmin(losses->factor, 1);
	if (losses->factor > BEYOND * losses->ceiling || losses->factor == 1)
		ceiling_forget(losses);
}

/* False: it is too early to say anything. */
static bool period_ends(struct losses *losses, uint64_t now, const struct period *period)
{
	/* Surely, as there are but few packets to judge by. */
	double surely = period->share - SIGMAS * sqrt(period->lost) / fmax(period->sent, 1);
	uint64_t least = surely > HEAVY ? LOSSES_SOON_NS : LOSSES_PERIOD_NS;

	if (!losses->since || now < losses->since) {
		period_begin(losses, losses->since ? losses->since : now);
		return false;
	}
	if (now < losses->since + least)
		return false;
	if (period->packets >= ENOUGH)
		return true;
	if (now >= losses->since + STALE * LOSSES_PERIOD_NS)
		period_begin(losses, now);
	return false;
}

bool losses_hear(struct losses *losses, unsigned child, uint64_t now, uint32_t judged,
                 uint32_t lost)
{
	uint64_t bit = 1ull << (child % LOSSES_CHILDREN_MAX);
	double old = losses->factor;
	struct period period;

	child %= LOSSES_CHILDREN_MAX;
	losses->children[child].judged = judged;
	losses->children[child].lost = lost;
	if (!(losses->known & bit)) {
		losses->children[child].from_judged = losses->children[child].cut_judged = judged;
		losses->children[child].from_lost = losses->children[child].cut_lost = lost;
		losses->known |= bit;
	}
	period_sum(losses, &period);
	if (!period_ends(losses, now, &period))
		return false;
	own_lower(losses);
	/* A core that was busy elsewhere for a moment loses some packets too. */
	losses->struck = period.share > 0 && period.share <= HEAVY && !losses->struck;
	if (!losses->struck && period.share > 0)
		cut(losses, now, period.share);
	else if (!losses->struck)
		grow(losses, now);
	period_begin(losses, losses->factor < old ? now + LOSSES_BLIND_NS : now);
	return losses->factor != old;
}
