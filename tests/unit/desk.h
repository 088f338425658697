/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of a controller as workers see: it gathers the ranks that ask, and
 * gives them trees at those aggregators that are there, by real packets.
 */
#ifndef TRIB_TESTS_DESK_H
#define TRIB_TESTS_DESK_H

#include "cluster.h"
#include "wire/packet.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#define DESK_PLACES 8
#define DESK_GATHERINGS 8
#define DESK_JOB 1 /* as TRIB_JOB is where it is not set */

struct desk;
/* A word about turns, by the desk's thread and with its lock. */
typedef void desk_hears(struct desk *desk, const struct wire_control *header,
                        const struct sockaddr_in *from);

struct desk_gathering {
	uint64_t key;
	unsigned size, generation;
	uint64_t asked;   /* seats that wait for the next plan */
	uint64_t members; /* of the last one */
	uint64_t gone;    /* members that said good-bye */
	uint64_t nonces[64];
	char plan[4096];
};

struct desk {
	/* Set before ranks come, or 0: an aggregator that is shared, and who hears of turns there.
	 */
	const char *star;
	desk_hears *on_turn;
	int fd;
	char address[32];
	pthread_t thread;
	_Atomic bool stop;
	pthread_mutex_t lock;
	unsigned trees;                     /* in a plan, at most */
	unsigned lost_byes;                 /* so many do not arrive, as from now */
	bool deep;                          /* every other plan has trees of two levels */
	struct cluster places[DESK_PLACES]; /* those with an aggregator are there */
	struct desk_gathering gatherings[DESK_GATHERINGS];
};

/* With `n` aggregators, of which a plan takes `trees`; `deep` as above. */
void desk_start(struct desk *desk, unsigned n, unsigned trees, bool deep);
void desk_stop(struct desk *desk);
/* One of the newest plan of the first gathering ends without a word, and another one starts. */
void desk_kill_one(struct desk *desk, uint64_t seed);
/* One of it leaves the trees of that plan, and may be in the next one. */
void desk_leave_one(struct desk *desk, uint64_t seed);
unsigned desk_generation(struct desk *desk);
/* Seats that wait for the next plan of the first gathering. */
uint64_t desk_waiting(struct desk *desk);

#endif
