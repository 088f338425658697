/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hop_probe: sends a datagram that dies at a router, and reads the router's answer. It needs no
 * privileges.
 */
#ifndef TRIB_PATH_VIRTUAL_HOP_PROBE_H
#define TRIB_PATH_VIRTUAL_HOP_PROBE_H

#include "path/virtual/virtual_path.h"

/* A socket from path->from to path->to. If the port of `from` is 0, it gets the chosen port. */
trib_status hop_probe_open(struct virtual_path *path, int *fd);
/* Asks for hop number `hop`. False: the kernel refuses to send. */
bool hop_probe_send(int fd, unsigned hop);

enum hop_answer {
	HOP_NONE,    /* no answer so far */
	HOP_STALE,   /* an answer to an older probe */
	HOP_TOLD,    /* the hop's address */
	HOP_REACHED, /* the probe has reached the peer, at a closed port */
	HOP_REFUSED, /* there is no route, or another error */
};
/* Takes one answer. */
enum hop_answer hop_probe_take(int fd, unsigned hop, struct path_hop *told);

#endif
