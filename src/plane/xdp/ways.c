/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where children are, and the parent: fronts of frames that the program has
 * seen, turned round, once the daemon has said that they are right.
 */
#include "plane/xdp/internal.h"

#include "base/log.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>

/* ---- where children are ---- */

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

/* Lengths and checksums are 0 in a route; identification is not needed where nothing is cut up. */
static void route_settle(struct xdp_route *route)
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

/* Bytes of Ethernet with its tags, 0: not as we know it. */
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
 * The way back: what came from there goes there. What follows the front in the
 * frame is another one each time, and no part of the way.
 */
static bool route_reverse(struct xdp_route *route, const struct xdp_seen *seen)
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
	else /* a socket for both takes IPv4 as ::ffff:a.b.c.d */
		memcpy(address + 12, ip + 12, 4);
	udp_from_raw(six ? address : address + 12, six ? 16 : 4,
	             (uint16_t)(ip[l3] << 8 | ip[l3 + 1]), out);
	return true;
}

/* Does the frame's sender have this address and port? */
static bool seen_is_from(const struct xdp_seen *seen, const struct udp_address *from)
{
	struct udp_address source;

	return seen_source(seen, from->storage.ss_family == AF_INET6, &source) &&
	       udp_same(&source, from);
}

/*
 * Reports of the child go into the queue. Not in generic mode, where several
 * packets may be joined in a frame; nor where a socket knows more of an address
 * than the frame does.
 */
static bool may_queue(const struct xdp_slot *slot, const struct udp_address *from)
{
	const struct sockaddr_in6 *six = (const void *)&from->storage;

	return slot->plane->queues[slot->lane->index] && !slot->plane->generic &&
	       (from->storage.ss_family != AF_INET6 || !six->sin6_scope_id);
}

/* The route of those who hear the group, like that of one of them but for whom it is for. */
static void group_route(struct xdp_slot *slot, const struct xdp_route *like)
{
	const struct sockaddr_in *group = (const void *)&slot->group.storage;
	struct xdp_route route = *like;
	uint8_t *ip = route.head + route.l2;
	uint32_t address = ntohl(group->sin_addr.s_addr);

	route.head[0] = 0x01;
	route.head[1] = 0x00;
	route.head[2] = 0x5e;
	route.head[3] = address >> 16 & 0x7f;
	route.head[4] = (uint8_t)(address >> 8);
	route.head[5] = (uint8_t)address;
	memcpy(ip + 16, &group->sin_addr, 4);
	memcpy(ip + route.l3 + 2, &group->sin_port, 2);
	route_settle(&route);
	slot->lane->routes[XDP_GROUP] = route;
}

/* Of the children that hear the group, those behind the interface that most of them share. */
static uint64_t group_members(const struct xdp_slot *slot)
{
	const struct xdp_route *routes = slot->lane->routes;
	uint64_t best = 0;

	if (!slot->group.length)
		return 0;
	for (unsigned i = 0; i < slot->children; i++) {
		uint64_t members = 0;

		for (unsigned j = 0; j < slot->children && routes[i].l3 == 20; j++)
			if (slot->hears >> j & 1 && routes[j].ifindex &&
			    routes[j].ifindex == routes[i].ifindex && routes[j].l2 == routes[i].l2)
				members |= 1ull << j;
		if (__builtin_popcountll(members) > __builtin_popcountll(best))
			best = members;
	}
	return __builtin_popcountll(best) > 1 ? best : 0;
}

/* Does the fan lead to these already? */
static bool fan_is(const struct xdp_slot *slot, const uint8_t *entry, uint8_t n)
{
	const struct xdp_lane *lane = slot->lane;

	for (uint8_t i = 0; i < n; i++)
		if (lane->entry[i] != entry[i] ||
		    slot->fan_ifindex[i] != lane->routes[entry[i]].ifindex)
			return false;
	return lane->entries == n;
}

/*
 * The fan: a slot for each frame that a result becomes. The program may be at
 * it meanwhile: a result that goes astray then is asked for again, by all
 * children. So it is left alone where nothing is new.
 */
static void fan_update(struct xdp_slot *slot)
{
	struct xdp_lane *lane = slot->lane;
	uint64_t grouped = group_members(slot);
	uint8_t n = 0, entry[XDP_ROUTES];

	if (grouped) {
		group_route(slot, &lane->routes[__builtin_ctzll(grouped)]);
		entry[n++] = XDP_GROUP;
	}
	for (unsigned child = 0; child < slot->children; child++)
		if (!(grouped >> child & 1) && lane->routes[child].ifindex)
			entry[n++] = (uint8_t)child;
	if (fan_is(slot, entry, n))
		return;
	lane->entries = 0;
	lane->shared_ports = 0;
	for (uint32_t i = 0; i < slot->children; i++) {
		struct bpf_devmap_val value = {
			.ifindex = i < n ? lane->routes[entry[i]].ifindex : 0,
			.bpf_prog.fd = bpf_program__fd(slot->plane->bpf->progs.fan_out)
		};

		for (uint32_t j = 0; j < i && i < n; j++)
			lane->shared_ports |= slot->fan_ifindex[j] == value.ifindex;
		if (i < n) {
			lane->entry[i] = entry[i];
			lane->entry_port[i] = value.ifindex;
		}
		if (slot->fan_ifindex[i] == value.ifindex)
			continue;
		if (i >= n)
			bpf_map_delete_elem(slot->fan, &i);
		else if (bpf_map_update_elem(slot->fan, &i, &value, 0)) {
			log_warn("results cannot leave through interface %u: %s", value.ifindex,
			         strerror(errno));
			value.ifindex = 0; /* to be tried again */
			bpf_map_delete_elem(slot->fan, &i);
		}
		slot->fan_ifindex[i] = value.ifindex;
	}
	__atomic_store_n(&lane->entries, n, __ATOMIC_RELEASE);
	slot_activate(slot);
}

