/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carried: what a carrier does with the messages of a channel. Pure.
 *
 * A carrier takes whole messages, over ways of its own beside the channel's paths: RDMA
 * (path/rdma), or a TCP connection (path/tcp_link). The channel has all else: credit, the order
 * of delivery, the choice of a path, heartbeats, and the words of both sides about their carriers
 * (struct path_carrier). If a path's carrier fails, its messages go again: by carriers of other
 * paths, or as packets if the carrier takes long messages only. A message that has come twice
 * counts once.
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
void carried_arrived(struct channel *channel, unsigned path, uint32_t number, uint32_t bytes,
                     uint64_t sent_at, uint64_t now);
/* The path has failed, and the message goes again. */
void carried_lost(struct channel *channel, unsigned path, uint32_t number, uint64_t now);
/* May this message come? */
bool carried_expects(const struct channel *channel, uint32_t number);
/* A message has come. False: it is not wanted, and the caller keeps the memory. */
bool carried_came(struct channel *channel, unsigned path, uint32_t number, void *memory,
                  uint32_t bytes, uint64_t now);

/* Was a message sent that the carrier could take? Until then it need not be up. */
bool carried_is_wanted(const struct channel *channel);
/* When the peer was heard last, also by packets. */
uint64_t carried_heard_at(const struct channel *channel);
/* The path asks the peer for an answer. */
void carried_ask(struct channel *channel, unsigned path);

/* What messages by a carrier can tell beside, so that no packet has to: how many messages have
 * arrived, and how many may be sent. */
struct carried_counts {
	uint32_t delivered, credit;
};
/* They leave now. */
struct carried_counts carried_tell_counts(struct channel *channel, unsigned path);
/* False: that cannot be. */
bool carried_take_counts(struct channel *channel, unsigned path, struct carried_counts counts,
                         uint64_t now);

/* Tells the peer about the carrier of this path. The channel sets serial, heard and asks. */
void carried_tell(struct channel *channel, unsigned path, const struct path_carrier *own);
/* What the peer has told; NULL: nothing so far. */
const struct path_carrier *carried_heard(const struct channel *channel, unsigned path);

#endif
