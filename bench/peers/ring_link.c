/* SPDX-License-Identifier: Apache-2.0 */
#include "ring_link.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 60

static int address_parse(const char *hosts, int rank, struct sockaddr_in *out)
{
	const char *entry = hosts;
	char text[64], *colon;
	size_t n;

	for (int i = 0; i < rank; i++) {
		entry = strchr(entry, ',');
		if (!entry) {
			warnx("RING_HOSTS has no entry for rank %d", rank);
			return -1;
		}
		entry++;
	}
	n = strcspn(entry, ",");
	if (n >= sizeof(text))
		n = sizeof(text) - 1;
	memcpy(text, entry, n);
	text[n] = 0;
	*out = (struct sockaddr_in){ .sin_family = AF_INET };
	colon = strrchr(text, ':');
	if (colon) {
		*colon = 0;
		out->sin_port = htons((uint16_t)atoi(colon + 1));
	}
	if (!colon || inet_pton(AF_INET, text, &out->sin_addr) != 1) {
		warnx("RING_HOSTS: '%s' is not ADDRESS:PORT", text);
		return -1;
	}
	return 0;
}

static void socket_tune(int fd)
{
	int one = 1;

	/* Buffer sizes are left to the kernel: a fixed size would switch off its tuning. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static int listen_open(const struct sockaddr_in *self)
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)self, sizeof(*self)) < 0 || listen(fd, 4) < 0) {
		warn("cannot listen on %s:%d", inet_ntoa(self->sin_addr), ntohs(self->sin_port));
		close(fd);
		return -1;
	}
	return fd;
}

static int next_connect(const struct sockaddr_in *next)
{
	time_t end = time(NULL) + PATIENCE_S;

	for (;;) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			return -1;
		if (connect(fd, (const struct sockaddr *)next, sizeof(*next)) == 0)
			return fd;
		close(fd);
		if (time(NULL) >= end) {
			warn("cannot reach the next rank at %s:%d", inet_ntoa(next->sin_addr),
			     ntohs(next->sin_port));
			return -1;
		}
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	}
}

static int previous_accept(int listening)
{
	struct pollfd wait = { .fd = listening, .events = POLLIN };

	if (poll(&wait, 1, PATIENCE_S * 1000) != 1) {
		warnx("the previous rank did not connect within %d s", PATIENCE_S);
		return -1;
	}
	return accept4(listening, NULL, NULL, SOCK_CLOEXEC);
}

int ring_link_open(struct ring_link *link, const char *hosts, int rank, int size)
{
	struct sockaddr_in self, next;
	int listening;

	if (address_parse(hosts, rank, &self) < 0 ||
	    address_parse(hosts, (rank + 1) % size, &next) < 0)
		return -1;
	listening = listen_open(&self);
	if (listening < 0)
		return -1;
	/*
	 * The backlog accepts the connection of the rank before, so ranks do not wait in a
	 * circle.
	 */
	link->next = next_connect(&next);
	link->previous = link->next < 0 ? -1 : previous_accept(listening);
	close(listening);
	if (link->next < 0 || link->previous < 0)
		return -1;
	socket_tune(link->next);
	socket_tune(link->previous);
	return 0;
}
