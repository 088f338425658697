/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of the aggregator, and what every room may ask of it. */
#ifndef TRIB_PLANE_CORE_THREAD_H
#define TRIB_PLANE_CORE_THREAD_H

#include "base/tally.h"
#include "base/wait_choice.h"
#include "plane/core/agg_comm.h"
#include "plane/core/counters.h"

#include <pthread.h>

#define THREADS_MAX WIRE_LANES_MAX
#define TICK_NS 50000000ull /* 50 ms */

struct agg_lane;
struct connections;

/* Packets of an engine that leave together, one message for each child in `to`. */
struct copies {
	const struct agg_lane *lane;
	uint64_t to; /* children, as bits */
	uint32_t segment, bytes;
	_Alignas(8) uint8_t data[UDP_GSO_BYTES / 8 * 8];
};

struct thread {
	struct aggregator *aggregator;
	unsigned index;
	int fd;      /* datagram socket */
	int wake_fd; /* eventfd: another thread has news for this thread's children */
	pthread_t id;
	bool started;
	bool blocked;               /* the socket accepts no more for now */
	bool silent;                /* the socket was empty at the last sleep */
	struct wait_choice waiting; /* for packets of an engine */
	uint64_t polls_until;       /* ns: an engine's packets follow each other closely */
	struct udp_rx *rx;
	struct udp_tx *tx;
	struct connections *streams; /* tcp */
	uint64_t now;
	struct agg_lane *lanes[COMMS_MAX];     /* by the communicator's id */
	struct agg_lane *by_parent[COMMS_MAX]; /* by the id that the parent has assigned */
	struct udp_rx *group_rx;               /* receives what parents send to multicast groups */
	uint64_t scratch[128][512 / 8];        /* small packets until they are sent */
	struct copies copies;
	unsigned scratch_used;
	unsigned unknown_left;  /* packets of unknown communicators still answered in this tick */
	struct tally strangers; /* packets with a wrong cookie */
	unsigned ids;           /* one above the highest id in use */
	uint32_t rates_seen;    /* serial of the rates that all children of this thread know */
	uint64_t rates_at;      /* time of the next look at idle children */
	struct counters counters;
	/* For other threads, with the lock: */
	pthread_mutex_t lock;
	struct counters published;
	double cpu_s;
	/* Lanes to take or to give up, written by thread 0; see lane/lane_handover.h. */
	_Atomic bool mail;
	struct agg_lane *inbox[COMMS_MAX];
	bool outbox[COMMS_MAX];
};

/* Seals and queues a small packet; drops it if there is no room. */
void thread_send(struct thread *thread, const void *packet, uint32_t bytes,
                 const struct udp_address *to);
/* Sends at once, up to the longest packet. */
void thread_answer(struct thread *thread, void *packet, uint32_t bytes,
                   const struct udp_address *to);
/* Ends the thread's sleep. Any thread may call it. */
void thread_wake(const struct thread *thread);
/* Clears the wake-up, whether or not there was one. */
void thread_awake(const struct thread *thread);
/* How long the thread may sleep, in ms. */
int thread_patience(const struct thread *thread);

#endif
