/* SPDX-License-Identifier: Apache-2.0 */
#include "path/rdma/rdma_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MEMORY ((size_t)2 * STREAM_BUFFERS * STREAM_BUFFER_BYTES)

static bool watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
	       epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

struct rdma_stream *stream_new(void)
{
	struct rdma_stream *stream = calloc(1, sizeof(*stream));
	int error;

	if (!stream)
		return NULL;
	stream->fd = epoll_create1(EPOLL_CLOEXEC);
	stream->more_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	stream->events = cm_api.create_event_channel();
	stream->free_sends = (1u << STREAM_BUFFERS) - 1;
	if (stream->fd >= 0 && stream->more_fd >= 0 && stream->events &&
	    watch(stream->fd, stream->events->fd) && watch(stream->fd, stream->more_fd))
		return stream;
	error = errno;
	stream_free(stream);
	errno = error;
	return NULL;
}

bool stream_receive_again(struct rdma_stream *stream, unsigned place)
{
	struct ibv_sge piece = { (uintptr_t)stream->memory + (size_t)place * STREAM_BUFFER_BYTES,
		                 STREAM_BUFFER_BYTES, stream->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = STREAM_ID_RECEIVE | place,
		                  .sg_list = &piece,
		                  .num_sge = 1 };
	struct ibv_recv_wr *bad;

	errno = ibv_post_recv(stream->id->qp, &wr, &bad);
	stream->posted += !errno;
	return !errno;
}

static bool make_queues(struct rdma_stream *stream)
{
	struct ibv_qp_init_attr attr = { .cap = { .max_send_wr = STREAM_BUFFERS,
		                                  .max_recv_wr = STREAM_BUFFERS,
		                                  .max_send_sge = 1,
		                                  .max_recv_sge = 1 },
		                         .qp_type = IBV_QPT_RC,
		                         .sq_sig_all = 1 };

	stream->completions = rdma_api.create_comp_channel(stream->id->verbs);
	if (!stream->completions || !watch(stream->fd, stream->completions->fd))
		return false;
	stream->cq = rdma_api.create_cq(stream->id->verbs, 2 * STREAM_BUFFERS, NULL,
	                                stream->completions, 0);
	attr.send_cq = attr.recv_cq = stream->cq;
	return stream->cq && ibv_req_notify_cq(stream->cq, 0) == 0 &&
	       cm_api.create_qp(stream->id, NULL, &attr) == 0;
}

bool stream_equip(struct rdma_stream *stream)
{
	if (!make_queues(stream))
		return false;
	stream->memory = aligned_alloc(4096, MEMORY);
	if (stream->memory)
		stream->mr = rdma_api.reg_mr(stream->id->pd, stream->memory, MEMORY,
		                             IBV_ACCESS_LOCAL_WRITE);
	for (unsigned i = 0; stream->mr && i < STREAM_BUFFERS; i++)
		if (!stream_receive_again(stream, i))
			return false;
	return stream->mr != NULL;
}

void stream_free(struct rdma_stream *stream)
{
	if (stream->id && stream->id->qp)
		cm_api.destroy_qp(stream->id);
	if (stream->mr)
		rdma_api.dereg_mr(stream->mr);
	if (stream->cq)
		rdma_api.destroy_cq(stream->cq);
	if (stream->completions)
		rdma_api.destroy_comp_channel(stream->completions);
	if (stream->id)
		cm_api.destroy_id(stream->id);
	if (stream->events)
		cm_api.destroy_event_channel(stream->events);
	if (stream->more_fd >= 0)
		close(stream->more_fd);
	if (stream->fd >= 0)
		close(stream->fd);
	free(stream->memory);
	free(stream);
}
