/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: an independent stream of fragments to one aggregator, with a thread of its own.
 * This header has the lane's data and its mailbox. Threads of the user and of other rooms
 * only post rounds to the mailbox and read the atomic fields. The thread is
 * the engine's: transport/lane_dense.c, lane_slot.c.
 */
#ifndef TRIB_WORKER_COMM_LANE_H
#define TRIB_WORKER_COMM_LANE_H

#include "path/closed_port.h"
#include "path/group_probe.h"
#include "path/pacer.h"
#include "path/path_meter.h"
#include "path/tcp.h"
#include "path/udp.h"
#include "worker/dense/stream.h"

#include <pthread.h>
#include <stdatomic.h>

struct kept_round;
struct lane_carrier;
struct lane_engine;
struct trib_comm;
struct trunk;

#define LANE_BATCH_PACKETS 64u
#define LANE_MESSAGES 64u

/* Packets that have come. They stay where they were received. */
struct lane_batch {
	unsigned n;
	bool more; /* more packets have come: receive again */
	struct {
		const struct wire_header *header;
		uint32_t bytes;
		bool by_group; /* came by multicast */
	} packets[LANE_BATCH_PACKETS];
};

/* Packets that leave together. All but the last have `segment` bytes. */
struct lane_message {
	const uint8_t *data;
	uint32_t bytes, segment;
	uint64_t time; /* when they leave; 0: at once */
};

/* Received messages whose packets are not all handed up yet. */
struct lane_cursor {
	int messages; /* received */
	int message;  /* the next one */
	uint32_t at;  /* bytes of it that are handed up */
};

#define LANE_LEFT_MAX 8u

struct lane {
	struct trib_comm *comm;
	struct trunk *trunk;
	const struct lane_engine *engine;   /* the trunk's */
	const struct lane_carrier *carrier; /* udp or tcp: transport/lane_carrier.h */
	unsigned index;                     /* within its trunk: the lane's number on the wire */
	unsigned number;                    /* within the communicator */
	int fd, group_fd, wake_fd;          /* -1: not open */
	bool started;                       /* the thread runs */
	bool rests; /* comm->paths.places knows that the lane has nothing to send */
	struct udp_address peer;
	pthread_t thread;
	struct lane_batch batch;
	struct lane_message messages[LANE_MESSAGES];
	uint8_t *buffer; /* packets until they are sent: LANE_BUFFER_PACKETS fit */

	/* udp only: */
	bool gso;
	struct group_probe group_probe; /* whether results arrive by the multicast group */
	struct udp_rx *rx, *group_rx;
	struct udp_tx *tx;
	struct lane_cursor own_cursor, group_cursor;
	bool group_more;      /* the multicast socket may have more */
	unsigned group_taken; /* messages that were taken from it in this pass */

	/* tcp only: */
	struct tcp_rx bytes;
	struct tcp_tail tail;
	uint32_t parsed_to;          /* within `bytes`: frames that are handed up */
	uint32_t sent_to, filled_to; /* within `buffer` */
	int connect_error;           /* errno of the last try to connect; 0: connected */
	int connecting_fd;           /* a connection in progress; -1: none */

	/* Of the lane's thread alone: */
	struct stream stream;
	void *own; /* the engine's; NULL: it has none */
	struct pacer pacer;
	struct meter meter;
	struct closed_port closed; /* what is said of the aggregator's port */
	uint64_t heard_at;         /* when a packet last came from the aggregator */
	uint64_t spoke_at;         /* when a report last left; 0: send one now */
	_Atomic uint32_t asks;     /* as in the last STATUS */
	_Atomic uint32_t token;    /* as the trunk's, if the lane was given another; 0: no */
	uint64_t moved_at, moved;  /* when `stream.done` last grew, and its value then */
	/* Sockets of paths that were left. A closed port would look like a dead worker. */
	int left[LANE_LEFT_MAX];
	unsigned n_left;
	unsigned path;       /* in lane_paths.paths; PATHS_MAX: unknown */
	unsigned rated;      /* rates of `meter` that comm->paths.places knows */
	unsigned times_left; /* how often a path was left */
	uint64_t left_at;    /* when the last one was */
	uint64_t shown_at;   /* when other processes were last told of the path */
	uint64_t dropped;
	struct kept_round *kept, **kept_end; /* finished rounds that other ranks may need */
	struct round *finishing;             /* finished rounds that the user is not told of yet */

	/* The mailbox: rounds that the thread has not taken, the newest first. */
	_Atomic(struct round *) posted;
	uint64_t taken;           /* rounds that the thread has taken, ever; the thread's */
	_Atomic uint64_t entered; /* rounds that were posted, ever */
	_Atomic uint64_t ending;  /* rounds that are over or nearly over, ever */
	_Atomic uint32_t nearly;  /* fragments that may be left when a lane counts as nearly over */

	/* Between the lane's thread and the thread that ends it: */
	_Atomic bool leaves; /* end the thread when it is idle; no rank needs its past rounds */
	_Atomic bool idle;   /* nothing is in flight, and no rank can need a past round */
	_Atomic bool ended;  /* the thread has ended by itself */

	/* For error messages and statistics; written by the lane's thread. */
	_Atomic uint64_t waiting, done, next_base;
	_Atomic uint64_t sent, resent, results, duplicates, drops;
	_Atomic uint64_t judged, lost; /* as in struct stream_stats */
};

/* Wakes the lane's thread. Any thread. */
void lane_wake(struct lane *lane);
/* Gives a round to the lane's thread, which owns it from then on. Any thread. */
void lane_post(struct lane *lane, struct round *round);
/*
 * All rounds that were posted since the last call, the oldest first; NULL: none. If the lane was
 * idle, silence counts from `now`. The lane's thread.
 */
struct round *lane_take_mail(struct lane *lane, uint64_t now);
/* The same. Mostly there are none, and a load costs less. */
static inline struct round *lane_take_posted(struct lane *lane, uint64_t now)
{
	return atomic_load_explicit(&lane->posted, memory_order_relaxed) ? lane_take_mail(lane, now)
	                                                                 : NULL;
}

#endif
