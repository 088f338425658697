/* SPDX-License-Identifier: Apache-2.0 */
/* What an aggregator is started with. */
#ifndef TRIB_PLANE_CORE_AGGREGATOR_OPTIONS_H
#define TRIB_PLANE_CORE_AGGREGATOR_OPTIONS_H

#include "path/network_list.h"

#define AGGREGATOR_QUEUE_BYTES (1u << 20) /* default of queue_bytes: 1 MiB */

struct aggregator_options {
	const char *plane; /* a name of plane/planes.c; NULL: udp */
	struct udp_address listen;
	uint64_t cookie;          /* a worker must show this cookie to join; 0: see `open` */
	bool open;                /* without a cookie and a secret, anyone may join; else nobody */
	unsigned threads;         /* upper bound of the lanes of a job */
	uint64_t pool_bytes;      /* memory limit of all pools together; 0: no limit */
	uint64_t each_pool_bytes; /* memory limit of the pool of one communicator; 0: no limit */
	uint64_t link_bps;        /* rate of the children's link, bit/s; 0: ask the device */
	unsigned capacity;        /* jobs that may have sums in flight at once; 0: any number */
	struct network_list parents; /* where the aggregators above may be */
	bool multicast;              /* send results by multicast where children hear it */
	bool native;                 /* xdp: attach in driver mode where the driver can */
	const char *interfaces; /* xdp: "eth0,eth1"; NULL: those that have the listen address */
	uint32_t queue_bytes;   /* xdp: size of each thread's check queue; 0: use the socket */
	const char *pin;        /* cores of the threads, "0,1"; NULL: not pinned */
	struct udp_options socket;
};

#endif
