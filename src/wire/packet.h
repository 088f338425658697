/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire owns the packet formats, their checksum and their parser. It must not touch
 * sockets or jobs. docs/wire.md and docs/wire/ describe the formats byte by byte, and
 * a test holds this file to them. User space and BPF share it: no libc beyond
 * stdint.h.
 *
 * All fields are little-endian. Every datagram is a multiple of 8 bytes, so that
 * packets which the kernel joined in one buffer stay aligned.
 */
#ifndef TRIB_WIRE_PACKET_H
#define TRIB_WIRE_PACKET_H

#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Tributary needs a little-endian machine"
#endif

#define WIRE_MAGIC 0x3254u /* "T2": the name and the version */
#define WIRE_HEADER 24u    /* bytes of the header of DATA and RESULT */
#define WIRE_CONTROL 40u   /* bytes of the header of all other types */
#define WIRE_PAYLOAD_MIN 256u
#define WIRE_PAYLOAD_MAX 8944u /* bytes of DATA and RESULT: fits a 9000-byte MTU */
#define WIRE_PACKET_MAX (WIRE_HEADER + WIRE_PAYLOAD_MAX)
#define WIRE_JOIN_LEAST 504u   /* bytes of the shortest JOIN: its answer is no longer */
#define WIRE_QUERY_BYTES 1432u /* bytes of a QUERY: an ANSWER is no longer */
#define WIRE_ALL 0xffu         /* in `child`: every child; in `from` and `to`: every rank */
#define WIRE_CHILDREN_MAX 64u
#define WIRE_GROUP 1024u /* fragments in a fragment group */
#define WIRE_LANES_MAX 16u
#define WIRE_HOPS_MAX 7u /* aggregators above the addressed one, up to the root */
#define WIRE_LANE_SHIFT 56
#define WIRE_POSITION_MASK ((1ull << WIRE_LANE_SHIFT) - 1)

enum wire_type {
	WIRE_DATA = 1, /* child: a fragment */
	WIRE_RESULT,   /* aggregator: the fragment's sum */
	WIRE_REPORT,   /* child: what it has sent, which results it misses; also its heartbeat */
	WIRE_STATUS,   /* aggregator: which fragments of this child it misses */
	WIRE_JOIN,     /* child: asks to join a communicator */
	WIRE_WELCOME,  /* aggregator: joined, wait, or refused */
	WIRE_ABORT,    /* either: the communicator has failed, and why */
	WIRE_BYE,      /* child: leaves; the aggregator echoes it */
	WIRE_QUERY,    /* anyone with the job's cookie: asks for counters */
	WIRE_ANSWER,   /* aggregator: a line of JSON */
	WIRE_TURN,     /* rank, controller, aggregator: turns at a shared aggregator */
	WIRE_TYPES_END,
};

/*
 * In DATA and RESULT all bits but WIRE_RESENT describe the round. All children must
 * agree on them. They carry what op and length of a fragment do not show.
 */
enum wire_flag {
	WIRE_HEARS_MULTICAST = 1, /* REPORT: the sender receives the multicast group */
	WIRE_ECHO = 1,            /* BYE: this is the aggregator's echo */
	WIRE_AT_REST = 2,         /* REPORT: the sender is idle, it has no DATA for now */
	WIRE_AVERAGE = 1,         /* DATA: the sum will be divided */
	WIRE_RESENT = 2,          /* DATA, RESULT: this is a repeat */
	WIRE_PADDING_SHIFT = 2,   /* three bits: padding after the last element, see round.c */
	WIRE_TYPE_SHIFT = 5,      /* three bits: the element type modulo 8 */
};

/* How two payloads are combined. The unit is the element on the wire. */
enum wire_op {
	WIRE_ADD8,
	WIRE_ADD32,
	WIRE_ADD64,
	WIRE_MIN_I8,
	WIRE_MIN_U8,
	WIRE_MIN_I32,
	WIRE_MIN_U32,
	WIRE_MIN_I64,
	WIRE_MIN_U64,
	WIRE_MAX_I8,
	WIRE_MAX_U8,
	WIRE_MAX_I32,
	WIRE_MAX_U32,
	WIRE_MAX_I64,
	WIRE_MAX_U64,
	WIRE_MAX_U16, /* classes of f64 blocks; other types use WIRE_MAX_U8 */
	WIRE_OR64,    /* special values, and bytes that are only copied */
	WIRE_OPS_END,
};

