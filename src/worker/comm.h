/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker: the library in a training process: communicators, collectives, and
 * the lanes that carry them. A lane has a thread, a socket and a stream; user
 * threads only post rounds and wait. How its packets travel is a table of
 * functions: datagrams or a connection.
 *
 * A communicator sends by one or several trees at once, each with a share of
 * every vector. A trunk is what it has of a tree: the aggregator that it sends
 * to, the way from there up to the root, and its lanes to that aggregator.
 */
#ifndef TRIB_WORKER_COMM_H
#define TRIB_WORKER_COMM_H

#include "path/hearing.h"
#include "path/meter.h"
#include "path/pacer.h"
#include "path/tcp.h"
#include "plan/tree.h"
#include "worker/ledger.h"
#include "worker/rhythm.h"
#include "worker/shares.h"
#include "worker/star.h"
#include "worker/stream.h"

#include <pthread.h>
#include <stdatomic.h>

struct comm_config {
	struct udp_address aggregator; /* of the one star, where there are no trees */
	struct forest *trees;          /* the communicator's own; NULL: that star */
	unsigned own_trees; /* of those; the others are at an aggregator that it shares. 0: all */
	struct udp_address controller; /* where trees come from; length 0: there is none */
	int seat, seats;               /* rank and size as the process was started; -1: any */
	int rank, size;
	bool asks; /* no rank was given: one that is named may give one */
	uint16_t job;
	uint64_t cookie;
	uint64_t key;        /* names the communicator within the job */
	uint32_t generation; /* of the plan that the trees are from */
	/* The generation that this communicator began with, or that a process came in with before
	 * it was open; 0: no controller. */
	uint32_t epoch;
	double timeout_s;
	uint64_t pool_bytes, rate_bps;
	unsigned lanes; /* of a tree; 0: by the cores */
	unsigned cores; /* this worker's share of the host's */
	unsigned mtu;
	bool tcp;    /* the plane; else udp */
	bool bucket; /* pace in user space, whatever the kernel can */
	bool multicast;
	const char *pin;
	struct udp_options socket;
};

struct lane;
struct trunk;

/* Gets each packet that has come and is sound; DATA and RESULT may still be anybody's. `by_group`:
 * it was sent to many. */
typedef void lane_taker(struct lane *lane, const struct wire_header *header, uint32_t bytes,
                        bool by_group, void *context);

/* How packets travel: lane_udp.c, lane_tcp.c. Errors are -errno. */
struct lane_way {
	trib_status (*open)(struct lane *lane);
	void (*close)(struct lane *lane);
	/* Is there an aggregator to speak to? Tries for up to so long to have one. */
	bool (*reach)(struct lane *lane, int wait_ms);
	/* The communicator runs: what the aggregator has offered can be used. */
	void (*start)(struct lane *lane);
	/* Above 0: something has come. */
	int (*receive)(struct lane *lane, lane_taker *take, void *context);
	/* One packet, by whoever has the lane for himself; it is sealed. */
	int (*send_one)(struct lane *lane, void *packet, uint32_t bytes);
	/* What the stream has to send, as far as the socket takes it; -EAGAIN: that is full. */
	int (*send_some)(struct lane *lane, uint64_t now, bool *sent);
	/* `unsent`: it is a fragment. */
	void (*seal)(void *packet, uint32_t bytes, const struct wire_unsent *unsent);
};

extern const struct lane_way lane_way_udp, lane_way_tcp;

struct lane {
	struct trib_comm *comm;
	struct trunk *trunk;
	const struct lane_way *way;
	unsigned index;  /* on the wire: in its trunk */
	unsigned number; /* among all of the communicator */
	int fd, group_fd, wake_fd;
	bool started;
	bool gso;               /* udp */
	struct hearing hearing; /* udp: of the group */
	struct udp_address peer;
	pthread_t thread;
	uint8_t *buffer; /* packets until they are sent */
	/* udp: */
	struct udp_rx *rx, *group_rx;
	struct udp_tx *tx;
	/* tcp: */
	struct tcp_rx bytes;
	struct tcp_tail tail;
	uint32_t sent_to, filled_to; /* of the buffer */
	int unreached;               /* why there was no connection; 0: there was one */
	int knock_fd;                /* a connection on its way; -1: none */
	int held;                    /* udp: messages in rx that are not taken yet */

