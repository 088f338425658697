/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdma_stream: a byte stream between two processes by RDMA, in the place of a TCP connection
 * (struct tcp_other in path/tcp.h). librdmacm connects a queue pair (QP). Bytes are copied into
 * buffers, and each buffer is one SEND, as a socket would do. If the peer is slow to take them, the
 * devices wait for it (receiver not ready). A stream belongs to one thread at a time.
 */
#ifndef TRIB_PATH_RDMA_STREAM_H
#define TRIB_PATH_RDMA_STREAM_H

#include "path/rdma/cm_api.h"
#include "path/tcp.h"

#define STREAM_BUFFERS 8u /* of each direction */
#define STREAM_BUFFER_BYTES (32u << 10)
#define STREAM_ID_RECEIVE (1ull << 32) /* in wr_id; the rest is the buffer's place */

enum stream_state {
	STREAM_OPENING,
	STREAM_OPEN,
	STREAM_CLOSED, /* by the peer; what has come is still there */
	STREAM_FAILED,
};

struct rdma_stream {
	int fd;                            /* epoll: readable if something has happened */
	struct rdma_event_channel *events; /* of the connection */
	struct rdma_cm_id *id;
	enum stream_state state;
	int error; /* errno of STREAM_FAILED */
	bool listens;
	struct udp_address peer;

	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	int more_fd;     /* eventfd: bytes were left behind */
	uint8_t *memory; /* buffers of receives, then of sends */
	struct ibv_mr *mr;
	unsigned posted;              /* requests without a completion */
	uint32_t free_sends;          /* bit i: send buffer i is free */
	uint8_t came[STREAM_BUFFERS]; /* ring of receive buffers with bytes */
	uint32_t bytes[STREAM_BUFFERS];
	unsigned first, n_came;
	uint32_t taken; /* bytes of the first one that were handed over */
};

/* rdma_stream_setup.c */
/* NULL: errno says why. */
struct rdma_stream *stream_new(void);
/* CQ, QP, buffers and receives, when the device is known. False: errno says why. */
bool stream_equip(struct rdma_stream *stream);
bool stream_receive_again(struct rdma_stream *stream, unsigned place);
void stream_free(struct rdma_stream *stream);

/* rdma_stream.c: the table of functions. */
extern const struct tcp_other rdma_streams;

#endif
