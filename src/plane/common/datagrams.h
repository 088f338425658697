/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane/common: what several carriers share. It owns the datagram socket of a thread, by which a
 * plane with connections answers queries as well. It must not name a carrier.
 */
#ifndef TRIB_PLANE_COMMON_DATAGRAMS_H
#define TRIB_PLANE_COMMON_DATAGRAMS_H

#include "plane/core/aggregator_state.h"

/* Thread 0 finds the aggregator's port. */
trib_status datagrams_open(struct thread *thread, const struct udp_address *listen);
void datagrams_close(struct thread *thread);
/* Seals and sends one packet at once. */
void datagrams_answer(struct thread *thread, void *packet, uint32_t bytes,
                      const struct udp_address *to);

#endif
