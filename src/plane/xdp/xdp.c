/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/xdp/xdp.h"

#include "base/log.h"
#include "plane.skel.h" /* after the structs that it has in it */

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct xdp_plane {
	struct plane_bpf *bpf;
	struct xdp_lane *lanes; /* all of them, mapped */
	uint32_t payload;
	int links[XDP_INTERFACES_MAX];
	struct xdp_interface interfaces[XDP_INTERFACES_MAX]; /* of the links */
	unsigned n_links;
	bool generic; /* on one of them, at least */
	_Atomic unsigned pools;
};

struct xdp_slot {
	struct xdp_plane *plane;
	struct xdp_lane *lane;
	uint32_t index;
	uint32_t children;
	void *cells;
	size_t bytes;
	int pool, fan;
	bool started;
	struct udp_address group;
	uint64_t hears;
	uint32_t fan_ifindex[XDP_ROUTES]; /* what the fan's slots are set to */
};

uint32_t xdp_room(const struct xdp_plane *plane)
{
	return plane->payload;
}

bool xdp_is_built(void)
{
	return true;
}

static size_t page_up(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* libbpf's own words go to our log, with all that the verifier has to say. */
static int print(enum libbpf_print_level level, const char *format, va_list args)
{
	char *text, *rest;

	if (vasprintf(&text, format, args) < 0)
		return 0;
	rest = text;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		if (*line && level == LIBBPF_WARN)
			log_info("%s", line);
		else if (*line)
			log_debug("%s", line);
	}
	free(text);
	return 0;
}

static trib_status fail_load(int error)
{
	if (error == -EPERM) /* EACCES is the verifier's */
		return status_fail(TRIB_ERR_SYSTEM,
		                   "no right to load BPF programs: CAP_BPF, CAP_NET_ADMIN and "
		                   "CAP_PERFMON are needed (as root, or setcap "
		                   "cap_bpf,cap_net_admin,cap_perfmon+ep tribd)");
	return status_fail(TRIB_ERR_SYSTEM, "the kernel does not take the program: %s",
	                   strerror(-error));
}

static int load(struct xdp_plane *plane, const struct xdp_options *options)
{
	struct plane_bpf *bpf = plane->bpf;
	int error;

	plane->payload =
		options->payload < XDP_PAYLOAD_MAX ? options->payload & ~7u : XDP_PAYLOAD_MAX;
	bpf_program__set_autoload(bpf->progs.aggregate_again, options->again);
	bpf->rodata->settings = (struct xdp_settings){ .first_port = options->port,
		                                       .ports = options->lanes,
		                                       .payload = plane->payload };
	error = bpf_map__set_value_size(bpf_map__inner_map(bpf->maps.pools),
	                                (uint32_t)sizeof(struct xdp_cell) + plane->payload);
	return error ? error : plane_bpf__load(bpf);
}

trib_status xdp_load(const struct xdp_options *options, struct xdp_plane **out)
{
	struct xdp_plane *plane = calloc(1, sizeof(*plane));
	int error;

	if (!plane)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a plane");
	libbpf_set_print(print);
	plane->bpf = plane_bpf__open();
	error = plane->bpf ? load(plane, options) : -errno;
	if (!error) {
		plane->lanes = mmap(NULL, page_up(XDP_LANES * sizeof(*plane->lanes)),
		                    PROT_READ | PROT_WRITE, MAP_SHARED,
		                    bpf_map__fd(plane->bpf->maps.lanes), 0);
		if (plane->lanes == MAP_FAILED) {
			error = -errno;
			plane->lanes = NULL;
		}
	}
	if (error) {
		xdp_close(plane);
		return fail_load(error);
	}
	*out = plane;
	return TRIB_OK;
}

void xdp_close(struct xdp_plane *plane)
{
	if (!plane)
		return;
	for (unsigned i = 0; i < plane->n_links; i++)
		close(plane->links[i]);
	if (plane->lanes)
		munmap(plane->lanes, page_up(XDP_LANES * sizeof(*plane->lanes)));
	plane_bpf__destroy(plane->bpf);
	free(plane);
}

/* ---- interfaces ---- */

static trib_status fail_occupied(const char *name, const char *other)
{
	return status_fail(TRIB_ERR_CONFIG,
	                   "interface %s already runs another XDP program, %s: take it off "
	                   "(ip link set dev %s xdp off), name other interfaces (--interface), or "
	                   "use --plane udp",
	                   name, other, name);
}

/* What attaching failed with, in the driver's words where errno has none of its own. */
static const char *attach_reason(int error)
{
	return error == ERANGE       ? "the MTU is too large for its driver's XDP"
	       : error == EOPNOTSUPP ? "its driver has no XDP"
	                             : strerror(error);
}

