/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane/xdp: the part of the aggregator that runs in the kernel. A program on
 * every interface that leads to workers sums DATA before the network stack sees
 * it, and sends the results: at XDP (bpf/plane.bpf.c), or only small vectors at
 * the hook tc (bpf/tc.bpf.c). This folder owns these programs:
 * loading and attaching it, its lanes and pools, its routes to children and
 * parent, and struct kernel_ops for the rest of the plane (kernel_xdp.h). The
 * pools are mapped, so the daemon answers reports and repeats results without
 * system calls to read them.
 *
 * It must not decide what a sum is, nor which children join.
 */
#ifndef TRIB_PLANE_XDP_XDP_H
#define TRIB_PLANE_XDP_XDP_H

#include "path/udp.h"
#include "plane/xdp/bpf/shared.h"

#define XDP_INTERFACES_MAX 128u

struct xdp_plane;

struct xdp_options {
	uint16_t port;  /* port of lane 0 */
	unsigned lanes; /* number of ports from there on */
	uint32_t payload;
	uint32_t queue; /* bytes of each thread's check queue; 0: none */
	bool six;       /* the daemon's sockets have IPv6 addresses */
	bool again;     /* load the variant for xdp_run() with `again` */
	bool tc;        /* programs at the hook tc instead of XDP: small vectors only */
};

/* Does this build have the XDP plane? */
bool xdp_is_built(void);
/* Payload bytes of a cell. User space sums longer fragments. */
uint32_t xdp_room(const struct xdp_plane *plane);

/* Loads the programs, attaches nothing. TRIB_ERR_SYSTEM: the kernel refuses them. */
trib_status xdp_load(const struct xdp_options *options, struct xdp_plane **out);
/* Frees lanes, links and programs. If the process is killed, the kernel does the same. */
void xdp_close(struct xdp_plane *plane);

enum xdp_mode { XDP_NATIVE, XDP_GENERIC, XDP_AT_TC };
enum { XDP_ASKING = 1, XDP_ASKED };

/* An interface that the program is attached to. */
struct xdp_interface {
	char name[16];
	unsigned ifindex;
	enum xdp_mode mode;
	bool lost;          /* the program is no longer attached */
	bool left;          /* a lane has asked the program to leave the interface */
	char why[160];      /* why it is in generic mode, or lost */
	_Atomic bool heard; /* results that the program sent there have arrived */
	_Atomic int asked;  /* a lane asks to leave it: XDP_ASKING, then XDP_ASKED; 0: none does */
	char asked_why[160];
};

/*
 * In driver mode, or in generic mode if the driver has none. If another program is
 * attached: TRIB_ERR_CONFIG, as it is not ours to detach.
 */
trib_status xdp_attach(struct xdp_plane *plane, unsigned ifindex, bool native);
/* At the hook tc, behind the programs of others. TRIB_ERR_SYSTEM: the kernel is older than 6.6. */
trib_status tc_attach(struct xdp_plane *plane, unsigned ifindex);
/* Does the kernel have that hook? `plane` was loaded for it. */
bool tc_is_possible(const struct xdp_plane *plane);
/* The i-th interface; NULL: there are fewer. */
const struct xdp_interface *xdp_interface(const struct xdp_plane *plane, unsigned i);
/* "p1 (driver mode), p2 (generic mode: why)", for people. */
const char *xdp_describe(const struct xdp_plane *plane, char *out, size_t size);
/*
 * Leaves interfaces where results do not arrive. Checks that the program is still attached to the
 * others, and logs where it is not. False: it is attached nowhere.
 */
bool xdp_look(struct xdp_plane *plane);

/* probe.c: what an interface can do. */
enum xdp_ability { XDP_UNKNOWN, XDP_UNABLE, XDP_PARTLY, XDP_ABLE };
struct xdp_probe {
	enum xdp_ability driver;
	char other[64]; /* another program that is attached; "": none */
};
void xdp_probe(unsigned ifindex, struct xdp_probe *out);

/* A lane whose state and pool lie in memory that the kernel shares. */
struct xdp_handle;

struct xdp_lane_options {
	unsigned comm, lane;
	uint64_t cookie;
	uint16_t job, epoch;
	uint32_t cells, payload, children; /* cells 0: the lane is not of a stream */
	const struct engine *engine;       /* NULL: the lane is of a stream */
	uint32_t engine_cells;
};

