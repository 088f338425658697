/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MTU_SMALL 1280 /* what every IPv6 link carries; below, headers eat the gain */

void check_peer(struct check *check, const struct sockaddr *address, socklen_t length)
{
	/*
	 * FOR THE LEAD: ask the aggregator over the wire and tell whether it
	 * answers, in what time, its version, and whether it takes our job.
	 */
	(void)address, (void)length;
	check_tell(check, CHECK_WARN, "aggregator", NULL, "was not asked");
}

/* Splits "host:port" or "[v6]:port". */
static bool address_split(const char *text, char *host, size_t room, const char **port)
{
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;

	if (n && *text == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	if (!n || n >= room || !colon[1])
		return false;
	snprintf(host, room, "%.*s", (int)n, text);
	*port = colon + 1;
	return true;
}

static void address_print(const struct sockaddr *address, socklen_t length, char out[64])
{
	if (getnameinfo(address, length, out, 64, NULL, 0, NI_NUMERICHOST) != 0)
		snprintf(out, 64, "?");
}

static bool address_equal(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
	              &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/* The name of the interface that has an address. */
static void interface_find(const struct sockaddr *source, char out[IF_NAMESIZE])
{
	struct ifaddrs *all = NULL;

	snprintf(out, IF_NAMESIZE, "?");
	if (getifaddrs(&all) < 0)
		return;
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (i->ifa_addr && address_equal(i->ifa_addr, source))
			snprintf(out, IF_NAMESIZE, "%s", i->ifa_name);
	}
	freeifaddrs(all);
}

static void check_mtu(struct check *check, int fd, int family)
{
	int mtu = 0;
	socklen_t length = sizeof(mtu);
	int got = family == AF_INET ? getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &length)
	                            : getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &length);

	if (got < 0)
		check_tell(check, CHECK_WARN, "mtu", "set TRIB_MTU", "the kernel does not tell: %s",
		           strerror(errno));
	else if (mtu < MTU_SMALL)
		check_tell(check, CHECK_WARN, "mtu",
		           "raise the MTU of the link; headers take a large share",
		           "packets of %d bytes fit the route", mtu);
	else
		check_tell(check, CHECK_OK, "mtu", NULL, "packets of %d bytes fit the route%s", mtu,
		           mtu < 9000 ? "; 9000 would cost less CPU, where the network has it"
		                      : "");
}

/* Connecting a UDP socket sends nothing: the kernel only looks the route up. */
static void check_way(struct check *check, const struct sockaddr *address, socklen_t length)
{
	struct sockaddr_storage source;
	socklen_t source_length = sizeof(source);
	char to[64], from[64], interface[IF_NAMESIZE];
	int fd = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	address_print(address, length, to);
	if (fd < 0 || connect(fd, address, length) < 0 ||
	    getsockname(fd, (struct sockaddr *)&source, &source_length) < 0) {
		check_tell(check, CHECK_FAIL, "route", "look at: ip route get (that address)",
		           "there is no way to %s: %s", to, strerror(errno));
	} else {
		address_print((struct sockaddr *)&source, source_length, from);
		interface_find((struct sockaddr *)&source, interface);
		check_tell(check, CHECK_OK, "route", NULL, "to %s by interface %s, from %s%s", to,
		           interface, from,
		           strcmp(interface, "lo") == 0 ? "; all workers have to be on this machine"
		                                        : "");
		check_mtu(check, fd, address->sa_family);
		check_peer(check, address, length);
	}
	if (fd >= 0)
		close(fd);
}

void check_route(struct check *check, const char *text)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
	struct addrinfo *found = NULL;
	const char *port;
	char host[256], numeric[64];
	int error;

	if (!address_split(text, host, sizeof(host), &port)) {
		check_tell(check, CHECK_FAIL, "name", "give it as HOST:PORT, e.g. 10.0.0.9:4840",
		           "\"%s\" is not the address of an aggregator", text);
		return;
	}
	error = getaddrinfo(host, port, &hints, &found);
	if (error) {
		check_tell(check, CHECK_FAIL, "name",
		           "correct the name, or DNS or /etc/hosts, or give an address",
		           "%s cannot be resolved: %s", text,
		           error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
		return;
	}
	address_print(found->ai_addr, found->ai_addrlen, numeric);
	check_tell(check, CHECK_OK, "name", NULL, "%s is %s", host, numeric);
	check_way(check, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
}
