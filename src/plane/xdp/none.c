/* SPDX-License-Identifier: Apache-2.0 */
/* In place of xdp.c, where clang, bpftool or libbpf were missing when this was built. */
#include "plane/xdp/xdp.h"

uint32_t xdp_room(const struct xdp_plane *plane)
{
	(void)plane;
	return 0;
}

bool xdp_is_built(void)
{
	return false;
}

trib_status xdp_load(const struct xdp_options *options, struct xdp_plane **out)
{
	(void)options;
	(void)out;
	return status_fail(TRIB_ERR_SYSTEM,
	                   "this build has no XDP plane (clang, bpftool or libbpf were missing)");
}

void xdp_close(struct xdp_plane *plane)
{
	(void)plane;
}

trib_status xdp_attach(struct xdp_plane *plane, unsigned ifindex, bool native)
{
	(void)plane;
	(void)ifindex;
	(void)native;
	return TRIB_ERR_SYSTEM;
}

const struct xdp_interface *xdp_interface(const struct xdp_plane *plane, unsigned i)
{
	(void)plane;
	(void)i;
	return NULL;
}

const char *xdp_describe(const struct xdp_plane *plane, char *out, size_t size)
{
	(void)plane;
	(void)out;
	(void)size;
	return "";
}

void xdp_look(struct xdp_plane *plane)
{
	(void)plane;
}

void xdp_probe(unsigned ifindex, struct xdp_probe *out)
{
	(void)ifindex;
	*out = (struct xdp_probe){ .driver = XDP_UNKNOWN };
}

struct xdp_slot *xdp_slot_open(struct xdp_plane *plane, const struct xdp_lane_options *options,
                               struct dense_lane **dense, struct dense_pool *pool)
{
	(void)plane;
	(void)options;
	(void)dense;
	(void)pool;
	return NULL;
}

void xdp_slot_start(struct xdp_slot *slot)
{
	(void)slot;
}

void xdp_slot_stop(struct xdp_slot *slot)
{
	(void)slot;
}

unsigned xdp_pools(const struct xdp_plane *plane)
{
	(void)plane;
	return 0;
}

void xdp_slot_close(struct xdp_slot *slot)
{
	(void)slot;
}

unsigned xdp_queue_read(struct xdp_plane *plane, unsigned lane, unsigned most, xdp_take *take,
                        void *context)
{
	(void)plane;
	(void)lane;
	(void)most;
	(void)take;
	(void)context;
	return 0;
}

int xdp_queue_fd(const struct xdp_plane *plane, unsigned lane)
{
	(void)plane;
	(void)lane;
	return -1;
}

struct xdp_lane *xdp_slot_lane(struct xdp_slot *slot)
{
	(void)slot;
	return NULL;
}

void xdp_slot_route(struct xdp_slot *slot, unsigned child, const struct udp_address *from)
{
	(void)slot;
	(void)child;
	(void)from;
}

trib_status xdp_slot_parent(struct xdp_slot *slot, const struct udp_address *from, uint64_t cookie,
                            uint16_t comm, uint16_t epoch, uint8_t child)
{
	(void)slot;
	(void)from;
	(void)cookie;
	(void)comm;
	(void)epoch;
	(void)child;
	return TRIB_ERR_SYSTEM;
}

bool xdp_slot_parent_route(struct xdp_slot *slot, const struct udp_address *parent)
{
	(void)slot;
	(void)parent;
	return false;
}

void xdp_slot_parent_stop(struct xdp_slot *slot)
{
	(void)slot;
}

void xdp_slot_group(struct xdp_slot *slot, uint64_t hears, const struct udp_address *group)
{
	(void)slot;
	(void)hears;
	(void)group;
}

bool xdp_slot_is_wide(const struct xdp_slot *slot)
{
	(void)slot;
	return false;
}

void xdp_count(struct xdp_plane *plane, struct xdp_counts *sum)
{
	(void)plane;
	*sum = (struct xdp_counts){ 0 };
}

double xdp_run_time(struct xdp_plane *plane)
{
	(void)plane;
	return 0;
}

int xdp_stats_open(void)
{
	return -1;
}

trib_status xdp_run(struct xdp_plane *plane, struct xdp_run *run)
{
	(void)plane;
	(void)run;
	return TRIB_ERR_SYSTEM;
}
