/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm: the state that a communicator's threads share, and the small functions that change it
 * under its lock: failures, the lanes' mailboxes, requests and ledgers.
 *
 * The room owns struct trib_comm, struct trunk, struct lane, struct trib_request and struct
 * ledger. It starts no thread, opens no socket and sends no packet; other threads are woken by
 * their eventfd or by `changed`. It must not touch the rooms above: transport, trees, requests,
 * sharing, failover, api.
 *
 * Threads: one for each lane (transport), one for failover, one for turns (sharing), and the
 * user's own. Locks are taken in this order: trunks_lock, posting, slot_driver, lock, a lane's
 * lock.
 */
#ifndef TRIB_WORKER_COMM_COMM_H
#define TRIB_WORKER_COMM_COMM_H

#include "base/settings.h"
#include "path/balance/places.h"
#include "path/virtual/discovery.h"
#include "plan/tree/tree.h"
#include "worker/comm/lane.h"
#include "worker/comm/lane_engine.h"
#include "worker/comm/ledger.h"
#include "worker/comm/request.h"
#include "worker/comm/ring_mail.h"
#include "worker/comm/trunk.h"
#include "worker/dense/striping.h"
#include "worker/turns/star.h"
#include "worker/turns/step_profile.h"
#include "worker/ways/way_choice.h"

#include <pthread.h>
#include <stdatomic.h>

struct channel_listener;

struct comm_config {
	struct udp_address aggregator; /* of the one star, if there are no trees */
	struct forest *trees;          /* owned by the communicator; NULL: the star */
	unsigned own_trees;            /* the first trees; the others are shared. 0: all are own */
	struct udp_address controller; /* source of trees; length 0: none */
	struct udp_address
		rendezvous;    /* where rank 0 listens if nothing else is given; length 0: none */
	const char *launcher;  /* its environment has named the rendezvous; NULL: the user has */
	enum ring_choice ring; /* which vectors go around a ring */
	enum way_wish way;     /* of large vectors, if there is an aggregator */
	/* Of a communicator that may have no aggregator: where this rank listens for a ring, and
	 * the seats of all ranks, if the communicator was split from another one or the
	 * controller's plan has no trees. Owned by the communicator; NULL: none. */
	struct channel_listener *ring_listener;
	struct ring_seat ring_seat, *ring_seats;
	int seat, seats; /* rank and size as the process was started; -1: any */
	int rank, size;
	bool asks; /* the user gave no rank: a controller may assign one */
	uint16_t job;
	uint64_t cookie;
	uint64_t key;        /* identifies the communicator within the job */
	uint32_t generation; /* of the plan that the trees are from */
	/* The generation in which this communicator began, or in which a process last came in
	 * before the communicator was open. 0: no controller. */
	uint32_t epoch;
	double timeout_s;
	void (*idle)(void *idle_context); /* trib_options.idle; NULL: none */
	void *idle_context;
	uint64_t pool_bytes, rate_bps;
	unsigned lanes; /* for each tree; 0: chosen by the number of cores */
	unsigned cores; /* this worker's share of the host's cores */
	unsigned mtu;
	unsigned wire_bits;        /* of an element of a float sum, at least; 0: by the type */
	bool tcp;                  /* the plane; false: udp */
	enum engine_choice engine; /* which vectors go through slots */
	uint32_t slots;            /* that a slot lane asks for */
	bool bucket;               /* pace in user space even if the kernel could */
	bool multicast;
	const char *pin;
	struct udp_options socket;
};

/* The paths that lanes may take; see transport/lane_paths.h. */
struct lane_paths {
	unsigned n;    /* 0: lanes send from any port */
	unsigned tree; /* the paths lead to this one's aggregator */
	enum path_found found;
	struct virtual_path paths[PATHS_MAX];
	pthread_mutex_t lock;
	_Atomic uint64_t heard_at; /* when a lane last heard an aggregator */
	struct places places;      /* under `lock`: the lane on each path, by the lane's number */
};