/* The link; it ends with the file descriptor. -1 with errno. */
static int attach(int program, unsigned ifindex, enum xdp_mode mode)
{
	LIBBPF_OPTS(bpf_link_create_opts, options);

	options.flags = mode == XDP_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
	return bpf_link_create(program, (int)ifindex, BPF_XDP, &options);
}

trib_status xdp_attach(struct xdp_plane *plane, unsigned ifindex, bool native)
{
	struct xdp_interface *interface = &plane->interfaces[plane->n_links];
	int program = bpf_program__fd(plane->bpf->progs.aggregate), fd = -1, error = 0;
	struct xdp_probe probe;

	if (plane->n_links == XDP_INTERFACES_MAX)
		return status_fail(TRIB_ERR_CONFIG, "more than %u interfaces", XDP_INTERFACES_MAX);
	*interface = (struct xdp_interface){ .name = "?", .ifindex = ifindex };
	if_indextoname(ifindex, interface->name);
	xdp_probe(ifindex, &probe);
	if (*probe.other)
		return fail_occupied(interface->name, probe.other);
	if (!native)
		snprintf(interface->why, sizeof(interface->why), "--generic was given");
	for (unsigned mode = native ? XDP_NATIVE : XDP_GENERIC; mode <= XDP_GENERIC; mode++) {
		interface->mode = (enum xdp_mode)mode;
		fd = attach(program, ifindex, interface->mode);
		if (fd >= 0)
			break;
		error = errno;
		if (error == EBUSY || error == EEXIST)
			return fail_occupied(interface->name, "which has come just now");
		snprintf(interface->why, sizeof(interface->why), "%s", attach_reason(error));
		log_info("%s does not take the program in %s mode: %s", interface->name,
		         mode == XDP_NATIVE ? "driver" : "generic", strerror(error));
	}
	if (fd < 0)
		return status_fail(TRIB_ERR_SYSTEM, "interface %s takes no XDP program: %s",
		                   interface->name, strerror(error));
	plane->generic |= interface->mode == XDP_GENERIC;
	plane->links[plane->n_links++] = fd;
	return TRIB_OK;
}

const struct xdp_interface *xdp_interface(const struct xdp_plane *plane, unsigned i)
{
	return i < plane->n_links ? &plane->interfaces[i] : NULL;
}

const char *xdp_describe(const struct xdp_plane *plane, char *out, size_t size)
{
	const unsigned shown = 8;
	size_t used = 0;

	*out = '\0';
	for (unsigned i = 0; i < plane->n_links && i < shown && used < size; i++) {
		const struct xdp_interface *interface = &plane->interfaces[i];
		bool native = interface->mode == XDP_NATIVE;
		int n = snprintf(out + used, size - used, "%s%s (%s%s%s)", i ? ", " : "",
		                 interface->name, native ? "driver mode" : "generic mode",
		                 native ? "" : ": ", native ? "" : interface->why);

		used += n > 0 ? (size_t)n : 0;
	}
	if (plane->n_links > shown && used < size)
		snprintf(out + used, size - used, " and %u more", plane->n_links - shown);
	return out;
}

void xdp_look(struct xdp_plane *plane)
{
	for (unsigned i = 0; i < plane->n_links; i++) {
		struct xdp_interface *interface = &plane->interfaces[i];
		struct bpf_link_info info = { 0 };
		uint32_t length = sizeof(info);
		char name[IF_NAMESIZE];

		if (interface->lost || bpf_obj_get_info_by_fd(plane->links[i], &info, &length) ||
		    info.xdp.ifindex)
			continue;
		interface->lost = true;
		snprintf(interface->why, sizeof(interface->why), "%s",
		         if_indextoname(interface->ifindex, name) ? "somebody took the program off"
		                                                  : "the interface is gone");
		log_warn("interface %s: %s; what comes in there is summed in user space",
		         interface->name, interface->why);
	}
}

/* ---- lanes ---- */

