/* SPDX-License-Identifier: Apache-2.0 */
/* What makes a veth behave like a wire: a rate, and packets that cross one by one. */
#ifndef TRIB_NET_SHAPE_H
#define TRIB_NET_SHAPE_H

#include "net/link.h"

/* Limits what leaves through `end`, in batches of up to 64 KB or packet by packet. */
trib_status shape_rate(const struct link_end *end, uint64_t bits_per_second, bool batches);
/*
 * ... while it is in use. `highest` is the highest rate that it ever has: a batch in the queue that
 * was let in at that rate, and is longer than what may leave at once now, would never leave.
 */
trib_status shape_again(const struct link_end *end, uint64_t bits_per_second, bool batches,
                        uint64_t highest);
/* No rate, but a queue, as a NIC has one: where the far end's ring is full, packets wait. */
trib_status shape_queue(const struct link_end *end);
/* Segments batches before they leave through `end`, and merges none that arrive. */
trib_status shape_no_offload(const struct link_end *end);
/* Merges what arrives at `end`, if its receiver has nothing against it. */
trib_status shape_gro(const struct link_end *end);

#endif
