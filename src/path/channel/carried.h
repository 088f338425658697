/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carried: what a carrier does with the messages of a channel. Pure.
 *
 * A carrier takes whole messages, over ways of its own beside the channel's paths: RDMA
 * (path/rdma). The channel has all else: credit, the order of delivery, the choice of a path,
 * heartbeats, and the words of both sides about their carriers (struct path_carrier). If a path's
 * carrier fails, its messages go again by others. A message that has come twice counts once.
 */
#ifndef TRIB_PATH_CHANNEL_CARRIED_H
#define TRIB_PATH_CHANNEL_CARRIED_H

#include "path/channel/channel.h"

struct carried_message {
	unsigned path;
	uint32_t number;
	const void *data;
	uint32_t bytes;
};

/* The path takes messages from now on, or none. The caller tells first what is lost. */
void carried_set_up(struct channel *channel, unsigned path, bool up, uint64_t now);
/* The next message to send, and its path. False: none, or no path has room. */
bool carried_next(struct channel *channel, uint64_t now, struct carried_message *message);
/* The message, which left at `sent_at`, is in the peer's memory. */
void carried_arrived(struct channel *channel, unsigned path, uint32_t number, uint64_t sent_at,
                     uint64_t now);
/* The path has failed, and the message goes again. */
void carried_lost(struct channel *channel, unsigned path, uint32_t number, uint64_t now);
/* A message has come. False: it is not wanted, and the caller keeps the memory. */
bool carried_came(struct channel *channel, unsigned path, uint32_t number, void *memory,
                  uint32_t bytes, uint64_t now);

/* Tells the peer about the carrier of this path. The channel sets serial, heard and asks. */
void carried_tell(struct channel *channel, unsigned path, const struct path_carrier *own);
/* What the peer has told; NULL: nothing so far. */
const struct path_carrier *carried_heard(const struct channel *channel, unsigned path);

#endif
