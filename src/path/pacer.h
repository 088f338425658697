/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pacing to a rate, without burning a core: the sender asks when it may go
 * on, and sleeps until then. Heavy loss (more packets sent into one port than
 * it drains) cuts the rate to what arrived, as XAgg §IV-C has it; clean
 * reports let it grow again. Loss below the threshold is taken for the
 * link's own, and changes nothing.
 */
#ifndef TRIB_PATH_PACER_H
#define TRIB_PATH_PACER_H

#include <stdint.h>

#define PACER_BURST_NS 1000000ull  /* what may be sent at once after a pause */
#define PACER_PAUSE_NS 5000000ull  /* longer gaps are no sending time */
#define PACER_AGAIN_NS 50000000ull /* after a cut, old losses are still reported for so long */
#define PACER_HEAVY_LOSS 0.15
#define PACER_DOUBLING_NS 3e8
#define PACER_RATE_MIN 1e7

struct pacer {
	double limit;     /* bits a second, the user's; 0: none */
	double rate;      /* bits a second, in force; 0: none */
	uint64_t free_at; /* when the next packet may leave */
	uint64_t last;    /* when one last left */
	uint64_t busy;    /* ns spent sending since the last cut, and bytes sent in it */
	uint64_t bytes;
	uint64_t cut_at;
};

static inline void pacer_init(struct pacer *pacer, uint64_t limit_bps)
{
	*pacer = (struct pacer){ .limit = (double)limit_bps, .rate = (double)limit_bps };
}

/* When may a packet leave? Not after `now`: at once. */
static inline uint64_t pacer_free_at(const struct pacer *pacer)
{
	return pacer->rate > 0 ? pacer->free_at : 0;
}

static inline void pacer_sent(struct pacer *pacer, uint64_t now, uint32_t bytes)
{
	uint64_t gap = now - pacer->last < PACER_PAUSE_NS ? now - pacer->last : 0;

	pacer->busy += gap;
	pacer->last = now;
	pacer->bytes += bytes;
	if (pacer->rate <= 0)
		return;
	if (pacer->rate != pacer->limit)
		pacer->rate += pacer->rate * (double)gap / PACER_DOUBLING_NS;
	if (pacer->limit > 0 && pacer->rate > pacer->limit)
		pacer->rate = pacer->limit;
	if (pacer->free_at + PACER_BURST_NS < now)
		pacer->free_at = now - PACER_BURST_NS;
	pacer->free_at += (uint64_t)(bytes * 8e9 / pacer->rate);
}

/* Of `sent` packets, `lost` did not arrive. */
static inline void pacer_feedback(struct pacer *pacer, uint64_t now, uint32_t sent, uint32_t lost)
{
	double share = sent ? (double)lost / sent : 0;

	if (now < pacer->cut_at + PACER_AGAIN_NS)
		return;
	if (share > PACER_HEAVY_LOSS && pacer->busy) {
		double measured = (double)pacer->bytes * 8e9 / (double)pacer->busy;

		if (pacer->rate > 0 && pacer->rate < measured)
			measured = pacer->rate;
		pacer->rate = measured * (1 - share);
		if (pacer->rate < PACER_RATE_MIN)
			pacer->rate = PACER_RATE_MIN;
		pacer->bytes = pacer->busy = 0;
		pacer->cut_at = now;
	}
}

#endif
