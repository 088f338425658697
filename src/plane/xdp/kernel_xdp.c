/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/xdp/kernel_xdp.h"

#include "base/log.h"
#include "plane/xdp/kernel_watch.h"

#include <stdlib.h>

#define HEADERS (20u + 8u + WIRE_HEADER) /* IPv4, UDP and ours */

struct xdp_kernel {
	struct kernel base;
	struct xdp_plane *plane;
};

static struct xdp_plane *plane_of(const struct kernel *kernel)
{
	return ((const struct xdp_kernel *)kernel)->plane;
}

/* Loads the program, and attaches it to the interfaces that lead to workers. */
static trib_status attach(struct xdp_kernel *kernel, const struct aggregator_options *options,
                          uint16_t port, bool tc)
{
	struct xdp_port ports[XDP_INTERFACES_MAX];
	struct xdp_options load = { .port = port,
		                    .lanes = options->threads,
		                    .queue = tc ? 0 : options->queue_bytes,
		                    .tc = tc,
		                    .six = options->listen.storage.ss_family == AF_INET6 };
	trib_status status;
	unsigned n;

	status = xdp_ports(&options->listen, options->interfaces, ports, &n);
	for (unsigned i = 0; status == TRIB_OK && i < n; i++) {
		uint32_t payload = ports[i].mtu > WIRE_PAYLOAD_MIN + HEADERS
		                           ? (ports[i].mtu - HEADERS) & ~7u
		                           : WIRE_PAYLOAD_MIN;

		load.payload = payload > load.payload ? payload : load.payload;
	}
	if (status == TRIB_OK)
		status = xdp_load(&load, &kernel->plane);
	for (unsigned i = 0; status == TRIB_OK && i < n; i++)
		status = tc ? tc_attach(kernel->plane, ports[i].ifindex)
		            : xdp_attach(kernel->plane, ports[i].ifindex, options->native);
	return status;
}

static void close_kernel(struct kernel *kernel)
{
	xdp_close(plane_of(kernel));
	free(kernel);
}

static trib_status open_kernel(const struct aggregator_options *options, uint16_t port,
                               const struct kernel_ops *ops, struct kernel **out)
{
	struct xdp_kernel *kernel = calloc(1, sizeof(*kernel));
	trib_status status;

	if (!kernel)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for plane %s", ops->plane);
	kernel->base.ops = ops;
	status = attach(kernel, options, port, ops == &kernel_tc);
	if (status == TRIB_OK)
		*out = &kernel->base;
	else
		close_kernel(&kernel->base);
	return status;
}

static trib_status open_xdp(const struct aggregator_options *options, uint16_t port,
                            struct kernel **out)
{
	return open_kernel(options, port, &kernel_xdp, out);
}

static trib_status open_tc(const struct aggregator_options *options, uint16_t port,
                           struct kernel **out)
{
	return open_kernel(options, port, &kernel_tc, out);
}

static const char *describe(const struct kernel *kernel, char *out, size_t size)
{
	return xdp_describe(plane_of(kernel), out, size);
}

static uint32_t payload_max(const struct kernel *kernel)
{
	return xdp_room(plane_of(kernel));
}

static uint64_t cell_bytes(const struct kernel *kernel)
{
	return sizeof(struct xdp_cell) + xdp_room(plane_of(kernel));
}

static bool check(struct kernel *kernel)
{
	return xdp_look(plane_of(kernel));
}