/*
 * The header of DATA and RESULT, and the start of every other header. DATA and RESULT
 * omit cookie, job, epoch and lane. The checksum covers them (struct wire_unsent), so
 * packets of another communicator fail verification.
 */
struct __attribute__((may_alias)) wire_header {
	_Alignas(8) uint16_t magic;
	uint8_t type;
	uint8_t flags;
	uint32_t check; /* over the datagram with this field 0; see wire/checksum.h */
	uint16_t comm;
	uint8_t child; /* the sender's index, or the addressee's */
	uint8_t op;
	uint32_t pos;   /* low half of the position in the lane's stream */
	uint32_t ack;   /* from a child: low half of the position below which it needs nothing;
	                   from an aggregator: low half of `low` in struct wire_status */
	uint16_t scale; /* class of the block; the highest class wins a cell */
	uint8_t from;   /* the only rank that contributes, or WIRE_ALL */
	uint8_t to;     /* the only rank that gets the result, or WIRE_ALL */
};

/* The header of all other types. */
struct __attribute__((may_alias)) wire_control {
	union {
		struct wire_header head;
		struct {
			uint16_t magic;
			uint8_t type;
			uint8_t flags;
			uint32_t check;
			uint16_t comm;
			uint8_t child;
			uint8_t unused;
			uint16_t job;
			uint16_t epoch;
			uint32_t ack;
			uint32_t token; /* proves the sender's address, path/address_proof.h: a
			                   server gives it, a child or rank repeats it; 0: none */
		};
	};
	uint64_t cookie;
	uint64_t pos; /* lane << 56 | position in the lane's stream; WELCOME: the JOIN's nonce */
};

/* The two words that DATA and RESULT omit; both ends know them, and the checksum covers them. */
struct wire_unsent {
	uint64_t proof; /* wire_proof */
	uint64_t pos;   /* wire_pos */
};

/* How a rank waits for the sums of small vectors: `want` in reports of a slot lane. */
enum wire_wait_way {
	WIRE_WAIT_UNKNOWN,
	WIRE_WAIT_POLL,  /* it polls its socket, and lets other processes run in between */
	WIRE_WAIT_SLEEP, /* it sleeps until the kernel wakes it */
};

/* A collective, as a user calls it. */
enum wire_call_kind {
	WIRE_CALL_NONE,
	WIRE_CALL_ALLREDUCE,
	WIRE_CALL_REDUCE,
	WIRE_CALL_BROADCAST,
	WIRE_CALL_ALLGATHER,
	WIRE_CALL_REDUCE_SCATTER,
	WIRE_CALL_BARRIER,
	WIRE_CALL_SPLIT,
	WIRE_CALLS_END,
};

/* What a rank has called. wire/call.h compares calls and has their words. */
struct wire_call {
	uint64_t count;   /* elements */
	uint32_t number;  /* low half of the call's number: ranks count their calls alike */
	uint16_t rank;    /* the rank that called */
	uint8_t kind;     /* enum wire_call_kind; WIRE_CALL_NONE: no call */
	uint8_t type, op; /* trib_type, trib_op */
	uint8_t root;     /* WIRE_ALL: the collective has none */
	uint8_t per_word; /* sums with short integers: integers in a word; else 0 */
	uint8_t open;     /* 1: the rank waits for it; 0: it has ended there */
	uint32_t before;  /* signature of the call before, and so of all earlier ones; 0: none */
};