static trib_status slot_maps(struct xdp_slot *slot, uint32_t cells)
{
	struct plane_bpf *bpf = slot->plane->bpf;
	uint32_t value = (uint32_t)sizeof(struct xdp_cell) + slot->plane->payload;
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);

	slot->pool = bpf_map_create(BPF_MAP_TYPE_ARRAY, "trib_pool", sizeof(uint32_t), value, cells,
	                            &options);
	if (slot->pool < 0)
		return status_fail_errno("no pool of %u fragments in the kernel", cells);
	slot->plane->pools++;
	slot->bytes = page_up((size_t)value * cells);
	slot->cells = mmap(NULL, slot->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, slot->pool, 0);
	if (slot->cells == MAP_FAILED) {
		slot->cells = NULL;
		return status_fail_errno("cannot map the pool");
	}
	slot->fan = bpf_map_create(BPF_MAP_TYPE_DEVMAP, "trib_fan", sizeof(uint32_t),
	                           sizeof(struct bpf_devmap_val), slot->children, NULL);
	if (slot->fan < 0 ||
	    bpf_map_update_elem(bpf_map__fd(bpf->maps.pools), &slot->index, &slot->pool, 0) ||
	    bpf_map_update_elem(bpf_map__fd(bpf->maps.fans), &slot->index, &slot->fan, 0))
		return status_fail_errno("cannot hand the pool to the program");
	return TRIB_OK;
}

struct xdp_slot *xdp_slot_open(struct xdp_plane *plane, const struct xdp_lane_options *options,
                               struct dense_lane **dense, struct dense_pool *pool)
{
	struct xdp_slot *slot;

	if (options->comm >= XDP_COMMS)
		status_fail(TRIB_ERR_CONFIG, "the kernel holds %u communicators at once",
		            XDP_COMMS - 1);
	if (options->payload > plane->payload)
		status_fail(TRIB_ERR_CONFIG, "fragments of %u bytes are above the %u of its cells",
		            options->payload, plane->payload);
	if (options->comm >= XDP_COMMS || options->payload > plane->payload)
		return NULL;
	slot = calloc(1, sizeof(*slot));
	if (!slot)
		return NULL;
	slot->plane = plane;
	slot->index = options->comm * WIRE_LANES_MAX + options->lane;
	slot->children = options->children;
	slot->pool = slot->fan = -1;
	slot->lane = &plane->lanes[slot->index];
	memset(slot->lane, 0, sizeof(*slot->lane));
	slot->lane->cookie = options->cookie;
	slot->lane->job = options->job;
	slot->lane->epoch = options->epoch;
	if (slot_maps(slot, options->cells) != TRIB_OK) {
		xdp_slot_close(slot);
		return NULL;
	}
	*dense = &slot->lane->dense;
	pool->cells = slot->cells;
	pool->packets = pool->cells + offsetof(struct xdp_cell, header);
	pool->cell_step = pool->packet_step = sizeof(struct xdp_cell) + plane->payload;
	return slot;
}

/*
 * In generic mode copies of a frame share its bytes, so they cannot have
 * headers of their own: the kernel sums only what one frame tells to all.
 */
static void slot_activate(struct xdp_slot *slot)
{
	bool one = slot->lane->entries <= 1 || !slot->plane->generic;

	__atomic_store_n(&slot->lane->active, slot->started && one, __ATOMIC_RELEASE);
}

void xdp_slot_start(struct xdp_slot *slot)
{
	slot->started = true;
	slot_activate(slot);
}

void xdp_slot_stop(struct xdp_slot *slot)
{
	slot->started = false;
	slot_activate(slot);
}

static struct xdp_uplink slot_uplink(const struct xdp_slot *slot)
{
	return (struct xdp_uplink){ .cookie = slot->lane->parent.cookie,
		                    .lane = slot->index % WIRE_LANES_MAX };
}

unsigned xdp_pools(const struct xdp_plane *plane)
{
	return plane->pools;
}

void xdp_slot_close(struct xdp_slot *slot)
{
	struct plane_bpf *bpf = slot->plane->bpf;

	__atomic_store_n(&slot->lane->active, 0, __ATOMIC_RELEASE);
	slot->lane->cookie = 0; /* nothing is noted any more */
	if (slot->lane->parent.cookie) {
		const struct xdp_uplink uplink = slot_uplink(slot);

		bpf_map_delete_elem(bpf_map__fd(bpf->maps.uplinks), &uplink);
	}
	/* Programs that still hold the maps end before these return. */
	bpf_map_delete_elem(bpf_map__fd(bpf->maps.pools), &slot->index);
	bpf_map_delete_elem(bpf_map__fd(bpf->maps.fans), &slot->index);
	if (slot->cells)
		munmap(slot->cells, slot->bytes);
	if (slot->pool >= 0) {
		close(slot->pool);
		slot->plane->pools--;
	}
	if (slot->fan >= 0)
		close(slot->fan);
	free(slot);
}

struct xdp_lane *xdp_slot_lane(struct xdp_slot *slot)
{
	return slot->lane;
}

