/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/* What the program keeps, for plane.bpf.c alone: the daemon has most of it mapped (shared.h). */
#ifndef TRIB_PLANE_XDP_MAPS_H
#define TRIB_PLANE_XDP_MAPS_H

#include "plane/xdp/bpf/shared.h"

#define COPYING 64 /* a power of two */

/* Set by the daemon before the program is loaded. */
const volatile struct xdp_settings settings = { 0 };

/* Never written, but only we know that. */
__u64 hidden_zero;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XDP_LANES);
	__type(key, __u32);
	__type(value, struct xdp_lane);
} lanes SEC(".maps");

struct pool {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct xdp_cell)); /* and the payload: set before loading */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, XDP_LANES);
	__type(key, __u32);
	__array(values, struct pool);
} pools SEC(".maps");

struct fan {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_devmap_val));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, XDP_LANES);
	__type(key, __u32);
	__array(values, struct fan);
} fans SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xdp_counts);
} counts SEC(".maps");

/* Lanes by what their parents call them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XDP_LANES);
	__type(key, struct xdp_uplink);
	__type(value, __u32);
} uplinks SEC(".maps");

/* What the daemon is to look at, by lane: each is read by a thread of its own. */
struct queue {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16); /* that of the daemon's may be another one */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, WIRE_LANES_MAX);
	__type(key, __u32);
	__array(values, struct queue);
} queues SEC(".maps");

/* Of a result that leaves several times through one interface: which copy is next. */
struct copies {
	__u32 pos, slot, next;
	__u32 ifindex, cookie; /* half of the job's: slots are used again */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COPYING);
	__type(key, __u32);
	__type(value, struct copies);
} copying SEC(".maps"); /* by interface: what the kernel sends in bulk through one may mix with
                           another's */

#endif
