/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the children and the parent of a lane are. A route is the front of a
 * frame that the program has seen, reversed, once the daemon has accepted the
 * packet in that frame.
 */
#include "plane/xdp/xdp_internal.h"

#include "base/log.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

/*
 * In generic mode, copies of a frame share its bytes, so they cannot have
 * different headers. The program sums only if one frame serves all children.
 */
bool xdp_handle_is_wide(const struct xdp_handle *handle)
{
	return handle->plane->generic && handle->lane->entries > 1;
}

/* True: at tc, and the fronts of frames to the children differ in length. */
static bool is_mixed(const struct xdp_handle *handle)
{
	const struct xdp_lane *lane = handle->lane;
	const struct xdp_route *first = &lane->routes[lane->entry[0]];

	for (unsigned i = 1; i < lane->entries && handle->plane->tc; i++) {
		const struct xdp_route *route = &lane->routes[lane->entry[i]];

		if (route->l2 != first->l2 || route->l3 != first->l3)
			return true;
	}
	return false;
}

void handle_activate(struct xdp_handle *handle)
{
	bool active = handle->started && !xdp_handle_is_wide(handle) && !is_mixed(handle);

	__atomic_store_n(&handle->lane->active, active, __ATOMIC_RELEASE);
}

/* ---- where children are ---- */

/*
 * May reports of the child use the check queue? Not in generic mode, where a frame
 * may hold several packets. Not with a scoped address, which the frame does not
 * show.
 */
static bool may_queue(const struct xdp_handle *handle, const struct udp_address *from)
{
	const struct sockaddr_in6 *six = (const void *)&from->storage;

	return handle->plane->queues[handle->lane->index] && !handle->plane->generic &&
	       (from->storage.ss_family != AF_INET6 || !six->sin6_scope_id);
}

/*
 * The route to the multicast group: the route to one of its children, with the
 * group as receiver.
 */
static void group_route(struct xdp_handle *handle, const struct xdp_route *like)
{
	const struct sockaddr_in *group = (const void *)&handle->group.storage;
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
	handle->lane->routes[XDP_GROUP] = route;
}

/* Children that hear the multicast group, behind the interface that most of them share. */
static uint64_t group_members(const struct xdp_handle *handle)
{
	const struct xdp_route *routes = handle->lane->routes;
	uint64_t best = 0;

	if (!handle->group.length)
		return 0;
	for (unsigned i = 0; i < handle->children; i++) {
		uint64_t members = 0;

		for (unsigned j = 0; j < handle->children && routes[i].l3 == 20; j++)
			if (handle->hears >> j & 1 && routes[j].ifindex &&
			    routes[j].ifindex == routes[i].ifindex && routes[j].l2 == routes[i].l2)
				members |= 1ull << j;
		if (__builtin_popcountll(members) > __builtin_popcountll(best))
			best = members;
	}
	return __builtin_popcountll(best) > 1 ? best : 0;
}

/* Does the fan lead to these routes already? */
static bool fan_is(const struct xdp_handle *handle, const uint8_t *entry, uint8_t n)
{
	const struct xdp_lane *lane = handle->lane;

	for (uint8_t i = 0; i < n; i++)
		if (lane->entry[i] != entry[i] ||
		    handle->fan_ifindex[i] != lane->routes[entry[i]].ifindex)
			return false;
	return lane->entries == n;
}

/*
 * The fan has a place for each frame that a result becomes. The program may use it
 * meanwhile; a result that is lost by that is asked for again by all children. So
 * the fan is changed only if a route is new.
 */
static void fan_update(struct xdp_handle *handle)
{
	struct xdp_lane *lane = handle->lane;
	uint64_t grouped = group_members(handle);
	uint8_t n = 0, entry[XDP_ROUTES];

	if (grouped) {
		group_route(handle, &lane->routes[__builtin_ctzll(grouped)]);
		entry[n++] = XDP_GROUP;
	}
	for (unsigned child = 0; child < handle->children; child++)
		if (!(grouped >> child & 1) && lane->routes[child].ifindex)
			entry[n++] = (uint8_t)child;
	if (fan_is(handle, entry, n))
		return;
	lane->entries = 0;
	lane->shared_ports = 0;
	for (uint32_t i = 0; i < handle->children; i++) {
		struct bpf_devmap_val value = {
			.ifindex = i < n ? lane->routes[entry[i]].ifindex : 0,
			.bpf_prog.fd = bpf_program__fd(handle->plane->bpf->progs.fan_out)
		};

		for (uint32_t j = 0; j < i && i < n; j++)
			lane->shared_ports |= handle->fan_ifindex[j] == value.ifindex;
		if (i < n) {
			lane->entry[i] = entry[i];
			lane->entry_port[i] = value.ifindex;
		}
		if (handle->fan_ifindex[i] == value.ifindex)
			continue;
		if (i >= n)
			bpf_map_delete_elem(handle->fan, &i);
		else if (bpf_map_update_elem(handle->fan, &i, &value, 0)) {
			log_warn("results cannot leave through interface %u: %s", value.ifindex,
			         strerror(errno));
			value.ifindex = 0; /* will be tried again */
			bpf_map_delete_elem(handle->fan, &i);
		}
		handle->fan_ifindex[i] = value.ifindex;
	}
	__atomic_store_n(&lane->entries, n, __ATOMIC_RELEASE);
	handle_activate(handle);
}

