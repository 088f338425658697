/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a carrier: it takes the messages of a channel over ways of its own, beside the UDP
 * sockets of the paths (carried.h). Functions get what `open` has made.
 */
#ifndef TRIB_PATH_CHANNEL_CARRIER_H
#define TRIB_PATH_CHANNEL_CARRIER_H

#include "path/channel/channel.h"
#include "path/udp.h"

struct channel_carrier {
	unsigned depth; /* messages on each path at a time */
	/* Own addresses in their order, up to `most`. A path joins address N of both sides. */
	unsigned (*addresses)(struct udp_address own[], unsigned most);
	/*
	 * `name`: the peer. Messages have `longest` bytes at most. All of them, also those that are
	 * sent, lie in memory of that length, which stays until the channel is freed.
	 */
	trib_status (*open)(struct channel *channel, const char *name, uint32_t longest,
	                    const struct channel_events *events, void **carrier);
	void (*close)(void *carrier);
	/* The path has a socket between these addresses. */
	void (*add_path)(void *carrier, unsigned path, const struct path_address *from,
	                 const struct path_address *to);
	/* Readable if `take` has work. */
	int (*fd)(const void *carrier);
	/* Takes what has come and what has left. Delivers messages. */
	void (*take)(void *carrier, uint64_t now);
	/* Agrees with the peer on ways, and sends. Delivers nothing. */
	void (*push)(void *carrier, uint64_t now);
};

#endif