_Static_assert(LANES_MAX <= PLACES_FLOWS, "each lane has a place");

/* The lanes that a request is split over: those of the own trees, or of the shared star. */
struct lane_set {
	unsigned first;           /* in trib_comm.lanes */
	struct striping striping; /* n is 0: there are no such lanes */
	bool slot;                /* slot lanes: small vectors only */
	/* The lanes' engine, if the thread that waits for a request drives them; NULL: no. */
	const struct lane_engine *driven;
};

/* Progress of leaving one shared star and joining the next; sharing/star_switch.c. */
struct star_switch {
	struct udp_address to;
	struct join_attempt *joining; /* NULL: not joining */
	uint64_t deadline, bye_at;
	unsigned byes;
	bool is_gone;  /* the aggregator that is left has ended: a BYE would not be heard */
	bool is_apart; /* the star's trunk exists, and its lanes are not in trib_comm.lanes */
};

/* What a lane has learned about the end of the shared star. */
struct star_loss {
	trib_status status; /* TRIB_OK: nothing */
	uint32_t rank;      /* the rank concerned, as in struct wire_abort */
	char text[512];
};

/* Trials of ways: requests/request_trial.c. */
struct trial {
	struct way_choice choice; /* under `posting`, or of the trial's thread while it is busy */
	struct trib_request vote; /* ranks agree on the times of a trial */
	uint64_t value;           /* another value that ranks agree on by a vote */
	uint64_t voted;           /* 0: not yet */
	uint64_t took;            /* nanoseconds of a call of a trial; 0: it has not ended */
	bool runs;                /* its thread has started; under `posting` */
	bool met;                 /* ranks have tried to reach each other; as `choice` */
	bool apart;               /* they cannot: only the aggregator is left; as `choice` */
	bool told;                /* the log says that the ring is faster; the thread's */
	pthread_t thread;
	/* Under `lock`: */
	bool busy;                         /* the thread has a request in hand */
	struct trib_request *first, **end; /* requests that have not started yet */
	_Atomic bool holds;                /* busy, or there is a first one; read without `lock` */
	pthread_cond_t wake;               /* there is one again, or the communicator closes */
};

#define COMM_CALLS 64u /* calls that a rank can still name when an aggregator asks */

struct trib_comm {
	struct comm_config config;
	_Atomic unsigned n_trunks;
	_Atomic unsigned n_lanes;
	struct lane_paths paths;
	struct lane_page *lane_page; /* NULL: none, see transport/lane_page.h */
	unsigned lanes_wanted;       /* for each trunk; an aggregator may grant fewer */
	uint32_t payload;            /* bytes of a full fragment, the same in all trees */
	struct trunk trunks[FOREST_TREES_MAX];
	struct lane *lanes[LANES_ALL]; /* of all trunks, one trunk after the other */
	struct lane_set own, shared, small;
	struct udp_address first_aggregator; /* ever; a ring listens on the route to it */
	struct ring_thread *ring;            /* ranks/ring_thread.h; NULL: there is no ring */
	struct ring_mail *ring_mail;         /* NULL: the same */
	struct direct_io *direct;            /* ranks/direct_io.h; NULL: the same */

	/* Held by the thread that drives the slot lanes; see transport/lane_slot.c. */
	pthread_mutex_t slot_driver;
	_Atomic unsigned driver_waits; /* threads that sleep in comm_wait_driver() */
	/* Under slot_driver, by the lane's index; NULL: none, or it has ended. */
	struct lane *slot_lanes[SLOT_LANES_MAX];
	unsigned slot_lanes_end; /* from here on there were never any */
	uint64_t nonce;          /* identifies this process to the controller */
	unsigned forks;          /* of the process that opened it: api/forked.c */
	_Atomic bool closing;
	_Atomic bool slot_mail; /* rounds were posted to slot lanes */
	_Atomic bool draining;  /* about to leave: find out soon which ranks still need results */

