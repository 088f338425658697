/* SPDX-License-Identifier: Apache-2.0 */
#include "path/virtual/ecmp.h"

static uint16_t xor_host(const struct udp_address *address)
{
	uint16_t hash = 0;
	size_t size;
	const uint8_t *raw = udp_raw(address, &size);

	for (size_t i = 0; i < size; i += 2)
		hash ^= (uint16_t)(raw[i] << 8 | raw[i + 1]);
	return hash;
}

uint16_t ecmp_xor(const struct udp_address *from, const struct udp_address *to)
{
	return xor_host(from) ^ xor_host(to) ^ udp_port(from) ^ udp_port(to) ^ IPPROTO_UDP;
}

uint16_t ecmp_port(const struct udp_address *from, const struct udp_address *to, unsigned paths,
                   unsigned path, uint16_t least)
{
	struct udp_address flow = *from;

	for (unsigned port = least; port <= UINT16_MAX; port++) {
		udp_set_port(&flow, (uint16_t)port);
		if (ecmp_xor(&flow, to) % paths == path)
			return (uint16_t)port;
	}
	return 0;
}
