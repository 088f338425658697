/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress: finds the interface that a connected socket sends through, and its
 * queueing discipline. If that is fq (also below mq), the queue holds a packet
 * until the time that the sender attached, so the kernel can space packets for
 * path/pacer.h.
 */
#ifndef TRIB_PATH_EGRESS_H
#define TRIB_PATH_EGRESS_H

#include "path/rtnl.h"
#include "path/udp.h"

#include <net/if.h>

struct egress {
	char interface[IF_NAMESIZE];
	struct rtnl_qdisc qdisc;
};

/* Asks the kernel. Needs no privileges. */
trib_status egress_find(int fd, struct egress *egress);

#endif