void xdp_count(struct xdp_plane *plane, struct xdp_counts *sum)
{
	int cpus = libbpf_num_possible_cpus();
	struct xdp_counts *each = cpus > 0 ? calloc((size_t)cpus, sizeof(*each)) : NULL;
	uint32_t key = 0;

	memset(sum, 0, sizeof(*sum));
	if (!each)
		return;
	if (bpf_map_lookup_elem(bpf_map__fd(plane->bpf->maps.counts), &key, each) == 0)
		for (int cpu = 0; cpu < cpus; cpu++)
			for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
				((uint64_t *)sum)[i] += ((uint64_t *)&each[cpu])[i];
	free(each);
}

double xdp_run_time(struct xdp_plane *plane)
{
	const struct bpf_program *programs[] = { plane->bpf->progs.aggregate,
		                                 plane->bpf->progs.fan_out };
	double seconds = 0;

	for (unsigned i = 0; i < 2; i++) {
		struct bpf_prog_info info = { 0 };
		uint32_t length = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(programs[i]), &info, &length) == 0)
			seconds += (double)info.run_time_ns / 1e9;
	}
	return seconds;
}

int xdp_stats_open(void)
{
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);

	return fd < 0 ? -1 : fd;
}

trib_status xdp_run(struct xdp_plane *plane, struct xdp_run *run)
{
	const struct plane_bpf *bpf = plane->bpf;
	struct xdp_md context = { .data_end = run->bytes, .ingress_ifindex = run->ifindex };
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = run->in, .data_size_in = run->bytes,
	            .data_out = run->out, .data_size_out = run->out ? run->bytes + XDP_HEAD_MAX : 0,
	            .repeat = (int)run->repeat);

	if (run->ifindex) {
		options.ctx_in = &context;
		options.ctx_size_in = sizeof(context);
	}
	if (bpf_prog_test_run_opts(
		    bpf_program__fd(run->again ? bpf->progs.aggregate_again : bpf->progs.aggregate),
		    &options))
		return status_fail_errno("the kernel does not run the program on a frame");
	run->action = options.retval;
	run->ns = options.duration;
	run->out_bytes = options.data_size_out;
	return TRIB_OK;
}

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

/* The way back: what came from there goes there. */
static bool route_reverse(struct xdp_route *route, const struct xdp_seen *seen)
{
	uint8_t *ip;

	memset(route, 0, sizeof(*route));
	route->ifindex = seen->ifindex;
	route->l2 = seen_l2(seen);
	route->l3 = (uint8_t)(seen->at - 8 - route->l2);
	if (!route->l2 || (route->l3 != 20 && route->l3 != 40))
		return false;
	memcpy(route->head, seen->head, sizeof(route->head));
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

/* Does the frame's sender have this address and port? */
static bool seen_is_from(const struct xdp_seen *seen, const struct udp_address *from)
{
	const struct sockaddr_in6 *six = (const void *)&from->storage;
	const struct sockaddr_in *four = (const void *)&from->storage;
	unsigned l2 = seen_l2(seen), l3 = seen->at - 8 - l2;
	const uint8_t *ip = seen->head + l2;

	if (!l2 || seen->at > XDP_HEAD_MAX || (l3 != 20 && l3 != 40))
		return false;
	if (from->storage.ss_family == AF_INET6) {
		const uint8_t *address = six->sin6_addr.s6_addr;

		if (l3 == 20) /* a socket for both takes IPv4 as ::ffff:a.b.c.d */
			return IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) &&
			       !memcmp(ip + 12, address + 12, 4) &&
			       !memcmp(ip + 20, &six->sin6_port, 2);
		return !memcmp(ip + 8, address, 16) && !memcmp(ip + 40, &six->sin6_port, 2);
	}
	return l3 == 20 && !memcmp(ip + 12, &four->sin_addr, 4) &&
	       !memcmp(ip + 20, &four->sin_port, 2);
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

/*
 * The fan: a slot for each frame that a result becomes. The program may be at
 * it meanwhile: a result that goes astray then is asked for again.
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
	if (!memcmp(&route, &slot->lane->routes[child], sizeof(route)))
		return;
	slot->lane->routes[child] = route;
	fan_update(slot);
}

/* ---- where the parent is ---- */

trib_status xdp_slot_parent(struct xdp_slot *slot, uint64_t cookie, uint16_t comm, uint16_t epoch,
                            uint8_t child)
{
	struct xdp_parent *parent = &slot->lane->parent;
	struct xdp_uplink uplink;

	parent->cookie = cookie;
	parent->job = slot->lane->job;
	parent->comm = comm;
	parent->epoch = epoch;
	parent->child = child;
	uplink = slot_uplink(slot);
	if (bpf_map_update_elem(bpf_map__fd(slot->plane->bpf->maps.uplinks), &uplink, &slot->index,
	                        0))
		return status_fail_errno("the program cannot be told of the parent");
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
