/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check queue: packets of children that the program leaves to the daemon, in
 * one ring per thread. Reading them needs no system call, and the kernel does not
 * build datagrams.
 */
#include "plane/xdp/xdp_internal.h"

#include "base/log.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct xdp_queue {
	struct ring_buffer *ring;
	int fd;
	bool six; /* the daemon's sockets have IPv6 addresses */
	/* Used while the ring is read: */
	xdp_take *take;
	void *context;
	unsigned taken, most;
};

/* A negative result ends the reading after this packet. */
static int take_one(void *context, void *data, size_t size)
{
	const struct xdp_queued *queued = data;
	struct xdp_queue *queue = context;
	struct udp_address from;

	if (size >= sizeof(*queued) && queued->bytes <= size - sizeof(*queued) &&
	    seen_source(&queued->seen, queue->six, &from))
		queue->take(queue->context, queued->packet, queued->bytes, &from);
	return ++queue->taken < queue->most ? 0 : -ECANCELED;
}

unsigned xdp_queue_read(struct xdp_plane *plane, unsigned lane, unsigned most, xdp_take *take,
                        void *context)
{
	struct xdp_queue *queue = lane < WIRE_LANES_MAX ? plane->queues[lane] : NULL;

	if (!queue)
		return 0;
	queue->take = take;
	queue->context = context;
	queue->most = most;
	queue->taken = 0;
	ring_buffer__consume(queue->ring);
	return queue->taken;
}

int xdp_queue_fd(const struct xdp_plane *plane, unsigned lane)
{
	return plane && lane < WIRE_LANES_MAX && plane->queues[lane] ? plane->queues[lane]->fd : -1;
}

static void queue_free(struct xdp_queue *queue)
{
	if (!queue)
		return;
	ring_buffer__free(queue->ring);
	if (queue->fd >= 0)
		close(queue->fd);
	free(queue);
}

/* Gives -1 with errno if it fails. */
static int queue_open(struct xdp_plane *plane, uint32_t lane, uint32_t bytes, bool six)
{
	struct xdp_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return -1;
	queue->six = six;
	queue->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "trib_queue", 0, 0, bytes, NULL);
	if (queue->fd >= 0)
		queue->ring = ring_buffer__new(queue->fd, take_one, queue, NULL);
	if (!queue->ring ||
	    bpf_map_update_elem(bpf_map__fd(plane->bpf->maps.queues), &lane, &queue->fd, 0)) {
		int error = errno;

		queue_free(queue);
		errno = error;
		return -1;
	}
	plane->queues[lane] = queue;
	return 0;
}

void queues_open(struct xdp_plane *plane, const struct xdp_options *options)
{
	uint32_t bytes = (uint32_t)sysconf(_SC_PAGESIZE);

	while (bytes < options->queue && bytes < 1u << 30) /* the kernel accepts powers of two */
		bytes *= 2;
	for (uint32_t lane = 0; options->queue && lane < options->lanes; lane++)
		if (queue_open(plane, lane, bytes, options->six)) {
			log_warn("no check queue of %u bytes for lane %u, its packets come by the "
			         "socket: %s",
			         bytes, lane, strerror(errno));
			return;
		}
}

void queues_close(struct xdp_plane *plane)
{
	for (unsigned lane = 0; lane < WIRE_LANES_MAX; lane++)
		queue_free(plane->queues[lane]);
}
