/* SPDX-License-Identifier: Apache-2.0 */
/* How lanes share the aggregator's link: the data. plane/lane/link_share.h has the functions. */
#ifndef TRIB_PLANE_CORE_LINK_RATES_H
#define TRIB_PLANE_CORE_LINK_RATES_H

#include "plan/rates/losses.h"
#include "plan/rates/rates.h"
#include "wire/packet.h"

#include <pthread.h>
#include <stdatomic.h>

#define RATES_CHILDREN_MAX 1024u

struct comm;

/* One lane's part. All rates are in bit/s. */
struct lane_rates {
	struct lane_rates *next;
	const struct comm *comm;
	uint64_t members;
	bool listed, has_parent;
	/* Written by the lane's thread with the lock, because other threads read them: */
	bool works;      /* the lane is active: packets arrive, or are about to */
	uint64_t active; /* children that send; 0: no child has said so */
	double above;    /* rate that the parent grants; 0: no limit */
	double factor;   /* part of the share that losses leave to the lane, 0 to 1 */
	double want[WIRE_CHILDREN_MAX];
	uint64_t said; /* children that are workers and have said what rate they want */
	/* Written with the lock, by any thread: */
	uint64_t gone; /* children that have left */
	double given[WIRE_CHILDREN_MAX];
	/* Used by the lane's thread alone: */
	uint32_t above_serial;
	uint32_t copied;                     /* the serial that copy[] belongs to */
	double copy[WIRE_CHILDREN_MAX];      /* copy of given[] */
	uint32_t told[WIRE_CHILDREN_MAX];    /* the rate each child knows, as on the wire */
	uint64_t idle;                       /* active children that have said they are idle */
	uint64_t idle_at[WIRE_CHILDREN_MAX]; /* time from which a child of `idle` counts as idle */
	uint64_t seen_at;                    /* time of the last packet */
	struct losses losses;
};

/* The aggregator's link. */
struct link_rates {
	pthread_mutex_t lock;
	_Atomic double capacity; /* bit/s; 0: unknown, no child is held back */
	char interface[64];      /* the device whose speed is read; "": none */
	bool looked;             /* the device has been looked for */
	uint64_t look_at;        /* time of the next look at the device's speed */
	struct lane_rates *lanes;
	_Atomic uint32_t serial; /* grows with every new sharing */
	struct rate_child children[RATES_CHILDREN_MAX];
	double given[RATES_CHILDREN_MAX];
};

#endif