	struct stream stream;
	struct pacer pacer;
	struct meter meter;
	unsigned refused; /* times in a row that the aggregator's port was closed */
	uint64_t heard_at, spoke_at;
	uint64_t moved_at, moved; /* when a fragment was last done, and how many were then */
	uint64_t dropped;

	struct kept *kept, **kept_end; /* finished, and perhaps needed by others */
	struct round *finishing;       /* finished, and about to be told so */

	pthread_mutex_t lock; /* for what is below */
	struct round *posted, **posted_end;
	_Atomic bool mail;
	uint64_t taken;           /* rounds that the thread has got */
	_Atomic uint64_t entered; /* rounds that were posted, ever */
	_Atomic uint64_t ending;  /* ... and so many of those are over, or nearly */
	_Atomic uint32_t nearly;  /* that is: when no more fragments than these are left */
	_Atomic bool leaves;      /* to end when nothing is under way; nobody needs what was */
	_Atomic bool rests;       /* nothing is, nor can others need anything of it */
	_Atomic bool ended;       /* the thread is at its end, without having been stopped */

	/* For error sentences and statistics; written by the lane's thread. */
	_Atomic uint64_t waiting, done, next_base;
	_Atomic uint64_t sent, resent, results, duplicates, drops;
	_Atomic uint64_t judged, lost; /* as in struct stream_stats */
};

struct trunk {
	unsigned tree; /* its number */
	uint32_t star; /* of one that is shared: which of the plan's */
	double share;  /* of every vector, relative to those of the others */
	struct udp_address aggregator;
	uint64_t ranks; /* that come together there; 0: all of them */
	unsigned hops;
	struct wire_hop up[WIRE_HOPS_MAX]; /* the parent first, the root last */
	struct wire_welcome welcome;
	unsigned n_lanes;
	struct lane *lanes[WIRE_LANES_MAX]; /* the first one is for joining and leaving too */
};

/* Lanes that a request is split over: those of the own trees, or of the shared aggregator. */
struct way {
	unsigned first;
	struct shares shares; /* n is 0: there is none */
};

/* How far the turner is with leaving a shared star and joining the next; shift.c. */
struct shift {
	struct udp_address to;
	struct asking *asking; /* NULL: not joining */
	uint64_t deadline, bye_at;
	unsigned byes;
	bool is_gone;  /* the aggregator that is left: nobody hears a good-bye */
	bool is_apart; /* the star's trunk is there, and its lanes are not in the row of all */
};

/* What a lane has learned of the shared star's end. */
struct star_loss {
	trib_status status; /* TRIB_OK: nothing */
	uint32_t rank;      /* that it is about, as in struct wire_abort */
	char text[512];
};

struct trib_comm {
	struct comm_config config;
	unsigned n_trunks;
	_Atomic unsigned n_lanes;
	unsigned lanes_wanted; /* of each trunk; an aggregator may give fewer */
	struct trunk trunks[FOREST_TREES_MAX];
	struct lane *lanes[LANES_MAX]; /* those of all trunks, one trunk after the other */
	struct way own, shared;
	uint32_t payload; /* of a full fragment, the same in all trees */
	uint64_t nonce;   /* what a controller knows this one by */
	_Atomic bool closing;
	_Atomic bool draining; /* about to leave: find out soon who still needs something */

	/* With a controller the communicator outlives its trees; see keeper.c. */
	bool keeps;  /* ledgers */
	bool opened; /* users have it: rank and size stay */
	bool keeper_runs;
	int planned_rank, planned_size; /* what the controller's last plan makes of us */
	uint32_t planned_since;         /* the plan since which nobody has come in; 0: not known */
	uint64_t planned_seats, seats;  /* in that plan, and in the one that this one opened with */
	_Atomic uint64_t lost;          /* ranks of the newest plan that are dead, or have left */
	/* Told in reports: what each lane's path carries, and how much of the time is waited. */
	_Atomic uint64_t carried[LANES_MAX];
	_Atomic uint16_t waited;
	_Atomic uint64_t doubted_at; /* when the keeper was last told that nothing comes */
	pthread_t keeper;
	pthread_mutex_t posting; /* held while rounds are made and posted; taken before `lock` */

