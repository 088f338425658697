/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire: what is on the wire, and nothing else. docs/wire.md describes it byte
 * by byte and a test holds this file to it. Shared by user space and BPF: no
 * libc beyond stdint.h, no functions that need it.
 *
 * Everything is little-endian and every datagram is a multiple of 8 bytes, so
 * that packets which the kernel joined in one buffer stay aligned.
 */
#ifndef TRIB_WIRE_PACKET_H
#define TRIB_WIRE_PACKET_H

#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Tributary needs a little-endian machine"
#endif

#define WIRE_MAGIC 0x3254u /* "T2": the name and the version */
#define WIRE_HEADER 24u    /* of DATA and RESULT */
#define WIRE_CONTROL 40u   /* of all others */
#define WIRE_PAYLOAD_MIN 256u
#define WIRE_PAYLOAD_MAX 8944u /* of DATA and RESULT: fits a 9000-byte MTU */
#define WIRE_PACKET_MAX (WIRE_HEADER + WIRE_PAYLOAD_MAX)
#define WIRE_ALL 0xffu /* in `from`, `to`, `child`: everyone */
#define WIRE_CHILDREN_MAX 64u
#define WIRE_GROUP 1024u /* fragments in a group */
#define WIRE_LANES_MAX 16u
#define WIRE_HOPS_MAX 7u /* aggregators above the one that is spoken to */
#define WIRE_LANE_SHIFT 56
#define WIRE_POSITION_MASK ((1ull << WIRE_LANE_SHIFT) - 1)

enum wire_type {
	WIRE_DATA = 1, /* child: a fragment */
	WIRE_RESULT,   /* aggregator: the fragment's sum */
	WIRE_REPORT,   /* child: what it has sent, which results it misses; also the heartbeat */
	WIRE_STATUS,   /* aggregator: which fragments it misses from this child */
	WIRE_JOIN,     /* child: wants in */
	WIRE_WELCOME,  /* aggregator: in, wait, or refused */
	WIRE_ABORT,    /* either: the communicator has failed, and why */
	WIRE_BYE,      /* child: leaves; echoed by the aggregator */
	WIRE_QUERY,    /* anyone with the job's cookie: how are you? */
	WIRE_ANSWER,   /* aggregator: a line of JSON */
	WIRE_TURN,     /* rank, controller, aggregator: who may use an aggregator that jobs share */
	WIRE_TYPES_END,
};

/*
 * In DATA and RESULT all bits but WIRE_RESENT are the shape of the round, on
 * which all children must agree: what op and length of a fragment do not show.
 */
enum wire_flag {
	WIRE_HEARS_MULTICAST = 1, /* REPORT: the sender receives the group's packets */
	WIRE_ECHO = 1,            /* BYE: the answer to one */
	WIRE_AT_REST = 2,         /* REPORT: the sender has no more DATA for now */
	WIRE_AVERAGE = 1,         /* DATA: the sum will be divided */
	WIRE_RESENT = 2,          /* DATA, RESULT: not the first time */
	WIRE_PADDING_SHIFT = 2,   /* three bits: bytes of padding behind the last element */
	WIRE_TYPE_SHIFT = 5,      /* three bits: the element type modulo 8 */
};

/* How two payloads become one. The unit is the element on the wire. */
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
	WIRE_MAX_U16, /* block exponents of f64; others have WIRE_MAX_U8 */
	WIRE_OR64,    /* special values, and bytes that are only copied */
	WIRE_OPS_END,
};

/*
 * What a packet begins with; DATA and RESULT have nothing more. Whose they are,
 * both ends know: it is in the checksum alone (struct wire_unsent).
 */
struct __attribute__((may_alias)) wire_header {
	_Alignas(8) uint16_t magic;
	uint8_t type;
	uint8_t flags;
	uint32_t check; /* over the datagram with this field 0; see wire/check.h */
	uint16_t comm;
	uint8_t child; /* the sender's index, or the addressee's */
	uint8_t op;
	uint32_t pos;   /* low half of the position in the lane's stream */
	uint32_t ack;   /* child: low half of the position below which it needs nothing more;
	                   aggregator: low half of the position below which no child does */
	uint16_t scale; /* block exponent class; the highest wins a cell */
	uint8_t from;   /* the one child that contributes, or WIRE_ALL */
	uint8_t to;     /* the one child that wants the result, or WIRE_ALL */
};

/* What all other packets begin with. */
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
			uint32_t unused_too;
		};
	};
	uint64_t cookie;
	uint64_t pos; /* lane << 56 | position in the lane's stream; WELCOME: of the nonce */
};

/* In a DATA or RESULT, what stands in the last two words of a wire_control is not sent. */
struct wire_unsent {
	uint64_t proof; /* wire_proof */
	uint64_t pos;   /* wire_pos */
};

