/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A round trip of one UDP packet with plain sockets: what the machine and the link
 * take before any system is added.
 *
 *     pingpong --serve [spin]     sends every packet back
 *     pingpong --bytes B ...      times round trips of B bytes, as rank 0 of one
 *
 * Both sleep until a packet comes. With `--serve spin` and `--algorithm spin` they ask
 * for it again and again, which saves the wake-up and takes a core each.
 *
 * PINGPONG_SERVER="10.84.1.101:7001" is where the server listens.
 */
#include "peer.h"

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PACKET_MAX 65536
#define WAIT_S 5

static int how; /* flags of recv: 0, or MSG_DONTWAIT for spinning */

/* Nothing has come yet, and it is asked again. */
static bool is_early(ssize_t n)
{
	return n < 0 && (errno == EINTR || (how && errno == EAGAIN));
}

static int serve(const struct sockaddr_in *self)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	static char packet[PACKET_MAX];

	if (fd < 0 || bind(fd, (const struct sockaddr *)self, sizeof(*self)) < 0)
		err(1, "pingpong: cannot listen");
	printf("pingpong: ready on port %u\n", ntohs(self->sin_port));
	fflush(stdout);
	for (;;) { /* until SIGTERM */
		struct sockaddr_in from;
		socklen_t room = sizeof(from);
		ssize_t n =
			recvfrom(fd, packet, sizeof(packet), how, (struct sockaddr *)&from, &room);

		if (n < 0 && !is_early(n))
			err(1, "pingpong: cannot receive");
		if (n >= 0 && sendto(fd, packet, (size_t)n, 0, (struct sockaddr *)&from, room) < 0)
			err(1, "pingpong: cannot send");
	}
}

/* The server sends back what it gets, which is the right sum over one rank. */
static int round_trip(void *context, void *data, size_t count, enum peer_type type)
{
	size_t bytes = count * peer_type_size(type);
	int fd = *(int *)context;
	ssize_t n;

	if (send(fd, data, bytes, 0) != (ssize_t)bytes) {
		warn("pingpong: cannot send");
		return -1;
	}
	memset(data, 0, bytes);
	do
		n = recv(fd, data, bytes, how);
	while (is_early(n));
	if (n == (ssize_t)bytes)
		return 0;
	warnx("pingpong: %s", n < 0 ? strerror(errno) : "a packet of another size came back");
	return -1;
}

static int nobody_waits(void *context)
{
	(void)context;
	return 0;
}

int main(int argc, char **argv)
{
	struct timeval patience = { .tv_sec = WAIT_S };
	struct peer_options options;
	struct sockaddr_in server;
	double *samples;
	int fd, rc;

	peer_address_from_env("PINGPONG_SERVER", &server);
	if (argc > 1 && strcmp(argv[1], "--serve") == 0) {
		how = argc > 2 && strcmp(argv[2], "spin") == 0 ? MSG_DONTWAIT : 0;
		return serve(&server);
	}
	peer_parse(argc, argv, &options);
	how = options.algorithm && strcmp(options.algorithm, "spin") == 0 ? MSG_DONTWAIT : 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(fd, (struct sockaddr *)&server, sizeof(server)) < 0)
		err(1, "pingpong: cannot open a socket");
	samples = peer_alloc(options.iterations * sizeof(*samples));
	rc = peer_measure(&(struct peer){ .rank = 0,
	                                  .size = 1,
	                                  .context = &fd,
	                                  .barrier = nobody_waits,
	                                  .allreduce = round_trip },
	                  &options, samples);
	if (rc == 0)
		peer_print(0, samples, options.iterations);
	free(samples);
	close(fd);
	return rc ? 1 : 0;
}
