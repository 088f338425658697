/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the controller share, and nobody else sees. */
#ifndef TRIB_CONTROL_CONTROLLER_INTERNAL_H
#define TRIB_CONTROL_CONTROLLER_INTERNAL_H

#include "control/admission.h"
#include "control/controller.h"
#include "control/folder.h"
#include "control/http.h"
#include "control/share.h"
#include "control/mover.h"
#include "control/pace.h"
#include "control/ranks.h"
#include "control/store.h"
#include "control/turns.h"
#include "wire/packet.h"

#include <pthread.h>

#define JOBS_MAX 65536u
#define GATHERINGS_MAX 256u /* of a job */

/* Where to answer a rank, and how long its question was. */
struct visitor {
	struct udp_address from;
	uint32_t bytes;
	uint8_t child;
};

#define HISTORY_MAX 8u

/* A plan that was made, and why. */
struct plan_note {
	uint32_t generation;
	int64_t made_at; /* seconds since 1970 */
	char why[320];
};

/* What was last decided about a node of a plan: moves.c. */
struct move_note {
	uint32_t generation; /* of the plan; 0: nothing yet */
	bool leaves;
	char node[TREE_NAME_MAX], name[NODE_NAME_MAX], why[MOVE_WHY];
};

/* What the ranks of the newest plan say of themselves: words.c. */
struct words {
	struct rank_word all[SEATS_MAX]; /* by their rank in the plan */
	double share;                    /* as ranks_share says */
	int side;                        /* as mover_side says, */
	uint64_t since;                  /* since then */
	uint64_t looked_at;              /* at links */
	uint64_t links_at;               /* as in struct moving */
	struct pace pace;                /* what the roots of its trees have finished */
	double rate_bps;                 /* of it; 0: unknown */
	uint64_t late_since;             /* it is, as ranks_late says; 0: it is not */
	uint64_t doubted_at;             /* when its links were last tried for that; 0: never */
};

struct gathering_entry {
	struct gathering_entry *next;
	struct gathering gathering;
	struct visitor visitors[SEATS_MAX];
	struct plan_verdict verdict;   /* of its plan; no trees: it is not known */
	uint64_t asked_at, planned_at; /* 0: not since the controller started */
	uint64_t awaits_since; /* its first plan waits for trials of links; 0: it does not */
	struct move_note move;
	struct words words;
	uint32_t epoch;             /* that aggregators know it by, as far as seen: wire/key.h */
	char rack[RACK_MAX];        /* what the racks of all its hosts begin with, */
	bool has_rack;              /* where that is known */
	char wanted[TREE_NAME_MAX]; /* where it was told to take its turns, */
	uint32_t wanted_after;      /* when this plan is over: rooting.c */
	/* Where its shared star was lost: shifting.c. */
	uint64_t starless;           /* ranks that have said so, or that they use none, as bits */
	uint64_t star_at;            /* it gets another one not before; 0: none was lost lately */
	unsigned astray;             /* times in a row that ranks could not join one */
	uint64_t serials[SEATS_MAX]; /* of what each rank had said when it was lost, and before */
	bool has_tried;              /* to do without servers, which was wrong */
	struct plan_note history[HISTORY_MAX]; /* a ring */
	unsigned n_history;                    /* that it has had */
};

/* What is known of a job that asked for hosts: admitting.c. Times are the desk's. */
struct hosting {
	uint32_t hosts, per_host; /* 0: it did not ask */
	uint64_t ordinal;         /* of those who wait the lowest is first */
	uint32_t before;          /* so many wait before it */
	char *placed;             /* addresses, a comma between them; NULL: it waits */
	uint64_t placed_at;
	uint64_t heard_at;    /* the last sign of its ranks */
	uint64_t lease_until; /* somebody wants it until then at least; 0: nobody has said so */
	bool has_come;        /* a rank, since it was placed or the controller started */
};

struct job_entry {
	struct job job;
	struct hosting hosting;
	uint64_t cookie;
	unsigned n_gatherings;
	struct gathering_entry *gatherings;
};

/* A communicator that shares an aggregator; of one plan. */
struct sharer {
	struct turns_share share; /* first */
	uint16_t job;
	uint64_t cookie, key, peer_key;
	uint32_t generation, star;
	char to[TREE_NAME_MAX];     /* where it goes, when its turn here is over; "": nowhere */
	char why[MOVE_WHY];         /* ... and why */
	uint64_t nonces[SEATS_MAX]; /* by rank in the plan */
	struct udp_address from[SEATS_MAX]; /* where each speaks from; length 0: it has not */
	struct share_job told;              /* by rank 0 */
	uint64_t heard_at;                  /* of rank 0 */
	uint64_t moved_at, held_at, fence_at;
	uint64_t counted_change, seen_change;
	bool is_in; /* all ranks have joined its star, and that was told */
};

#define SHARERS_MAX 256u /* among whom the next turn is given; others wait */

