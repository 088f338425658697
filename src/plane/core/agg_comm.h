/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator as an aggregator sees it: its children, its parent, its terms. Data only. */
#ifndef TRIB_PLANE_CORE_AGG_COMM_H
#define TRIB_PLANE_CORE_AGG_COMM_H

#include "engine/engines.h"
#include "path/closed_port.h"
#include "path/udp.h"
#include "wire/packet.h"

#include <stdatomic.h>

#define COMMS_MAX 1024u
#define COMMS_A_JOB 256u       /* most communicators of one job */
#define COMMS_A_HOST 256u      /* most communicators that processes of one host have begun */
#define DEAD_AFTER_MAX 300000u /* 300 s, in ms: a silent child's pool is not kept for longer */

struct child {
	struct wire_join join;      /* its last JOIN */
	struct udp_address address; /* of its lane 0 */
	uint64_t cookie;            /* the cookie that it showed */
	uint64_t asked_at;          /* time of its last JOIN */
	uint32_t asked_bytes;       /* length of its last JOIN; the answer is as long */
	uint64_t here;              /* ranks that have arrived below it, while it still forms */
};

/* The aggregator above. The whole communicator is one child of it. */
struct parent {
	struct udp_address address; /* of its lane 0 */
	uint8_t child;              /* our child index there */
	uint32_t token;             /* it has given us this token; path/address_proof.h */
	bool telling;               /* we tell it which ranks have arrived */
	bool asking;                /* we ask it to let us join */
	bool joined;                /* it has let us join */
	_Atomic bool echoed;        /* it has answered our BYE */
	uint64_t nonce, asked_at, heard_at, present;
	uint64_t since;   /* time at which asking began */
	unsigned asks;    /* JOINs sent */
	unsigned again;   /* full-length JOINs sent since a shorter one was answered */
	uint32_t full;    /* payload that the route can carry */
	uint32_t came;    /* largest payload that made the round trip; 0: none */
	uint32_t settled; /* payload in use; 0: not decided */
	uint32_t payload, lanes, cells, dead_after_ms;
	bool closed;                /* its host said that its port is closed when we last asked */
	struct closed_port closing; /* what that proves */
	char text[WIRE_TEXT_MAX];   /* why the parent itself waits */
	uint64_t bye_since;
	/* The terms of its WELCOME: */
	uint64_t cookie;
	uint16_t comm, epoch;
	uint32_t rate;            /* first rate of each lane, as on the wire */
	struct udp_address group; /* multicast group of lane 0 */
};

/*
 * Thread 0 writes it. Once `running` is set, other threads read it, and only
 * `failed`, the atomic fields and the kernel fields change.
 */
struct comm {
	uint64_t key, cookie;
	uint16_t job, id, epoch;
	uint16_t tree;
	uint32_t generation;
	uint32_t size, payload, lanes, cells;
	const struct engine *engine;
	const struct lane_kind *does; /* what its lanes do for the engine */
	uint32_t dead_after_ms;
	struct udp_address founder; /* the first child's address; quotas count by host */
	struct wire_join first;     /* the first child's JOIN; all others must name the same tree */
	uint64_t ranks;             /* ranks whose sums meet here, as bits */
	uint64_t covered;           /* those of `ranks` that have joined */
	uint64_t present;           /* children that have joined; the index is the lowest rank */
	uint64_t forming;           /* children that said they wait for children of their own */
	_Atomic uint64_t gone;      /* children that have left */
	struct child children[WIRE_CHILDREN_MAX];
	struct parent parent;
	struct udp_address group; /* multicast group of lane 0; lane l uses a port l higher */
	uint64_t grouped;         /* children that the multicast group is offered to */
	uint64_t rival_nonce;     /* a process that asks for a rank that is taken; 0: none */
	uint64_t rival_since;     /* time of the rival's first JOIN */
	uint64_t created_at, failed_at, pool_bytes;
	bool has_parent;
	bool running; /* all ranks have joined, and the parent has let us join */
	bool retired; /* over; freed when no lane holds it any more */
	_Atomic bool failed;
	struct wire_abort abort;     /* written before `failed` is set */
	_Atomic uint32_t idle_lanes; /* lanes with nothing left to send up, as bits */
	_Atomic unsigned users;      /* lanes that hold it */
	_Atomic unsigned busy_lanes; /* lanes with sums in flight; see lane/occupancy.h */
	_Atomic bool counted;        /* it counts among the aggregator's users */
	struct kernel *kernel;       /* the kernel part that may sum its lanes; NULL: none */
	uint32_t kernel_lanes; /* lanes that the kernel part sums, as bits; see core/kernel.h */
	char kernel_why[256];  /* why it does not sum the other lanes */
};

#endif
