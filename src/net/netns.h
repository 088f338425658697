/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network namespaces, named below /run/netns as `ip netns` names them, so
 * that its `ip netns exec` works on them as well.
 */
#ifndef TRIB_NET_NETNS_H
#define TRIB_NET_NETNS_H

#include "base/status.h"

#include <stdbool.h>

#define NETNS_FOLDER "/run/netns"
#define NETNS_PATH_BYTES 288

struct netns {
	char name[64];
	int fd;
	int nl; /* an rtnetlink socket of this namespace */
};

trib_status netns_create(const char *name, struct netns *out);
trib_status netns_open(const char *name, struct netns *out);
void netns_close(struct netns *ns);
/* Takes the name away. The namespace itself goes with its last process. */
trib_status netns_remove(const char *name);

/* Moves the calling thread. *back, when asked for, is for netns_return. */
trib_status netns_enter(const char *name, int ns_fd, int *back);
trib_status netns_return(int back);

/* Calls `visit` for each process other than this one that lives in `ns`. */
void netns_each_process(const struct netns *ns, void (*visit)(const struct netns *ns, int pid));

#endif
