/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of channel_io.h: sockets, discovery, and the list of a listener. */
#ifndef TRIB_PATH_CHANNEL_IO_STATE_H
#define TRIB_PATH_CHANNEL_IO_STATE_H

#include "path/channel/channel_io.h"
#include "path/channel/path_socket.h"
#include "path/virtual/discovery.h"

struct channel_listener {
	int fd;
	struct udp_address at;
	struct udp_rx *rx;
	struct channel_io *channels; /* that wait to be called, or were */
	bool warned;                 /* about another version */
};

struct channel_io {
	struct channel *channel;
	struct udp_rx *rx;
	bool shares_rx; /* with other channels: the caller frees it */
	struct path_socket sockets[PATHS_MAX];
	unsigned n_sockets; /* the highest in use, plus 1 */
	uint64_t key;
	uint32_t self, peer;
	char name[CHANNEL_NAME];
	uint64_t failed_paths;                 /* bit i: path i could not be opened */
	const struct channel_carrier *carrier; /* NULL: none */
	void *carried;                         /* what it has made; NULL: nothing */
	uint64_t carried_paths;                /* bit i: the carrier knows path i */

	/* The side that calls: */
	struct virtual_path paths[PATHS_MAX];
	unsigned n_paths;            /* given by the caller; 0: found */
	unsigned n_tried;            /* paths that were opened, or could not be */
	struct discovery *discovery; /* NULL: not needed */
	bool told;                   /* discovery knows the peer's addresses */

	/* The side that is called: */
	struct channel_listener *listener;
	struct channel_io *next; /* in the listener's list */
};

/* A channel without sockets. */
trib_status channel_io_new(const struct channel_io_config *config, bool connects, uint32_t unit,
                           uint64_t now, struct channel_io **out);

/* The path that the side which calls has found, or was given; NULL: none. */
const struct virtual_path *channel_io_path(const struct channel_io *io, unsigned i);

#endif
