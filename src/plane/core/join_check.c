/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing in a JOIN is trusted. */
#include "plane/core/join_check.h"

#include "engine/engines.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static uint64_t all_of(uint32_t size)
{
	return size >= 64 ? ~0ull : (1ull << size) - 1;
}

uint64_t join_covers(const struct wire_join *join)
{
	return join->covers ? join->covers : child_bit(join->rank);
}

uint64_t join_ranks(const struct wire_join *join)
{
	return join->ranks ? join->ranks : all_of(join->size);
}

void hop_address(const struct wire_hop *hop, struct udp_address *out)
{
	udp_from_raw(hop->address, hop->family == 4 ? 4 : 16, hop->port, out);
}

const char *ranks_text(uint64_t ranks, char *out, size_t size)
{
	size_t used = 0;

	out[0] = 0;
	for (unsigned rank = 0; rank < 64 && used + 8 < size; rank++) {
		unsigned last = rank;

		if (!(ranks >> rank & 1))
			continue;
		while (last < 63 && ranks >> (last + 1) & 1)
			last++;
		used += (size_t)snprintf(out + used, size - used, last > rank ? "%s%u-%u" : "%s%u",
		                         used ? "," : "", rank, last);
		rank = last;
	}
	return out;
}

/* Is this an address of this machine? Then a socket can be bound to it. */
static bool is_local(const struct udp_address *address)
{
	struct udp_address any_port = *address;
	int fd = socket(address->storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool local;

	udp_set_port(&any_port, 0);
	local = fd >= 0 && bind(fd, (const void *)&any_port.storage, any_port.length) == 0;
	if (fd >= 0)
		close(fd);
	return local;
}

static bool hop_is_us(uint16_t port, unsigned ports, const struct wire_hop *hop)
{
	struct udp_address address;

	hop_address(hop, &address);
	return hop->port >= port && hop->port - port < (int)ports && is_local(&address);
}

static bool same_place(const struct wire_hop *a, const struct wire_hop *b)
{
	return a->family == b->family && a->port == b->port &&
	       memcmp(a->address, b->address, a->family == 4 ? 4 : 16) == 0;
}

static bool hop_fault(uint16_t port, unsigned ports, const struct wire_join *join, unsigned i,
                      char *why, size_t size)
{
	const struct wire_hop *hop = &join->up[i];
	uint64_t below = i ? join->up[i - 1].ranks : join_ranks(join);
	char address[64], ranks[64], more[64];
	struct udp_address place;

	if ((hop->family != 4 && hop->family != 6) || !hop->port) {
		snprintf(why, size, "aggregator %u above this one has no address", i);
		return true;
	}
	hop_address(hop, &place);
	udp_text(&place, address, sizeof(address));
	if (below & ~hop->ranks) {
		snprintf(why, size,
		         "ranks %s come together below the aggregator at %s, which has %s",
		         ranks_text(below, ranks, sizeof(ranks)), address,
		         ranks_text(hop->ranks, more, sizeof(more)));
		return true;
	}
	for (unsigned k = 0; k < i; k++)
		if (same_place(&join->up[k], hop)) {
			snprintf(why, size, "the aggregator at %s is twice on the path up",
			         address);
			return true;
		}
	if (hop_is_us(port, ports, hop)) {
		snprintf(why, size, "%s, which is this aggregator, is above itself", address);
		return true;
	}
	return false;
}

bool join_fault(uint16_t port, unsigned ports, const struct wire_join *join, char *why, size_t size)
{
	uint64_t covers = join_covers(join), ranks = join_ranks(join), all = all_of(join->size);
	uint64_t top = join->hops ? join->up[join->hops - 1].ranks : ranks;
	char one[64], two[64];

	if (covers & ~ranks || ranks & ~all || !(ranks >> join->rank & 1) ||
	    (!join->waits && (unsigned)__builtin_ctzll(covers) != join->rank)) {
		snprintf(why, size, "rank %u of %u claims ranks %s of %s, which is impossible",
		         join->rank, join->size, ranks_text(covers, one, sizeof(one)),
		         ranks_text(ranks, two, sizeof(two)));
		return true;
	}
	for (unsigned i = 0; i < join->hops; i++)
		if (hop_fault(port, ports, join, i, why, size))
			return true;
	if (top != all) {
		snprintf(why, size, "only ranks %s of %u come together at the top of the tree",
		         ranks_text(top, one, sizeof(one)), join->size);
		return true;
	}
	return false;
}

bool join_same_tree(const struct wire_join *a, const struct wire_join *b)
{
	if (a->size != b->size || join_ranks(a) != join_ranks(b) || a->hops != b->hops)
		return false;
	for (unsigned i = 0; i < a->hops; i++)
		if (a->up[i].ranks != b->up[i].ranks || !same_place(&a->up[i], &b->up[i]))
			return false;
	return true;
}
