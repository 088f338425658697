/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receive_core: chooses the core of an interface's receive work. A veth has no interrupt to
 * bind; by default its receive work runs on the sender's core. If the interface has a NAPI
 * (an XDP program is attached, or GRO is on), the NAPI becomes a kernel thread whose CPU time
 * can be read. If not, packets are steered to the core (RPS), and their CPU time shows only
 * in that core's total.
 */
#ifndef TRIB_NET_KERNEL_RECEIVE_CORE_H
#define TRIB_NET_KERNEL_RECEIVE_CORE_H

#include "net/kernel/netns.h"

#include <stdbool.h>

#define RECEIVE_THREADS_MAX 4
#define RECEIVE_PRIORITY 3 /* real-time priority of urgent receive work */

struct receive {
	int threads[RECEIVE_THREADS_MAX]; /* ids of the kernel threads */
	unsigned n;                       /* 0: packets are steered, there is no thread */
};

/* `urgent`: receive work preempts everything else on the core. */
trib_status receive_place(const char *namespace, const char *link, unsigned core, bool urgent,
                          struct receive *out);

/*
 * Moderates interrupts as a NIC does: while packets arrive, receive work waits this long for
 * more; 0: off. Works only with a NAPI.
 */
trib_status receive_moderate(const struct netns *ns, const char *link, unsigned microseconds);

#endif
