/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/* What the program in the kernel and the daemon beside it both see, in memory that both map. */
#ifndef TRIB_PLANE_XDP_SHARED_H
#define TRIB_PLANE_XDP_SHARED_H

#include "engine/uplink.h"
#include "wire/check.h"

#define XDP_COMMS 32u /* communicators with a higher id are summed in user space */
#define XDP_LANES (XDP_COMMS * WIRE_LANES_MAX)
/* A cell is as large as the largest MTU asks, up to what the verifier can walk through. */
#define XDP_PAYLOAD_MAX 1696u
#define XDP_HEAD_MAX 72u /* Ethernet, two VLAN tags, IPv6, UDP: 70, and room */
#define XDP_REPORT_MAX (WIRE_CONTROL + (uint32_t)sizeof(struct wire_report))
#define XDP_GROUP WIRE_CHILDREN_MAX
#define XDP_ROUTES (WIRE_CHILDREN_MAX + 1)
#define XDP_VERDICTS 16u /* the engine's, and room, so that four bits are in bounds */

/* Constant while the program is loaded. */
struct xdp_settings {
	uint32_t first_port, ports; /* of lane 0, and how many from there on are ours */
	uint32_t payload;           /* that a cell has room for */
};

/*
 * What goes in front of a result: Ethernet to UDP, ready but for lengths and
 * the IPv4 checksum, of which `ip_sum` has the part that never changes.
 */
struct xdp_route {
	uint32_t ifindex; /* 0: not known */
	uint32_t ip_sum;
	uint8_t l2, l3; /* bytes of Ethernet with tags, of IP */
	uint8_t queued; /* what comes this way for the daemon goes into its queue */
	uint8_t unused[5];
	uint8_t head[XDP_HEAD_MAX];
};

/* The front of a child's last report, or of the parent's last status, as it came. */
struct xdp_seen {
	uint32_t ifindex;
	uint32_t at; /* where our packet began */
	uint8_t head[XDP_HEAD_MAX];
};

/* A packet for the daemon, in the queue of its lane. */
struct xdp_queued {
	uint32_t bytes;
	uint32_t unused;
	struct xdp_seen seen;
	uint64_t packet[]; /* room for XDP_REPORT_MAX, or for a fragment */
};

/*
 * The aggregator above, where sums go and results come from. The daemon says
 * who it is and how much may be under way; the program counts what it sends.
 */
struct xdp_parent {
	uint64_t cookie, proof;
	uint16_t job, comm, epoch;
	uint8_t child;
	uint8_t active;    /* the way is known: the next three fields hold */
	uint64_t mac;      /* in frames that are for us, the first six bytes; */
	uint64_t address;  /* the eight before UDP: IPv4's addresses, or half of our IPv6's */
	uint64_t launched; /* sums that the program has sent up, while that was below */
	uint64_t allowed;
	uint64_t sent;  /* above every fragment among them */
	uint64_t told;  /* what was settled when the last one left */
	uint64_t heard; /* results of sums that nobody else had sent */
	struct xdp_route route;
	struct xdp_seen seen;
};

/* Where a parent sends from, and what it calls a communicator: so the slot of a lane is found. */
struct xdp_uplink {
	uint64_t source[2]; /* IPv6, or IPv4 in the first four bytes; network order */
	uint16_t port;      /* network order */
	uint16_t comm;
	uint32_t lane;
};

struct xdp_lane {
	uint64_t cookie, proof;
	uint16_t job, epoch;
	uint8_t active;
	uint8_t entries;      /* frames that a result becomes: slots of the lane's fan */
	uint8_t shared_ports; /* two of them leave through one interface */
	uint8_t index;        /* on the wire */
	struct dense_lane dense;
	uint64_t last[WIRE_CHILDREN_MAX];    /* fragments that each child was the last to bring */
	uint8_t entry[XDP_ROUTES + 7];       /* the route of each slot, */
	uint32_t entry_port[XDP_ROUTES + 1]; /* and the interface that it leaves by */
	struct xdp_route routes[XDP_ROUTES]; /* by child; the last is the multicast group's */
	struct xdp_parent parent;
	struct xdp_seen seen[WIRE_CHILDREN_MAX];
};

/*
 * A cell with its sum behind it; the room for a header is for user space. The
 * ring (wire/check.h) is that of what the program itself added, from the first
 * packet on: it is the sum's only where it is of the cell's fragment and scale,
 * and of all children that are in the sum.
 */
struct xdp_cell {
	struct dense_cell state;
	struct wire_check ring;
	uint64_t ring_tag; /* position << 16 | scale */
	uint64_t ring_of;  /* children */
	uint8_t header[WIRE_HEADER];
	uint64_t sum[];
};

/* Corrupted packets, which are passed on, are counted behind the engine's verdicts. */
#define XDP_CORRUPTED DENSE_VERDICTS_END

/* Packets that only add to a sum are counted when it is complete, which spares each of them. */
struct xdp_counts {
	uint64_t verdicts[XDP_VERDICTS];
	uint64_t added, payload;
	uint64_t results, sends, busy;
	uint64_t raised, left; /* sums that went up, and that the daemon was left to send */
	uint64_t lowered;      /* results that came from the parent and became ours */
	uint64_t echoes;       /* that had come before */
	uint64_t queued;       /* packets that went to the daemon by its queue, */
	uint64_t full;         /* and that passed as it was full */
};

#endif