struct wire_report {
	uint64_t base;    /* the first position of the report, and of its bitmap */
	uint32_t stamp;   /* the child's clock in microseconds; STATUS echoes it; 0: no answer */
	uint16_t bits;    /* length of the bitmap, at most WIRE_GROUP */
	uint16_t away;    /* if the child is a rank: how many times as fast the ring is that its
	                     large vectors take, in sixteenths; 0: they come here */
	uint32_t young;   /* microseconds: a result sent this recently may still arrive */
	uint32_t want;    /* rate the child could send at, in units of 1024 bit/s; 0: unknown */
	uint64_t waiting; /* if the child is an aggregator: ranks below it that owe the oldest
	                     fragment */
	uint32_t carried; /* if the child is a rank: measured rate of its link, in units of
	                     1024 bit/s; 0: unknown */
	uint16_t waited;  /* if the child is a rank: thousandths of its time spent waiting for
	                     results, plus 1; 0: unknown */
	uint16_t again;   /* low half of the count of results that came only as repeats */
	uint32_t judged;  /* count of sent packets whose fate is known */
	uint32_t lost;    /* count of sent packets known to be lost */
	struct wire_call call; /* what the child waits for, or what STATUS asked for */
	uint64_t serial; /* the child's clock in ns, which never wraps: an older report is a replay
	                  */
	uint64_t missing[WIRE_GROUP / 64]; /* 1: send this result again */
};

struct wire_status {
	uint64_t low;     /* no child needs anything below; the window ends at low + cells */
	uint64_t waiting; /* ranks, as bits, that owe the first fragment this child still needs */
	uint64_t base;    /* copied from the report */
	uint32_t stamp;   /* copied from the report */
	uint32_t bits;    /* length of the bitmaps */
	uint32_t rate;    /* rate the child may send at, in units of 1024 bit/s; 0: no limit */
	uint32_t serial;  /* serial number of the rate; the newest one holds */
	uint32_t asks;    /* plus 1: number of the call that the next REPORT should name; 0: any */
	uint32_t unused;
	uint64_t missing[WIRE_GROUP / 64];  /* 1: this child's fragment has not arrived */
	uint64_t complete[WIRE_GROUP / 64]; /* 1: the fragment is complete, its result is here */
};

#define WIRE_NAME_MAX 64

/* An aggregator on the path to the root of a tree. */
struct wire_hop {
	uint64_t ranks;      /* ranks below this aggregator, as bits */
	uint8_t address[16]; /* IPv6, or IPv4 in the first four bytes; network order */
	uint16_t port;
	uint8_t family; /* 4 or 6 */
	uint8_t rdma;   /* 1: where a rank listens for a ring, it has an RDMA device */
	uint8_t unused[4];
};

/*
 * A JOIN carries the path to the root, so an aggregator needs no configuration. It learns
 * the tree from its first child's JOIN. The JOINs of all other children must agree.
 */
struct wire_join {
	uint64_t key;        /* names the communicator within the job */
	uint64_t pool_bytes; /* requested pool */
	uint64_t nonce;      /* new for each attempt of a process */
	uint64_t covers;     /* to an aggregator: ranks below this child, as bits; 0: only `rank`.
	                        To a controller: ranks that are known to be dead */
	uint64_t ranks;      /* ranks below the addressed aggregator; 0: all */
	uint32_t rank;       /* the lowest rank below this child */
	uint32_t size;
	uint32_t payload; /* the largest payload for this child's path, or the one being probed */
	uint32_t lanes;
	uint32_t timeout_ms;
	uint32_t pid;
	uint32_t generation; /* to an aggregator: the tree's plan; to a controller: the last plan
	                        that failed */
	uint16_t tree;       /* number of the tree in the plan */
	uint8_t hops;        /* entries in up[]; to a controller, 1: where the rank listens for a
	                        ring, 0: it does not */
	uint8_t height;      /* levels below the sender; 0: the sender is a worker */
	uint16_t port;       /* port of the sending aggregator; 0: the sender is a worker */
	uint8_t waits;       /* 1: the sender is an aggregator that waits for children itself */
	uint8_t tries;       /* 1: an MTU probe: no packet of this length has come back yet, so
	                        this JOIN does not join */
	uint8_t tcp;         /* to a controller: 1: the rank uses the tcp plane */
	uint8_t wire;        /* TRIB_WIRE of a rank in bits (auto: 0), plus 1; 0: unknown. Only a
	                        controller reads it */
	uint8_t engine; /* what the aggregator does with DATA, see engine/engines.h; 0: dense */
	uint8_t unused;
	char host[WIRE_NAME_MAX];
	struct wire_hop up[WIRE_HOPS_MAX]; /* the parent first, the root last */
	/* Zero padding up to the path's MTU follows, which probes that MTU. */
};

