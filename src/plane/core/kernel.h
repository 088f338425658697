/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel part of a plane: a program that sums fragments below the sockets,
 * in the same cells as the daemon. Rooms below the planes know it through this
 * table only. A plane without a kernel part has none: aggregator->kernel is
 * NULL, and so is every lane's.
 *
 * Packets that the kernel part does not take arrive by the carrier, so the
 * daemon can continue any lane at any moment.
 */
#ifndef TRIB_PLANE_CORE_KERNEL_H
#define TRIB_PLANE_CORE_KERNEL_H

#include "plane/core/agg_comm.h"
#include "plane/core/counters.h"

struct agg_lane;
struct aggregator_options;

/* Each implementation begins its own struct with this one. */
struct kernel {
	const struct kernel_ops *ops;
};

/* A lane's state in the kernel part; implementations begin their own struct with this one. */
struct kernel_lane {
	const struct kernel_ops *ops;
};

struct kernel_interface {
	const char *name;
	const char *mode; /* "driver", "generic", "tc", "left" or "lost" */
	const char *why;  /* why the mode is not "driver"; "": it is */
};

typedef void kernel_take(void *context, const void *packet, uint32_t bytes,
                         const struct udp_address *from);

struct kernel_ops {
	const char *plane; /* its name in options and counters */
	const char *title; /* its name in messages */
	trib_status (*open)(const struct aggregator_options *options, uint16_t port,
	                    struct kernel **out);
	void (*close)(struct kernel *kernel);
	/* Does it sum lanes of this engine? The functions about parents and reports are for
	 * streams. */
	bool (*sums)(const struct engine *engine);
	bool one_lane; /* small vectors use one lane, as the kernel takes all their packets */
	/* Where it is attached, for people. */
	const char *(*describe)(const struct kernel *kernel, char *out, size_t size);
	/* The largest payload that it sums. */
	uint32_t (*payload_max)(const struct kernel *kernel);
	/* Memory of one cell with its payload. */
	uint64_t (*cell_bytes)(const struct kernel *kernel);
	/*
	 * Thread 0 calls it once a second. It leaves interfaces where results do not arrive.
	 * False: the program is attached nowhere any more.
	 */
	bool (*check)(struct kernel *kernel);
	/* Adds what the program counted. */
	void (*count)(struct kernel *kernel, struct totals *totals);
	/* False: there is no interface `i`. */
	bool (*interface)(const struct kernel *kernel, unsigned i, struct kernel_interface *out);

	/* The check queue of a thread: packets that the program leaves to the daemon. */
	unsigned (*queue_read)(struct kernel *kernel, unsigned thread, unsigned most,
	                       kernel_take *take, void *context);
	/* A descriptor to poll; -1: there is no queue. */
	int (*queue_fd)(const struct kernel *kernel, unsigned thread);

	/*
	 * Sets lane->kernel, lane->dense and lane->pool. False: the lane is summed in user
	 * space; trib_last_error() says why.
	 */
	bool (*lane_open)(struct kernel *kernel, struct agg_lane *lane);
	void (*lane_close)(struct agg_lane *lane);
	/* From now on the program takes the lane's packets. */
	void (*lane_start)(struct agg_lane *lane);
	/* Before lane_start: the lane has a parent. */
	void (*parent_open)(struct agg_lane *lane);
	/* A child's report was taken: the program may send results to that address. */
	void (*child_seen)(struct agg_lane *lane, unsigned child, const struct udp_address *from);
	/* After child_seen: lane->hears is up to date. */
	void (*group_probe_seen)(struct agg_lane *lane);
	/* The report was answered; `repeat` has the results that the child asked for. */
	void (*report_answered)(struct agg_lane *lane, unsigned child,
	                        const struct wire_report *report, const uint64_t *repeat);
	/* This packet of a child asks again for a result of an engine, in this cell. */
	void (*repeated)(struct agg_lane *lane, unsigned child, uint32_t cell, uint64_t now);
	/* User space has sent a result of an engine. */
	void (*sent)(struct agg_lane *lane);
	/* The parent lacks `astray` of the sums that the program sent. False: it sends none. */
	bool (*parent_answered)(struct agg_lane *lane, uint32_t astray);
	/* Adds the sums that the program has sent to lane->flight and lane->up. */
	void (*count_sums)(struct agg_lane *lane);
	/* Tells the program how many sums it may send from now on. */
	void (*allow_sums)(struct agg_lane *lane);
	/* Fragments of which the child was the last to arrive. */
	uint64_t (*came_last)(const struct agg_lane *lane, unsigned child);
};

/* The kernel part sums this lane from now on. */
void comm_enter_kernel(struct comm *comm, unsigned lane);
/* User space sums this lane from now on, and the log says why. `hint` is for the log only. */
void comm_leave_kernel(struct comm *comm, unsigned lane, const char *hint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* As comm_leave_kernel, without a warning. */
void comm_pause_kernel(struct comm *comm, unsigned lane, const char *why);
/* How many lanes the kernel part sums; `why` says why not all. */
unsigned comm_in_kernel(const struct comm *comm, char *why, size_t size);

#endif
