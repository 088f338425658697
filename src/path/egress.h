/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface by which a connected socket's packets leave, and whether its
 * queue keeps a packet until a time that the sender gives it (the qdisc fq,
 * also below mq). Then the kernel can space packets (path/pacer.h).
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

/* Asks the kernel; no rights are needed. */
trib_status egress_find(int fd, struct egress *egress);

#endif