	/* With an aggregator that is shared requests are begun one after the other; dispatch.c. */
	struct turner *turner; /* NULL: nothing is shared */
	struct turn turn;      /* with `posting`, as are the next two */
	struct star star;      /* where turns are */
	uint64_t begun;        /* requests below have been */
	/* Whoever changes trunks: the keeper, or the turner where it goes to another star. */
	pthread_mutex_t shifting;
	struct shift shift; /* with it */
	_Atomic bool deaf;  /* a group was waited for, and never heard */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock: */
	trib_status failed; /* TRIB_OK: not */
	char failure[512];
	trib_status hurt; /* an aggregator is lost, and the keeper is to do something about it */
	struct star_loss star_loss;
	struct ledger *ledgers, **ledgers_end;
	trib_stats past;         /* of lanes that are no more */
	bool recovering;         /* the keeper is at it: what is posted waits */
	bool doubts;             /* a lane hears nothing: the keeper is to ask the controller */
	bool controller_heard;   /* while it is asked for other trees */
	bool told;               /* the aggregator, of a failure of ours */
	_Atomic bool stop_lanes; /* failed: lanes let go of users' buffers */
	unsigned quiet_lanes;    /* that have done so */
	unsigned in_flight;
	unsigned under_way[2]; /* requests that were begun, by way */
	uint64_t under_way_bytes;
	uint64_t came_at; /* when one last ended */
	uint64_t busy_at; /* ... or began after a pause */
	struct rhythm rhythm;
	struct trib_request *requests;
	uint64_t rounds, posts, splits;
	double wait_s;
	uint64_t waited_since; /* from then on; 0: nothing yet */
	double waited_then;    /* wait_s was that */
};

struct trib_request {
	struct trib_request *next, **link; /* among its communicator's; NULL: the keeper's own */
	struct trib_comm *comm;
	struct ledger *ledger; /* NULL: there is none */
	_Atomic unsigned rounds_left;
	bool done; /* under the communicator's lock */
	const char *what;
	uint64_t number;
	size_t count;
	/* Where an aggregator is shared: */
	bool shared;         /* it is summed there */
	uint32_t generation; /* of the trees that it was begun in; 0: it was not */
	uint64_t bytes, begun_at;
	/* To be copied at the end: the result of an in-place reduce-scatter. */
	void *spare;
	void *copy_to;
	size_t copy_bytes;
};

/* config.c; trees are the caller's, for comm_open. */
trib_status comm_config_read(const trib_options *options, struct comm_config *config);

/* trunk.c: from the trees of the configuration; nothing is opened yet. */
trib_status trunks_plan(struct trib_comm *comm);
/* Joins all trees, opens and starts all lanes. */
trib_status trunks_open(struct trib_comm *comm, uint64_t deadline);
/* Another lane of the trunk, open and not started. */
trib_status trunk_add_lane(struct trib_comm *comm, struct trunk *trunk);
/* Ends the lanes' threads. */
void trunks_stop(struct trib_comm *comm);
void trunks_close(struct trib_comm *comm);
/* "10.0.0.7:7700", for error sentences. */
const char *trunk_name(const struct trunk *trunk, char *out, size_t size);

/*
 * join.c: waits for all ranks in all trees at once; each trunk has its first lane.
 * TRIB_IN_PROGRESS: the one that was asked is a controller.
 */
trib_status comm_join(struct trib_comm *comm, uint64_t deadline);
/* One more tree, without waiting; its first lane is open, not started. free() ends it. */
struct asking;
trib_status asking_open(struct trib_comm *comm, struct trunk *trunk, double seconds,
                        struct asking **out);
/* TRIB_IN_PROGRESS: again at *wake, or when its lane has something. TRIB_OK: all are in. */
trib_status asking_step(struct asking *asking, uint64_t deadline, uint64_t *wake);