enum wire_verdict {
	WIRE_JOINED,
	WIRE_WAIT,
	WIRE_REFUSED,
	WIRE_PLAN, /* from a controller: join the trees in `text` */
};

#define WIRE_TEXT_MAX 400
#define WIRE_PLAN_PART 1336u /* bytes of a plan's text that fit a packet of 1500 */
#define WIRE_PLAN_MAX 21376u /* bytes of a whole plan with its final zero: sixteen packets */

struct wire_welcome {
	uint64_t cookie;  /* the communicator's cookie from now on */
	uint64_t present; /* ranks that have joined; WIRE_PLAN: seats that are in the plan */
	uint32_t verdict;
	union {
		uint32_t cells;      /* cells in the pool of a lane */
		uint32_t text_bytes; /* WIRE_PLAN: length of the plan's text over all packets */
	};
	union {
		uint32_t payload;
		uint32_t text_from; /* WIRE_PLAN: offset of this packet's part of the text */
	};
	uint16_t lanes;
	uint8_t engine;  /* as in the JOIN */
	uint8_t layouts; /* enum sparse_layout: bits that a SETUP may have */
	uint16_t comm;
	uint16_t epoch;
	uint16_t port;            /* of lane 0; lane l listens at port + l */
	uint16_t multicast_port;  /* of lane 0; 0: no multicast */
	uint32_t multicast_group; /* IPv4, network order */
	uint32_t dead_after_ms;
	uint32_t rank, size; /* WIRE_PLAN: the receiver's new rank and size */
	uint32_t generation; /* WIRE_PLAN: the number of the plan */
	union {
		uint32_t rate;  /* first rate of each lane, as in STATUS */
		uint32_t since; /* WIRE_PLAN: all plans since this one had the same processes */
	};
	/* WIRE_REFUSED: why. WIRE_PLAN: the trees (plan/tree/tree.h), or
	   WIRE_PLAN_PART bytes of their text, which continue in the padding. */
	char text[WIRE_TEXT_MAX];
};

/* A whole QUERY. Its padding is room for the answer. */
struct wire_query {
	struct wire_control header;
	uint8_t padding[WIRE_QUERY_BYTES - WIRE_CONTROL];
};

struct wire_abort {
	int32_t status; /* a trib_status */
	uint32_t rank;
	char text[WIRE_TEXT_MAX];
};

#define WIRE_TURN_OPS_MAX 96u

enum wire_turn_word {
	WIRE_TURN_STATE,   /* rank to controller: its full state; controller to rank: a question */
	WIRE_TURN_PREPARE, /* controller to rank: hold request `from`; may [from, to) use the
	                      shared aggregator? */
	WIRE_TURN_COMMIT,  /* controller to rank: [from, to) use it */
	WIRE_TURN_ABORT,   /* controller to rank: the change is cancelled */
	WIRE_TURN_FENCE,   /* controller to aggregator: end this communicator */
	WIRE_TURN_FENCED,  /* aggregator to controller: the communicator has ended */
	WIRE_TURN_MOVE,    /* controller to rank: take turns at another aggregator */
	WIRE_TURN_WORDS_END,
};

/* The state of a change at a rank. */
enum wire_turn_phase {
	WIRE_TURN_NONE,
	WIRE_TURN_ASKED,   /* promised: the rank starts no request from `from` on until told */
	WIRE_TURN_SET,     /* committed */
	WIRE_TURN_DROPPED, /* cancelled, or refused by the rank */
	WIRE_TURN_PHASES_END,
};