static void count(struct kernel *kernel, struct totals *totals)
{
	struct xdp_counts counts;
	struct counters *sum = &totals->sum;

	xdp_count(plane_of(kernel), &counts);
	counts.verdicts[ENGINE_ADDED] += counts.added;
	for (unsigned i = 0; i < ENGINE_COUNTED; i++) {
		totals->kernel_packets += counts.verdicts[i];
		sum->verdicts[i] += counts.verdicts[i];
	}
	totals->kernel_s = xdp_run_time(plane_of(kernel));
	totals->kernel_pools = xdp_pools(plane_of(kernel));
	totals->kernel_payload = counts.payload;
	totals->kernel_results = counts.results;
	totals->kernel_busy = counts.busy;
	totals->kernel_raised = counts.raised;
	totals->kernel_lowered = counts.lowered;
	totals->kernel_left = counts.left;
	totals->kernel_queued = counts.queued;
	totals->kernel_full = counts.full;
	totals->kernel_packets += counts.lowered + counts.echoes;
	sum->packets += totals->kernel_packets;
	sum->bytes +=
		(counts.added + counts.verdicts[ENGINE_COMPLETE] + counts.verdicts[ENGINE_SUMMED]) *
			WIRE_HEADER +
		counts.payload;
	sum->raised += counts.raised;
	sum->lowered += counts.lowered;
	sum->payload += counts.payload;
	sum->results += counts.results;
	sum->sends += counts.sends;
}

static bool interface_at(const struct kernel *kernel, unsigned i, struct kernel_interface *out)
{
	const struct xdp_interface *interface = xdp_interface(plane_of(kernel), i);

	if (!interface)
		return false;
	*out = (struct kernel_interface){ .name = interface->name,
		                          .mode = interface->left                 ? "left"
		                                  : interface->lost               ? "lost"
		                                  : interface->mode == XDP_NATIVE ? "driver"
		                                  : interface->mode == XDP_AT_TC  ? "tc"
		                                                                  : "generic",
		                          .why = interface->why };
	return true;
}

static unsigned queue_read(struct kernel *kernel, unsigned thread, unsigned most, kernel_take *take,
                           void *context)
{
	return xdp_queue_read(plane_of(kernel), thread, most, take, context);
}

static int queue_fd(const struct kernel *kernel, unsigned thread)
{
	return xdp_queue_fd(plane_of(kernel), thread);
}

/* ---- lanes ---- */

static bool lane_open(struct kernel *kernel, struct agg_lane *lane)
{
	const struct comm *comm = lane->comm;
	const bool streams = comm->engine->streams;
	const struct xdp_lane_options options = { .comm = comm->id,
		                                  .lane = lane->index,
		                                  .cookie = comm->cookie,
		                                  .job = comm->job,
		                                  .epoch = comm->epoch,
		                                  .cells = streams ? comm->cells : 0,
		                                  .payload = comm->payload,
		                                  .children = comm->size,
		                                  .engine = streams ? NULL : comm->engine,
		                                  .engine_cells = streams ? 0 : comm->cells };
	struct xdp_kernel_lane *own = calloc(1, sizeof(*own));
	uint64_t *asked = calloc(streams ? comm->cells : 1, sizeof(*asked));
	struct cell_watch *cells = calloc(streams ? 1 : comm->cells, sizeof(*cells));

	if (!own || !asked || !cells)
		status_fail(TRIB_ERR_NO_MEMORY, "no memory for a lane in the kernel");
	else
		own->handle =
			xdp_handle_open(plane_of(kernel), &options, &lane->dense, &lane->pool);
	if (!own || !own->handle) {
		free(own);
		free(asked);
		free(cells);
		return false;
	}
	own->base.ops = kernel->ops;
	own->asked = asked;
	own->cells = cells;
	lane->engine = xdp_handle_engine(own->handle);
	lane->kernel = &own->base;
	return true;
}

static void lane_close(struct agg_lane *lane)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);

	xdp_handle_close(own->handle);
	free(own->asked);
	free(own->cells);
	free(own);
}

static void lane_start(struct agg_lane *lane)
{
	xdp_handle_start(xdp_lane_of(lane)->handle);
	xdp_lane_of(lane)->in_kernel = true;
}

static void parent_open(struct agg_lane *lane)
{
	const struct parent *parent = &lane->comm->parent;

	if (xdp_handle_parent(xdp_lane_of(lane)->handle, &lane->parent, parent->cookie,
	                      parent->comm, parent->epoch, parent->child) != TRIB_OK)
		log_warn("job %u, communicator %u: lane %u: %s; sums go up from user space",
		         lane->comm->job, lane->comm->id, lane->index, trib_last_error());
}

