/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/kernel owns what src/net asks the kernel for: netlink, namespaces, links, shaping and
 * offloads. It must not touch clusters: it knows one link or namespace at a time.
 *
 * netns: network namespaces, named below /run/netns as `ip netns` does, so that
 * `ip netns exec` works on them too.
 */
#ifndef TRIB_NET_KERNEL_NETNS_H
#define TRIB_NET_KERNEL_NETNS_H

#include "base/status.h"

#include <stdbool.h>

#define NETNS_FOLDER "/run/netns"
#define NETNS_PATH_BYTES 288

struct netns {
	char name[64];
	int fd;
	int nl; /* an rtnetlink socket of this namespace */
};

/* A namespace that is not open. */
#define NETNS_NONE ((struct netns){ .fd = -1, .nl = -1 })

trib_status netns_create(const char *name, struct netns *out);
trib_status netns_open(const char *name, struct netns *out);
void netns_close(struct netns *ns);
/* Removes the name. The namespace itself ends with its last process. */
trib_status netns_remove(const char *name);

/* Moves the calling thread. If `back` is not NULL, *back is for netns_return. */
trib_status netns_enter(const char *name, int ns_fd, int *back);
trib_status netns_return(int back);

/* Writes a setting of the kernel: a file below /proc/sys/net. */
trib_status netns_set(const struct netns *ns, const char *file, const char *text);

/* Calls `visit` for each process in `ns` except this one. */
void netns_each_process(const struct netns *ns, void (*visit)(const struct netns *ns, int pid));

#endif
