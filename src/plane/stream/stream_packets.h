/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results and sums of a stream that may leave. They are packets that lie in the cells, at equal
 * distances, so carriers need not copy them, and neighbours may leave as one message.
 */
#ifndef TRIB_PLANE_STREAM_STREAM_PACKETS_H
#define TRIB_PLANE_STREAM_STREAM_PACKETS_H

#include "plane/stream/stream_window.h"

struct stream_packet {
	uint8_t *data;
	uint32_t bytes;
	uint32_t apart; /* bytes from here to the packet of the next position */
	uint64_t position;
	uint64_t to; /* children, as bits; some may have left */
	bool again;  /* a repeat */
};

/* The next result, sealed; it stays the next until stream_result_left(). False: there is none. */
bool stream_next_result(struct thread *thread, struct agg_lane *lane, struct stream_packet *out);
void stream_result_left(struct thread *thread, struct agg_lane *lane,
                        const struct stream_packet *packet);
/* The next sum for the parent, sealed; it counts as sent. False: there is none. */
bool stream_next_sum(struct thread *thread, struct agg_lane *lane, struct stream_packet *out);

/* For connections: seals all results, in their order. `lane->head` is behind the last. */
void stream_seal_results(struct thread *thread, struct agg_lane *lane);
/* The result at this place of the order, if it is for the child. False: it is not. */
bool stream_result_at(const struct agg_lane *lane, uint64_t at, unsigned child,
                      struct stream_packet *out);
/* The next sum for the parent, not sealed; it counts as sent. */
bool stream_pop_sum(struct thread *thread, struct agg_lane *lane, struct stream_packet *out);

/* For the kernel part: the cell of a position; has user space repeated its result? */
uint32_t stream_cell_of(const struct agg_lane *lane, uint64_t position);
bool stream_was_repeated(const struct agg_lane *lane, uint64_t position);
/* Is the result of this position in its cell, and for the child? */
bool stream_has_result(const struct agg_lane *lane, uint64_t position, unsigned child);

#endif
