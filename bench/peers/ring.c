/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring: a plain ring allreduce over TCP, the best that hosts can do without aggregators. It moves 2
 * (N - 1) / N of the vector through every link in each direction.
 *
 * Rank and size come from TRIB_RANK and TRIB_SIZE. The listening addresses of all ranks come from
 * RING_HOSTS="10.84.1.1:7001,10.84.1.2:7001,...". Processes may start in any order.
 */
#include "peer.h"
#include "ring_link.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Bytes received at once, and added while they are still in the cache. */
#define SEGMENT (256u << 10)

struct ring {
	int rank, size;
	struct ring_link link;
	char *segment; /* received, not yet added */
	size_t held;   /* bytes in it: less than an element, between two calls */
	enum peer_type type;
};

/* Chunks are whole elements, and their sizes differ by at most one element. */
static size_t chunk_start(const struct ring *ring, size_t count, int chunk)
{
	return count * (size_t)chunk / (size_t)ring->size * peer_type_size(ring->type);
}

static int link_wait(const struct ring *ring, bool want_send, bool want_receive)
{
	struct pollfd fds[2] = {
		{ .fd = ring->link.next, .events = want_send ? POLLOUT : 0 },
		{ .fd = ring->link.previous, .events = want_receive ? POLLIN : 0 },
	};

	if (!want_send)
		fds[0].fd = -1;
	if (!want_receive)
		fds[1].fd = -1;
	return poll(fds, 2, -1) < 0 && errno != EINTR ? -1 : 0;
}

/* Bytes moved; 0: it would block; -1: an error or a closed connection. */
static ssize_t moved(ssize_t n, bool is_receive)
{
	if (n > 0 || (n == 0 && !is_receive))
		return n;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	warnx("ring: %s", n == 0 ? "the previous rank closed the connection" : strerror(errno));
	return -1;
}

/* Receives up to `room` bytes for `to`: adds them there, or stores them. */
static ssize_t ring_receive(struct ring *ring, char *to, size_t room, bool add)
{
	/* Bytes that are held count as room, so that no byte of the next chunk is read. */
	size_t want = room < SEGMENT ? room : SEGMENT, whole, size = peer_type_size(ring->type);
	ssize_t n;

	if (!add)
		return moved(recv(ring->link.previous, to, room, 0), true);
	n = moved(recv(ring->link.previous, ring->segment + ring->held, want - ring->held, 0),
	          true);
	if (n <= 0)
		return n;
	ring->held += (size_t)n;
	whole = ring->held / size * size;
	peer_add(ring->type, to, ring->segment, whole / size);
	ring->held -= whole;
	memmove(ring->segment, ring->segment + whole, ring->held);
	return (ssize_t)whole;
}

/*
 * In step s a rank sends chunk first - s and receives chunk first - s - 1, in the
 * first `adds` steps to add it: it sends in one step what it received in the step before. So both
 * directions are byte streams: the rank sends its own chunk, then what it receives. A byte may be
 * sent as soon as it has arrived, and no step waits for the end of the step before.
 */
static int ring_steps(struct ring *ring, char *base, size_t count, int first, int steps, int adds)
{
	int n = ring->size, out_step = 0, in_step = 0;
	size_t out_at = 0, in_at = 0, ready; /* offsets in the current chunks; bytes to send */

	ready = chunk_start(ring, count, first + 1) - chunk_start(ring, count, first);
	while (out_step < steps || in_step < steps) {
		ssize_t sent = 0, taken = 0;
		bool may_send = false, may_take = in_step < steps;

		if (out_step < steps) {
			int chunk = (first - out_step + 2 * n) % n;
			size_t from = chunk_start(ring, count, chunk);
			size_t left = chunk_start(ring, count, chunk + 1) - from - out_at;
			size_t burst = left < ready ? left : ready;

			may_send = burst > 0;
			if (may_send) {
				sent = moved(send(ring->link.next, base + from + out_at, burst,
				                  MSG_NOSIGNAL),
				             false);
				if (sent < 0)
					return -1;
				out_at += (size_t)sent;
				ready -= (size_t)sent;
			}
			if ((size_t)sent == left) {
				out_step++;
				out_at = 0;
				if (left == 0)
					continue;
			}
		}
		if (in_step < steps) {
			int chunk = (first - in_step - 1 + 2 * n) % n;
			size_t to = chunk_start(ring, count, chunk);
			size_t left = chunk_start(ring, count, chunk + 1) - to - in_at;

			if (left) {
				taken = ring_receive(ring, base + to + in_at, left, in_step < adds);
				if (taken < 0)
					return -1;
				in_at += (size_t)taken;
				ready += (size_t)taken;
			}
			if ((size_t)taken == left) {
				in_step++;
				in_at = 0;
				if (left == 0)
					continue;
			}
		}
		if (sent == 0 && taken == 0 && link_wait(ring, may_send, may_take) < 0)
			return -1;
	}
	return 0;
}

