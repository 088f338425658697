/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that only speak of rates: they join, say that they send or rest,
 * leave, and note when they are told which rate. No DATA, no threads: what is
 * timed and counted is the agreement alone.
 */
#ifndef TRIB_CLI_RATES_TALK_H
#define TRIB_CLI_RATES_TALK_H

#include "path/udp.h"
#include "wire/packet.h"

#define TALKERS_MAX 16u

struct talker {
	int fd;
	unsigned rank;
	uint64_t ranks; /* that come together at its aggregator */
	struct wire_welcome welcome;
	uint32_t rate, serial; /* as it was last told; 0: not at all */
	uint64_t told_at;      /* when that was another one than before */
	unsigned words;        /* that it was told without having asked */
	uint32_t stamp;        /* of its last report, which is answered */
	bool rests;            /* as it last said */
	uint32_t judged, lost; /* as it reports */
	uint32_t want;         /* the same: how fast it could send; 0: unknown */
};

/* A job of them: in one star, or below aggregators that have `parent` above. */
struct talk {
	uint16_t job, tree;
	uint64_t cookie;
	unsigned n;
	bool has_parent;
	struct udp_address parent;
	struct talker all[TALKERS_MAX];
};

/* A socket in this thread's namespace, to that aggregator; the talker is the next rank. */
trib_status talk_add(struct talk *talk, const struct udp_address *aggregator, uint64_t ranks);
void talk_close(struct talk *talk);

/* All ask to be let in; back when all are in, and know a rate if there is one. */
trib_status talk_join(struct talk *talk);
/* A REPORT: the rank sends, or rests. */
void talk_say(struct talk *talk, unsigned rank, bool rests);
/* All leave. */
void talk_leave(struct talk *talk);
/* Takes what comes to all of these talks within so many ms, or until `enough` says so. */
void talk_hear(struct talk *const *talks, unsigned n, int wait_ms, bool (*enough)(void *context),
               void *context);

#endif
