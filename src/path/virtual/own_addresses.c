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

/* Addresses of one link or of this host lead to no router. */
static bool is_local_only(const struct sockaddr *address)
{
	const struct sockaddr_in6 *six = (const void *)address;
	const struct sockaddr_in *four = (const void *)address;
	uint32_t host = ntohl(four->sin_addr.s_addr);

	if (address->sa_family == AF_INET6)
		return IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) ||
		       IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
	return host >> 16 == 0xa9fe || host >> 24 == 127; /* 169.254.0.0/16, 127.0.0.0/8 */
}

/* Fabrics that route to single addresses have them on the loopback interface. */
static bool may_be_alias(const struct ifaddrs *one, const char *interface)
{
	return (one->ifa_flags & IFF_LOOPBACK || same_interface(one->ifa_name, interface)) &&
	       !is_local_only(one->ifa_addr);
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
		    !may_be_alias(i, interface))
			continue;
		memcpy(&one.storage, i->ifa_addr, one.length);
		udp_set_port(&one, 0);
		if (!udp_same(&one, &own[0]))
			own[n++] = one;
	}
	freeifaddrs(all);
	return n;
}
