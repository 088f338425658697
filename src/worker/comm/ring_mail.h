/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of a communicator, as other threads see it: where the ranks listen, and the mailbox for
 * rounds. The ring's thread is ranks/ring_thread.c.
 */
#ifndef TRIB_WORKER_COMM_RING_MAIL_H
#define TRIB_WORKER_COMM_RING_MAIL_H

#include "path/udp.h"
#include "plan/tree/ring_seats.h"
#include "wire/packet.h"
#include "worker/comm/request.h"
#include "worker/dense/round.h"

#include <pthread.h>

struct ring_mail {
	struct ring_seat seats[WIRE_CHILDREN_MAX];
	/* Ranks tell each other their seats through the aggregator; rounds_left 0: they know. */
	struct trib_request exchange;
	int wake_fd;
	pthread_mutex_t lock;
	struct round *posted, **posted_end; /* under `lock` */
	bool open;  /* all ranks have answered; under the communicator's lock */
	bool quiet; /* its thread has let go of users' buffers; under the communicator's lock */
	_Atomic uint64_t sent, repeated, received, duplicates, dropped; /* packets */
};

/* NULL: no memory, or no eventfd. */
struct ring_mail *ring_mail_new(void);
void ring_mail_free(struct ring_mail *mail);
void ring_mail_wake(struct ring_mail *mail);
/* Gives a round to the ring's thread, which owns it from then on. Any thread. */
void ring_mail_post(struct ring_mail *mail, struct round *round);
/* All rounds that were posted since the last call; NULL: none. The ring's thread. */
struct round *ring_mail_take(struct ring_mail *mail);

#endif
