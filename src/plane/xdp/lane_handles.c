/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes in the kernel: their pools and fans, made, started, stopped and closed. */
#include "plane/xdp/xdp_internal.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The cells of a stream. */
static trib_status open_pool(struct xdp_handle *handle, uint32_t cells)
{
	int pools = bpf_map__fd(handle->plane->bpf->maps.pools);
	uint32_t value = (uint32_t)sizeof(struct xdp_cell) + handle->plane->payload;
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);

	handle->pool = bpf_map_create(BPF_MAP_TYPE_ARRAY, "trib_pool", sizeof(uint32_t), value,
	                              cells, &options);
	if (handle->pool < 0)
		return status_fail_errno("no pool of %u fragments in the kernel", cells);
	handle->bytes = page_up((size_t)value * cells);
	handle->cells =
		mmap(NULL, handle->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, handle->pool, 0);
	if (handle->cells == MAP_FAILED) {
		handle->cells = NULL;
		return status_fail_errno("cannot map the pool");
	}
	if (bpf_map_update_elem(pools, &handle->index, &handle->pool, 0))
		return status_fail_errno("cannot hand the pool to the program");
	return TRIB_OK;
}

static trib_status open_fan(struct xdp_handle *handle)
{
	int fans = bpf_map__fd(handle->plane->bpf->maps.fans);

	handle->fan = bpf_map_create(BPF_MAP_TYPE_DEVMAP, "trib_fan", sizeof(uint32_t),
	                             sizeof(struct bpf_devmap_val), handle->children, NULL);
	if (handle->fan < 0 || bpf_map_update_elem(fans, &handle->index, &handle->fan, 0))
		return status_fail_errno("cannot hand the routes to the program");
	return TRIB_OK;
}

struct xdp_handle *xdp_handle_open(struct xdp_plane *plane, const struct xdp_lane_options *options,
                                   struct dense_lane **dense, struct dense_pool *pool)
{
	struct xdp_handle *handle;

	if (options->comm >= XDP_COMMS)
		status_fail(TRIB_ERR_CONFIG, "the kernel holds %u communicators at once",
		            XDP_COMMS - 1);
	if (options->payload > plane->room)
		status_fail(TRIB_ERR_CONFIG, "fragments of %u bytes are above the %u of its cells",
		            options->payload, plane->room);
	if (options->comm >= XDP_COMMS || options->payload > plane->room)
		return NULL;
	handle = calloc(1, sizeof(*handle));
	if (!handle)
		return NULL;
	handle->plane = plane;
	handle->index = options->comm * WIRE_LANES_MAX + options->lane;
	handle->children = options->children;
	handle->pool = handle->fan = handle->engine_cells = -1;
	handle->lane = &plane->lanes[handle->index];
	memset(handle->lane, 0, sizeof(*handle->lane));
	handle->lane->cookie = options->cookie;
	handle->lane->job = options->job;
	handle->lane->epoch = options->epoch;
	handle->lane->proof = wire_proof(options->cookie, options->job, options->epoch);
	handle->lane->index = (uint8_t)options->lane;
	plane->pools++;
	if (open_fan(handle) != TRIB_OK ||
	    (options->cells && open_pool(handle, options->cells) != TRIB_OK) ||
	    (options->engine && handle_engine_open(handle, options) != TRIB_OK)) {
		xdp_handle_close(handle);
		return NULL;
	}
	*dense = &handle->lane->dense;
	pool->cells = handle->cells;
	pool->packets = pool->cells + offsetof(struct xdp_cell, header);
	pool->cell_step = pool->packet_step = sizeof(struct xdp_cell) + plane->payload;
	return handle;
}

void xdp_handle_start(struct xdp_handle *handle)
{
	handle->started = true;
	handle_activate(handle);
}

void xdp_handle_stop(struct xdp_handle *handle)
{
	handle->started = false;
	handle_activate(handle);
}

unsigned xdp_pools(const struct xdp_plane *plane)
{
	return plane->pools;
}

void xdp_handle_close(struct xdp_handle *handle)
{
	struct plane_bpf *bpf = handle->plane->bpf;

	__atomic_store_n(&handle->lane->active, 0, __ATOMIC_RELEASE);
	handle->lane->cookie = 0; /* the program notes nothing for this lane any more */
	handle_forget_parent(handle);
	/* Programs that still use the maps end before these calls return. */
	bpf_map_delete_elem(bpf_map__fd(bpf->maps.pools), &handle->index);
	bpf_map_delete_elem(bpf_map__fd(bpf->maps.fans), &handle->index);
	handle_engine_close(handle);
	if (handle->cells)
		munmap(handle->cells, handle->bytes);
	if (handle->pool >= 0)
		close(handle->pool);
	handle->plane->pools--;
	if (handle->fan >= 0)
		close(handle->fan);
	free(handle);
}

struct xdp_lane *xdp_handle_lane(struct xdp_handle *handle)
{
	return handle->lane;
}

struct engine_pool xdp_handle_engine(const struct xdp_handle *handle)
{
	return handle->engine;
}
