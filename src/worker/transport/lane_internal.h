/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a lane's loop, each in a file of its own. All run in the lane's thread. */
#ifndef TRIB_WORKER_TRANSPORT_LANE_INTERNAL_H
#define TRIB_WORKER_TRANSPORT_LANE_INTERNAL_H

#include "worker/comm/comm.h"
#include "worker/transport/lane_carrier.h"
#include "wire/parse.h"

#define LANE_RATE_UNIT 1024u /* bit/s: the unit of rates on the wire */
#define LANE_NO_MEMORY "no memory for NaN and infinities, or for early results"

/* The fields of a fragment that its checksum covers and the packet omits. */
static inline struct wire_unsent lane_unsent(const struct lane *lane,
                                             const struct wire_header *header)
{
	const struct wire_welcome *welcome = &lane->trunk->welcome;
	uint64_t position = stream_position(&lane->stream, header);

	return (struct wire_unsent){ .proof = wire_proof(welcome->cookie, lane->comm->config.job,
		                                         welcome->epoch),
		                     .pos = wire_pos(lane->index, position) };
}

/* Hands what was posted to the stream. */
static inline void lane_take_posts(struct lane *lane, uint64_t now)
{
	struct round *rounds = lane_take_posted(lane, now), *round;

	while ((round = round_pop(&rounds)))
		if (!stream_post(&lane->stream, round, now))
			comm_fail(lane->comm, TRIB_ERR_NO_MEMORY, LANE_NO_MEMORY);
}

/* lane_receive.c: handles the packets that have come. False: none has. */
bool lane_receive(struct lane *lane, uint64_t now);
/* Is a control packet for this lane, from its aggregator? */
bool lane_owns(const struct lane *lane, const struct wire_control *header);

/* lane_send.c: sends what the stream has. True: the socket is full. *sent: something left. */
bool lane_send(struct lane *lane, uint64_t now, bool *sent);
/* Time between two reports if nothing else makes one due. */
uint64_t lane_heartbeat_every(const struct lane *lane);

/* lane_finish.c: callbacks of the stream, with the lane as context. */
void lane_on_finished(void *context, struct round *round);
void lane_on_over(void *context, struct round *round);
/* Tells users of finished rounds that need to wait no longer; UINT64_MAX: of all. */
void lane_finish_held(struct lane *lane, uint64_t now);
/* Frees copies that no rank can need any more. */
void lane_forget_kept(struct lane *lane);
/* The thread's end: lets go of users' buffers, and wakes those that wait for that. */
void lane_go_quiet(struct lane *lane);

/* The token that the lane's reports show. */
static inline uint32_t lane_token(const struct lane *lane)
{
	uint32_t own = atomic_load_explicit(&lane->token, memory_order_relaxed);

	return own ? own : lane->trunk->token;
}

/* lane_failure.c: an error of the socket, as -errno. */
void lane_note_error(struct lane *lane, int error);
/* An ABORT came from the aggregator. */
void lane_on_abort(struct lane *lane, const struct wire_abort *abort);
/* Has the aggregator been silent for too long? Raises a suspicion, later fails. */
void lane_check_silence(struct lane *lane, uint64_t now);

/* pacing.c: chooses whether the kernel or the pacer spaces packets, and logs the choice. */
void pacing_start(struct lane *lane);
void pacing_end(const struct lane *lane);
/* The lane has a new socket. */
void pacing_moved(struct lane *lane);

#endif