struct wire_report {
	uint64_t base;  /* the position that the report is about, and the bitmap's first bit */
	uint32_t stamp; /* the child's clock in microseconds, echoed by STATUS; 0: no answer wanted
	                 */
	uint32_t bits;  /* length of the bitmap, at most WIRE_GROUP */
	uint32_t young; /* microseconds: a result that left within these may still be on its way */
	uint32_t want;  /* how fast the child could send, in units of 1024 bit/s; 0: unknown */
	uint64_t waiting; /* of an aggregator: ranks below it that owe its first fragment */
	/* Of a rank; 0: unknown. */
	uint32_t carried; /* by its link, as far as it has seen, in units of 1024 bit/s */
	uint16_t waited;  /* thousandths of its time that it waits for results, plus 1 */
	uint16_t again;   /* of any child: low half of how many results came only when repeated */
	uint32_t judged;  /* packets of which it is known whether they arrived, so far */
	uint32_t lost;    /* of those, how many did not */
	uint64_t missing[WIRE_GROUP / 64]; /* 1: send this result again */
};

struct wire_status {
	uint64_t low;     /* no child needs anything below; cells reach to low + pool */
	uint64_t waiting; /* children that owe the first fragment that this child still needs */
	uint64_t base;    /* as in the report that is answered */
	uint32_t stamp;
	uint32_t bits;
	uint32_t rate;   /* how fast the child may send, in units of 1024 bit/s; 0: no limit */
	uint32_t serial; /* of the rate: the newest one holds */
	uint64_t missing[WIRE_GROUP / 64];  /* 1: this fragment of the child is not here */
	uint64_t complete[WIRE_GROUP / 64]; /* 1: everyone's are */
};

#define WIRE_NAME_MAX 64

/* An aggregator on the way up a tree. */
struct wire_hop {
	uint64_t ranks;      /* that come together there, as bits */
	uint8_t address[16]; /* IPv6, or IPv4 in the first four bytes; network order */
	uint16_t port;
	uint8_t family; /* 4 or 6 */
	uint8_t unused[5];
};

/*
 * The way up the tree is in the JOIN, so an aggregator needs to know of no
 * tree before: the first child's JOIN tells it, those of all others must agree.
 */
struct wire_join {
	uint64_t key;        /* names the communicator within the job */
	uint64_t pool_bytes; /* asked for */
	uint64_t nonce;      /* another one each time a process asks anew */
	uint64_t covers;     /* ranks that come by this child, as bits; 0: only `rank` */
	uint64_t ranks;      /* that come together here; 0: all of them */
	uint32_t rank;       /* the lowest one of those that come by this child */
	uint32_t size;
	uint32_t payload; /* the largest that fits this child's path, or that is tried */
	uint32_t lanes;
	uint32_t timeout_ms;
	uint32_t pid;
	uint32_t generation; /* of the plan that the tree is from; to a controller: the last that
	                        failed */
	uint16_t tree;       /* its number in the plan */
	uint8_t hops;        /* in up[] */
	uint8_t height;      /* 0: a worker asks; else an aggregator, with so many levels below */
	uint16_t port;       /* where an aggregator that asks listens; 0: a worker */
	uint8_t waits;       /* 1: an aggregator that waits itself, and tells who has come */
	uint8_t tries;       /* 1: nothing so long has come back yet, so it does not let in */
	uint8_t tcp;         /* to a controller: 1: the rank's trees are to be of connections */
	uint8_t unused[3];
	char host[WIRE_NAME_MAX];
	struct wire_hop up[WIRE_HOPS_MAX]; /* the parent first, the root last */
	/* zero padding up to the path's MTU, which is so tried */
};

enum wire_verdict {
	WIRE_JOINED,
	WIRE_WAIT,
	WIRE_REFUSED,
	WIRE_PLAN, /* from a controller: join the trees in `text` */
};

#define WIRE_TEXT_MAX 400
#define WIRE_PLAN_PART 1336u /* bytes of a plan's text that fit a packet of 1500 */
#define WIRE_PLAN_MAX 21376u /* bytes of all of it, with its end: sixteen packets */

