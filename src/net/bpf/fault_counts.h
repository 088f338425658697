/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/* What the fault program counts at its end of a link; shared with fault.c. */
#ifndef TRIB_NET_FAULT_COUNTS_H
#define TRIB_NET_FAULT_COUNTS_H

#include <linux/types.h>

#define FAULT_MTU_MAX 9000 /* a packet held back for reordering has to fit */

struct fault_counts {
	__u64 packets; /* UDP packets that arrived */
	__u64 lost, duplicated, reordered, corrupted;
};

#endif