static void child_seen(struct agg_lane *lane, unsigned child, const struct udp_address *from)
{
	xdp_handle_route(xdp_lane_of(lane)->handle, child, from);
}

static void group_probe_seen(struct agg_lane *lane)
{
	xdp_handle_group(xdp_lane_of(lane)->handle, lane->hears, &lane->group);
	kernel_watch_interfaces(lane);
	kernel_watch_frames(lane);
}

static bool parent_answered(struct agg_lane *lane, uint32_t astray)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);

	if (own->up.over)
		return false;
	xdp_handle_parent_route(own->handle, &lane->parent);
	kernel_watch_parent(lane, astray);
	return true;
}

static void count_sums(struct agg_lane *lane)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);
	const struct xdp_parent *parent = &xdp_handle_lane(own->handle)->parent;
	struct uplink *up = &lane->up;
	uint64_t launched, sent, told;

	launched = __atomic_load_n(&parent->launched, __ATOMIC_ACQUIRE);
	sent = __atomic_load_n(&parent->sent, __ATOMIC_RELAXED);
	told = __atomic_load_n(&parent->told, __ATOMIC_RELAXED);
	lane->flight.launched += launched - own->up.launched;
	own->up.launched = launched;
	if (sent > up->sent)
		up->sent = sent;
	if (sent > up->end)
		up->end = sent;
	if (told > up->told)
		up->told = told;
}

/*
 * The program cannot wait. A sum that it may not send has to leave by a socket.
 * So it may exceed the limit by 100 % as long as answers arrive; what its
 * children have in flight is bounded too.
 */
static void allow_sums(struct agg_lane *lane)
{
	struct xdp_kernel_lane *own = xdp_lane_of(lane);
	const struct flight *flight = &lane->flight;
	uint64_t end = flight->confirmed + 2 * (uint64_t)flight->limit, more;

	if (own->up.over)
		return;
	more = end > flight->launched ? end - flight->launched : 0;
	__atomic_store_n(&xdp_handle_lane(own->handle)->parent.allowed, own->up.launched + more,
	                 __ATOMIC_RELEASE);
}

static uint64_t came_last(const struct agg_lane *lane, unsigned child)
{
	return xdp_handle_lane(xdp_lane_of(lane)->handle)->last[child];
}

static bool sums_all(const struct engine *engine)
{
	(void)engine;
	return true;
}

/* Streams are faster in user space, which takes many packets of a frame (GSO) at once. */
static bool sums_slots(const struct engine *engine)
{
	return engine->number == ENGINE_SLOT;
}

/* What both have. The functions about parents and reports are for streams. */
#define COMMON_OPS                                                                           \
	.close = close_kernel, .describe = describe, .payload_max = payload_max,             \
	.cell_bytes = cell_bytes, .check = check, .count = count, .interface = interface_at, \
	.queue_read = queue_read, .queue_fd = queue_fd, .lane_open = lane_open,              \
	.lane_close = lane_close, .lane_start = lane_start, .child_seen = child_seen,        \
	.group_probe_seen = group_probe_seen, .repeated = kernel_watch_repeat,               \
	.sent = kernel_watch_sent, .came_last = came_last

const struct kernel_ops kernel_xdp = {
	COMMON_OPS,
	.plane = "xdp",
	.title = "XDP",
	.open = open_xdp,
	.sums = sums_all,
	.one_lane = true,
	.report_answered = kernel_watch_child,
	.parent_open = parent_open,
	.parent_answered = parent_answered,
	.count_sums = count_sums,
	.allow_sums = allow_sums,
};

const struct kernel_ops kernel_tc = {
	COMMON_OPS, .plane = "tc", .title = "tc", .open = open_tc, .sums = sums_slots,
};