struct wire_welcome {
	uint64_t cookie;  /* of this communicator, from now on */
	uint64_t present; /* ranks that have joined; WIRE_PLAN: seats that are in it */
	uint32_t verdict;
	union {
		uint32_t cells;      /* pool of a lane, in fragments */
		uint32_t text_bytes; /* WIRE_PLAN: of the trees' text, in all packets */
	};
	union {
		uint32_t payload;
		uint32_t text_from; /* WIRE_PLAN: where this packet's part of it begins */
	};
	uint32_t lanes;
	uint16_t comm;
	uint16_t epoch;
	uint16_t port;            /* of lane 0; lane l listens at port + l */
	uint16_t multicast_port;  /* of lane 0; 0: no multicast */
	uint32_t multicast_group; /* IPv4, network order */
	uint32_t dead_after_ms;
	uint32_t rank, size; /* WIRE_PLAN: those of the addressee from now on */
	uint32_t generation; /* WIRE_PLAN: the number of the plan */
	union {
		uint32_t rate;  /* how fast it may send on each lane at first, as in STATUS */
		uint32_t since; /* WIRE_PLAN: since this one all plans had the same processes */
	};
	/* WIRE_REFUSED: why. WIRE_PLAN: the trees (plan/tree.h), or
	   WIRE_PLAN_PART bytes of their text, which go on in the padding. */
	char text[WIRE_TEXT_MAX];
};

struct wire_abort {
	int32_t status; /* a trib_status */
	uint32_t rank;
	char text[WIRE_TEXT_MAX];
};

#define WIRE_TURN_OPS_MAX 96u

enum wire_turn_word {
	WIRE_TURN_STATE, /* rank to controller: all that it has to say; the other way: a question */
	WIRE_TURN_PREPARE, /* controller to rank: may requests `from` to `to` - 1 be summed there?
	                    */
	WIRE_TURN_COMMIT,  /* controller to rank: they are */
	WIRE_TURN_ABORT,   /* controller to rank: all stays as it was */
	WIRE_TURN_FENCE,   /* controller to aggregator: this communicator ends there */
	WIRE_TURN_FENCED,  /* aggregator to controller: it has */
	WIRE_TURN_MOVE,    /* controller to rank: turns are at another aggregator from now on */
	WIRE_TURN_WORDS_END,
};

/* What has become of a change at a rank. */
enum wire_turn_phase {
	WIRE_TURN_NONE,
	WIRE_TURN_ASKED,   /* it agrees, and begins no request from `from` on before it is told */
	WIRE_TURN_SET,     /* it holds */
	WIRE_TURN_DROPPED, /* it does not, or the rank did not agree */
	WIRE_TURN_PHASES_END,
};

enum wire_turn_flag {
	WIRE_TURN_DONE = 1,    /* all that were to be summed there have been begun, and are over */
	WIRE_TURN_FAILED = 2,  /* the communicator has failed, or is closed */
	WIRE_TURN_JOINING = 4, /* this rank is not in the shared star yet */
	WIRE_TURN_ASTRAY = 8,  /* ... and will not be: it could not join, or has lost it */
};

/* A request of a training step. */
struct wire_turn_op {
	uint32_t start_us; /* when it is posted, from the step's beginning on */
	uint32_t plain_us; /* how long it takes in the communicator's own trees */
	uint32_t fast_us;  /* ... at the shared aggregator */
};

struct wire_turn {
	uint64_t key;      /* of the communicator, as the controller knows it */
	uint64_t peer_key; /* ... and as aggregators do */
	uint64_t nonce;    /* of the process */
	uint64_t serial;   /* of what a rank says: the newest holds */
	uint64_t session;  /* of the controller, when it was started; a rank repeats the last one */
	uint64_t change;   /* its number */
	uint64_t from, to; /* requests that it is about */
	uint64_t next;     /* the first request that the rank has not begun */
	uint64_t finished; /* requests below are over at this rank */
	uint64_t base;     /* the first request of the step that it is in */
	uint32_t generation;
	uint32_t age_us;     /* of that step */
	uint32_t busy_us;    /* since the request that is under way began; 0: none is */
	uint32_t compute_us; /* that a step takes at least */
	uint16_t rank;
	uint16_t ops; /* in a step; 0: not known */
	uint8_t word, phase, flags, unused;
	uint32_t star; /* which of the plan's shared stars it is about: each is at another place */
	uint32_t unused_too;
	/* struct wire_turn_op, so many as `ops` says, then zeros; MOVE: a struct wire_hop */
};

_Static_assert(sizeof(struct wire_header) == WIRE_HEADER, "header");
_Static_assert(sizeof(struct wire_control) == WIRE_CONTROL, "control");
_Static_assert(sizeof(struct wire_report) == 176, "report");
_Static_assert(sizeof(struct wire_status) == 296, "status");
_Static_assert(sizeof(struct wire_hop) == 32, "hop");
_Static_assert(sizeof(struct wire_join) == 368, "join");
_Static_assert(sizeof(struct wire_welcome) == 464, "welcome");
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

/* What shows that a DATA or RESULT is of this communicator. */
static inline uint64_t wire_proof(uint64_t cookie, uint16_t job, uint16_t epoch)
{
	return cookie ^ ((uint64_t)epoch << 16 | job);
}

static inline int wire_is_fragment(const struct wire_header *header)
{
	return header->type == WIRE_DATA || header->type == WIRE_RESULT;
}

/* NULL: a DATA or RESULT. */
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