void xdp_slot_route(struct xdp_slot *slot, unsigned child, const struct udp_address *from)
{
	struct xdp_seen seen = slot->lane->seen[child & 63];
	struct xdp_route route;

	/* Written by the program at any moment: twice the same is whole. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (child >= slot->children || memcmp(&seen, &slot->lane->seen[child], sizeof(seen)) != 0 ||
	    !seen_is_from(&seen, from) || !route_reverse(&route, &seen))
		return;
	route.queued = may_queue(slot, from);
	if (!memcmp(&route, &slot->lane->routes[child], sizeof(route)))
		return;
	slot->lane->routes[child] = route;
	fan_update(slot);
}

/* ---- where the parent is ---- */

/* As its frames have it. */
static void uplink_source(struct xdp_uplink *uplink, const struct udp_address *from)
{
	const struct sockaddr_in6 *six = (const void *)&from->storage;
	const struct sockaddr_in *four = (const void *)&from->storage;
	bool is_six = from->storage.ss_family == AF_INET6;

	uplink->port = is_six ? six->sin6_port : four->sin_port;
	if (!is_six)
		memcpy(uplink->source, &four->sin_addr, 4);
	else if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
		memcpy(uplink->source, six->sin6_addr.s6_addr + 12, 4);
	else
		memcpy(uplink->source, six->sin6_addr.s6_addr, 16);
}

void slot_forget_parent(struct xdp_slot *slot)
{
	int map = bpf_map__fd(slot->plane->bpf->maps.uplinks);
	uint32_t index;

	/* A parent may have used the number again, for another lane of ours. */
	if (slot->uplink.port && !bpf_map_lookup_elem(map, &slot->uplink, &index) &&
	    index == slot->index)
		bpf_map_delete_elem(map, &slot->uplink);
}

trib_status xdp_slot_parent(struct xdp_slot *slot, const struct udp_address *from, uint64_t cookie,
                            uint16_t comm, uint16_t epoch, uint8_t child)
{
	struct xdp_parent *parent = &slot->lane->parent;
	struct xdp_uplink uplink = { .comm = comm, .lane = slot->lane->index };

	parent->cookie = cookie;
	parent->job = slot->lane->job;
	parent->comm = comm;
	parent->epoch = epoch;
	parent->child = child;
	parent->proof = wire_proof(cookie, parent->job, epoch);
	uplink_source(&uplink, from);
	slot_forget_parent(slot);
	if (bpf_map_update_elem(bpf_map__fd(slot->plane->bpf->maps.uplinks), &uplink, &slot->index,
	                        0))
		return status_fail_errno("the program cannot be told of the parent");
	slot->uplink = uplink;
	return TRIB_OK;
}

/* As in frames that the parent sends us. */
static void parent_settle(struct xdp_parent *parent, const struct xdp_seen *seen)
{
	parent->mac = parent->address = 0;
	memcpy(&parent->mac, seen->head, 6);
	memcpy(&parent->address, seen->head + seen->at - 16, sizeof(parent->address));
}

bool xdp_slot_parent_route(struct xdp_slot *slot, const struct udp_address *from)
{
	struct xdp_parent *parent = &slot->lane->parent;
	struct xdp_seen seen = parent->seen;
	struct xdp_route route;

	/* Written by the program at any moment: twice the same is whole. To all is not to us. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (memcmp(&seen, &parent->seen, sizeof(seen)) != 0 || seen.head[0] & 1 ||
	    !seen_is_from(&seen, from) || !route_reverse(&route, &seen))
		return parent->active;
	if (parent->active && !memcmp(&route, &parent->route, sizeof(route)))
		return true;
	/* What leaves meanwhile by half a way is repeated. */
	__atomic_store_n(&parent->active, 0, __ATOMIC_SEQ_CST);
	parent->route = route;
	parent_settle(parent, &seen);
	__atomic_store_n(&parent->active, 1, __ATOMIC_SEQ_CST);
	return true;
}

void xdp_slot_parent_stop(struct xdp_slot *slot)
{
	__atomic_store_n(&slot->lane->parent.allowed, 0, __ATOMIC_SEQ_CST);
}

void xdp_slot_group(struct xdp_slot *slot, uint64_t hears, const struct udp_address *group)
{
	if (slot->hears == hears)
		return;
	slot->hears = hears;
	slot->group = *group;
	fan_update(slot);
}