/* NULL: user space has to sum the lane; trib_last_error() says why. */
struct xdp_handle *xdp_handle_open(struct xdp_plane *plane, const struct xdp_lane_options *options,
                                   struct dense_lane **dense, struct dense_pool *pool);
/* From now on the program takes the lane's packets. */
void xdp_handle_start(struct xdp_handle *handle);
/* From now on the program passes the lane's packets on. The daemon goes on with the same cells. */
void xdp_handle_stop(struct xdp_handle *handle);
void xdp_handle_close(struct xdp_handle *handle);
struct xdp_lane *xdp_handle_lane(struct xdp_handle *handle);
/* The cells of the lane's engine, which the program shares; lane NULL: it is of a stream. */
struct engine_pool xdp_handle_engine(const struct xdp_handle *handle);

/*
 * queue.c: packets of children that the program leaves to the daemon. If the queue
 * is full, they arrive by the socket. They are as untrusted as those of a socket.
 */
typedef void xdp_take(void *context, const void *packet, uint32_t bytes,
                      const struct udp_address *from);
/* Reads up to `most` packets; only this lane's thread may. Gives their number. */
unsigned xdp_queue_read(struct xdp_plane *plane, unsigned lane, unsigned most, xdp_take *take,
                        void *context);
/* POLLIN: the queue has packets. -1: there is no queue. `plane` may be NULL. */
int xdp_queue_fd(const struct xdp_plane *plane, unsigned lane);

/* A report of the child was taken: results leave by the reversed route of its frame. */
void xdp_handle_route(struct xdp_handle *handle, unsigned child, const struct udp_address *from);
/* The parent's address and terms, as in its WELCOME; before the lane starts. */
trib_status xdp_handle_parent(struct xdp_handle *handle, const struct udp_address *from,
                              uint64_t cookie, uint16_t comm, uint16_t epoch, uint8_t child);
/*
 * A STATUS of the parent was taken: sums leave by the reversed route of its frame.
 * True: the route is known.
 */
bool xdp_handle_parent_route(struct xdp_handle *handle, const struct udp_address *parent);
/* The program sends no more sums; it still takes results. */
void xdp_handle_parent_stop(struct xdp_handle *handle);
/* Two or more children that hear the multicast group behind one interface get one frame. */
void xdp_handle_group(struct xdp_handle *handle, uint64_t hears, const struct udp_address *group);

/* The child gets what the program sends to its interface, which therefore stays in use. */
void xdp_handle_heard(struct xdp_handle *handle, unsigned child);
/* The next xdp_look() leaves the child's interface, unless results have arrived through it. */
void xdp_handle_leave(struct xdp_handle *handle, unsigned child, const char *why);
/* Do packets of one of these children come by an interface that the program leaves, and why? */
bool xdp_handle_is_cut(struct xdp_handle *handle, uint64_t children, char *why, size_t size);

/*
 * In generic mode, a result that needs several frames cannot leave: the program
 * passes all packets.
 */
bool xdp_handle_is_wide(const struct xdp_handle *handle);

void xdp_count(struct xdp_plane *plane, struct xdp_counts *sum);
/* CPU seconds of the programs on all cores; 0: the kernel's BPF statistics are off. */
double xdp_run_time(struct xdp_plane *plane);
/* Lanes that have a pool in the kernel. */
unsigned xdp_pools(const struct xdp_plane *plane);
/* Turns on the kernel's BPF statistics until the descriptor is closed; -1 with errno. */
int xdp_stats_open(void);

/* Runs the program on a frame without a network. At tc, `ifindex` is 0. */
struct xdp_run {
	const void *in;
	void *out; /* room for `bytes` and XDP_HEAD_MAX */
	uint32_t bytes, out_bytes;
	uint32_t ifindex; /* the interface it arrives by; 0: any */
	uint32_t repeat;
	bool again;          /* treat each repetition as a new packet */
	uint32_t action, ns; /* an action of XDP, also at tc */
};
trib_status xdp_run(struct xdp_plane *plane, struct xdp_run *run);

/* ports.c: the interfaces that lead to workers. */
struct xdp_port {
	unsigned ifindex, mtu;
	char name[16];
};
trib_status xdp_ports(const struct udp_address *listen, const char *names, struct xdp_port *ports,
                      unsigned *n);

#endif