/* Those that share one aggregator. */
struct sharing_group {
	struct sharing_group *next;
	char address[TREE_NAME_MAX];
	struct turns turns;
	uint64_t given, refused, fenced, held_ns;
	uint64_t agree_ns;    /* how long ranks take to agree */
	uint64_t rests_until; /* who is next is not looked at before */
};

enum desk_count { DESK_JOINS, DESK_DROPS, DESK_PLANS, DESK_REFUSALS, DESK_MOVES, DESK_COUNTS };

struct controller {
	char folder[FOLDER_PATH_MAX];
	char address[400];
	uint64_t started_at;
	uint64_t beat_ns;
	struct node_limits limits;
	double exit_below;        /* as in struct mover */
	unsigned fan_in, stripes; /* of plans, at most */
	bool gauges;              /* nodes try what their links carry */
	struct secret secret;
	struct store *store;
	struct http_server *http;
	/* All below is with the lock: HTTP and the desk have a thread each. */
	pthread_mutex_t lock;
	struct nodes nodes;
	struct job_entry *jobs[JOBS_MAX];
	uint16_t last_job;
	uint64_t counts[DESK_COUNTS];
	struct sharing_group *groups;
	enum share_policy sharing;
	enum admission_policy placement;
	double alpha; /* of it */
	uint64_t start_within, last_ordinal;
	uint64_t admit_at;               /* when those who wait are looked at again, */
	uint64_t judge_at;               /* and those who have hosts */
	uint64_t gauge_at;               /* the next two nodes try their links not before */
	double guess_bps;                /* as planner_guess says, */
	uint64_t guess_at;               /* then */
	uint32_t hosts[HOST_STATES_END]; /* as they were when somebody last asked for some */
	bool told_cut;                   /* that racks are too unlike */
	uint64_t session;                /* above that of any controller before */
	struct aggregator *aggregator;   /* NULL: none is in this process */
	/* The desk's. */
	int fd;
	pthread_t desk;
	bool desk_runs;
	_Atomic bool stop;
};

/* jobs.c; all with the lock held. */
trib_status jobs_load(struct controller *controller);
void jobs_free(struct controller *controller);
/* Gives it an id and stores it. */
trib_status jobs_make(struct controller *controller, const struct job *wish,
                      struct job_entry **out);
trib_status jobs_end(struct controller *controller, uint16_t id);
/* Made where there is none; NULL: no memory. */
struct gathering_entry *jobs_gathering(struct controller *controller, struct job_entry *job,
                                       uint64_t key);
/* Stored, and only then told. */
trib_status jobs_ask(struct controller *controller, struct gathering_entry *entry,
                     const struct ask *ask, uint64_t now, struct answer *answer);
/* A process has left, of whose nonce this is what fits a position; stored, too. */
trib_status jobs_leave(struct controller *controller, struct job_entry *job, uint64_t nonce);

/* admitting.c; all with the lock held. Refused where there are not enough hosts, and it is not to
 * wait for them. */
trib_status admitting_ask(struct controller *controller, struct job_entry *entry, bool waits);
trib_status admitting_load(struct controller *controller, struct job_entry *entry,
                           const struct placement_row *row);
/* Its hosts are free, and others may have them. */
void admitting_end_job(struct controller *controller, struct job_entry *entry);
void admitting_tick(struct controller *controller, uint64_t now);
/* Somebody wants the job for so long; 0: it is with its ranks. */
void admitting_lease(struct job_entry *entry, double lease_s, uint64_t now);
/* A sign of life of its ranks; or what an aggregator says of them with its beat. */
void admitting_hear(struct job_entry *entry, uint64_t now);
void admitting_hear_node(struct controller *controller, const struct node *node);
/* Are the ranks of a plan where the job was placed? */
void admitting_check(const struct job_entry *entry, const struct gathering *gathering);
/* admitting_show.c: why a job that waits has no hosts. */
void admitting_why(const struct controller *controller, const struct job_entry *entry, char *out,
                   size_t size);
/* Hosts by their state, and jobs that wait. */
void admitting_count(const struct controller *controller, uint64_t now, uint32_t *hosts,
                     unsigned *waiting);
/* Of each node, the job that has it; 0: none. */
void admitting_mark(const struct controller *controller, uint16_t *jobs);
void admitting_to_json(const struct controller *controller, const struct job_entry *entry,
                       json_t *json);

/* rooting.c; with the lock held. As struct planner has it, with a struct rooting as context. */
struct rooting {
	struct controller *controller;
	struct gathering_entry *entry;
	uint64_t now;
};
unsigned rooting_choose(void *context, const struct plan_wish *wish,
                        const struct node *const *nodes, unsigned n);
/* Is this job better off at another aggregator than at the one where it takes its turns? *root. */
bool rooting_moves(struct controller *controller, struct gathering_entry *entry,
                   const struct node *node, uint64_t now, char root[TREE_NAME_MAX]);
