/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The carrier: the functions by which a plane moves packets. Everything above
 * it is the same for every plane. An address names a child; where a plane has
 * connections, the address's `link` names the connection.
 */
#ifndef TRIB_PLANE_CORE_CARRIER_H
#define TRIB_PLANE_CORE_CARRIER_H

#include "path/udp.h"

struct agg_lane;
struct thread;

struct carrier {
	const char *plane;
	bool reliable; /* packets are neither lost nor reordered */
	/* The refusal of a JOIN that came by datagram; NULL: a JOIN may come by datagram. */
	const char *needs_connection;
	/* Opens the sockets and buffers of a thread. Thread 0 finds the port. */
	trib_status (*open)(struct thread *thread, const struct udp_address *listen);
	void (*close)(struct thread *thread);
	/* Receives a batch; may sleep up to TICK_NS. The caller then sets thread->now. */
	int (*fetch)(struct thread *thread);
	/* Hands the `n` packets or events of the batch to packet_take(). */
	void (*take)(struct thread *thread, int n);
	/* Sends what is queued, as far as the sockets accept it. */
	void (*flush)(struct thread *thread);
	/* Nothing had arrived, and everything is sent: sleeps up to TICK_NS. */
	void (*sleep)(struct thread *thread);
	/* Seals and queues a small packet; drops it if there is no room. */
	void (*send)(struct thread *thread, const void *packet, uint32_t bytes,
	             const struct udp_address *to);
	/* Sends at once, up to the longest packet: for senders that have not joined yet. */
	void (*answer)(struct thread *thread, void *packet, uint32_t bytes,
	               const struct udp_address *to);
	/* Queues copies of a sealed packet for children of the lane. */
	void (*send_copies)(struct thread *thread, const struct agg_lane *lane, const void *packet,
	                    uint32_t bytes, uint64_t to);
	/* Opens a connection to the parent, if the plane needs one. False: not possible now. */
	bool (*reach)(struct thread *thread, struct udp_address *parent);
	/* Sends the lane's queued results. False: some are left, for lack of room. */
	bool (*send_results)(struct thread *thread, struct agg_lane *lane);
	/* Sends the lane's sums to the parent. False: some are left, for lack of room. */
	bool (*send_sums)(struct thread *thread, struct agg_lane *lane);
	/* The lane's memory is about to be freed. */
	void (*forget)(struct thread *thread, struct agg_lane *lane);
	void (*tick)(struct thread *thread);
};

#endif
