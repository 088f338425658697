/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rtnl: reads the kernel's rtnetlink answers: the interface of a route, and the queueing
 * discipline (qdisc) of an interface. Pure: it parses bytes in memory and trusts none.
 */
#ifndef TRIB_PATH_RTNL_H
#define TRIB_PATH_RTNL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RTNL_KIND 16u /* bytes of a qdisc's name, with the final zero */

/* The qdiscs of one interface. Start with zeros. */
struct rtnl_qdisc {
	char kind[RTNL_KIND]; /* name of the root qdisc; "": unknown */
	uint32_t handle;      /* handle of the root qdisc */
	unsigned leaves;      /* children of the root (mq has several) */
	unsigned fair;        /* children that are fq */
	uint32_t flow_limit;  /* packets of one flow that the smallest fq holds; 0: unknown */
};

/*
 * Takes one datagram of the answer to RTM_GETQDISC, and keeps what concerns interface
 * `index`. 1: more datagrams follow; 0: the answer is complete; -errno.
 */
int rtnl_take_qdiscs(struct rtnl_qdisc *qdisc, int index, const void *data, size_t bytes);

/* Does every packet of the interface go through fq? */
bool rtnl_is_fair(const struct rtnl_qdisc *qdisc);

struct rtnl_route {
	unsigned interface;  /* index of the interface */
	uint8_t gateway[16]; /* the next router's address */
	unsigned
		gateway_size; /* its bytes, 4 or 16; 0: no router, the destination is on the link */
};

/* The answer to RTM_GETROUTE. 0 or -errno. */
int rtnl_read_route(const void *data, size_t bytes, struct rtnl_route *route);

#endif