enum wire_turn_flag {
	WIRE_TURN_DONE = 1,    /* all requests of the turn have started and ended */
	WIRE_TURN_FAILED = 2,  /* the communicator has failed, or is closed */
	WIRE_TURN_JOINING = 4, /* this rank has not joined the shared star yet */
	WIRE_TURN_ASTRAY = 8,  /* this rank could not join the shared star, or has lost it */
};

/* A request of a training step. */
struct wire_turn_op {
	uint32_t start_us; /* time from the start of the step to the start of the request */
	uint32_t plain_us; /* duration in the communicator's own trees */
	uint32_t fast_us;  /* duration at the shared aggregator */
};

struct wire_turn {
	uint64_t key;      /* the communicator's key, as the controller knows it */
	uint64_t peer_key; /* the communicator's key, as aggregators know it */
	uint64_t nonce;    /* the process's nonce */
	uint64_t serial;   /* serial number of a rank's state; the newest holds */
	uint64_t session;  /* the controller's session; a rank repeats the last one it saw */
	uint64_t change;   /* number of the change */
	uint64_t from, to; /* the change concerns requests [from, to) */
	uint64_t next;     /* the first request that the rank has not started */
	uint64_t finished; /* requests below have ended at this rank */
	uint64_t base;     /* the first request of the present step */
	uint32_t generation;
	uint32_t age_us;     /* time since the present step started */
	uint32_t busy_us;    /* time since the present request started; 0: none runs */
	uint32_t compute_us; /* the least duration of a step */
	uint16_t rank;
	uint16_t ops; /* requests in a step; 0: unknown */
	uint8_t word, phase, flags, unused;
	uint32_t star; /* number of the shared star within the plan */
	uint32_t unused_too;
	/* STATE: `ops` times struct wire_turn_op, then zeros. MOVE: a struct wire_hop. */
};

_Static_assert(sizeof(struct wire_header) == WIRE_HEADER, "header");
_Static_assert(sizeof(struct wire_control) == WIRE_CONTROL, "control");
_Static_assert(sizeof(struct wire_call) == 24, "call");
_Static_assert(sizeof(struct wire_report) == 208, "report");
_Static_assert(sizeof(struct wire_status) == 304, "status");
_Static_assert(sizeof(struct wire_hop) == 32, "hop");
_Static_assert(sizeof(struct wire_join) == 368, "join");
_Static_assert(sizeof(struct wire_welcome) == 464, "welcome");
_Static_assert(WIRE_JOIN_LEAST == WIRE_CONTROL + sizeof(struct wire_welcome), "join and answer");
_Static_assert(sizeof(struct wire_abort) == 408, "abort");
_Static_assert(sizeof(struct wire_turn) == 120, "turn");
_Static_assert(sizeof(struct wire_turn_op) == 12, "turn_op");

static inline uint64_t wire_pos(unsigned lane, uint64_t position)
{
	return (uint64_t)lane << WIRE_LANE_SHIFT | position;
}

static inline unsigned wire_lane(const struct wire_control *control)
{
	return (unsigned)(control->pos >> WIRE_LANE_SHIFT);
}

static inline uint64_t wire_position(const struct wire_control *control)
{
	return control->pos & WIRE_POSITION_MASK;
}

/* The unsent word that binds a DATA or RESULT to its communicator. */
static inline uint64_t wire_proof(uint64_t cookie, uint16_t job, uint16_t epoch)
{
	return cookie ^ ((uint64_t)epoch << 16 | job);
}

static inline int wire_is_fragment(const struct wire_header *header)
{
	return header->type == WIRE_DATA || header->type == WIRE_RESULT;
}

/* NULL: the packet is a DATA or RESULT. */
static inline const struct wire_control *wire_control(const struct wire_header *header)
{
	return wire_is_fragment(header) ? (const struct wire_control *)0
	                                : (const struct wire_control *)header;
}

/* The 64-bit position whose low half is `half` and that is nearest to `near`. */
static inline uint64_t wire_widen(uint32_t half, uint64_t near)
{
	return near + (uint64_t)(int64_t)(int32_t)(half - (uint32_t)near);
}

#endif
