/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * net/bpf owns the programs for links of a virtual cluster: faults, relays, and passing on. They
 * must not touch what packets mean. This header is the counters of the fault program at one end of
 * a link; shared with fault.c.
 */
#ifndef TRIB_NET_FAULT_COUNTS_H
#define TRIB_NET_FAULT_COUNTS_H

#include <linux/types.h>

#define FAULT_MTU_MAX 9000 /* limit: a packet held for reordering must fit the buffer */

struct fault_counts {
	__u64 packets; /* UDP packets that arrived */
	__u64 lost, duplicated, reordered, corrupted;
};

#endif