static int ring_allreduce(void *context, void *data, size_t count, enum peer_type type)
{
	struct ring *ring = context;

	ring->type = type;
	return ring_steps(ring, data, count, ring->rank, 2 * (ring->size - 1), ring->size - 1);
}

/* The chunk that a rank receives last is its own. */
static int ring_reduce_scatter(void *context, void *in, void *out, size_t count,
                               enum peer_type type)
{
	struct ring *ring = context;
	int n = ring->size, rc;
	size_t bytes = count * peer_type_size(type);

	ring->type = type;
	rc = ring_steps(ring, in, count * (size_t)n, (ring->rank - 1 + n) % n, n - 1, n - 1);
	memcpy(out, (const char *)in + (size_t)ring->rank * bytes, bytes);
	return rc;
}

static int ring_allgather(void *context, const void *in, void *out, size_t count,
                          enum peer_type type)
{
	struct ring *ring = context;
	size_t bytes = count * peer_type_size(type);

	ring->type = type;
	memcpy((char *)out + (size_t)ring->rank * bytes, in, bytes);
	return ring_steps(ring, out, count * (size_t)ring->size, ring->rank, ring->size - 1, 0);
}

/*
 * A token goes round twice: the first time says that all ranks have arrived, the second time
 * releases them.
 */
static int ring_barrier(void *context)
{
	struct ring *ring = context;
	char token = 1;

	if (ring->size == 1)
		return 0;
	for (int lap = 0; lap < 2; lap++) {
		for (int half = 0; half < 2; half++) {
			bool is_send = (ring->rank == 0) == (half == 0);
			ssize_t n;

			do {
				n = is_send ? send(ring->link.next, &token, 1, MSG_NOSIGNAL)
				            : recv(ring->link.previous, &token, 1, 0);
				n = moved(n, !is_send);
				if (n == 0 && link_wait(ring, is_send, !is_send) < 0)
					return -1;
			} while (n == 0);
			if (n < 0)
				return -1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct peer_options options;
	struct ring ring = { .segment = peer_alloc(SEGMENT) };
	const char *hosts = getenv("RING_HOSTS");
	double *samples;
	int rc;

	peer_parse(argc, argv, &options);
	peer_rank_from_env(&ring.rank, &ring.size);
	if (!hosts)
		errx(2, "RING_HOSTS must name the address of every rank");
	if (ring.size > 1 && ring_link_open(&ring.link, hosts, ring.rank, ring.size) < 0)
		return 1;
	samples = peer_alloc(options.iterations * sizeof(*samples));
	rc = peer_measure(&(struct peer){ .rank = ring.rank,
	                                  .size = ring.size,
	                                  .context = &ring,
	                                  .barrier = ring_barrier,
	                                  .allreduce = ring_allreduce,
	                                  .reduce_scatter = ring_reduce_scatter,
	                                  .allgather = ring_allgather },
	                  &options, samples);
	if (rc == 0) {
		peer_print(ring.rank, samples, options.iterations);
		peer_print_cpu();
	}
	free(samples);
	free(ring.segment);
	return rc ? 1 : 0;
}
