/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers are registered once. They stay until the channel is freed. */
#include "path/rdma/rdma_link.h"

#include "base/log.h"
#include "base/random_bits.h"

#include <errno.h>

static struct rdma_buffer *place_of(struct rdma_link *link, const void *at)
{
	uint64_t i = bits_mix((uintptr_t)at);

	while (link->buffers[i % RDMA_BUFFERS].at && link->buffers[i % RDMA_BUFFERS].at != at)
		i++;
	return &link->buffers[i % RDMA_BUFFERS];
}

const struct ibv_mr *rdma_memory(struct rdma_link *link, const void *at)
{
	struct rdma_buffer *buffer = place_of(link, at);

	if (buffer->at)
		return buffer->mr;
	if (link->n_buffers < RDMA_BUFFERS / 2)
		buffer->mr = rdma_api.reg_mr(link->device->pd, (void *)(uintptr_t)at, link->longest,
		                             IBV_ACCESS_LOCAL_WRITE);
	else
		errno = ENOBUFS;
	if (!buffer->mr) {
		if (!link->full)
			log_warn("memory for messages with %s cannot be registered: %s (see ulimit "
			         "-l)",
			         link->name, strerror(errno));
		link->full = true;
		return NULL;
	}
	buffer->at = (void *)(uintptr_t)at;
	link->n_buffers++;
	return buffer->mr;
}

void rdma_memory_free(struct rdma_link *link)
{
	for (unsigned i = 0; i < RDMA_BUFFERS; i++)
		if (link->buffers[i].at)
			rdma_api.dereg_mr(link->buffers[i].mr);
}
