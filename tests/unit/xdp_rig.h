/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of the XDP program share: the program in the kernel with one
 * lane, frames for it, and a twin of the lane here, which takes the same
 * packets by wire/parse.h and engine/dense.h. Kernel and twin must agree.
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
#define RIG_PARENT 33u /* its addresses are those of this child's number */
#define RIG_PARENT_COOKIE 0xfeedfacecafebeefull
#define RIG_PARENT_COMM 0x2222u
#define RIG_PARENT_EPOCH 0x3333u
#define RIG_PARENT_CHILD 9u /* what we are there */
#define RIG_QUEUE 1u        /* bytes; it becomes a page */
#define RIG_LO 1u           /* loopback, where frames come from unless told otherwise */

#define countof(array) (sizeof(array) / sizeof((array)[0]))

/* Ends the program, from whatever thread. Fuzz targets have their own. */
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

/* What is around a packet. */
struct shape {
	uint16_t tags[3]; /* EtherTypes of VLAN tags; 0: no more */
	bool six;
};

struct rig {
	struct xdp_plane *plane;
	struct xdp_slot *slot;
	struct xdp_lane *lane; /* the kernel's */
	struct dense_lane *dense;
	struct dense_pool pool;
	uint32_t children, cells, payload;
	uint32_t room; /* in a cell */
	struct dense_lane twin;
	struct dense_pool twin_pool;
	uint64_t twin_last[WIRE_CHILDREN_MAX];
	bool has_parent;
	struct udp_address parent; /* where it sends from */
	struct xdp_parent twin_parent;
	struct xdp_counts counts;                    /* as the twin counts */
	const struct shape *ways[WIRE_CHILDREN_MAX]; /* of those who may use the queue */
	bool aside; /* the last packet is for the daemon, by the queue if its sender may */
};

/* The largest payload that the program is loaded for. Exit 77 where we have no right to load it. */
void rig_load(struct rig *rig, uint32_t payload);
/* An empty lane; the one that was there before goes. */
void rig_lane(struct rig *rig, uint32_t children, uint32_t cells, uint32_t payload);
/* Gives the lane a parent, which is reached by such frames; it may be sent any number of sums. */
void rig_parent(struct rig *rig, const struct shape *shape);
/* The same lane, as if nothing had come; a new one takes the kernel a while. */
void rig_clear(struct rig *rig);
void rig_unload(struct rig *rig);

/* A reproducible 64-bit number. */
uint64_t rig_random(uint64_t *state);

struct packet {
	struct wire_header header;
	uint64_t words[WIRE_PAYLOAD_MAX / 8];
};

/* What a DATA packet is like; see DATA. */
struct rig_data {
	uint64_t position;
	uint8_t child, op, from, to, flags;
	uint16_t scale;
	uint32_t ack, bytes;
	uint64_t seed; /* of the words */
};

/* Warnings of GCC and clang for a default that is overridden. */
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

/* What is not sent of a fragment: to and from children, and the parent. */
struct wire_unsent rig_unsent(uint64_t position);
struct wire_unsent rig_parent_unsent(uint64_t position);
/* As who sends such a packet would seal it, if its position is near the twin's window. */
void rig_seal(const struct rig *rig, struct packet *packet, uint32_t bytes);

/* Made and sealed; bytes of the datagram. */
uint32_t packet_data(struct packet *packet, const struct rig_data *data);
uint32_t packet_report(struct packet *packet, uint8_t child);
/* As the parent sends them: the result of what `data` says, to whichever child; and a status. */
uint32_t packet_result(struct packet *packet, const struct rig_data *data);
uint32_t packet_status(struct packet *packet, uint8_t child);

struct frame {
	uint32_t bytes;
	uint32_t l2, l3, at; /* bytes of Ethernet with tags, of IP; where the packet begins */
	_Alignas(8) uint8_t data[XDP_HEAD_MAX + 64 + sizeof(struct packet)];
};

extern const struct shape shape_plain, shape_six;
extern const struct shape shapes[]; /* all that the program takes: 0, 1, 2 tags, IPv4 and IPv6 */
#define SHAPES 10

/* From a child to us. */
void frame_make(struct frame *frame, const struct shape *shape, unsigned child, const void *packet,
                uint32_t bytes);
void frame_data(struct frame *frame, const struct shape *shape, const struct rig_data *data);
/* Sums of the IPv4 header made right again. */
void frame_fix(struct frame *frame);
/* The address that a child's frames come from. */
void child_address(unsigned child, bool six, struct udp_address *out);
/* A way to the child as the program wants it, made here and not by xdp_slot_route. */
void route_make(struct xdp_route *route, const struct shape *shape, unsigned child,
                uint32_t ifindex);
/* Every child has a route, over loopback; one frame a child. */
void rig_routes(struct rig *rig, const struct shape *shape);

/* The child has such a way, over loopback, and what comes by it for the daemon is queued. */
void rig_queue(struct rig *rig, unsigned child, const struct shape *shape);
/*
 * The queue has this one packet, and nothing behind it: as it is in the frame, and
 * from the child. False: it has none.
 */
bool queue_check(struct rig *rig, const struct frame *frame, unsigned child);

/* A frame through the program: XDP_PASS and so on; what came out is in `out`. */
uint32_t rig_run(struct rig *rig, const struct frame *in, struct frame *out, uint32_t ifindex);

/* What became of a packet. Below: enum dense_verdict. */
#define TAKEN_CORRUPTED ((int)DENSE_VERDICTS_END)
#define TAKEN_NOT (-1)  /* not the program's: passed on */
#define TAKEN_LEFT (-2) /* passed on, but its sum has changed: the daemon is to send that up */

/* What the twin makes of the frame, with its state and counters. */
int twin_take(struct rig *rig, const struct frame *frame);
/*
 * A frame to both: same verdict, same state, same counts; what passes is
 * unchanged, and what does not and is for the daemon is in its queue. The
 * verdict; `out` may be NULL.
 */
int rig_agree(struct rig *rig, const struct frame *frame, struct frame *out);
/* The same for a DATA packet in a plain frame. */
int rig_give(struct rig *rig, struct rig_data data);
/* The same for a RESULT of the parent's. */
int rig_lower(struct rig *rig, struct rig_data data);
/* Is the kernel's state the twin's? For tests that change both. */
void rig_compare(struct rig *rig);
/* The twin becomes what the kernel has. */
void rig_copy(struct rig *rig);

/* In `out` is the result of the twin's cell, as it is to go to the child by such a way. */
void result_check(const struct rig *rig, const struct frame *out, const struct shape *shape,
                  unsigned child, uint64_t position);
/* In `out` is the sum of the twin's cell, as it is to go to the parent. */
void raised_check(const struct rig *rig, const struct frame *out, const struct shape *shape,
                  uint64_t position);

#endif
