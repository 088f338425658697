/* SPDX-License-Identifier: Apache-2.0 */
/* link_shape: makes a veth behave like a wire: a rate, and packets that cross singly. */
#ifndef TRIB_NET_KERNEL_LINK_SHAPE_H
#define TRIB_NET_KERNEL_LINK_SHAPE_H

#include "net/kernel/link.h"

/* Limits the rate of packets leaving through `end`, in batches of up to 64 KB or singly. */
trib_status shape_rate(const struct link_end *end, uint64_t bits_per_second, bool batches);
/*
 * Changes the rate while the link is in use. `highest` is the highest rate it ever has: the burst
 * size must fit the longest batch that was queued at that rate, or that batch never leaves.
 */
trib_status shape_again(const struct link_end *end, uint64_t bits_per_second, bool batches,
                        uint64_t highest);
/* Removes the queue with its rate, and what waits in it. */
trib_status shape_none(const struct link_end *end);
/* Drops every packet that is to leave through `end`, without an error for its sender. */
trib_status shape_cut(const struct link_end *end);
/* A queue without a rate, as a NIC has one: if the far end's ring is full, packets wait. */
trib_status shape_queue(const struct link_end *end);
/* Segments batches before they leave through `end`, and merges none that arrive. */
trib_status shape_no_offload(const struct link_end *end);
/* Turns on GRO for packets that arrive at `end`. */
trib_status shape_gro(const struct link_end *end);

#endif
