/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * plane/xdp/bpf: the BPF programs that sum in the kernel: plane.bpf.c for the dense engine,
 * slot.bpf.c for small vectors, sparse.bpf.c for rows; the other headers are parts of them. They
 * must not decide what a sum is: they run the functions of src/engine. This header has the memory
 * that the program and the daemon share; it is the only one that the daemon includes.
 */
#ifndef TRIB_PLANE_XDP_SHARED_H
#define TRIB_PLANE_XDP_SHARED_H

#include "engine/engines.h"
#include "engine/uplink.h"
#include "wire/checksum.h"

#define XDP_COMMS 64u /* communicators; user space sums those with a higher id */
#define XDP_LANES (XDP_COMMS * WIRE_LANES_MAX)
/* A cell is as large as the largest MTU needs, up to what the verifier can follow. */
#define XDP_PAYLOAD_MAX 1696u
#define XDP_HEAD_MAX 72u /* bytes: Ethernet, two VLAN tags, IPv6 and UDP are 70 */
#define XDP_REPORT_MAX (WIRE_CONTROL + (uint32_t)sizeof(struct wire_report))
#define XDP_GROUP WIRE_CHILDREN_MAX
#define XDP_ROUTES (WIRE_CHILDREN_MAX + 1)
#define XDP_VERDICTS 16u /* those of the engine, rounded up so that a 4-bit mask bounds them */

/* Constant while the program is loaded. */
struct xdp_settings {
	uint32_t first_port, ports; /* port of lane 0, and number of ports */
	uint32_t payload;           /* largest payload of a cell, bytes */
};

/*
 * The front of a frame, Ethernet to UDP. Only lengths and the IPv4 checksum are
 * missing; `ip_sum` is the constant part of that checksum.
 */
struct xdp_route {
	uint32_t ifindex; /* 0: the route is unknown */
	uint32_t ip_sum;
	uint8_t l2, l3; /* lengths of Ethernet with tags, and of IP */
	uint8_t queued; /* 1: packets of this route for the daemon use the check queue */
	uint8_t unused[5];
	uint8_t head[XDP_HEAD_MAX];
};

/* The front of a child's last REPORT, or of the parent's last STATUS. */
struct xdp_seen {
	uint32_t ifindex;
	uint32_t at; /* offset of our packet */
	uint8_t head[XDP_HEAD_MAX];
};

/* A packet for the daemon, in the check queue of its lane. */
struct xdp_queued {
	uint32_t bytes;
	uint32_t unused;
	struct xdp_seen seen;
	uint64_t packet[]; /* room for XDP_REPORT_MAX, or for a fragment */
};

/*
 * The parent: sums go there, and results come from there. The daemon writes its
 * address and how many sums may be in flight. The program counts what it sends.
 */
struct xdp_parent {
	uint64_t cookie, proof;
	uint16_t job, comm, epoch;
	uint8_t child;
	uint8_t active;    /* the route is known: route, mac and address are valid */
	uint64_t mac;      /* receiver MAC of frames to us: the first 6 bytes */
	uint64_t address;  /* 8 bytes before UDP in frames to us: the IPv4 addresses, or half of our
	                      IPv6 address */
	uint64_t launched; /* sums that the program has sent up; it sends only below `allowed` */
	uint64_t allowed;
	uint64_t sent;  /* one above the last fragment sent up */
	uint64_t told;  /* `settled` when the last sum left */
	uint64_t heard; /* results of sums that only the program had sent */
	struct xdp_route route;
	struct xdp_seen seen;
};

/* A parent's address, and its id of a communicator: the key to the slot of a lane. */
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
	uint8_t entries;          /* frames that a result becomes: slots of the fan in use */
	uint8_t shared_ports;     /* 1: two of them leave through one interface */
	uint8_t index;            /* number of the lane on the wire */
	uint64_t engine;          /* its number; its program takes the lane's DATA. 0: dense */
	struct engine_lane state; /* of that engine */
	struct dense_lane dense;
	uint64_t last[WIRE_CHILDREN_MAX]; /* fragments of which each child was the last to arrive */
	uint8_t entry[XDP_ROUTES + 7];    /* index of the route of each slot */
	uint32_t entry_port[XDP_ROUTES + 1]; /* interface of each slot */
	struct xdp_route routes[XDP_ROUTES]; /* by child; XDP_GROUP is the multicast group's */
	struct xdp_parent parent;
	struct xdp_seen seen[WIRE_CHILDREN_MAX];
};

/*
 * A cell with its sum behind it; the room for a header is for user space. The ring
 * (wire/checksum.h) covers the packets that the program itself added. It is the
 * ring of the sum only if ring_tag matches the cell's fragment and scale, and
 * ring_of equals the children in the sum.
 */
struct xdp_cell {
	struct dense_cell state;
	struct wire_check ring;
	uint64_t ring_tag; /* position << 16 | scale */
	uint64_t ring_of;  /* children */
	uint8_t header[WIRE_HEADER];
	uint64_t sum[];
};

/* Corrupted packets pass on. They are counted behind the engine's verdicts. */
#define XDP_CORRUPTED DENSE_VERDICTS_END

/*
 * Packets that only add to a sum are counted when the sum is complete, which saves
 * a count per packet.
 */
struct xdp_counts {
	uint64_t verdicts[XDP_VERDICTS];
	uint64_t added, payload;
	uint64_t results, sends, busy;
	uint64_t raised, left; /* sums that went up, and sums left to the daemon */
	uint64_t lowered;      /* results of the parent that went down to our children */
	uint64_t echoes;       /* results of the parent that were known already */
	uint64_t queued;       /* packets put into a check queue */
	uint64_t full;         /* packets that passed because the check queue was full */
};

#endif
