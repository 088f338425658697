/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that exchange rates only. They join, report that they send or are idle,
 * leave, and note when they are told which rate. There is no DATA and there are no
 * threads, so that the agreement alone is timed.
 */
#ifndef TRIB_BENCH_RATES_RATES_TALK_H
#define TRIB_BENCH_RATES_RATES_TALK_H

#include "path/udp.h"
#include "wire/packet.h"

#define TALKERS_MAX 16u

struct talker {
	int fd;
	unsigned rank;
	uint64_t ranks; /* ranks below the same aggregator */
	struct wire_welcome welcome;
	uint32_t rate, serial; /* the rate it was last told; 0: none */
	uint64_t told_at;      /* when the rate changed last */
	unsigned unasked;      /* times it was told a rate without having asked */
	uint32_t stamp;        /* stamp of its last report, which the answer repeats */
	uint32_t token;        /* proves its address */
	uint32_t shown;        /* the token that its last JOIN showed */
	bool is_idle;          /* as it last reported */
	uint32_t judged, lost; /* packets, as it reports them */
	uint32_t want;         /* how fast it could send, as it reports; 0: unknown */
};

/* A job of such children: in one star, or below aggregators that have `parent` above them. */
struct talk {
	uint16_t job, tree;
	uint64_t cookie;
	unsigned n;
	bool has_parent;
	struct udp_address parent;
	struct talker all[TALKERS_MAX];
};

/* Opens a socket in this thread's namespace to that aggregator, for the next rank. */
trib_status talk_add(struct talk *talk, const struct udp_address *aggregator, uint64_t ranks);
void talk_close(struct talk *talk);

/* All children join. Returns when all have joined, and know a rate if there is one. */
trib_status talk_join(struct talk *talk);
/* Sends a REPORT: the rank sends, or is idle. */
void talk_say(struct talk *talk, unsigned rank, bool is_idle);
/* All children leave. */
void talk_leave(struct talk *talk);
/* Receives for all of these jobs for `wait_ms`, or until `enough` returns true. */
void talk_hear(struct talk *const *talks, unsigned n, int wait_ms, bool (*enough)(void *context),
               void *context);

#endif
