/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/local_daemon.h"

#include "wire/packet.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT_TRIES 50
#define PORT_LEAST 10240u /* lower ports belong to known services */

bool self_find(char *out, size_t room)
{
	ssize_t n = readlink("/proc/self/exe", out, room - 1);

	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

void daemon_find(char *out, size_t room)
{
	char *slash = self_find(out, room) ? strrchr(out, '/') : NULL;

	if (slash && (size_t)(slash - out) + sizeof("/tribd") <= room) {
		strcpy(slash, "/tribd");
		if (access(out, X_OK) == 0)
			return;
	}
	snprintf(out, room, "tribd");
}

struct port_search {
	const struct cluster_host *host;
	const char *address;
	bool tcp;
	unsigned port; /* 0: none found */
};

/* A socket on the port, or on any port for 0; -1: the port is taken. */
static int port_take(const char *address, int type, unsigned port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int one = 1, fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, address, &at.sin_addr);
	if (fd >= 0 && type == SOCK_STREAM) /* as tribd does */
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Are the ports of all lanes from `first` on free? */
static bool ports_are_free(const char *address, int type, unsigned port, unsigned first)
{
	for (unsigned i = first; i < WIRE_LANES_MAX; i++) {
		int fd = port_take(address, type, port + i);

		if (fd < 0)
			return false;
		close(fd);
	}
	return true;
}

/*
 * A port outside of the range that the kernel gives to sockets without a port:
 * between this check and tribd's start, other processes open sockets. 0: there is
 * no such port.
 */
static unsigned port_draw(void)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	unsigned low = 0, high = 0;
	uint16_t random = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%u %u", &low, &high) != 2 || low > high || high > 65535 ||
	    getrandom(&random, sizeof(random), 0) != sizeof(random))
		low = high = 65535;
	fclose(file);
	if (low > PORT_LEAST + 1024 && high < 65535)
		return PORT_LEAST + random % (low - WIRE_LANES_MAX - PORT_LEAST);
	if (high + 1024 < 65535)
		return high + 1 + random % (65535 - WIRE_LANES_MAX - high);
	return 0;
}

/* In a thread of its own, since a thread cannot leave a namespace that it has entered. */
static void *port_search(void *context)
{
	struct port_search *search = context;

	if (search->host && cluster_enter(search->host) != TRIB_OK)
		return NULL;
	for (unsigned i = 0; i < PORT_TRIES && !search->port; i++) {
		struct sockaddr_in at = { 0 };
		socklen_t length = sizeof(at);
		unsigned port = port_draw();
		int fd = port_take(search->address, SOCK_DGRAM, port);

		if (fd < 0 && !port)
			return NULL;
		if (fd < 0)
			continue;
		if (getsockname(fd, (struct sockaddr *)&at, &length) == 0 &&
		    ports_are_free(search->address, SOCK_DGRAM, ntohs(at.sin_port), 1) &&
		    (!search->tcp ||
		     ports_are_free(search->address, SOCK_STREAM, ntohs(at.sin_port), 0)))
			search->port = ntohs(at.sin_port);
		close(fd);
	}
	return NULL;
}

unsigned daemon_port(const struct cluster_host *host, const char *address, bool tcp)
{
	struct port_search search = { host, address, tcp, 0 };
	pthread_t thread;

	if (pthread_create(&thread, NULL, port_search, &search) != 0)
		return 0;
	pthread_join(thread, NULL);
	return search.port;
}
