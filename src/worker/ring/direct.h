/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct: collectives of short vectors, and of segments of long ones, without an aggregator. Around
 * the ring, a vector needs many steps. Here every rank sends to every other rank, and one step is
 * enough. Pure: it makes and takes messages, and never sends one.
 *
 * A rank sends its part of a vector as it is, floats as floats, to the rank that wants the sum.
 * That rank has the parts of all ranks. It finds the scale of each block, and adds integers, as the
 * ranks and an aggregator do together (dense/round.h). So a sum has the same bits on all ways.
 *
 *   reduce-scatter   each rank sends vector r to rank r
 *   allgather        each rank sends its vector to all
 *   allreduce        the same, and each rank sums all vectors; a longer vector is cut into parts,
 *                    for a reduce-scatter (DIRECT_SHARE) and an allgather of the sums
 *                    (DIRECT_BACK); a long vector is a row of such calls (direct_row.h)
 *   reduce           each rank sends its vector to the root
 *   broadcast        the root sends its vector to all
 *
 * In each call, every rank sends one message to every other rank, if need be an empty one. So a
 * message also says that its sender has made the call, and a missing one names the rank that has
 * not. Two kinds of calls have fewer messages, and a rank hears from few others: among many ranks,
 * an allgather takes steps (ring/gather_steps.h); and an allreduce at one rank (direct_row.h) is a
 * reduce and a broadcast without empty messages. If such a call is late, every rank sends notices
 * to all: it has made the call.
 *
 * Messages between two ranks arrive in order, once and intact: path/channel.
 */
#ifndef TRIB_WORKER_RING_DIRECT_H
#define TRIB_WORKER_RING_DIRECT_H

#include "base/status.h"
#include "worker/dense/round.h"
#include "worker/ring/message_queue.h"

#define DIRECT_VERSION 4u
#define DIRECT_MOST 1048576u  /* bytes of the longest vector in a message */
#define DIRECT_AHEAD 1048576u /* bytes of messages that are written before the first call ends */

enum direct_what {
	DIRECT_ALLREDUCE = 16, /* other numbers than enum ring_phase */
	DIRECT_SCATTER,
	DIRECT_GATHER,
	DIRECT_SHARE,
	DIRECT_BACK,
	DIRECT_REDUCE,
	DIRECT_BROADCAST,
};

/* The head of a message, little-endian. The sender's vector follows. */
struct direct_head {
	uint8_t version, what;
	uint8_t op, type;      /* trib_op and trib_type; of bytes: 0 */
	uint32_t number;       /* of the call: ranks count the calls that they make */
	uint32_t around;       /* calls around the ring that the sender has made before */
	uint16_t payload;      /* bytes of a full fragment */
	uint8_t root;          /* WIRE_ALL: none */
	uint8_t notice;        /* 1: nothing follows, the sender has made the call */
	uint64_t count;        /* elements, as called */
	struct wire_call call; /* as called; its rank is 0 */
};

_Static_assert(sizeof(struct direct_head) == 48, "no holes");

struct direct_call {
	struct direct_call *next;
	void *owner; /* the request, opaque to this room */
	enum direct_what what;
	size_t count;
	uint32_t number, around;
	/* DIRECT_BACK: so many calls behind its DIRECT_SHARE; a broadcast of `few`: its reduce */
	unsigned behind;
	size_t bytes;         /* of all messages that this rank sends, without their heads */
	bool steps;           /* an allgather in steps */
	bool few;             /* a reduce or a broadcast that sends no empty messages */
	unsigned sent, taken; /* messages that were written; steps whose vectors have come */
	uint64_t missing;     /* bits of ranks whose message has not come */
	uint64_t unheard;     /* bits of ranks that have sent no message, nor a notice */
	uint64_t since;       /* for the caller: when it became the first call; 0: it has not */
	bool told;            /* for the caller: notices were sent */
	struct message *came[WIRE_CHILDREN_MAX];
	struct message *for_all; /* if every other rank gets the same: this */
	unsigned n;
	struct round_spec vectors[]; /* 1, or one for each rank */
};

struct direct {
	unsigned rank, size;
	uint32_t payload;
	uint32_t posted;              /* calls made here, ever */
	uint32_t around;              /* calls around the ring made here, ever */
	struct wire_call last_around; /* the last one of them */
	struct direct_call *first, **end;
	struct message_queue early[WIRE_CHILDREN_MAX]; /* of calls that this rank has not made */
	struct message_pool *pool; /* the caller owns it; NULL: messages come from the heap */
};

void direct_init(struct direct *direct, unsigned rank, unsigned size, uint32_t payload);
/* Frees all calls and messages. */
void direct_clear(struct direct *direct);

/* NULL: no memory. The vectors have per_word 0. A DIRECT_BACK is the next call after its share; the
 * caller sets `behind` otherwise. */
struct direct_call *direct_call_new(enum direct_what what, const struct round_spec *vectors,
                                    unsigned n, void *owner);
void direct_call_free(struct direct_call *call);
/* Cuts the vector of an allreduce: what `vectors` of DIRECT_SHARE and DIRECT_BACK are. */
void direct_cut(const struct round_spec *whole, unsigned size, uint32_t payload,
                struct round_spec share[], struct round_spec back[]);

/* Takes the call over. TRIB_ERR_MISMATCH: another rank has called something else. */
trib_status direct_post(struct direct *direct, struct direct_call *call);
/* This call goes around the ring. The same error. */
trib_status direct_pass(struct direct *direct, const struct wire_call *call);

/* The next message that may leave, and the rank it is for. NULL: none, or *status says that there
 * is no memory. The sums of DIRECT_BACK have to be known first. Messages are copies, so a rank
 * writes only DIRECT_AHEAD bytes ahead: a late rank costs no more, however much is called. It may
 * be a handle (message_data), and may live longer than the call. */
struct message *direct_next(struct direct *direct, unsigned *to, trib_status *status);
/* Says that this rank has made the first call; NULL: no memory. */
struct message *direct_notice(const struct direct *direct);
/* Takes a message of a rank over. */
trib_status direct_take(struct direct *direct, unsigned from, struct message *message);
/* Ends the first call if all messages have come: results are in the users' buffers. NULL: none has
 * ended. The caller frees it. */
struct direct_call *direct_finish(struct direct *direct, trib_status *status);
/* Does a rank hear from some others only? Then the call has notices if it is late. */
bool direct_hears_few(const struct direct_call *call);
/* Bits of the ranks whose messages the first call waits for. */
uint64_t direct_missing(const struct direct *direct);
/* Bits of the ranks that have not made the first call, as far as this rank knows; if all have,
 * those that it waits for. */
uint64_t direct_late(const struct direct *direct);

#endif
