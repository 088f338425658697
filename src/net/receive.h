/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On which core an interface's receive work is done. A veth has no interrupt
 * that could be bound: without a word it is done on the sender's core. Where
 * the interface has a NAPI (a program is attached, or GRO is on) that becomes
 * a thread, whose time can be read; where it has none, packets are steered to
 * the core (RPS), and its time shows only in the core's own.
 */
#ifndef TRIB_NET_RECEIVE_H
#define TRIB_NET_RECEIVE_H

#include "net/netns.h"

#include <stdbool.h>

#define RECEIVE_THREADS_MAX 4
#define RECEIVE_PRIORITY 3 /* of urgent receive work, real-time */

struct receive {
	int threads[RECEIVE_THREADS_MAX]; /* of the kernel, by their ids */
	unsigned n;                       /* 0: steered */
};

/* `urgent`: nothing else that runs on the core keeps it waiting. */
trib_status receive_place(const char *namespace, const char *link, unsigned core, bool urgent,
                          struct receive *out);

/*
 * As a NIC moderates its interrupts: while packets come, the interface's work
 * waits so long for more of them; 0: it does not. Only where it has a NAPI.
 */
trib_status receive_moderate(const struct netns *ns, const char *link, unsigned microseconds);

#endif
