/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a carrier: it takes the messages of a channel over ways of its own, beside the UDP
 * sockets of the paths (carried.h). Functions get what `open` has made.
 */
#ifndef TRIB_PATH_CHANNEL_CARRIER_H
#define TRIB_PATH_CHANNEL_CARRIER_H

#include "path/channel/channel.h"
#include "path/udp.h"

#include <poll.h>

struct channel_carrier {
	unsigned depth; /* messages on each path at a time */
	uint32_t from;  /* bytes of the shortest message that it takes; 0: it has to take all */
	/* Own addresses in their order, up to `most`. A path joins address N of both sides. NULL if
	 * it does not take all messages: paths are found as without it. */
	unsigned (*addresses)(struct udp_address own[], unsigned most);
	/*
	 * `name`: the peer. Messages have `longest` bytes at most. If the carrier takes all, they
	 * lie in memory of that length, also those that are sent. It stays until the channel is
	 * freed.
	 */
	trib_status (*open)(struct channel *channel, const char *name, uint32_t longest,
	                    const struct channel_events *events, void **carrier);
	void (*close)(void *carrier);
	/* The path has a socket between these addresses. */
	void (*add_path)(void *carrier, unsigned path, const struct path_address *from,
	                 const struct path_address *to);
	/* The descriptor to poll: it is ready if `take` has work, or `push` has room. fd -1: none.
	 */
	struct pollfd (*poll)(const void *carrier);
	/* Takes what has come and what has left. Delivers messages. */
	void (*take)(void *carrier, uint64_t now);
	/* Agrees with the peer on ways, and sends. Delivers nothing. */
	void (*push)(void *carrier, uint64_t now);
};

/* Does it take all messages, so that paths need no packets of data? */
static inline bool carrier_takes_all(const struct channel_carrier *carrier)
{
	return carrier && !carrier->from;
}

#endif
