/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces the other files if clang, bpftool or libbpf were missing at build time: the functions
 * that the rest of the program calls. Opening the kernel part fails, so the carrier does all the
 * work.
 */
#include "plane/core/aggregator_options.h"
#include "plane/xdp/kernel_xdp.h"
#include "plane/xdp/xdp.h"

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

bool tc_is_possible(const struct xdp_plane *plane)
{
	(void)plane;
	return false;
}

void xdp_probe(unsigned ifindex, struct xdp_probe *out)
{
	(void)ifindex;
	*out = (struct xdp_probe){ .driver = XDP_UNKNOWN };
}

struct xdp_handle *xdp_handle_open(struct xdp_plane *plane, const struct xdp_lane_options *options,
                                   struct dense_lane **dense, struct dense_pool *pool)
{
	(void)plane;
	(void)options;
	(void)dense;
	(void)pool;
	return NULL;
}

void xdp_handle_start(struct xdp_handle *handle)
{
	(void)handle;
}

void xdp_handle_close(struct xdp_handle *handle)
{
	(void)handle;
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

/* A wrong interface is an error in every build. */
static trib_status open_kernel(const struct aggregator_options *options, uint16_t port,
                               struct kernel **out)
{
	struct xdp_port ports[XDP_INTERFACES_MAX];
	unsigned n;
	trib_status status = xdp_ports(&options->listen, options->interfaces, ports, &n);

	(void)port;
	(void)out;
	return status == TRIB_OK ? xdp_load(NULL, NULL) : status;
}

const struct kernel_ops kernel_xdp = { .plane = "xdp", .title = "XDP", .open = open_kernel };
const struct kernel_ops kernel_tc = { .plane = "tc", .title = "tc", .open = open_kernel };
