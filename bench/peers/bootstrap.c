/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap.h"

#include <arpa/inet.h>
#include <err.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 60

/* Also a rank that hangs must not let the others wait for ever. */
static void socket_tune(int fd)
{
	struct timeval patience = { .tv_sec = PATIENCE_S };
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

/* Moves all bytes, or fails. */
static int move(int fd, void *data, size_t n, int is_send)
{
	for (size_t at = 0; at < n;) {
		ssize_t moved = is_send ? send(fd, (char *)data + at, n - at, MSG_NOSIGNAL)
		                        : recv(fd, (char *)data + at, n - at, 0);

		if (moved <= 0) {
			warnx("the ranks have lost each other");
			return -1;
		}
		at += (size_t)moved;
	}
	return 0;
}

/* Rank 0 takes the others as they come. Each says its rank. */
static int others_accept(struct bootstrap *bootstrap, const struct sockaddr_in *at)
{
	int one = 1, listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = -1;

	setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listening, (const struct sockaddr *)at, sizeof(*at)) < 0 ||
	    listen(listening, BOOTSTRAP_RANKS_MAX) < 0) {
		warn("cannot listen on %s:%d", inet_ntoa(at->sin_addr), ntohs(at->sin_port));
		goto out;
	}
	for (int i = 1; i < bootstrap->size; i++) {
		struct pollfd wait = { .fd = listening, .events = POLLIN };
		int fd = poll(&wait, 1, PATIENCE_S * 1000) == 1
		                 ? accept4(listening, NULL, NULL, SOCK_CLOEXEC)
		                 : -1;
		int rank = 0;

		if (fd < 0) {
			warnx("%d of %d ranks did not come within %d s", bootstrap->size - i,
			      bootstrap->size, PATIENCE_S);
			goto out;
		}
		socket_tune(fd);
		if (move(fd, &rank, sizeof(rank), 0) || rank < 1 || rank >= bootstrap->size ||
		    bootstrap->fds[rank] >= 0) {
			warnx("a stranger came in place of a rank");
			close(fd);
			goto out;
		}
		bootstrap->fds[rank] = fd;
	}
	rc = 0;
out:
	close(listening);
	return rc;
}

static int first_connect(struct bootstrap *bootstrap, const struct sockaddr_in *at)
{
	time_t end = time(NULL) + PATIENCE_S;

	do {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0) {
			socket_tune(fd);
			bootstrap->fds[0] = fd;
			return move(fd, &bootstrap->rank, sizeof(bootstrap->rank), 1);
		}
		if (fd >= 0)
			close(fd);
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	} while (time(NULL) < end);
	warnx("cannot reach rank 0 at %s:%d", inet_ntoa(at->sin_addr), ntohs(at->sin_port));
	return -1;
}

int bootstrap_open(struct bootstrap *bootstrap, const struct sockaddr_in *at, int rank, int size)
{
	*bootstrap = (struct bootstrap){ .rank = rank, .size = size };
	for (int i = 0; i < BOOTSTRAP_RANKS_MAX; i++)
		bootstrap->fds[i] = -1;
	if (size > BOOTSTRAP_RANKS_MAX) {
		warnx("more than %d ranks", BOOTSTRAP_RANKS_MAX);
		return -1;
	}
	return rank ? first_connect(bootstrap, at) : others_accept(bootstrap, at);
}

int bootstrap_gather(void *context, const void *mine, void *all, size_t bytes)
{
	struct bootstrap *bootstrap = context;
	size_t whole = bytes * (size_t)bootstrap->size;

	memcpy((char *)all + bytes * (size_t)bootstrap->rank, mine, bytes);
	if (bootstrap->rank)
		return move(bootstrap->fds[0], (char *)all + bytes * (size_t)bootstrap->rank, bytes,
		            1) || move(bootstrap->fds[0], all, whole, 0)
		               ? -1
		               : 0;
	for (int i = 1; i < bootstrap->size; i++)
		if (move(bootstrap->fds[i], (char *)all + bytes * (size_t)i, bytes, 0))
			return -1;
	for (int i = 1; i < bootstrap->size; i++)
		if (move(bootstrap->fds[i], all, whole, 1))
			return -1;
	return 0;
}

void bootstrap_close(struct bootstrap *bootstrap)
{
	for (int i = 0; i < BOOTSTRAP_RANKS_MAX; i++)
		if (bootstrap->fds[i] >= 0)
			close(bootstrap->fds[i]);
}
