/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parameter server over TCP, as in ps-lite and BytePS without extra servers:
 * every worker sends its vector to one process, which adds the vectors and sends
 * the sum back to each. Everything passes the server's one link. Several servers
 * in a tree are what XAgg compares itself with as TCP-Agg.
 *
 *     ps --serve CHILDREN         a server
 *     ps --bytes B ...            a worker; rank and size from TRIB_RANK and TRIB_SIZE
 *
 * PS_SERVER="10.84.1.101:7001" is where the server listens and workers connect.
 * PS_PARENT is the server above, if there is one.
 */
#include "peer.h"
#include "ps_server.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bytes moved; 0: it would block; -1: an error or a closed connection. */
static ssize_t moved(ssize_t n)
{
	if (n > 0)
		return n;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	warnx("ps: %s", n == 0 ? "the server closed the connection" : strerror(errno));
	return -1;
}

/* The sum never overtakes what was sent, so it may be stored in the same place. */
static int ps_allreduce(void *context, void *data, size_t count, enum peer_type type)
{
	int fd = *(int *)context;
	struct ps_opening opening = { .bytes = count * sizeof(float) };
	size_t head = 0, sent = 0, received = 0, bytes = opening.bytes;

	if (type != PEER_F32)
		errx(2, "the parameter server sums f32 only");
	while (received < bytes) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		ssize_t n = 0;

		wait.events |= sent < bytes ? POLLOUT : 0;
		if (poll(&wait, 1, -1) < 0 && errno != EINTR)
			return -1;
		if (wait.revents & POLLOUT && head < sizeof(opening)) {
			n = moved(send(fd, (char *)&opening + head, sizeof(opening) - head,
			               MSG_NOSIGNAL | MSG_MORE));
			head += n > 0 ? (size_t)n : 0;
		} else if (wait.revents & POLLOUT) {
			n = moved(send(fd, (char *)data + sent, bytes - sent, MSG_NOSIGNAL));
			sent += n > 0 ? (size_t)n : 0;
		}
		if (n >= 0 && wait.revents & (POLLIN | POLLHUP | POLLERR)) {
			n = moved(recv(fd, (char *)data + received, bytes - received, 0));
			received += n > 0 ? (size_t)n : 0;
		}
		if (n < 0)
			return -1;
	}
	return 0;
}

static int ps_barrier(void *context)
{
	float token = 1;

	return ps_allreduce(context, &token, 1, PEER_F32);
}

static int serve(const char *children)
{
	struct sockaddr_in self, parent;
	int n = atoi(children);

	peer_address_from_env("PS_SERVER", &self);
	if (getenv("PS_PARENT"))
		peer_address_from_env("PS_PARENT", &parent);
	if (n < 1 || n > PS_WORKERS_MAX)
		errx(2, "--serve wants how many children, 1 to %d", PS_WORKERS_MAX);
	return ps_serve(&self, getenv("PS_PARENT") ? &parent : NULL, (unsigned)n);
}

int main(int argc, char **argv)
{
	struct peer_options options;
	struct sockaddr_in server;
	int rank, size, fd, rc;
	double *samples;

	if (argc == 3 && strcmp(argv[1], "--serve") == 0)
		return serve(argv[2]);
	peer_parse(argc, argv, &options);
	peer_rank_from_env(&rank, &size);
	peer_address_from_env("PS_SERVER", &server);
	fd = ps_connect(&server);
	samples = peer_alloc(options.iterations * sizeof(*samples));
	rc = peer_measure(&(struct peer){ .rank = rank,
	                                  .size = size,
	                                  .context = &fd,
	                                  .barrier = ps_barrier,
	                                  .allreduce = ps_allreduce },
	                  &options, samples);
	if (rc == 0)
		peer_print(rank, samples, options.iterations);
	free(samples);
	close(fd);
	return rc ? 1 : 0;
}
