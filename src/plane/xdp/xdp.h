/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane/xdp: the aggregator in the kernel. A program on every interface that
 * leads to workers sums DATA before the network stack sees it, and sends the
 * results (bpf/plane.bpf.c). Here is what the daemon does for it: load and
 * attach it, give it lanes with pools, tell it where children are. The pools
 * are mapped, so that reports are answered and results repeated without a
 * system call to read them.
 *
 * It never decides what a sum is, nor who is let in.
 */
#ifndef TRIB_PLANE_XDP_XDP_H
#define TRIB_PLANE_XDP_XDP_H

#include "path/udp.h"
#include "plane/xdp/bpf/shared.h"

#define XDP_INTERFACES_MAX 128u

struct xdp_plane;

struct xdp_options {
	uint16_t port;  /* of lane 0 */
	unsigned lanes; /* how many ports from there on are ours */
	uint32_t payload;
	uint32_t queue; /* bytes of each lane's check queue; 0: there is none */
	bool six;       /* the sockets beside it have IPv6 addresses */
	bool again;     /* xdp_run is to take the same packet again and again */
};

/* Is this build able to? */
bool xdp_is_built(void);
/* Bytes of payload that a cell has room for; a fragment that is longer is for user space. */
uint32_t xdp_room(const struct xdp_plane *plane);

/* Loads the programs, attaches nothing. TRIB_ERR_SYSTEM where the kernel does not let us. */
trib_status xdp_load(const struct xdp_options *options, struct xdp_plane **out);
/* Everything goes: lanes, links, programs. The kernel does the same when the process is killed. */
void xdp_close(struct xdp_plane *plane);

enum xdp_mode { XDP_NATIVE, XDP_GENERIC };

/* An interface that the program is on. */
struct xdp_interface {
	char name[16];
	unsigned ifindex;
	enum xdp_mode mode;
	bool lost;     /* somebody took the program off, or the interface is gone */
	char why[128]; /* it is not in the driver, or lost */
};

/*
 * In driver mode, or in generic mode where the device has no other. Another
 * program on the interface is TRIB_ERR_CONFIG: it is not ours to take away.
 */
trib_status xdp_attach(struct xdp_plane *plane, unsigned ifindex, bool native);
/* NULL beyond the last. */
const struct xdp_interface *xdp_interface(const struct xdp_plane *plane, unsigned i);
/* "p1 (driver mode), p2 (generic mode: why)", for people. */
const char *xdp_describe(const struct xdp_plane *plane, char *out, size_t size);
/* Looks whether the program is still where it was put, and logs where it is not. */
void xdp_look(struct xdp_plane *plane);

/* probe.c: what an interface could do. */
enum xdp_ability { XDP_UNKNOWN, XDP_UNABLE, XDP_PARTLY, XDP_ABLE };
struct xdp_probe {
	enum xdp_ability driver;
	char other[64]; /* the program that is there, or empty */
};
void xdp_probe(unsigned ifindex, struct xdp_probe *out);

/* A lane: its state and its pool are in memory that the kernel shares. */
struct xdp_slot;

struct xdp_lane_options {
	unsigned comm, lane;
	uint64_t cookie;
	uint16_t job, epoch;
	uint32_t cells, payload, children;
};

/* NULL: it has to be summed in user space, trib_last_error() says why. */
struct xdp_slot *xdp_slot_open(struct xdp_plane *plane, const struct xdp_lane_options *options,
                               struct dense_lane **dense, struct dense_pool *pool);
/* From now on the program takes its packets. */
void xdp_slot_start(struct xdp_slot *slot);
/* From now on it passes them on: the daemon goes on with the same cells. */
void xdp_slot_stop(struct xdp_slot *slot);
void xdp_slot_close(struct xdp_slot *slot);
struct xdp_lane *xdp_slot_lane(struct xdp_slot *slot);

/*
 * queue.c: what of a lane's children the program leaves to the daemon, unless the
 * queue is full. It is as hostile as what comes by a socket.
 */
typedef void xdp_take(void *context, const void *packet, uint32_t bytes,
                      const struct udp_address *from);
/* Up to `most` of them, by the one thread that reads this lane's: how many there were. */
unsigned xdp_queue_read(struct xdp_plane *plane, unsigned lane, unsigned most, xdp_take *take,
                        void *context);
/* POLLIN: there are some. -1: there is no such queue. `plane` may be NULL. */
int xdp_queue_fd(const struct xdp_plane *plane, unsigned lane);

/* A report from there was taken: results for the child leave as its frame came. */
void xdp_slot_route(struct xdp_slot *slot, unsigned child, const struct udp_address *from);
/* Who is above, and where, as its WELCOME said; before the lane starts. */
trib_status xdp_slot_parent(struct xdp_slot *slot, const struct udp_address *from, uint64_t cookie,
                            uint16_t comm, uint16_t epoch, uint8_t child);
/* A status of the parent's was taken: sums leave for it as its frame came. True: the way is known.
 */
bool xdp_slot_parent_route(struct xdp_slot *slot, const struct udp_address *parent);
/* Sums do not go up from the kernel any more; results are still taken there. */
void xdp_slot_parent_stop(struct xdp_slot *slot);
/* Children that hear the group, where two and more of them share an interface, get one frame. */
void xdp_slot_group(struct xdp_slot *slot, uint64_t hears, const struct udp_address *group);

/* A result has to leave in more frames than the program can send (generic mode): it passes all. */
bool xdp_slot_is_wide(const struct xdp_slot *slot);

/* Held while a cell is judged and added to, by the kernel as well. */
static inline void xdp_cell_lock(struct dense_cell *cell)
{
	uint32_t free = 0;

	while (!__atomic_compare_exchange_n(&cell->lock, &free, 1, false, __ATOMIC_ACQ_REL,
	                                    __ATOMIC_RELAXED))
		free = 0;
}

static inline void xdp_cell_unlock(struct dense_cell *cell)
{
	__atomic_store_n(&cell->lock, 0, __ATOMIC_RELEASE);
}

void xdp_count(struct xdp_plane *plane, struct xdp_counts *sum);
/* Seconds that the programs ran, on all cores; 0 while the kernel's BPF statistics are off. */
double xdp_run_time(struct xdp_plane *plane);
/* How many lanes have a pool in the kernel. */
unsigned xdp_pools(const struct xdp_plane *plane);
/* Statistics are on until this descriptor is closed; -1 with errno. */
int xdp_stats_open(void);

/* Runs the program on a frame without a network: what it did, what the frame became, how long. */
struct xdp_run {
	const void *in;
	void *out; /* as long as `in` and XDP_HEAD_MAX */
	uint32_t bytes, out_bytes;
	uint32_t ifindex; /* that it came in by; 0: any */
	uint32_t repeat;
	bool again; /* as if the packet were new each time */
	uint32_t action, ns;
};
trib_status xdp_run(struct xdp_plane *plane, struct xdp_run *run);

/* ports.c: the interfaces that lead to workers of an aggregator that listens there. */
struct xdp_port {
	unsigned ifindex, mtu;
	char name[16];
};
trib_status xdp_ports(const struct udp_address *listen, const char *names, struct xdp_port *ports,
                      unsigned *n);

#endif
