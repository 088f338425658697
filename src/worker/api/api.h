/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api: the functions of tributary.h: communicators are opened and closed (communicator.c, split.c,
 * regroup.c), collectives become requests (collectives.c), and users wait for them (wait.c).
 *
 * The room owns the checks of the user's arguments, the settings (config.c), and the lifetime of
 * a communicator. It runs in the user's threads. No other room of the worker calls it.
 */
#ifndef TRIB_WORKER_API_API_H
#define TRIB_WORKER_API_API_H

#include "worker/comm/comm.h"

/* config.c: from options, environment and files. The caller gives config->trees to comm_open. */
trib_status comm_config_read(const trib_options *options, struct comm_config *config);
/* meeting_place.c: config.rendezvous, of ranks that have no aggregator. Rank, size and cookie are
 * set. */
trib_status meeting_place_read(struct comm_config *config);
/* Is it a value of wire_bits? 0: the caller has not set it. */
static inline bool is_wire_bits(int bits)
{
	return bits == 0 || bits == 8 || bits == 16 || bits == 32;
}

/*
 * communicator.c: takes over the configuration's trees, also if it fails. `before`: the
 * communicator that this one replaces; NULL: none.
 */
trib_status comm_open(const struct comm_config *config, const struct trib_comm *before,
                      struct trib_comm **out);
/* Waits for requests in flight and leaves the trees; only the memory is left. */
trib_status comm_close(struct trib_comm *comm);
void comm_free(struct trib_comm *comm);

/* forked.c: forks so far, for trib_comm.forks. */
unsigned forked_times(void);
/* An error if the communicator was opened in a parent process; nothing of it is touched. */
trib_status forked_check(const struct trib_comm *comm, const char *what);

/* collectives.c: an allgather that is a part of trib_split. */
trib_status collective_split(trib_comm *comm, const void *send, void *recv, size_t bytes);

/* wait.c: waits for the request and frees it, for the blocking calls. If the timeout passes, the
 * communicator fails: the caller's buffers must be free when it gets the error. */
trib_status request_finish(struct trib_request *request);

#endif