/*
 * plan.c: asks the controller for trees of another generation than those of now,
 * until it gives some: trees, generation, planned_rank and planned_size are set.
 */
trib_status comm_ask_plan(struct trib_comm *comm, uint64_t deadline);
/* Is there a controller where the aggregator should be? *answered: somebody is there who said. */
bool comm_find_controller(const struct trib_comm *comm, bool *answered);
/* Tells it that this process will not ask again, until it has heard that. */
void comm_tell_controller_bye(const struct trib_comm *comm);

/* watch.c: has anybody else given up the trees that we are about to join? */
struct plan_watch {
	int fd; /* -1: there is no controller to ask */
	uint64_t ask_at;
};

void plan_watch_open(const struct trib_comm *comm, struct plan_watch *watch);
void plan_watch_close(struct plan_watch *watch);
/* If it is time to. */
void plan_watch_ask(const struct trib_comm *comm, struct plan_watch *watch);
/* TRIB_OK: nobody that we know of. */
trib_status plan_watch_hear(const struct trib_comm *comm, struct plan_watch *watch);
/* What the controller's answer means for those who join the trees of this plan. */
bool plan_is_given_up(const char *text, uint32_t generation);
/* ... and for those who wait in them: an aggregator that the controller does not hear of either. */
bool plan_has_silent(const char *text, uint32_t generation, char *out, size_t size);

#define PLAN_ANSWER_BYTES WIRE_PACKET_MAX
/* Asks the controller how the communicator is. */
void plan_query(const struct trib_comm *comm, int fd);
/* The text of an answer that has come, in the 8-byte aligned packet; NULL: there is none. */
const char *plan_answer(const struct trib_comm *comm, int fd, void *packet);

/* doubt.c: a lane waits, and hears nothing: is an aggregator of ours dead? The keeper asks. */
void doubt_raise(struct lane *lane, uint64_t now);
void doubt_settle(struct trib_comm *comm);

/* recover.c: agrees with all others in new trees on what is missing, and posts that. */
trib_status recover_requests(struct trib_comm *comm, uint64_t deadline);

/* keeper.c: trees that serve, whatever is lost meanwhile. `first`: nothing was under way. */
trib_status keeper_find_trees(struct trib_comm *comm, bool first, uint64_t deadline);
trib_status keeper_start(struct trib_comm *comm);
void keeper_stop(struct trib_comm *comm);

/* leave.c */
/* Says good-bye until it is heard, so that others need not wait for a heartbeat to fail. */
void comm_leave(struct trib_comm *comm);
/* The same for one tree, without waiting: says it; and was it heard, or is nobody there? */
void trunk_say_bye(struct trib_comm *comm, struct trunk *trunk);
bool trunk_hears_bye(struct trunk *trunk);

/*
 * comm.c; takes over the trees of the configuration, also where it fails. `before`:
 * what it takes the place of, and may be NULL.
 */
trib_status comm_open(const struct comm_config *config, const struct trib_comm *before,
                      struct trib_comm **out);
/* Waits for requests in flight, leaves the trees; all but the memory is gone then. */
trib_status comm_close(struct trib_comm *comm);
void comm_free(struct trib_comm *comm);
/* The key as aggregators are told it: ranks of unlike epochs do not meet. */
uint64_t comm_key(const struct comm_config *config);
/*
 * Fails the communicator, once; later calls change nothing. Where it has a
 * controller, the loss of an aggregator is no failure: the keeper is woken.
 */
