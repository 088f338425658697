/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/* The maps of the program, for plane.bpf.c alone. The daemon maps most of them (shared.h). */
#ifndef TRIB_PLANE_XDP_MAPS_H
#define TRIB_PLANE_XDP_MAPS_H

#include "plane/xdp/bpf/shared.h"

#define COPYING 64 /* entries; a power of two */

/* The daemon sets it before it loads the program. */
const volatile struct xdp_settings settings = { 0 };

/* Always 0, which compiler and verifier do not know. */
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
	__uint(value_size, sizeof(struct xdp_cell)); /* plus the payload: set before loading */
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

/* The programs of engines, by number: struct xdp_lane names the engine. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, ENGINES_MAX);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} engines SEC(".maps");

/* Lanes by their parent's address and id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XDP_LANES);
	__type(key, struct xdp_uplink);
	__type(value, __u32);
} uplinks SEC(".maps");

/* The check queues, one per lane: each has its own reader thread. */
struct queue {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16); /* the daemon chooses another size */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, WIRE_LANES_MAX);
	__type(key, __u32);
	__array(values, struct queue);
} queues SEC(".maps");

/* Which copy is next, of a result that leaves several times through one interface. */
struct copies {
	__u32 pos, slot, next;
	__u32 ifindex, cookie; /* low half of the communicator's cookie: slots are reused */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COPYING);
	__type(key, __u32);
	__type(value, struct copies);
} copying SEC(".maps"); /* by interface: in bulk sending, copies of two of them may mix */

#endif
