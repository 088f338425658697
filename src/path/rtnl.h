/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel's rtnetlink answers: by which interface a route leaves, and
 * which queueing discipline (qdisc) an interface has. Pure: bytes in memory,
 * from whoever wrote them.
 */
#ifndef TRIB_PATH_RTNL_H
#define TRIB_PATH_RTNL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RTNL_KIND 16u /* a qdisc's name with its end */

/* How an interface's packets queue; begin with zeros. */
struct rtnl_qdisc {
	char kind[RTNL_KIND];  /* of the root; "": none was told */
	uint32_t handle;       /* the root's */
	unsigned leaves, fair; /* the root's children (those of mq), and how many of them are fq */
	uint32_t flow_limit;   /* packets of one flow that fq holds, the smallest; 0: unknown */
};

/*
 * One datagram of the answer to RTM_GETQDISC for all interfaces: takes what is
 * about interface `index`. 1: more is to come; 0: that was the end; -errno.
 */
int rtnl_take_qdiscs(struct rtnl_qdisc *qdisc, int index, const void *data, size_t bytes);

/* Does every packet of the interface go through fq? */
bool rtnl_is_fair(const struct rtnl_qdisc *qdisc);

/* The answer to RTM_GETROUTE: the index of the interface, or -errno. */
int rtnl_read_route(const void *data, size_t bytes);

#endif
