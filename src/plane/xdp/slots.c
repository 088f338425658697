/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes in the kernel: their pools and fans, made, started, stopped and closed. */
#include "plane/xdp/xdp_internal.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
	slot->pool = slot->fan = slot->engine_cells = -1;
	slot->lane = &plane->lanes[slot->index];
	memset(slot->lane, 0, sizeof(*slot->lane));
	slot->lane->cookie = options->cookie;
	slot->lane->job = options->job;
	slot->lane->epoch = options->epoch;
	slot->lane->proof = wire_proof(options->cookie, options->job, options->epoch);
	slot->lane->index = (uint8_t)options->lane;
	if (slot_maps(slot, options->cells) != TRIB_OK ||
	    (options->engine && slot_engine_open(slot, options) != TRIB_OK)) {
		xdp_slot_close(slot);
		return NULL;
	}
	*dense = &slot->lane->dense;
	pool->cells = slot->cells;
	pool->packets = pool->cells + offsetof(struct xdp_cell, header);
	pool->cell_step = pool->packet_step = sizeof(struct xdp_cell) + plane->payload;
	return slot;
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

unsigned xdp_pools(const struct xdp_plane *plane)
{
	return plane->pools;
}

void xdp_slot_close(struct xdp_slot *slot)
{
	struct plane_bpf *bpf = slot->plane->bpf;

	__atomic_store_n(&slot->lane->active, 0, __ATOMIC_RELEASE);
	slot->lane->cookie = 0; /* the program notes nothing for this lane any more */
	slot_forget_parent(slot);
	/* Programs that still use the maps end before these calls return. */
	bpf_map_delete_elem(bpf_map__fd(bpf->maps.pools), &slot->index);
	bpf_map_delete_elem(bpf_map__fd(bpf->maps.fans), &slot->index);
	slot_engine_close(slot);
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

struct engine_pool xdp_slot_engine(const struct xdp_slot *slot)
{
	return slot->engine;
}
