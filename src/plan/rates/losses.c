/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/rates/losses.h"

#include <math.h>

#define ENOUGH 200u   /* packets of all children that a verdict needs */
#define ENOUGH_OF 50u /* packets of one child that a verdict needs */
#define STALE 20u     /* periods without ENOUGH packets: if none was lost, the factor may rise */
#define HEAVY 0.05
#define DRAIN 0.97            /* fraction of the loss-free rate after a cut: lets a queue drain */
#define CUT_MAX 0.5           /* largest cut: a moment in which everything is lost says little */
#define HELPS 0.5             /* a cut helped if at most this fraction of the loss ratio is left */
#define ELSE 2.0              /* a loss ratio this many times higher has another cause */
#define CUTS_MAX 3u           /* cuts in a row that do not help */
#define AFTER_NS 300000000ull /* after a cut: losses may be of packets sent before it */
#define CUTS_NS 1000000000ull /* cuts further apart are not in a row: the first one helped */
#define CALM 0.0025           /* loss ratio; if all children stay below it, the cuts helped */
#define OWN_MAX 0.2           /* upper bound on a path's random loss ratio */
#define OWN_SPREAD 0.5        /* random loss may exceed its average by this fraction */
#define SIGMAS 3              /* standard deviations that count as chance */
#define OWN_FALLS 16          /* periods over which the estimate of the random loss falls */
#define STEP_MIN 0.01
#define STEP_MAX 0.03
#define STEP_LATER 0.05 /* largest step after CUTS_NS without losses */
#define STEP_FREE 0.2   /* largest step without a known ceiling */
#define FAR 1.2         /* a rise this far beyond the ceiling shows that the ceiling was too low */
#define BEYOND 1.1      /* a rise this far beyond `failed` shows that the limit is gone */
#define REST_MIN 500000000ull
#define REST_MAX 1000000000ull

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

/* The outcome of a period. */
struct period {
	double sent;    /* packets with a known fate */
	double share;   /* excess loss ratio; 0: none */
	double chance;  /* part of `share` that could be chance */
	bool calm;      /* no child has a loss ratio of CALM or more */
	bool whole;     /* all children that reported in the last period have reported enough */
	uint64_t spoke; /* children that have reported anything, as bits */
	uint64_t few;   /* children that lost too much if most did not, as bits */
};

/* The excess loss ratio, beyond random loss `own` and chance, that is too much for n packets. */
static double too_much(double own, double n)
{
	double chance = SIGMAS * sqrt(fmax(own, LOSSES_MAX) / n);

	return fmax(LOSSES_MAX, fmax(OWN_SPREAD * own, chance));
}

/* Packets of one or several children: sent, lost, and expected to be lost at random. */
struct tally {
	double sent, lost, own;
};

static struct tally tally_of(const struct losses *losses, uint64_t who)
{
	struct tally tally = { 0 };

	for (uint64_t left = who; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);
		uint32_t n = losses->children[child].judged - losses->children[child].from_judged;
		uint32_t lost = losses->children[child].lost - losses->children[child].from_lost;

		tally.sent += n;
		tally.lost += lost;
		tally.own += losses->children[child].own * n;
	}
	return tally;
}

static double tally_share(const struct tally *tally)
{
	return fmin((tally->lost - tally->own) / fmax(tally->sent, 1), 1);
}

/* The part of the loss ratio that could be chance. */
static double tally_chance(const struct tally *tally)
{
	return SIGMAS * sqrt(tally->lost) / fmax(tally->sent, 1);
}

static bool tally_is_bad(const struct tally *tally)
{
	return tally->sent > 0 &&
	       tally_share(tally) > too_much(tally->own / tally->sent, tally->sent);
}

/* Sums up the period: the losses of all children, or of the few that lost before too. */
static void period_sum(const struct losses *losses, uint64_t now, struct period *period)
{
	struct tally all = tally_of(losses, losses->known), theirs;
	uint64_t heard = 0, losers = 0, same;

	*period = (struct period){ .sent = all.sent, .calm = tally_share(&all) < CALM };
	for (uint64_t left = losses->known; left; left &= left - 1) {
		uint64_t child = left & -left;
		struct tally one = tally_of(losses, child);

		period->spoke |= one.sent > 0 ? child : 0;
		if (one.sent < ENOUGH_OF)
			continue;
		heard |= child;
		losers |= tally_is_bad(&one) ? child : 0;
		period->calm = period->calm && tally_share(&one) < CALM;
	}
	if (2 * __builtin_popcountll(losers) <= __builtin_popcountll(heard))
		period->few = losers;
	same = period->few & losses->few;
	period->whole = !(losses->spoke & ~heard) && !same;
	theirs = tally_of(losses, same);
	if (now < losses->since + LOSSES_PERIOD_NS || tally_share(&theirs) <= tally_chance(&theirs))
		theirs = all;
	if (!tally_is_bad(&theirs))
		return;
	period->share = tally_share(&theirs);
	period->chance = tally_chance(&theirs);
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

/* Lowers the estimate of the random loss of children that lost clearly less. */
static void own_lower(struct losses *losses)
{
	for (uint64_t left = losses->known; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);
		uint32_t n = losses->children[child].judged - losses->children[child].from_judged;
		uint32_t lost = losses->children[child].lost - losses->children[child].from_lost;
		double *own = &losses->children[child].own;

		if (n >= ENOUGH_OF && lost + sqrt(*own * n) < *own * n)
			*own -= (*own - (double)lost / n) / OWN_FALLS;
	}
}

