/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by tests of the XDP program: the program in the kernel with one lane, frames for it, and a
 * twin of the lane in user space. The twin processes the same packets with wire/parse.h and
 * engine/dense.h. Kernel and twin must agree.
 */
#ifndef TRIB_TESTS_XDP_RIG_H
#define TRIB_TESTS_XDP_RIG_H

#include "plane/xdp/xdp.h"
#include "short.h"

#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>

#define RIG_PORT 7700u
#define RIG_LANES 4u
#define RIG_COMM 5u
#define RIG_LANE 2u
#define RIG_COOKIE 0x1122334455667788ull
#define RIG_JOB 0x0a0bu
#define RIG_EPOCH 0x0c0du
#define RIG_PARENT 33u /* its addresses are those of this child number */
#define RIG_PARENT_COOKIE 0xfeedfacecafebeefull
#define RIG_PARENT_COMM 0x2222u
#define RIG_PARENT_EPOCH 0x3333u
#define RIG_PARENT_CHILD 9u /* our child index at the parent */
#define RIG_QUEUE 1u        /* bytes; rounded up to a page */
#define RIG_LO 1u           /* loopback, the default interface of frames */

#define countof(array) (sizeof(array) / sizeof((array)[0]))

/* If the condition fails, ends the program from any thread. Fuzz targets have their own. */
#ifndef demand
#define demand(condition)                                                                 \
	do {                                                                              \
		if (!(condition)) {                                                       \
			fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, \
			        __LINE__, #condition, trib_last_error());                 \
			abort();                                                          \
		}                                                                         \
	} while (0)
#endif

/* The headers around a packet. */
struct shape {
	uint16_t tags[3]; /* EtherTypes of VLAN tags; 0: end */
	bool six;
};

struct rig {
	struct xdp_plane *plane;
	bool tc; /* the program is at the hook tc */
	struct xdp_handle *handle;
	struct xdp_lane *lane; /* in the kernel */
	struct dense_lane *dense;
	struct dense_pool pool;
	uint32_t children, cells, payload;
	uint32_t room; /* bytes in a cell */
	struct dense_lane twin;
	struct dense_pool twin_pool;
	uint64_t twin_last[WIRE_CHILDREN_MAX];
	bool has_parent;
	struct udp_address parent; /* source address of the parent */
	struct xdp_parent twin_parent;
	struct xdp_counts counts;                    /* the twin's counters */
	const struct shape *ways[WIRE_CHILDREN_MAX]; /* of children that may use the queue */
	bool aside; /* the last packet is for the daemon, through the queue if allowed */
	/* A lane of another engine than dense (rig_engine_lane): in the kernel, and its twin. */
	const struct engine *engine;
	struct engine_pool engine_pool, engine_twin;
	struct engine_lane engine_state; /* of the twin */
};

/* Loads the program for payloads up to this size. Without permission to load, exits with 77. */
void rig_load(struct rig *rig, uint32_t payload);
/* The same for the hook tc. */
void rig_load_tc(struct rig *rig, uint32_t payload);
/* Creates an empty lane, in place of the old one. */
void rig_lane(struct rig *rig, uint32_t children, uint32_t cells, uint32_t payload);
/*
 * Creates an empty lane of this engine, in place of the old one. Every child has a route of this
 * shape over loopback, so the engine's program takes the packets.
 */
void rig_engine_lane(struct rig *rig, const struct engine *engine, uint32_t children,
                     uint32_t cells, uint32_t payload, const struct shape *shape);
/* Lane and cells are the twin's, and so are the counters. */
void rig_engine_compare(struct rig *rig);
/* Gives the lane a parent, reached by frames of this shape. It accepts any number of sums. */
void rig_parent(struct rig *rig, const struct shape *shape);
/* Resets the same lane, because creating a new one takes the kernel a while. */
void rig_clear(struct rig *rig);
void rig_unload(struct rig *rig);

/* A reproducible 64-bit number. */
uint64_t rig_random(uint64_t *state);

struct packet {
	struct wire_header header;
	uint64_t words[WIRE_PAYLOAD_MAX / 8];
};

/* The fields of a DATA packet; see DATA. */
struct rig_data {
	uint64_t position;
	uint8_t child, op, from, to, flags;
	uint16_t scale;
	uint32_t ack, bytes;
	uint64_t seed; /* seed of the words */
};

