/* SPDX-License-Identifier: Apache-2.0 */
/* The ring's thread in two files: ring_messages.c moves messages, ring_thread.c is the loop. */
#ifndef TRIB_WORKER_RANKS_RING_INTERNAL_H
#define TRIB_WORKER_RANKS_RING_INTERNAL_H

#include "path/channel/channel_io.h"
#include "worker/comm/comm.h"
#include "worker/ring/message_queue.h"
#include "worker/ring/ring.h"
#include "worker/ranks/direct_io.h"

#define RING_CREDIT 32u     /* messages that the previous rank may send ahead */
#define RING_START_BELOW 8u /* messages on their way to the next rank */

struct ring_thread {
	struct trib_comm *comm;
	struct ring_mail *mail;
	struct ring ring;
	struct channel_listener *listener;
	struct channel_io *from, *to; /* the previous rank, the next rank */
	struct message_queue spare;   /* free buffers */
	struct message_queue aside;   /* of rounds that are not posted here yet */
	struct message_queue ready,
		flown;        /* wait to leave; have left and may have to leave again */
	unsigned n_out;       /* in `ready` and `flown` */
	uint32_t flown_first; /* the channel's number of the first in `flown` */
	uint32_t granted;     /* messages that the previous rank may send, ever */
	uint64_t asked_at;    /* when this rank last asked who is late */
	struct pollfd
		fds[3 * CHANNEL_FDS + DIRECT_FDS]; /* as last polled: see sleep_until_needed */
	unsigned n_from, n_to;                     /* of these, from FDS_FROM on */
	struct page_file *page;                    /* NULL: none */
	uint64_t page_at;                          /* when it was written */
	bool open;                                 /* all ranks have answered */
	bool no_memory;
	bool runs;
	pthread_t thread;
};

/* What a channel does with a message that comes; `user` is the thread. */
void *ring_place(void *user, uint32_t message, uint32_t bytes);
void ring_unplace(void *user, void *memory);
void ring_deliver(void *user, uint32_t message, void *memory, uint32_t bytes);
/* Rounds that were posted begin, and messages that waited for them are taken. */
void ring_take_posts(struct ring_thread *thread);
void ring_start_messages(struct ring_thread *thread);
/* Asks who is late, if rounds have not ended for a while. Gives the time until the next question.
 */
uint64_t ring_ask_late(struct ring_thread *thread, uint64_t now);
void ring_send_messages(struct ring_thread *thread);
/* Lets the previous rank send more, if there is room. */
void ring_grant(struct ring_thread *thread);
/* Tells the next rank why this one has failed. False: the communicator has not failed. */
bool ring_tell_failure(struct ring_thread *thread);

#endif
