/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile of a job's training step, seen from the asynchronous interface: when requests are
 * posted, and when the program begins to wait for them (MINA IV-B). Pure; times are in nanoseconds.
 *
 * A step is all that is posted from one wait to the next. It begins when the previous wait has
 * ended. The first steps differ from the others, so the profile is known when two steps with the
 * same requests have followed each other.
 *
 * Steps vary. What is told of a step is therefore the mean of the last ones, at the pace of the
 * present step: if its newest request was posted early, all that follows is expected early too.
 */
#ifndef TRIB_WORKER_TURNS_STEP_PROFILE_H
#define TRIB_WORKER_TURNS_STEP_PROFILE_H

#include "wire/packet.h"

#include <stdbool.h>

struct profile_op {
	uint64_t bytes;
	uint64_t start; /* since the step's beginning */
};

struct profile_step {
	unsigned n; /* above WIRE_TURN_OPS_MAX: too many to be reported */
	uint64_t compute;
	struct profile_op ops[WIRE_TURN_OPS_MAX];
};

struct step_profile {
	uint64_t base;     /* number of the step's first request */
	uint64_t began_at; /* when the step began; 0: none has */
	uint64_t ended_at; /* when the last wait ended */
	bool waited;       /* the program has waited for a request of this step */
	unsigned alike;    /* steps up to the last one that had the same requests */
	struct profile_step now, mean;
	/* Time and bytes of recent requests, fading; [0] own trees, [1] shared star. */
	double ns[2], bytes[2];
	bool sure[2]; /* measured by requests that followed others at once */
};

/* Request `number` is posted. `idle`: all earlier requests are over. */
void step_profile_post(struct step_profile *profile, uint64_t number, uint64_t bytes, bool idle,
                       uint64_t now);
/* The program begins to wait; the program has waited. */
void step_profile_wait(struct step_profile *profile, uint64_t now);
void step_profile_waited(struct step_profile *profile, uint64_t now);
/*
 * A request took `ns`. `behind`: it followed another request at once. Only such requests show the
 * lasting rate, because after a pause buffers take a little at once.
 */
void step_profile_took(struct step_profile *profile, bool shared, bool behind, uint64_t bytes,
                       uint64_t ns);

/* Bytes that the own trees or the shared star carry in this time; 0: unknown. */
double step_profile_bytes_in(const struct step_profile *profile, bool shared, double ns);

/*
 * Fills ops, compute_us, base and age_us; `ops` has room for WIRE_TURN_OPS_MAX. `next` is the
 * number of the next request, `idle` as in step_profile_post. After the wait a step is over, and
 * the next one has begun, long before its first request is posted.
 */
void step_profile_tell(const struct step_profile *profile, int ranks, uint64_t next, bool idle,
                       uint64_t now, struct wire_turn *out, struct wire_turn_op *ops);

#endif