/* Where one that has lost its aggregator can take its turns; false: nowhere. */
bool rooting_again(struct controller *controller, struct gathering_entry *entry, uint64_t now,
                   char root[TREE_NAME_MAX]);

/* sharing.c; all with the lock held. */
/* There is a plan; `restored`: from the store. */
void sharing_plan(struct controller *controller, const struct job_entry *job,
                  const struct gathering *gathering, bool restored);
void sharing_end_job(struct controller *controller, uint16_t job);
void sharing_free(struct controller *controller);
/* The share of the communicator's newest star; NULL: it has none that is not lost. */
struct sharer *sharing_of(struct controller *controller, const struct gathering_entry *entry);
/* A share of the plan's star that nobody has a word of yet; NULL: no memory. */
struct sharer *sharing_make(struct controller *controller, const struct job_entry *job,
                            const struct gathering *gathering, bool restored);
/* A word about turns, with an aggregator's address where it is of a MOVE; else NULL. */
void sharing_send(struct controller *controller, uint16_t job, uint64_t cookie,
                  const struct wire_turn *turn, const struct wire_hop *hop,
                  const struct udp_address *to);
void sharing_take(struct controller *controller, const struct wire_control *header,
                  const struct udp_address *from);
/* True: somebody shares something, so it is to be called often. */
bool sharing_tick(struct controller *controller, uint64_t now);
json_t *sharing_to_json(const struct controller *controller);

/* shifting.c: jobs that go to another shared aggregator while they run; with the lock held. */
void shifting_begin(struct controller *controller, struct gathering_entry *entry, const char *to,
                    const char *why, uint64_t now);
/* It has released its turn: its share is at the next one from now on. False: not yet. */
bool shifting_end(struct controller *controller, struct sharer *sharer, uint64_t now);
/* All ranks are in the star. */
void shifting_joined(struct controller *controller, struct sharer *sharer);
/* A share is lost, and about to be freed. */
void shifting_lost(struct controller *controller, const struct sharer *sharer, uint64_t now);
/* A rank speaks of a star that has no share. */
void shifting_hear(struct controller *controller, const struct wire_control *header,
                   const struct udp_address *from, uint64_t now);

/* moves.c; with the lock held. What decides about moves, as things are now. */
struct mover moves_mover(const struct controller *controller, uint64_t now);
/* What this node is to leave, for the answer to its beat; NULL:
 * nothing. */
json_t *moves_for(struct controller *controller, struct node *node, uint64_t now);
/* Something has changed that is worth to be told. */
void moves_note(struct gathering_entry *entry, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* There is a new plan. */
void moves_note_plan(struct gathering_entry *entry, uint64_t now);

/* words.c; with the lock held. A plan is new: nobody has said anything yet. */
void words_clear(struct words *words);
/* What an aggregator says with its beat of the ranks below it, and how far they are. */
void words_take(struct controller *controller, struct gathering_entry *entry,
                const struct node *node, const json_t *comm, uint64_t now);
/* Bits of vectors that it really sums, a second; 0: unknown. */
double words_rate(const struct gathering_entry *entry, uint64_t now);
/* Of each rank, for who asks. */
json_t *words_to_json(const struct controller *controller, const struct gathering_entry *entry);

/* gauging.c; with the lock held. Whom a node is to try its link with, for the answer to its beat;
 * NULL: nobody. */
json_t *gauging_for(struct controller *controller, struct node *node, uint64_t now);
/* Will soon be known what links of nodes carry that have just joined? Then a job's first plan can
 * wait. */
bool gauging_awaited(struct controller *controller, uint64_t now);
/* A plan is slower than it should be: its nodes, and those of its ranks, try their links again. */
void gauging_doubt_plan(struct controller *controller, const struct gathering *gathering,
                        uint64_t now);

/* desk.c: workers' packets. */
trib_status desk_open(struct controller *controller, const struct udp_address *listen);
void desk_close(struct controller *controller);

/* api.c, api_nodes.c, api_jobs.c, api_metrics.c */
extern const struct http_route api_routes[];
void api_get_nodes(void *context, const struct http_request *request, struct http_reply *reply);
void api_put_node(void *context, const struct http_request *request, struct http_reply *reply);
void api_patch_node(void *context, const struct http_request *request, struct http_reply *reply);
void api_delete_node(void *context, const struct http_request *request, struct http_reply *reply);
void api_get_jobs(void *context, const struct http_request *request, struct http_reply *reply);
void api_get_job(void *context, const struct http_request *request, struct http_reply *reply);
void api_post_job(void *context, const struct http_request *request, struct http_reply *reply);
void api_patch_job(void *context, const struct http_request *request, struct http_reply *reply);
void api_delete_job(void *context, const struct http_request *request, struct http_reply *reply);
void api_get_turns(void *context, const struct http_request *request, struct http_reply *reply);
void api_get_metrics(void *context, const struct http_request *request, struct http_reply *reply);
/* Gives up what api_put_node has left with a node. */
void api_forget_node(struct node *node);

#endif
