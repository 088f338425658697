/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link: point-to-point messages. One process listens, another one connects, and messages go from
 * the one that connects to the one that listens, over LINK_STRIPES sockets.
 *
 * link_connect.c and link_accept.c make connections, link_move.c moves messages. Any thread may
 * call the functions of NCCL's table. It must not touch collectives, nor the library libtributary.
 */
#ifndef TRIB_NCCL_LINK_H
#define TRIB_NCCL_LINK_H

#include "link_paths.h"
#include "link_stripes.h"

#include <pthread.h>

#define LINK_STRIPES 4u

struct link;

struct link_request {
	struct link *link;
	unsigned index; /* of the message in `stripes` or `paths` */
};

struct link {
	pthread_mutex_t lock;
	unsigned n;
	int fds[STRIPES_MAX];
	struct paths *paths; /* instead of sockets, see link_paths.h; NULL: sockets */
	char peer[64];       /* its address, for errors */
	trib_status failed;  /* TRIB_OK: not failed */
	uint64_t checked_at; /* when the peer was last looked at */
	struct stripes stripes;
	struct link_request requests[NCCL_REQUESTS_MAX];
};

/* A link over n sockets, which the caller adds. NULL: no memory. */
struct link *link_new(unsigned n, bool sends, const struct udp_address *peer);
/* Takes over the paths, also if it fails. NULL: no memory. */
struct link *link_over(struct paths *paths, const struct udp_address *peer);
void link_free(struct link *link);

/* Drops attempts to connect that NCCL has given up. */
void link_drop_attempts(void);

int link_listen(int device, void *handle, void **listener);
int link_connect(int device, void *handle, void **send_comm);
int link_accept(void *listener, void **recv_comm);
int link_close_listen(void *listener);

int link_send(void *send_comm, void *data, size_t size, void **request);
int link_receive(void *recv_comm, int n, void **data, size_t *sizes, void **request);
int link_test(void *request, int *done, int *sizes);
int link_close(void *comm);

#endif
