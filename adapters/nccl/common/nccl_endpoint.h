/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint: what sockets of point-to-point and of collectives share. */
#ifndef TRIB_NCCL_ENDPOINT_H
#define TRIB_NCCL_ENDPOINT_H

#include "greeting.h"

/* Listens on the device. *handle says where, with a new cookie. *fd is -1 after an error. */
trib_status endpoint_listen(enum greeting_kind kind, struct handle *handle, int *fd);
/* The kernel ends a connection that has nothing to send, if its peer is silent for TRIB_TIMEOUT. */
void endpoint_keep_alive(int fd);
/*
 * Has the peer of a connection that has something to send been silent for TRIB_TIMEOUT? A peer that
 * is late, and whose buffers are full, is not: it acknowledges probes. (TCP_USER_TIMEOUT would
 * count it as dead.)
 */
bool endpoint_is_silent(int fd);
trib_status endpoint_draw(void *bytes, size_t n);

#endif