	_Atomic bool no_multicast; /* multicast was tried and never arrived */
	_Atomic uint16_t away;     /* for reports: struct wire_report */
	_Atomic uint16_t waited;   /* for reports: 1/1000 of time waited, plus 1 */

	/* Failover: with a controller, the communicator outlives its trees. */
	bool keeps_ledgers;
	bool opened; /* the user has the communicator: rank and size can no longer change */
	bool failover_runs;
	int planned_rank, planned_size;  /* ours in the controller's newest plan */
	char why_no_plan[WIRE_TEXT_MAX]; /* what the controller said last; "": nothing */
	uint32_t planned_since;          /* no process has come in since this plan; 0: unknown */
	uint32_t controller_token;       /* proves our address there: path/address_proof.h */
	uint64_t planned_seats, seats;   /* in the newest plan; in the plan at the opening */
	_Atomic uint64_t lost;           /* ranks of the newest plan that are dead or have left */
	_Atomic uint64_t suspected_at;   /* when a lane last raised a suspicion */
	_Atomic uint64_t ring_waiting;   /* bits of ranks that have not made a call of the ring */
	_Atomic uint64_t direct_waiting; /* bits of ranks that have not made a direct call */
	pthread_t failover_thread;

	/* Telemetry for the reports: bit/s that each lane's path carries. */
	_Atomic uint64_t carried[LANES_ALL];

	/* Held while rounds are made and posted. It also guards the turn, the star and next_start.
	 */
	pthread_mutex_t posting;
	struct turn turn;
	struct star star;
	struct trial trial;
	uint64_t next_start; /* requests below this number have started */

	/* Held by the thread that changes trunks: failover, or turns when the star changes. */
	pthread_mutex_t trunks_lock;
	struct star_switch star_switch;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under `lock`: */
	struct turn_client *turn_client; /* NULL: no aggregator is shared */
	int turn_wake_fd;                /* wakes the turn client's thread */
	trib_status failed;              /* TRIB_OK: not failed */
	char failure[512];
	bool unhurt; /* failed when aggregators were lost and no request ran, and none since */
	trib_status trees_lost; /* not TRIB_OK: an aggregator is lost, and failover has to act */
	struct star_loss star_loss;
	struct ledger *ledgers, **ledgers_end;
	trib_stats past;         /* counts of lanes that are closed */
	bool recovering;         /* failover replaces the trees: posted requests wait */
	bool suspects;           /* a lane hears nothing: failover has to ask the controller */
	bool controller_heard;   /* the controller has answered since other trees were asked for */
	bool told;               /* our failure was reported to the aggregators */
	_Atomic bool stop_lanes; /* failed: lanes let go of users' buffers and end */
	_Atomic bool stop_ring;  /* failed: the same for the ring, which outlives lost trees */
	unsigned quiet_lanes;    /* lanes that have let go of users' buffers */
	unsigned in_flight;      /* requests that were posted and have not ended */
	unsigned started[2];     /* requests that have started and not ended: [0] own, [1] shared */
	uint64_t started_bytes;
	uint64_t came_at; /* when a request last ended */
	uint64_t busy_at; /* when a request last ended, or started after a pause */
	struct step_profile profile;
	struct trib_request *requests;
	/* Not under `lock`: memory of a request and of a round that are over, for the next ones;
	 * NULL: none. So a small call allocates nothing. */
	_Atomic(struct trib_request *) spare_request;
	_Atomic(struct round *) spare_round;
	struct wire_call calls[COMM_CALLS]; /* the last ones, by their numbers */
	uint32_t n_calls;                   /* what the library posts by itself does not count */
	uint32_t signature;                 /* of the last call, and so of all */
	struct residual *residuals;
	uint32_t dithers; /* calls whose sums are rounded by chance */
	uint64_t rounds, posts, splits;
	_Atomic uint64_t wait_ns;      /* time that users' threads have waited; without `lock` */
	_Atomic uint64_t waited_since; /* start of the span that `waited` is measured over; 0: none
	                                  yet. Written under `lock` */
	uint64_t waited_then;          /* wait_ns at the time waited_since */
};

