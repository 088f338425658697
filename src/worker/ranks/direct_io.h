/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct_io: the channels between all pairs of ranks, for direct calls (ring/direct.h). The thread
 * that waits for a request drives them: it sends, receives and sums itself. While no thread waits,
 * the ring's thread does it.
 */
#ifndef TRIB_WORKER_RANKS_DIRECT_IO_H
#define TRIB_WORKER_RANKS_DIRECT_IO_H

#include "path/channel/channel_io.h"
#include "worker/comm/comm.h"
#include "worker/ring/direct.h"

struct direct_io;

#define DIRECT_FDS (WIRE_CHILDREN_MAX * CHANNEL_FDS)

/* ---- users' threads ---- */

/* The calls begin, and their messages leave. Takes the list over. The caller holds `posting`. */
void direct_start(struct trib_comm *comm, struct direct_call *calls);
/* A request goes around the ring. The caller holds `posting`. */
void direct_note_ring(struct trib_comm *comm, const struct wire_call *call);
/* Until the request has ended, or cannot end any more. */
void direct_drive(struct trib_comm *comm, const struct trib_request *request, uint64_t deadline);
/* Takes what has come, if no other thread does. */
void direct_poll(struct trib_comm *comm);
/* Adds the packets of all channels. */
void direct_count(struct direct_io *io, trib_stats *all);

/* ---- the ring's thread ---- */

/* NULL: no memory. */
struct direct_io *direct_new(struct trib_comm *comm);
void direct_free(struct direct_io *io);
/* Connects all ranks. `config`: as for the ring, but for ranks and events. */
trib_status direct_connect(struct direct_io *io, struct channel_listener *listener,
                           const struct channel_io_config *config);
void direct_listen(struct direct_io *io, struct channel_listener *listener, uint64_t now);
/* The channel to a rank has failed, and trib_last_error() says why: so does the communicator. */
void direct_lose_rank(struct direct_io *io, trib_status status, unsigned rank);
/* If no thread waits for a request: takes what has come. Gives the time until the next turn, and
 * sockets to poll: their number is *n. */
uint64_t direct_turn(struct direct_io *io, uint64_t now, struct pollfd *fds, unsigned *n);
/* Have all ranks answered? */
bool direct_is_open(struct direct_io *io);
/* Lets go of users' buffers. */
void direct_go_quiet(struct direct_io *io);
/* A step towards the end; the first one tells all ranks of a failure. True: all channels are
 * closed. */
bool direct_leave(struct direct_io *io, uint64_t now);

/* A rank's address, and its name for errors: "rank 3 (10.0.0.3:4711)". False: it listens nowhere.
 */
bool direct_seat_name(const struct ring_seat *seat, unsigned rank, struct udp_address *address,
                      char name[CHANNEL_NAME]);

#endif