void comm_fail(struct trib_comm *comm, trib_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same by what an aggregator says; if it counts, and names a lost rank, that is known. */
void comm_fail_told(struct trib_comm *comm, trib_status status, uint32_t rank, const char *text);

/* Adds up what its lanes have counted, from this one on; the caller holds the lock. */
void comm_count(const struct trib_comm *comm, unsigned first, trib_stats *all);
/* "1, 3" */
void comm_list_ranks(uint64_t mask, char *out, size_t size);
/* Tells the aggregators, and by them the others, why this rank has given up. Lanes are quiet. */
void comm_tell_failure(struct trib_comm *comm);
/* The same for trees that are given up. Once is not enough: packets are lost. The caller has
 * `shifting`, or is the only one there. */
void comm_tell_hurt(struct trib_comm *comm);
/* Is there no use in waiting any longer? */
bool comm_is_over(struct trib_comm *comm);

#define LANE_BUFFER_PACKETS 128u

/* lane.c */
/* A lane of the trunk, not open yet; NULL: no memory. */
struct lane *lane_make(struct trib_comm *comm, struct trunk *trunk);
trib_status lane_open(struct lane *lane);
trib_status lane_start(struct lane *lane);
void lane_stop(struct lane *lane);
void lane_close(struct lane *lane);
void lane_post(struct lane *lane, struct round *round);
void lane_wake(struct lane *lane);
/* The next packet to send, sealed: a report or heartbeat that is due, or data; 0: none. */
uint32_t lane_next_report(struct lane *lane, uint64_t now, uint8_t *packet);
uint32_t lane_next_data(struct lane *lane, uint64_t now, uint8_t *packet);

/* pacing.c: who spaces its packets, as the lane starts and its pacer has; and what came of it. */
void pacing_start(struct lane *lane);
void pacing_end(const struct lane *lane);

/* dispatch.c: with an aggregator that is shared. */
/* Begins what may be begun, in order; the caller holds `posting`. */
void dispatch(struct trib_comm *comm);
/* Other trees serve, and all that was posted has been begun there; the caller holds `posting`. */
void dispatch_anew(struct trib_comm *comm);
/* A request has ended; the caller holds the lock. */
void dispatch_ended(struct trib_request *request);

/* turner.c: speaks with the controller about turns. */
trib_status turner_start(struct trib_comm *comm);
/* Its thread ends; from then on nobody begins anything. Then the last words. */
void turner_halt(struct trib_comm *comm);
void turner_stop(struct trib_comm *comm);
/* There is news for the controller, or something may be begun. Any thread. */
void turner_wake(struct trib_comm *comm);

/* shift.c: the turner's, with `shifting`. */
/* Does what there is to do about the shared star, without waiting; again at *wake. */
void shift_step(struct trib_comm *comm, uint64_t *wake);
/* The socket whose packets it waits for; -1: none. */
int shift_fd(const struct trib_comm *comm);
/* Nothing of a star that is not joined is left. */
void shift_drop(struct trib_comm *comm);
/* A lane of the shared star, with the lock not held: false: this is nothing for it. */
bool shift_note_lost(struct lane *lane, trib_status status, uint32_t rank, const char *text);

static inline bool trunk_is_shared(const struct trib_comm *comm, const struct trunk *trunk)
{
	return comm->config.own_trees && trunk >= comm->trunks + comm->config.own_trees;
}

/* post.c */
struct posting {
	const struct way *way;
	struct round *round;
	unsigned lane;
	bool in_turn; /* small: the lane is found when it is posted */
};

/*
 * The rounds of one vector, or of the part of one that `place` says (NULL: that
 * has not to be known); gives how many, 0: no memory. The caller holds `posting`.
 */
unsigned rounds_make(const struct trib_comm *comm, const struct round_spec *spec,
                     const struct round_place *place, struct posting *postings);
unsigned rounds_make_by(const struct trib_comm *comm, const struct way *way,
                        const struct round_spec *spec, const struct round_place *place,
                        struct posting *postings);
/* To the lanes, in one order on all ranks. */
void rounds_post(struct trib_comm *comm, const struct posting *postings, size_t n, uint64_t turn);
void rounds_free(const struct posting *postings, size_t n);
/* Posts rounds as one request, all lanes in one order. Takes over the request. */
trib_status request_post(struct trib_request *request, const struct round_spec *specs, size_t n,
                         trib_request **out);

/* request.c */
struct trib_request *request_new(struct trib_comm *comm, const char *what, size_t count);
/* Takes the result over, if there is one, and frees it. */
trib_status request_end(struct trib_request *request);
void request_free(struct trib_request *request);
void request_round_finished(struct trib_request *request);
/* Waits for it and frees it, whatever comes: for the blocking calls. */
trib_status request_finish(struct trib_request *request);

#endif
