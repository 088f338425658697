/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy: the controller's decisions, as pure functions. Time and state are arguments. This folder
 * touches no socket, no file, no lock and no clock, and calls no other folder of control/. So all
 * of it is tested without a network.
 *
 * The rendezvous: ranks ask for a plan. When all awaited ranks have asked, they get one. It is a
 * state machine: (membership, request, world) to (membership, answer). The world is the time and a
 * function that makes plans.
 *
 * A membership is the controller's record of one communicator. Its plans are numbered by
 * generation. A rank that asks with the newest generation reports that this plan is broken. The
 * next plan is then made of the ranks that ask. A seat is the rank that a process was started with.
 * Ranks in a plan are its seats, renumbered from 0.
 */
#ifndef TRIB_CONTROL_POLICY_RENDEZVOUS_H
#define TRIB_CONTROL_POLICY_RENDEZVOUS_H

#include "control/policy/planner.h"

#define SEATS_MAX TREE_RANKS_MAX
#define SEAT_ANY UINT32_MAX /* as a rank: any free seat */
#define HOST_MAX 64
#define SENTENCE_MAX 400

/* If a rank is lost: the job fails, goes on without it, or waits for a replacement. */
enum policy { POLICY_FAIL, POLICY_SHRINK, POLICY_WAIT, POLICIES_END };

const char *policy_name(enum policy policy);
bool policy_parse(const char *name, enum policy *out);

/* A rank's request for a plan. */
struct ask {
	uint32_t rank, size; /* as the process was started */
	uint32_t generation; /* the newest plan that it had, which is broken; 0: none */
	uint32_t timeout_ms; /* its deadline */
	uint32_t pid;        /* for messages */
	uint64_t pool_bytes; /* memory that it will ask aggregators for */
	bool tcp;            /* on the TCP plane; else on UDP */
	uint8_t wire;        /* its TRIB_WIRE, as in struct wire_join */
	char host[HOST_MAX];
	char where[WHERE_MAX]; /* its address, without a port */
	struct ring_seat ring; /* where it listens for a ring; family 0: it does not */
	uint64_t nonce;        /* of the process */
	uint64_t lost;         /* ranks of that plan that it reports dead, as bits */
};

struct seat {
	uint64_t nonce;              /* of the process in this seat; 0: the seat is free */
	uint64_t asked_at;           /* when that process last asked; 0: not since the start */
	uint64_t seen_at;            /* when it last gave a sign of life, or got a plan */
	uint64_t rival, rival_since; /* another process that wants the seat */
	uint32_t planned;            /* the newest plan that has this process; 0: none */
	uint32_t timeout_ms, pid;
	uint64_t pool_bytes;
	bool waits;             /* it waits for the next plan */
	bool tcp;               /* as in struct ask */
	uint8_t wire;           /* as in struct ask; 0: unknown */
	double measured, round; /* as in struct plan_wish */
	uint64_t measured_at;
	char host[HOST_MAX], where[WHERE_MAX];
	struct ring_seat ring; /* as in struct ask */
};

struct membership {
	uint16_t job;
	uint64_t key;
	enum policy policy;
	uint32_t size;       /* seats that the first plan waits for; 0: as the first rank says */
	uint32_t min;        /* POLICY_SHRINK: fewest ranks */
	uint32_t generation; /* of the newest plan; 0: no plan yet */
	uint32_t same_since; /* no process joined since this plan; 0: unknown */
	uint64_t members;    /* seats that are in the newest plan, as bits */
	uint64_t since;      /* when the next plan was first asked for; 0: no rank asks */
	uint64_t lost;       /* members that others report dead, as bits */
	uint64_t left;       /* members that have said goodbye, as bits */
	uint32_t star;       /* migrations of its shared star since that plan */
	bool frugal;         /* its plans do without servers */
	char plan[PLAN_TEXT_MAX];
	struct seat seats[SEATS_MAX];
};

struct world {
	uint64_t now;
	uint64_t seen_ns; /* how long a rank counts as alive after a sign of life */
	trib_status (*plan)(void *context, const struct plan_wish *wish, char out[PLAN_TEXT_MAX]);
	void *context;
	bool rings; /* the job's first communicator sums around a ring */
};

enum answer_kind { ANSWER_WAIT, ANSWER_PLAN, ANSWER_REFUSE };

struct answer {
	enum answer_kind kind;
	bool changed;        /* there is a new plan: store the membership before answering */
	uint64_t present;    /* waiting seats, as bits; ANSWER_PLAN: seats of the plan */
	uint32_t rank, size; /* ANSWER_PLAN: in the plan */
	char sentence[SENTENCE_MAX]; /* ANSWER_REFUSE: why */
};

void membership_start(struct membership *membership, uint16_t job, uint64_t key, enum policy policy,
                      uint32_t size, uint32_t min);
void membership_ask(struct membership *membership, const struct ask *ask, const struct world *world,
                    struct answer *answer);

/* These seats in words: "rank 3 (host h2, pid 71), rank 4 and 2 more". */
const char *seats_describe(const struct membership *membership, uint64_t seats, char *out,
                           size_t size);
/* The planner's input for these seats, renumbered as ranks. */
void membership_wish(const struct membership *membership, uint64_t members, struct plan_wish *wish);

/* A process has said goodbye: no plan waits for it. `mask`: the known bits of its nonce. */
void membership_leave(struct membership *membership, uint64_t nonce, uint64_t mask);
/* An aggregator heard a rank of the newest plan at time `then`. */
void membership_see(struct membership *membership, unsigned rank, uint64_t then);
/* "auto", "32", "16" or "8"; NULL: `wire` (struct wire_join) is none of these. */
const char *wire_setting_name(uint8_t wire);
/* TRIB_WIRE of the newest plan's ranks; "mixed": they differ; NULL: a rank has not told. */
const char *membership_wire(const struct membership *membership);
/*
 * Has this run of the job ended? It has if all members have left. With POLICY_FAIL it also has if
 * some have left and the others were replaced. A process that comes then is the next run.
 */
bool membership_is_over(const struct membership *membership);
/* Seats that wait and have asked within the last second, as bits. */
uint64_t membership_waiting(const struct membership *membership, uint64_t now);

#endif
