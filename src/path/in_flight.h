/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_flight: bounds how many packets a sender has in flight. Pure.
 *
 * The sender asks for a report at every quarter of the limit. The answer confirms all
 * packets sent before that report. If more than FLIGHT_HEAVY_LOSS of them were lost, a
 * port or a buffer overflows, and the limit shrinks by the lost share. Otherwise it
 * grows: less loss is taken for random loss of the link.
 */
#ifndef TRIB_PATH_IN_FLIGHT_H
#define TRIB_PATH_IN_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#define FLIGHT_START 2048u     /* packets: the first limit */
#define FLIGHT_MIN 64u         /* packets: the lowest limit */
#define FLIGHT_MAX 8192u       /* packets: the highest limit */
#define FLIGHT_HEAVY_LOSS 0.15 /* loss ratio that cuts the limit */
#define FLIGHT_MARKS 16u       /* reports that are remembered */

struct flight {
	uint64_t launched;  /* packets sent, repeats included */
	uint64_t confirmed; /* packets sent before the newest answered report */
	uint64_t judged;    /* packets whose loss ratio has been evaluated */
	uint64_t cut_until; /* a loss among packets up to this one has already cut the limit */
	uint32_t limit;     /* packets in flight at most */
	uint32_t cap;       /* upper bound from path/window_probe.h; UINT32_MAX: none */
	uint32_t lost;      /* packets found lost since `judged` last moved */
	unsigned n_marks;
	struct {
		uint32_t stamp;
		uint64_t launched;
	} marks[FLIGHT_MARKS]; /* ring of the last reports */
};

static inline void flight_init(struct flight *flight)
{
	*flight = (struct flight){ .limit = FLIGHT_START, .cap = UINT32_MAX };
}

static inline uint32_t flight_limit(const struct flight *flight)
{
	return flight->limit < flight->cap ? flight->limit : flight->cap;
}

static inline bool flight_is_full(const struct flight *flight)
{
	return flight->launched >= flight->confirmed + flight_limit(flight);
}

/* Is a report due: have `most` packets, or a quarter of the limit, left since the last one? */
static inline bool flight_wants_report(const struct flight *flight, uint32_t most)
{
	uint64_t last =
		flight->n_marks ? flight->marks[(flight->n_marks - 1) % FLIGHT_MARKS].launched : 0;
	uint32_t interval = flight_limit(flight) / 4;

	return flight->launched - last >= (interval < most ? interval : most);
}

/* A report with this stamp leaves. Reports with one stamp share a mark, so that marks last. */
static inline void flight_mark(struct flight *flight, uint32_t stamp)
{
	unsigned i = (flight->n_marks - 1) % FLIGHT_MARKS;

	if (!flight->n_marks || flight->marks[i].stamp != stamp)
		i = flight->n_marks++ % FLIGHT_MARKS;
	flight->marks[i].stamp = stamp;
	flight->marks[i].launched = flight->launched;
}

/* The report with this stamp was answered; `lost` packets turned out to be missing. */
static inline void flight_confirm(struct flight *flight, uint32_t stamp, uint32_t lost)
{
	uint64_t launched = 0, news;

	flight->lost += lost;
	for (unsigned i = 0; i < FLIGHT_MARKS && i < flight->n_marks; i++)
		if (flight->marks[i].stamp == stamp)
			launched = flight->marks[i].launched;
	if (launched <= flight->confirmed)
		return;
	flight->confirmed = launched;
	/* An answer about very few packets says little: evaluate several answers together. */
	news = launched - flight->judged;
	if (news < FLIGHT_MIN)
		return;
	flight->judged = launched;
	if ((double)flight->lost > FLIGHT_HEAVY_LOSS * (double)news) {
		if (launched > flight->cut_until) {
			double share = (double)flight->lost / (double)news;

			flight->limit = (uint32_t)(flight->limit * (share < 0.5 ? 1 - share : 0.5));
			flight->cut_until = flight->launched;
		}
	} else { /* grow by an eighth or more in each round trip */
		uint64_t more = news / 8 > flight->limit / 32 ? news / 8 : flight->limit / 32;

		flight->limit += more < FLIGHT_MAX ? (uint32_t)more + 1 : FLIGHT_MAX;
	}
	flight->lost = 0;
	if (flight->limit < FLIGHT_MIN)
		flight->limit = FLIGHT_MIN;
	if (flight->limit > FLIGHT_MAX)
		flight->limit = FLIGHT_MAX;
}

#endif
