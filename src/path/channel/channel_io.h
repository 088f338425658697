/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channel_io: a channel over UDP sockets, one for each path. It has no thread: the caller polls
 * the sockets of all its channels, and calls the steps.
 *
 *   channel_listen                          once a process, for all peers
 *   channel_connect | channel_accept        the one side calls, the other one is called
 *   loop: channel_fds, poll until channel_wait is over, channel_listener_step, channel_step
 *   channel_send, channel_sent, channel_grant, ... on channel_of(io)
 *   channel_close, and steps until channel_state is CHANNEL_CLOSED; channel_io_free
 */
#ifndef TRIB_PATH_CHANNEL_IO_H
#define TRIB_PATH_CHANNEL_IO_H

#include "path/channel/channel_carrier.h"
#include "path/page/path_page.h"
#include "path/virtual/virtual_path.h"

#include <poll.h>

#define CHANNEL_FDS (PATHS_MAX + 2)
#define CHANNEL_RX 4u /* messages that udp_rx_new gets room for */

struct channel_io_config {
	uint64_t key;        /* secret of both sides; also tells channels of two processes apart */
	uint32_t self, peer; /* numbers of both processes, e.g. their ranks */
	const char *name;    /* the peer in error messages, e.g. "rank 3" */
	uint32_t longest;    /* bytes of the longest message that may come */
	uint32_t credit;     /* messages that may come before channel_grant is called */
	uint64_t timeout;    /* ns */
	uint32_t chunk;      /* bytes; 0: TRIB_CHUNK */
	bool patient;        /* see struct channel_config */
	struct channel_events events;
	/* Buffers for packets that come, of all channels that one thread drives at a time: fewer
	 * stay in the cache. NULL: its own. */
	struct udp_rx *rx;
	/* Takes the messages, at both sides; NULL: they travel as packets of UDP. */
	const struct channel_carrier *carrier;
	/* The side that calls: the paths to use. n_paths 0: they are found (TRIB_PATHS). */
	const struct virtual_path *paths;
	unsigned n_paths;
};

struct channel_listener;
struct channel_io;

/* Listens on an address (port 0: any port). */
trib_status channel_listen(const struct udp_address *at, struct channel_listener **out);
void channel_listener_free(struct channel_listener *listener);
uint16_t channel_listener_port(const struct channel_listener *listener);
int channel_listener_fd(const struct channel_listener *listener);
/* Takes the HELLOs that wait, and gives them to the channels that were called. */
void channel_listener_step(struct channel_listener *listener, uint64_t now);

/* Calls the listener of the peer. The channel opens in later steps. */
trib_status channel_connect(const struct channel_io_config *config, const struct udp_address *to,
                            uint64_t now, struct channel_io **out);
/* Waits to be called by the peer `config->peer` with the same key. */
trib_status channel_accept(struct channel_listener *listener,
                           const struct channel_io_config *config, uint64_t now,
                           struct channel_io **out);
/* Closes the sockets; tells the peer, if the channel is open. Free channels before listeners. */
void channel_io_free(struct channel_io *io);

/* The channel. Messages can be sent before it is open. */
struct channel *channel_of(const struct channel_io *io);

/* Writes the sockets to poll; returns how many. At most CHANNEL_FDS. */
unsigned channel_fds(const struct channel_io *io, struct pollfd *fds);
/* When to step again if no socket is ready: nanoseconds from now; UINT64_MAX: never. */
uint64_t channel_wait(const struct channel_io *io, uint64_t now);
/* Receives on the sockets that poll has found ready. `fds`: as channel_fds wrote them. False: none
 * of the channel's sockets is ready. */
bool channel_take(struct channel_io *io, const struct pollfd *fds, unsigned n);
/*
 * Sends all that can be. An error ends the channel: the peer is silent, has another version, ...
 * The sentence names it.
 */
trib_status channel_push(struct channel_io *io, uint64_t now);
/* Receives on all sockets, and sends. */
trib_status channel_step(struct channel_io *io, uint64_t now);

/* What a page tells about the paths to the peer. The caller sets the role. */
void channel_show(const struct channel_io *io, struct page_peer *peer);

#endif