/* GCC and clang warn of an overridden default. */
#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Winitializer-overrides"
#endif
#define DATA(at, who, ...)                                                          \
	(struct rig_data)                                                           \
	{                                                                           \
		.position = (at), .child = (who), .from = WIRE_ALL, .to = WIRE_ALL, \
		.op = WIRE_ADD64, .bytes = 64, .seed = (at)*64 + (who), __VA_ARGS__ \
	}

/* The fields of a fragment that are not sent, for children and for the parent. */
struct wire_unsent rig_unsent(uint64_t position);
struct wire_unsent rig_parent_unsent(uint64_t position);
/* Seals a packet as its sender would, if its position is near the twin's window. */
void rig_seal(const struct rig *rig, struct packet *packet, uint32_t bytes);

/* These make and seal packets. They return the bytes of the datagram. */
uint32_t packet_data(struct packet *packet, const struct rig_data *data);
uint32_t packet_report(struct packet *packet, uint8_t child);
/* Packets of the parent: the result that `data` describes, to any child; and a status. */
uint32_t packet_result(struct packet *packet, const struct rig_data *data);
uint32_t packet_status(struct packet *packet, uint8_t child);

struct frame {
	uint32_t bytes;
	uint32_t l2, l3, at; /* bytes of Ethernet with tags; bytes of IP; start of the packet */
	_Alignas(8) uint8_t data[XDP_HEAD_MAX + 64 + sizeof(struct packet)];
};

extern const struct shape shape_plain, shape_six;
extern const struct shape shapes[]; /* all accepted shapes: 0, 1 or 2 tags, IPv4 and IPv6 */
#define SHAPES 10

/* A frame from a child to us. */
void frame_make(struct frame *frame, const struct shape *shape, unsigned child, const void *packet,
                uint32_t bytes);
void frame_data(struct frame *frame, const struct shape *shape, const struct rig_data *data);
/* Corrects the checksums of the IPv4 header. */
void frame_fix(struct frame *frame);
/* The source address of a child's frames. */
void child_address(unsigned child, bool six, struct udp_address *out);
/* The front of a frame to the child with so many bytes. Returns its length, up to XDP_HEAD_MAX. */
uint32_t head_make(uint8_t *head, const struct shape *shape, unsigned child, uint32_t bytes);
/* A route to the child as the program needs it, made independently of xdp_handle_route. */
void route_make(struct xdp_route *route, const struct shape *shape, unsigned child,
                uint32_t ifindex);
/* Gives every child a route over loopback, with one frame for each child. */
void rig_routes(struct rig *rig, const struct shape *shape);

/* Gives the child a route over loopback. Packets on it for the daemon are queued. */
void rig_queue(struct rig *rig, unsigned child, const struct shape *shape);
/* The queue has exactly one packet: the frame's, from this child. False: it has none. */
bool queue_check(struct rig *rig, const struct frame *frame, unsigned child);

/* Runs the program on a frame. Returns XDP_PASS and so on; the resulting frame is in `out`. */
uint32_t rig_run(struct rig *rig, const struct frame *in, struct frame *out, uint32_t ifindex);

/* The fate of a packet. Lower values: enum dense_verdict. */
#define TAKEN_CORRUPTED ((int)DENSE_VERDICTS_END)
#define TAKEN_NOT (-1)  /* not for the program: passed on */
#define TAKEN_LEFT (-2) /* passed on, but its sum has changed: the daemon has to send it up */

/* The twin processes the frame, with its state and counters. */
int twin_take(struct rig *rig, const struct frame *frame);
/*
 * Gives a frame to both: the verdicts, states and counters must be equal. A passed frame is
 * unchanged. If it does not pass and is for the daemon, it is in the queue. Returns the verdict;
 * `out` may be NULL.
 */
int rig_agree(struct rig *rig, const struct frame *frame, struct frame *out);
/* Like rig_agree, for a DATA packet in a plain frame. */
int rig_give(struct rig *rig, struct rig_data data);
/* Like rig_agree, for a RESULT of the parent. */
int rig_lower(struct rig *rig, struct rig_data data);
/* Checks that the kernel's state equals the twin's, for tests that change both. */
void rig_compare(struct rig *rig);
/* Copies the kernel's state to the twin. */
void rig_copy(struct rig *rig);

/* Checks that `out` is the result of the twin's cell, addressed to the child on this route. */
void result_check(const struct rig *rig, const struct frame *out, const struct shape *shape,
                  unsigned child, uint64_t position);
/* Checks that `out` is the sum of the twin's cell, addressed to the parent. */
void raised_check(const struct rig *rig, const struct frame *out, const struct shape *shape,
                  uint64_t position);

#endif
