/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The carrier of a lane moves its packets: datagrams (lane_udp.c) or a connection (lane_tcp.c).
 *
 * Packets pass this table in batches. `receive` hands packets up, `send` takes packets down;
 * neither calls back. Received packets stay in the buffers of the carrier until the next `receive`,
 * packets to send stay in lane->buffer until they are sent: nothing is copied.
 */
#ifndef TRIB_WORKER_TRANSPORT_LANE_CARRIER_H
#define TRIB_WORKER_TRANSPORT_LANE_CARRIER_H

#include "worker/comm/lane.h"

#define LANE_BUFFER_PACKETS 128u

/* What the socket takes now. */
struct lane_room {
	unsigned messages;        /* 0: nothing, packets of before are still waiting */
	unsigned reports;         /* how many of the messages may be reports */
	uint32_t bytes;           /* of fragments; one more fragment may exceed it */
	uint32_t message_bytes;   /* in one message */
	unsigned message_packets; /* in one message */
	bool joins;               /* the kernel takes several packets as one message */
	bool mixes;               /* packets of one message may have any lengths */
};

/* Errors are -errno. */
struct lane_carrier {
	trib_status (*open)(struct lane *lane);
	void (*close)(struct lane *lane);
	/* Is the aggregator connected? Waits up to wait_ms for it. Datagrams need no connection. */
	bool (*reach)(struct lane *lane, int wait_ms);
	/* The trunk is joined: the lane can use what the aggregator offers, such as multicast. */
	void (*start)(struct lane *lane);
	/*
	 * Fills lane->batch with packets that have come and are well-formed; fragments may still
	 * be of other communicators. Above 0: something has come. If batch.more is set, more
	 * packets are waiting: the lane calls `receive` again before it does anything else.
	 */
	int (*receive)(struct lane *lane);
	/* Sends the rest of the last `send`, and says in *room how much fits after that. */
	int (*flush)(struct lane *lane, struct lane_room *room);
	/* Takes the messages over. -EAGAIN: the socket is full, the rest goes with `flush`. */
	int (*send)(struct lane *lane, const struct lane_message *messages, unsigned n);
	/* Goes on from another address. Returns the socket that is left, or -1; NULL: cannot. */
	int (*move)(struct lane *lane, const struct udp_address *from);
	/* Seals and sends one control packet. No thread of the lane runs. */
	int (*send_one)(struct lane *lane, void *packet, uint32_t bytes);
};

extern const struct lane_carrier lane_carrier_udp, lane_carrier_tcp;

#endif