/* The communicator's key on the wire to aggregators: ranks of different epochs do not meet. */
uint64_t comm_key(const struct comm_config *config);
/*
 * Fails the communicator. Only the first failure counts. If the communicator has a controller,
 * the loss of an aggregator is no failure: failover is woken instead.
 */
void comm_fail(struct trib_comm *comm, trib_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for an ABORT that names a rank; UINT32_MAX: none. A dead rank is noted in `lost`. */
void comm_fail_told(struct trib_comm *comm, trib_status status, uint32_t rank, const char *text);
/*
 * A lane has lost its aggregator. If that is the shared star, the turn client decides what
 * follows, and this returns true. False: the caller has to fail the communicator.
 */
bool comm_note_star_lost(struct lane *lane, trib_status status, uint32_t rank, const char *text);
/*
 * The call for a report: the one that the aggregator `asks` for (struct wire_status), if it was
 * posted; else the oldest one that has not ended; else the last one.
 */
struct wire_call comm_call(struct trib_comm *comm, uint32_t asks);
/* Has the communicator failed, or is it being closed? */
bool comm_is_over(struct trib_comm *comm);
/* Adds the counts of the lanes from `first` on; the caller holds `lock`. */
void comm_count(const struct trib_comm *comm, unsigned first, trib_stats *all);
/* "1, 3" */
void comm_list_ranks(uint64_t mask, char *out, size_t size);
/* Wakes the turn client's thread, if any. The caller holds `lock` or `posting`, or owns the client.
 */
void comm_wake_turns(const struct trib_comm *comm);

/*
 * A thread that waits for a request drives the slot lanes, or the channels to other ranks, and
 * holds their mutex. Another thread may do so already, for a request that ends much later. Then
 * this waits until that thread stops, the request has ended, or the deadline has passed. True: the
 * caller has the mutex.
 */
bool comm_wait_driver(struct trib_comm *comm, pthread_mutex_t *driver,
                      const struct trib_request *request, uint64_t deadline);
/* Wakes threads in comm_wait_driver(). */
void comm_wake_drivers(struct trib_comm *comm);

/* Gives such a mutex back. The caller does not hold `lock`. */
static inline void comm_leave_driver(struct trib_comm *comm, pthread_mutex_t *driver)
{
	pthread_mutex_unlock(driver);
	if (atomic_load(&comm->driver_waits))
		comm_wake_drivers(comm);
}

/* Do small vectors go through slots? The caller holds `posting`. */
static inline bool comm_has_slots(const struct trib_comm *comm)
{
	return comm->small.striping.n != 0;
}

/*
 * Does a request that fits slots use them? All of its vectors cross the link of one aggregator, as
 * in a star. In trees, links carry sums of subtrees, so that only the smallest ones pay off.
 */
static inline bool comm_takes_slots(const struct trib_comm *comm, bool fits, bool tiny)
{
	const struct forest *trees = comm->config.trees;
	bool is_star = !trees || (trees->n_trees == 1 && trees->trees[0].n_nodes == 1);

	return fits && comm_has_slots(comm) &&
	       (is_star || tiny || comm->config.engine == ENGINE_SLOT_FIRST);
}

/* Has the communicator no aggregator? Then all requests go among the ranks. */
static inline bool comm_is_ring(const struct trib_comm *comm)
{
	return comm->config.rendezvous.length || comm->config.ring_seats;
}

static inline bool trunk_is_shared(const struct trib_comm *comm, const struct trunk *trunk)
{
	return comm->config.own_trees && trunk >= comm->trunks + comm->config.own_trees;
}

#endif
