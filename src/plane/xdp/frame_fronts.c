/* SPDX-License-Identifier: Apache-2.0 */
/* The front of a frame, Ethernet to UDP: its sender, and the route of an answer. Pure. */
#include "plane/xdp/xdp_internal.h"

#include <linux/if_ether.h>
#include <string.h>

/* One's complement sum of 16-bit words, for the IPv4 header. */
static uint32_t sum16(const uint8_t *bytes, unsigned n)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < n; i += 2)
		sum += (uint32_t)bytes[i] | (uint32_t)bytes[i + 1] << 8;
	return sum;
}

static void swap(uint8_t *a, uint8_t *b, unsigned n)
{
	while (n--) {
		uint8_t kept = a[n];

		a[n] = b[n];
		b[n] = kept;
	}
}

/* Lengths and checksums are 0 in a route. Nothing is fragmented, so the identification is 0 too. */
void route_settle(struct xdp_route *route)
{
	uint8_t *ip = route->head + route->l2;
	uint8_t *udp = ip + route->l3;

	memset(udp + 4, 0, 4);
	if (route->l3 == 20) {
		memset(ip + 2, 0, 4);
		ip[6] = 0x40; /* do not fragment */
		ip[7] = 0;
		ip[8] = 64;
		memset(ip + 10, 0, 2);
		route->ip_sum = sum16(ip, 20);
	} else {
		memset(ip + 4, 0, 2);
		ip[7] = 64;
	}
}

/* Length of Ethernet with its VLAN tags; 0: not a form that we know. */
static uint8_t seen_l2(const struct xdp_seen *seen)
{
	uint8_t l2 = 14;

	while (l2 <= 22) {
		unsigned type = (unsigned)seen->head[l2 - 2] << 8 | seen->head[l2 - 1];

		if (type == ETH_P_IP || type == ETH_P_IPV6)
			return l2;
		l2 += 4;
	}
	return 0;
}

/*
 * The route back swaps sender and receiver. Bytes after the front differ in each
 * frame, and are not part of the route.
 */
bool route_reverse(struct xdp_route *route, const struct xdp_seen *seen)
{
	uint8_t *ip;

	memset(route, 0, sizeof(*route));
	route->ifindex = seen->ifindex;
	route->l2 = seen_l2(seen);
	route->l3 = (uint8_t)(seen->at - 8 - route->l2);
	if (!route->l2 || (route->l3 != 20 && route->l3 != 40))
		return false;
	memcpy(route->head, seen->head, seen->at);
	ip = route->head + route->l2;
	swap(route->head, route->head + 6, 6);
	if (route->l3 == 20)
		swap(ip + 12, ip + 16, 4);
	else
		swap(ip + 8, ip + 24, 16);
	swap(ip + route->l3, ip + route->l3 + 2, 2);
	route_settle(route);
	return true;
}

bool seen_source(const struct xdp_seen *seen, bool six, struct udp_address *out)
{
	unsigned l2 = seen_l2(seen), l3 = seen->at - 8 - l2;
	const uint8_t *ip = seen->head + l2;
	uint8_t address[16] = { [10] = 0xff, [11] = 0xff };

	if (!l2 || seen->at > XDP_HEAD_MAX || (l3 != 20 && (l3 != 40 || !six)))
		return false;
	if (l3 == 40)
		memcpy(address, ip + 8, 16);
	else /* a socket for both families names IPv4 as ::ffff:a.b.c.d */
		memcpy(address + 12, ip + 12, 4);
	udp_from_raw(six ? address : address + 12, six ? 16 : 4,
	             (uint16_t)(ip[l3] << 8 | ip[l3 + 1]), out);
	return true;
}

bool seen_is_from(const struct xdp_seen *seen, const struct udp_address *from)
{
	struct udp_address source;

	return seen_source(seen, from->storage.ss_family == AF_INET6, &source) &&
	       udp_same(&source, from);
}
