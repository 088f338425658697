/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many packets may be under way. A report goes out every quarter of the
 * limit; its answer confirms all that was sent before it. Heavy loss, which
 * means that a port or a buffer overflows, cuts the limit by the share that
 * was lost; clean answers let it grow. Loss below the threshold is taken for
 * the link's own, and changes nothing. Pure.
 */
#ifndef TRIB_PATH_FLIGHT_H
#define TRIB_PATH_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#define FLIGHT_START 2048u
#define FLIGHT_MIN 64u
#define FLIGHT_MAX 8192u
#define FLIGHT_HEAVY_LOSS 0.15
#define FLIGHT_MARKS 16u

struct flight {
	uint64_t launched;  /* packets sent, repeats included */
	uint64_t confirmed; /* of those, sent before a report that was answered */
	uint64_t judged;    /* of those, looked at for how many were lost */
	uint64_t cut_until; /* losses among packets up to here have been reacted to */
	uint32_t limit;
	uint32_t cap;  /* set from outside (path/narrow.h): the limit is no more than that */
	uint32_t lost; /* found since `judged` last moved */
	unsigned n_marks;
	struct {
		uint32_t stamp;
		uint64_t launched;
	} marks[FLIGHT_MARKS]; /* the last reports, as a ring */
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

/* Have enough packets left since the last report, `most` or a quarter of the limit? */
static inline bool flight_wants_report(const struct flight *flight, uint32_t most)
{
	uint64_t last =
		flight->n_marks ? flight->marks[(flight->n_marks - 1) % FLIGHT_MARKS].launched : 0;
	uint32_t interval = flight_limit(flight) / 4;

	return flight->launched - last >= (interval < most ? interval : most);
}

/* A report with this stamp leaves. Those of one moment are one mark: answers may take long. */
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
	/* Where little is under way, each answer is about a few: those are judged together. */
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
	} else { /* by an eighth in the time that an answer takes, or faster */
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
