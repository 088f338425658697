/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rhythm of a training job, from what the asynchronous interface shows: when
 * requests are posted and when the program begins to wait for them (MINA IV-B).
 * Pure; times are in nanoseconds.
 *
 * A step is all that is posted from one wait to the next. It begins when the
 * wait before it has ended. The first steps are not like the others, so a step
 * is known when two of the same requests have followed each other.
 */
#ifndef TRIB_WORKER_RHYTHM_H
#define TRIB_WORKER_RHYTHM_H

#include "wire/packet.h"

#include <stdbool.h>

struct rhythm_op {
	uint64_t bytes;
	uint64_t start; /* from the step's beginning on */
};

struct rhythm_step {
	unsigned n; /* above WIRE_TURN_OPS_MAX: too many to be told */
	uint64_t compute;
	struct rhythm_op ops[WIRE_TURN_OPS_MAX];
};

struct rhythm {
	uint64_t base;     /* the number of the step's first request */
	uint64_t began_at; /* the step; 0: none has */
	uint64_t ended_at; /* the last wait that has ended */
	bool waited;       /* for something of this step */
	bool known;        /* the last step was like the one before */
	struct rhythm_step now, last;
	/* In the own trees, and at the shared aggregator; of late, so that both fade. */
	double ns[2], bytes[2];
	bool sure[2]; /* they are of requests that came behind others */
};

/* Request `number` is posted; `idle`: all that was posted before is over. */
void rhythm_post(struct rhythm *rhythm, uint64_t number, uint64_t bytes, bool idle, uint64_t now);
/* The program begins to wait, and has waited. */
void rhythm_wait(struct rhythm *rhythm, uint64_t now);
void rhythm_waited(struct rhythm *rhythm, uint64_t now);
/*
 * A request took so long, by one way or the other. `behind`: another one that
 * way; only then is it seen how fast the network is for long, for after a pause
 * it takes a little at once.
 */
void rhythm_took(struct rhythm *rhythm, bool shared, bool behind, uint64_t bytes, uint64_t ns);

/* How many bytes that way carries in so long; 0: not known. */
double rhythm_bytes_in(const struct rhythm *rhythm, bool shared, double ns);

/*
 * Fills ops, compute_us, base and age_us; ops have room for WIRE_TURN_OPS_MAX. `next` is
 * the number of the next post, `idle` as there: after its wait a step is over, and the
 * next one has begun, long before anything of it is posted.
 */
void rhythm_tell(const struct rhythm *rhythm, int ranks, uint64_t next, bool idle, uint64_t now,
                 struct wire_turn *out, struct wire_turn_op *ops);

#endif
