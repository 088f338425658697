/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rendezvous: ranks ask, and when all that are waited for have, they get a
 * plan. A pure machine: (gathering, what a rank asks, world) to (gathering,
 * answer); the world is the time and a function that makes plans.
 *
 * A gathering is one communicator. Its plans are numbered; a rank that asks
 * with the number of the newest one says that this plan is broken for it, and
 * so the next one is made, of those who ask. A seat is a rank as its process
 * was started; ranks in a plan are the seats that are in it, counted anew.
 */
#ifndef TRIB_CONTROL_RENDEZVOUS_H
#define TRIB_CONTROL_RENDEZVOUS_H

#include "control/planner.h"

#define SEATS_MAX TREE_RANKS_MAX
#define SEAT_ANY UINT32_MAX /* as a rank: whichever is free */
#define HOST_MAX 64
#define SENTENCE_MAX 400

/* When a rank is lost: all stop, the others go on without it, or wait for one in its place. */
enum policy { POLICY_FAIL, POLICY_SHRINK, POLICY_WAIT, POLICIES_END };

const char *policy_name(enum policy policy);
bool policy_parse(const char *name, enum policy *out);

/* What a rank says. */
struct ask {
	uint32_t rank, size; /* as the process was started */
	uint32_t generation; /* the newest plan that it has had, which is broken; 0: none */
	uint32_t timeout_ms; /* its deadline */
	uint32_t pid;        /* for sentences, as is the host */
	uint64_t pool_bytes; /* that it will ask aggregators for */
	bool tcp;            /* by connections; else by datagrams */
	char host[HOST_MAX];
	char where[WHERE_MAX]; /* the address that it asks from, without a port */
	uint64_t nonce;        /* of the process */
	uint64_t lost;         /* ranks of that plan that it knows to be dead, as bits */
};

struct seat {
	uint64_t nonce;    /* of the process that has it; 0: nobody */
	uint64_t asked_at; /* when that one last asked; 0: not since the controller started */
	uint64_t seen_at;  /* when it was last seen at work, or given a plan to do so by */
	uint64_t rival, rival_since; /* another one that wants it */
	uint32_t planned;            /* the newest plan that this process is in; 0: none */
	uint32_t timeout_ms, pid;
	uint64_t pool_bytes;
	bool waits;             /* for the next plan */
	bool tcp;               /* as in struct ask */
	double measured, round; /* as in struct plan_wish: what was seen of it at work */
	uint64_t measured_at;
	char host[HOST_MAX], where[WHERE_MAX];
};

struct gathering {
	uint16_t job;
	uint64_t key;
	enum policy policy;
	uint32_t size; /* seats that the first plan waits for; 0: as many as the first one says */
	uint32_t min;  /* POLICY_SHRINK: not below */
	uint32_t generation; /* of the newest plan; 0: there is none yet */
	uint32_t same_since; /* since this plan nobody has come in; 0: not known */
	uint64_t members;    /* seats that are in it */
	uint64_t since;      /* when it was first said to be broken, or first asked for one */
	uint64_t lost;       /* members that others know to be dead */
	uint64_t left;       /* members that have said good-bye */
	uint32_t star;       /* times that its shared star has gone elsewhere since that plan */
	bool frugal;         /* its plans do without machines that are not the ranks' own */
	char plan[PLAN_TEXT_MAX];
	struct seat seats[SEATS_MAX];
};

struct world {
	uint64_t now;
	uint64_t seen_ns; /* who was seen at work lives for so long, for all that is known */
	trib_status (*plan)(void *context, const struct plan_wish *wish, char out[PLAN_TEXT_MAX]);
	void *context;
};

enum answer_kind { ANSWER_WAIT, ANSWER_PLAN, ANSWER_REFUSE };

struct answer {
	enum answer_kind kind;
	bool changed;        /* there is a new plan: store the gathering before this leaves */
	uint64_t present;    /* seats that wait, as bits; ANSWER_PLAN: that are in it */
	uint32_t rank, size; /* ANSWER_PLAN: in it */
	char sentence[SENTENCE_MAX]; /* ANSWER_REFUSE: why */
};

void gathering_start(struct gathering *gathering, uint16_t job, uint64_t key, enum policy policy,
                     uint32_t size, uint32_t min);
void gathering_ask(struct gathering *gathering, const struct ask *ask, const struct world *world,
                   struct answer *answer);

/* What these seats, as ranks counted anew, would ask the planner for. */
void gathering_wish(const struct gathering *gathering, uint64_t members, struct plan_wish *wish);

/* A process will not ask again: nobody waits for it. `nonce`: its, or as much of it as it told. */
void gathering_leave(struct gathering *gathering, uint64_t nonce, uint64_t mask);
/* An aggregator has heard of a rank of the newest plan then. */
void gathering_see(struct gathering *gathering, unsigned rank, uint64_t then);
/* Seats that have asked a moment ago and wait, as bits. */
uint64_t gathering_waiting(const struct gathering *gathering, uint64_t now);
/* "rank 2 (host h3, pid 99)" */
const char *seat_describe(const struct gathering *gathering, unsigned seat, char *out, size_t size);

#endif
