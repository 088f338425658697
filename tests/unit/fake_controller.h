/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_controller: a minimal controller for tests of workers. It waits until all
 * ranks have asked, and gives them trees at the running aggregators, with real packets.
 */
#ifndef TRIB_TESTS_FAKE_CONTROLLER_H
#define TRIB_TESTS_FAKE_CONTROLLER_H

#include "cluster.h"
#include "wire/packet.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#define FAKE_CONTROLLER_PLACES 8
#define FAKE_CONTROLLER_MEMBERSHIPS 8
#define FAKE_CONTROLLER_JOB 1 /* the default of TRIB_JOB */

struct fake_controller;
/* Called for a message about turns, in the controller's thread with its lock held. */
typedef void fake_controller_hears(struct fake_controller *controller,
                                   const struct wire_control *header,
                                   const struct sockaddr_in *from);

struct fake_membership {
	uint64_t key;
	unsigned size, generation;
	uint64_t asked;   /* seats that wait for the next plan */
	uint64_t members; /* seats of the last plan */
	uint64_t gone;    /* members that left or are dead */
	uint64_t nonces[64];
	char plan[4096];
};

struct fake_controller {
	/*
	 * A shared aggregator, and the callback for messages about turns. Set before ranks join; 0:
	 * none.
	 */
	const char *star;
	fake_controller_hears *on_turn;
	int fd;
	char address[32];
	pthread_t thread;
	_Atomic bool stop;
	pthread_mutex_t lock;
	unsigned trees;     /* maximum number in a plan */
	unsigned lost_byes; /* number of the next BYEs to drop */
	bool deep;          /* every other plan has trees of two levels */
	struct cluster places[FAKE_CONTROLLER_PLACES]; /* places without an aggregator are free */
	struct fake_membership memberships[FAKE_CONTROLLER_MEMBERSHIPS];
};

/* Starts `n` aggregators. A plan has at most `trees` trees. `deep`: as in the struct. */
void fake_controller_start(struct fake_controller *controller, unsigned n, unsigned trees,
                           bool deep);
void fake_controller_stop(struct fake_controller *controller);
/*
 * Stops an aggregator of the first communicator's newest plan without notice, and starts another.
 */
void fake_controller_kill_one(struct fake_controller *controller, uint64_t seed);
/* Takes an aggregator out of the trees of that plan. It may be in the next plan. */
void fake_controller_drain_one(struct fake_controller *controller, uint64_t seed);
unsigned fake_controller_generation(struct fake_controller *controller);
/* Seats that wait for the next plan of the first communicator. */
uint64_t fake_controller_waiting(struct fake_controller *controller);

#endif
