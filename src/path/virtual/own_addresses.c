/* SPDX-License-Identifier: Apache-2.0 */
#include "path/virtual/discovery.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

/* An alias may be named "eth0:1". */
static bool same_interface(const char *a, const char *b)
{
	size_t n = strcspn(a, ":");

	return n == strcspn(b, ":") && strncmp(a, b, n) == 0;
}

/* Addresses that are valid on one link only lead to no router. */
static bool is_local_only(const struct sockaddr *address)
{
	const struct sockaddr_in6 *six = (const void *)address;
	const struct sockaddr_in *four = (const void *)address;

	if (address->sa_family == AF_INET6)
		return IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
	return ntohl(four->sin_addr.s_addr) >> 16 == 0xa9fe; /* 169.254.0.0/16 */
}

unsigned discovery_own(const struct udp_address *peer, struct udp_address own[], unsigned most)
{
	char interface[IF_NAMESIZE];
	struct ifaddrs *all = NULL;
	unsigned n = 1;

	if (!most || udp_route(peer, &own[0], interface, sizeof(interface)) != TRIB_OK)
		return 0;
	udp_set_port(&own[0], 0);
	if (getifaddrs(&all))
		return 1;
	for (struct ifaddrs *i = all; i && n < most; i = i->ifa_next) {
		struct udp_address one = { .length = own[0].length };

		if (!i->ifa_addr || i->ifa_addr->sa_family != own[0].storage.ss_family ||
		    !same_interface(i->ifa_name, interface) || is_local_only(i->ifa_addr))
			continue;
		memcpy(&one.storage, i->ifa_addr, one.length);
		udp_set_port(&one, 0);
		if (!udp_same(&one, &own[0]))
			own[n++] = one;
	}
	freeifaddrs(all);
	return n;
}