/* The cuts did not help, so the losses since the first of them are random. */
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

/* The losses were random: restores the factor from before the cuts. */
static void cuts_undo(struct losses *losses, uint64_t now)
{
	own_raise(losses);
	losses->back = losses->factor;
	losses->back_until = now + CUTS_NS;
	losses->factor = losses->before;
	losses->cuts = 0;
	ceiling_forget(losses);
}

/* The restored factor causes more losses, so a queue was full after all: restores the cuts. */
static void cuts_redo(struct losses *losses, uint64_t now)
{
	for (unsigned child = 0; child < LOSSES_CHILDREN_MAX; child++)
		losses->children[child].own = 0;
	losses->back_until = 0;
	losses->ceiling = losses->factor = losses->back;
	losses->failed = losses->from;
	losses->try_at = now + losses->rest;
}

static void cut(struct losses *losses, uint64_t now, double share)
{
	bool tried = losses->factor > losses->ceiling;
	uint64_t cut_at = losses->cut_at;

	/*
	 * Right after a cut, the lost packets may have been sent before it. Then the failed factor
	 * is the one before that cut.
	 */
	losses->failed = now > cut_at + AFTER_NS ? losses->factor : losses->from;
	losses->from = losses->factor;
	losses->cut_at = now;
	losses->step = STEP_MIN;
	if (now < losses->back_until && losses->factor > losses->back) {
		cuts_redo(losses, now);
		return;
	}
	if (!losses->cuts || now > cut_at + CUTS_NS || share < HELPS * losses->share ||
	    share > ELSE * losses->share)
		cuts_begin(losses, share);
	if (losses->cuts++ >= CUTS_MAX && share < OWN_MAX) {
		cuts_undo(losses, now);
		return;
	}
	/*
	 * A rise that fails returns to its start, where nothing was lost. If it went far, the start
	 * was too low.
	 */
	if (!tried)
		losses->ceiling = 0;
	else if (losses->factor > FAR * losses->ceiling)
		losses->ceiling = (losses->ceiling + losses->factor / FAR) / 2;
	losses->ceiling = fmax(losses->factor * (1 - fmin(share, CUT_MAX)), losses->ceiling);
	losses->factor = fmax(losses->ceiling * DRAIN, LOSSES_LEAST);
	if (tried && losses->rest < REST_MAX)
		losses->rest *= 2;
	losses->try_at = now + losses->rest;
	/* With so much loss the ratio is only a guess. Search for the limit at once. */
	if (!tried && share > HEAVY) {
		losses->try_at = now;
		losses->step = STEP_MAX;
	}
}

static double step_max(const struct losses *losses, uint64_t now)
{
	if (!isfinite(losses->ceiling))
		return STEP_FREE;
	return now > losses->try_at + CUTS_NS ? STEP_LATER : STEP_MAX;
}

static void grow(struct losses *losses, uint64_t now)
{
	if (losses->factor < 0.99 * losses->ceiling && isfinite(losses->ceiling)) {
		losses->factor += (losses->ceiling - losses->factor) / 2;
	} else if (now >= losses->try_at) {
		losses->factor *= 1 + losses->step;
		losses->step = fmin(2 * losses->step, step_max(losses, now));
	}
	losses->factor = fmin(losses->factor, 1);
	if (losses->factor > BEYOND * losses->failed || losses->factor == 1)
		ceiling_forget(losses);
}

/* Has the period ended with enough reports for a verdict? */
static bool period_ends(struct losses *losses, uint64_t now, const struct period *period)
{
	bool heavy = period->share - period->chance > HEAVY;
	uint64_t least = heavy && period->whole ? LOSSES_SOON_NS : LOSSES_PERIOD_NS;

	if (now < losses->since + least)
		return false;
	if (period->sent >= ENOUGH)
		return true;
	if (now < losses->since + STALE * LOSSES_PERIOD_NS)
		return false;
	/* A child at a low rate sends few packets. It must be able to rise all the same. */
	if (period->sent > 0 && period->calm)
		return true;
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
	/* Counters never go back. If they do, another process sends as this child: start anew. */
	if (!(losses->known & bit) || judged - losses->children[child].judged > INT32_MAX ||
	    lost - losses->children[child].lost > INT32_MAX) {
		losses->children[child].from_judged = losses->children[child].cut_judged = judged;
		losses->children[child].from_lost = losses->children[child].cut_lost = lost;
		losses->known |= bit;
	}
	losses->children[child].judged = judged;
	losses->children[child].lost = lost;
	if (!losses->since || now < losses->since) {
		period_begin(losses, losses->since ? losses->since : now);
		return false;
	}
	if (now < losses->since + LOSSES_SOON_NS)
		return false; /* too early, whatever was lost */
	period_sum(losses, now, &period);
	if (!period_ends(losses, now, &period))
		return false;
	own_lower(losses);
	if (period.calm)
		losses->cuts = 0;
	/*
	 * A moderate loss counts only twice in a row: a core that was busy for a moment loses
	 * packets too.
	 */
	losses->struck = period.share > 0 && period.share <= HEAVY && !losses->struck;
	if (!losses->struck && period.share > 0)
		cut(losses, now, period.share);
	else if (!losses->struck)
		grow(losses, now);
	losses->few = period.few;
	losses->spoke = period.spoke;
	period_begin(losses, losses->factor < old ? now + LOSSES_BLIND_NS : now);
	return losses->factor != old;
}