void xdp_handle_route(struct xdp_handle *handle, unsigned child, const struct udp_address *from)
{
	struct xdp_seen seen = handle->lane->seen[child & 63];
	struct xdp_route route;

	/* The program may write it at any moment: two equal copies are consistent. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (child >= handle->children ||
	    memcmp(&seen, &handle->lane->seen[child], sizeof(seen)) != 0 ||
	    !seen_is_from(&seen, from) || !route_reverse(&route, &seen))
		return;
	route.queued = may_queue(handle, from);
	if (!memcmp(&route, &handle->lane->routes[child], sizeof(route)))
		return;
	handle->lane->routes[child] = route;
	fan_update(handle);
}

void xdp_handle_group(struct xdp_handle *handle, uint64_t hears, const struct udp_address *group)
{
	if (handle->hears == hears)
		return;
	handle->hears = hears;
	handle->group = *group;
	fan_update(handle);
}

/* ---- where the parent is ---- */

/* The parent's address, as in its frames. */
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

void handle_forget_parent(struct xdp_handle *handle)
{
	int map = bpf_map__fd(handle->plane->bpf->maps.uplinks);
	uint32_t index;

	/* Another lane may have taken over the parent and the id. */
	if (handle->uplink.port && !bpf_map_lookup_elem(map, &handle->uplink, &index) &&
	    index == handle->index)
		bpf_map_delete_elem(map, &handle->uplink);
}

trib_status xdp_handle_parent(struct xdp_handle *handle, const struct udp_address *from,
                              uint64_t cookie, uint16_t comm, uint16_t epoch, uint8_t child)
{
	struct xdp_parent *parent = &handle->lane->parent;
	struct xdp_uplink uplink = { .comm = comm, .lane = handle->lane->index };

	parent->cookie = cookie;
	parent->job = handle->lane->job;
	parent->comm = comm;
	parent->epoch = epoch;
	parent->child = child;
	parent->proof = wire_proof(cookie, parent->job, epoch);
	uplink_source(&uplink, from);
	handle_forget_parent(handle);
	if (bpf_map_update_elem(bpf_map__fd(handle->plane->bpf->maps.uplinks), &uplink,
	                        &handle->index, 0))
		return status_fail_errno("cannot tell the program the parent's address");
	handle->uplink = uplink;
	return TRIB_OK;
}

/* What identifies frames from the parent to us. */
static void parent_settle(struct xdp_parent *parent, const struct xdp_seen *seen)
{
	parent->mac = parent->address = 0;
	memcpy(&parent->mac, seen->head, 6);
	memcpy(&parent->address, seen->head + seen->at - 16, sizeof(parent->address));
}

bool xdp_handle_parent_route(struct xdp_handle *handle, const struct udp_address *from)
{
	struct xdp_parent *parent = &handle->lane->parent;
	struct xdp_seen seen = parent->seen;
	struct xdp_route route;

	/*
	 * The program may write it at any moment: two equal copies are consistent. A
	 * multicast frame does not show our address.
	 */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (memcmp(&seen, &parent->seen, sizeof(seen)) != 0 || seen.head[0] & 1 ||
	    !seen_is_from(&seen, from) || !route_reverse(&route, &seen))
		return parent->active;
	if (parent->active && !memcmp(&route, &parent->route, sizeof(route)))
		return true;
	/* Sums that leave with a half-written route are lost, and repeated later. */
	__atomic_store_n(&parent->active, 0, __ATOMIC_SEQ_CST);
	parent->route = route;
	parent_settle(parent, &seen);
	__atomic_store_n(&parent->active, 1, __ATOMIC_SEQ_CST);
	return true;
}

void xdp_handle_parent_stop(struct xdp_handle *handle)
{
	__atomic_store_n(&handle->lane->parent.allowed, 0, __ATOMIC_SEQ_CST);
}
