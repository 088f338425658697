/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdma owns the messages of a channel on RDMA devices: it is a carrier (channel/channel_carrier.h)
 * with one queue pair (QP) for each path. It must not decide about order, paths or repeats: the
 * channel does (channel/carried.h), and path/verbs/pact.h says when QPs are opened and closed.
 *
 * A message is one SEND, from the sender's buffer into one of the receiver's: nothing is copied. It
 * carries the number of the message as immediate data. All QPs of a channel have one completion
 * queue (CQ).
 *
 * libibverbs is loaded when it is needed (rdma_api.h), so programs run without it.
 */
#ifndef TRIB_PATH_RDMA_H
#define TRIB_PATH_RDMA_H

#include "path/channel/channel_carrier.h"

/*
 * The carrier of this process. `local`: an own address, whose device is preferred. NULL: there is
 * no device, or TRIB_TRANSPORT does not ask for one. One line says why, once a process.
 */
const struct channel_carrier *rdma_carrier(const struct udp_address *local);

/*
 * Connections of the tcp plane are streams by RDMA from now on, where the peer takes them
 * (rdma_stream.h). If TRIB_TRANSPORT does not ask for it, nothing happens. If RDMA is impossible,
 * one line says why.
 */
void rdma_streams_start(void);

#endif
