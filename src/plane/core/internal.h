/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share, and nobody else sees. */
#ifndef TRIB_PLANE_CORE_INTERNAL_H
#define TRIB_PLANE_CORE_INTERNAL_H

#include "engine/uplink.h"
#include "path/flight.h"
#include "path/hearing.h"
#include "plan/losses.h"
#include "plan/rates.h"
#include "plane/core/aggregator.h"
#include "plane/xdp/xdp.h"
#include "wire/brief.h"
#include "wire/parse.h"

#include <pthread.h>
#include <stdatomic.h>

#define COMMS_MAX 1024u
#define THREADS_MAX WIRE_LANES_MAX
#define TICK_NS 50000000ull

/* Packets that were dropped, by the first reason found; wire_fault's come first. */
enum drop {
	DROP_UNKNOWN = WIRE_FAULTS_END, /* no such job or communicator */
	DROP_COOKIE,
	DROP_EPOCH,
	DROP_LANE,
	DROP_STRANGER,
	DROP_REPLAYED,   /* a report older than one that has come */
	DROP_UNEXPECTED, /* a type that is not for an aggregator */
	DROP_REFUSED,    /* a JOIN that asks for what cannot be */
	DROP_RESULT,     /* a parent's result that is not of what went up */
	DROPS_END,
};

struct stats;

#define LEAVES_MAX 64u

/* A request to leave trees: those of one plan of a communicator, or all. */
struct leave {
	uint16_t job;
	uint64_t key;
	uint32_t generation;
	bool all;
	char why[200];
};

struct counters {
	uint64_t packets, bytes; /* taken in, all kinds */
	uint64_t payload;        /* bytes of payload that were added to sums */
	uint64_t results, repeats, reports, sends;
	uint64_t raised, lowered; /* sums that went up, results that came from there */
	uint64_t verdicts[DENSE_VERDICTS_END];
	uint64_t drops[DROPS_END];
};

/* Over all threads, and the kernel. */
struct totals {
	struct counters sum;
	double cpu_s, kernel_s;
	uint64_t kernel_packets, kernel_payload, kernel_results, kernel_busy;
	uint64_t kernel_raised, kernel_lowered, kernel_left;
	uint64_t kernel_queued, kernel_full;
};

struct child {
	struct wire_join join;      /* as it asked to be let in */
	struct udp_address address; /* of its lane 0 */
	uint64_t cookie;            /* that it has shown */
	uint64_t asked_at;          /* when it last asked */
	uint32_t asked_bytes;       /* and with how long a packet: answers are as long */
	uint64_t here;              /* while it waits itself: ranks that have come there */
};

/* The aggregator above, whose child a communicator is as a whole. */
struct parent {
	struct udp_address address;   /* of its lane 0 */
	uint8_t child;                /* our index there */
	bool telling, asking, joined; /* who has come; to be let in; it has let us in */
	_Atomic bool echoed;          /* our good-bye */
	uint64_t nonce, asked_at, heard_at, present;
	uint64_t since;               /* it is asked */
	unsigned asks, again;         /* again: in full length since a shorter one came back */
	unsigned refused;             /* times in a row that its port was closed */
	uint32_t full, came, settled; /* payloads: may fit the path; been through; used */
	uint32_t payload, lanes, cells, dead_after_ms;
	bool closed;              /* its port was, when we last asked */
	char text[WIRE_TEXT_MAX]; /* why it waits itself */
	uint64_t bye_since;
	/* As in its WELCOME: */
	uint64_t cookie;
	uint16_t comm, epoch;
	uint32_t rate;            /* that it gives each lane at first, as on the wire */
	struct udp_address group; /* lane 0's */
};

/* A communicator: shared by all threads, constant once it runs, but for `failed`. */
struct comm {
	uint64_t key, cookie;
	uint16_t job, id, epoch;
	uint16_t tree;
	uint32_t generation;
	uint32_t size, payload, lanes, cells;
	uint32_t dead_after_ms;
	struct wire_join first; /* the first child's: all others must be of the same tree */
	uint64_t ranks;         /* that come together here, as bits */
	uint64_t covered;       /* of those, who has joined */
	uint64_t present;       /* children that have joined: each has the lowest of its ranks */
	uint64_t forming;       /* children that wait for children of their own, and have said so */
	_Atomic uint64_t gone;  /* children that have left */
	struct child children[WIRE_CHILDREN_MAX];
	struct parent parent;
	struct udp_address group;          /* lane 0's; lane l's port is l higher */
	uint64_t grouped;                  /* children that it is offered to */
	uint64_t rival_nonce, rival_since; /* who asks for a rank that is taken, and since when */
	uint64_t created_at, failed_at, pool_bytes;
	bool has_parent;
	bool running; /* all ranks are in, and the parent agrees */
	bool retired; /* over; freed when no lane holds it any more */
	_Atomic bool failed;
	struct wire_abort abort;     /* written before `failed` is set */
	_Atomic uint32_t idle_lanes; /* all children have left, and nothing goes up any more */
	_Atomic unsigned users;      /* lanes that hold it */
	_Atomic unsigned busy_lanes; /* with sums under way; crowd.c */
	_Atomic bool counted;        /* among those that have some */
	uint32_t kernel_lanes; /* those that the kernel sums, as bits; with the lock of watch.c */
	char kernel_why[256];  /* the others: why not */
};

struct result_entry {
	uint64_t position;
	uint8_t child;  /* WIRE_ALL: whoever wants it; else a repeat for one */
	uint8_t to;     /* tcp: what the cell says, so that sending need not look there */
	uint16_t bytes; /* ... header included */
};

/* Whether a child gets what the kernel sends. */
struct watch {
	uint64_t next;         /* the first fragment to look at */
	uint64_t asked_end;    /* nothing was asked for from here on */
	uint32_t asked, heard; /* of late, results that it had to ask for, and others */
};

/* Whether the parent gets the sums that the kernel sends. */
struct watch_up {
	uint64_t launched; /* of those, how many are in the lane's flight */
	uint64_t heard;    /* results of sums that only the kernel had sent, up to the last look */
	uint32_t astray, arrived; /* of late */
	bool over;                /* it sends no more */
};

/* What a lane has to do with the sharing of links: rates.c. In bits a second. */
struct lane_rates {
	struct lane_rates *next;
	const struct comm *comm;
	uint64_t members;
	bool listed, has_parent;
	/* Written by the lane's thread, with the lock, as others look at it: */
	bool works;      /* packets come, or are about to */
	uint64_t active; /* children that send; 0: nobody has said that he does */
	double above;    /* what the parent gives; 0: no limit */
	double factor;   /* of its share, as losses leave it */
	double want[WIRE_CHILDREN_MAX];
	uint64_t said; /* children that are ranks and have said what they want */
	/* With the lock: */
	uint64_t gone; /* children that have left */
	double given[WIRE_CHILDREN_MAX];
	/* The lane's thread alone: */
	uint32_t above_serial, seen, copied;
	double copy[WIRE_CHILDREN_MAX];      /* of given[], as of serial `copied` */
	uint32_t told[WIRE_CHILDREN_MAX];    /* what each child knows, as on the wire */
	uint64_t resting;                    /* of the active ones, who has said that he rests, */
	uint64_t rest_at[WIRE_CHILDREN_MAX]; /* ... and when that is to be believed */
	uint64_t seen_at;                    /* when something last came */
	struct losses losses;
};

#define RATES_CHILDREN_MAX 1024u

struct rates {
	pthread_mutex_t lock;
	_Atomic double
		capacity;   /* of the link, in bits a second; 0: unknown, nobody is held back */
	char interface[64]; /* that says how fast it is; "": none is asked */
	bool looked;        /* for one */
	uint64_t look_at;   /* when to ask again */
	struct lane_rates *lanes;
	_Atomic uint32_t serial;
	struct rate_child children[RATES_CHILDREN_MAX];
	double given[RATES_CHILDREN_MAX];
};

/* One lane of one communicator, owned by one thread. */
struct lane {
	struct dense_lane *dense;
	struct dense_pool pool;
	struct xdp_slot *xdp; /* the kernel shares the cells; NULL: it does not */
	bool in_kernel;       /* and it sums in them, */
	bool rests;           /* but not now: its results need too many frames */
	uint32_t open;        /* cells that wait for somebody; counted where there is a capacity */
	uint32_t stride;      /* of packets that lie side by side, so that many leave as one */
	unsigned index;
	struct comm *comm;
	struct udp_address addresses[WIRE_CHILDREN_MAX];
	uint32_t stamps[WIRE_CHILDREN_MAX]; /* of each child's newest report */
	uint64_t known;                     /* children whose address is known */
	uint64_t hears;                     /* children that hear multicast */
	uint64_t probe_at;                  /* when the group was last tried */
	unsigned probes;                    /* how often it was */
	uint64_t last[WIRE_CHILDREN_MAX];   /* fragments that each child was the last to bring */
	uint64_t judged[WIRE_CHILDREN_MAX]; /* packets that it knows the fate of, */
	uint64_t missed[WIRE_CHILDREN_MAX]; /* and how many of those were lost on their way */
	uint32_t told_judged[WIRE_CHILDREN_MAX], told_lost[WIRE_CHILDREN_MAX]; /* as it last said */
	uint64_t repeated[WIRE_CHILDREN_MAX]; /* results that came to it only when sent again */
	uint16_t told_again[WIRE_CHILDREN_MAX];
	uint64_t heard_at[WIRE_CHILDREN_MAX];
	uint32_t carried[WIRE_CHILDREN_MAX]; /* what children that are ranks say of themselves */
	uint16_t waited[WIRE_CHILDREN_MAX];
	uint64_t awaits[WIRE_CHILDREN_MAX]; /* whom each child waits for, where it is an aggregator
	                                     */
	struct result_entry *queue;         /* a ring of 2 * cells entries */
	uint64_t head, tail;
	uint64_t heads[WIRE_CHILDREN_MAX]; /* tcp: each child's own */
	uint32_t recent_results;           /* of late, and how many of them each child has lost */
	uint32_t recent_losses[WIRE_CHILDREN_MAX];
	uint64_t single_until; /* no multicast until then: sends wait for the slowest link */
	struct watch watches[WIRE_CHILDREN_MAX];
	uint64_t *asked;   /* by cell: children that its result was repeated for */
	uint64_t told_low; /* the children know of this `low` at least */
	struct udp_address group;
	/* With a parent: */
	struct uplink up;
	struct flight flight;
	struct udp_address parent;
	uint64_t parent_heard_at;
	int group_fd;           /* of the parent's group; -1: none */
	struct hearing hearing; /* of that group */
	struct watch_up watch_up;
	struct lane_rates rates;
	struct lane *next_up; /* another one whose parent has given it the same id */
};

struct thread {
	struct aggregator *aggregator;
	unsigned index;
	int fd;      /* for datagrams */
	int wake_fd; /* another thread has changed what this one has to tell */
	pthread_t id;
	bool started;
	struct udp_rx *rx;
	struct udp_tx *tx;
	bool blocked;                /* the socket takes no more for now */
	bool silent;                 /* it had nothing for us when we last slept */
	struct connections *streams; /* tcp */
	uint64_t now;
	struct lane *lanes[COMMS_MAX];     /* by the communicator's id */
	struct lane *by_parent[COMMS_MAX]; /* by the id that the parent has given it */
	struct udp_rx *group_rx;           /* for what parents send to groups */
	uint64_t scratch[128][512 / 8];    /* small packets until they are sent */
	unsigned scratch_used;
	unsigned strays_left; /* that are answered until the next tick */
	unsigned ids;         /* above every id in use */
	uint32_t rates_seen;  /* of their serials, which all lanes' children know */
	uint64_t rates_at;    /* when to look at them again */
	struct counters counters;
	/* What others see: */
	pthread_mutex_t lock;
	struct counters published;
	double cpu_s;
	/* Lanes to take up or give up, from thread 0. */
	_Atomic bool mail;
	struct lane *inbox[COMMS_MAX];
	bool outbox[COMMS_MAX];
};

/*
 * What carries packets to and from children. All that is above it (lanes, the
 * registry, admission) is the same for every plane. An address names a child;
 * where there are connections, its `link` says which.
 */
struct carrier {
	const char *plane;
	bool reliable; /* it loses nothing and keeps the order */
	/* Sockets and buffers of a thread; thread 0 finds the port. */
	trib_status (*open)(struct thread *thread, const struct udp_address *listen);
	void (*close)(struct thread *thread);
	/* Gets what has come; may sleep up to TICK_NS. Then thread->now is set, and it is taken. */
	int (*fetch)(struct thread *thread);
	void (*take)(struct thread *thread, int n);
	/* Sends what is queued, as far as the sockets take it. */
	void (*flush)(struct thread *thread);
	/* Nothing had come and all is sent: sleeps until something comes, up to TICK_NS. */
	void (*rest)(struct thread *thread);
	/* A small packet, which is sealed; dropped if there is no room. */
	void (*send)(struct thread *thread, const void *packet, uint32_t bytes,
	             const struct udp_address *to);
	/* The same at once, up to the longest packet: to those who are not in yet. */
	void (*answer)(struct thread *thread, void *packet, uint32_t bytes,
	               const struct udp_address *to);
	/* Is there a way to the parent, or at least the beginning of one? */
	bool (*reach)(struct thread *thread, struct udp_address *parent);
	/* False: not all of the lane's queue could be handed over. */
	bool (*send_results)(struct thread *thread, struct lane *lane);
	/* The same for the sums that go up. */
	bool (*send_sums)(struct thread *thread, struct lane *lane);
	/* The lane's memory goes away. */
	void (*forget)(struct thread *thread, struct lane *lane);
	void (*tick)(struct thread *thread);
};

extern const struct carrier carrier_udp, carrier_tcp;

/* Communicators that have sums under way; crowd.c. */
struct crowd {
	_Atomic unsigned now, most;
	_Atomic uint64_t times; /* that one began to */
	_Atomic uint64_t over;  /* ... where more than the capacity had */
};

struct aggregator {
	struct aggregator_options options;
	struct crowd crowd;
	const struct carrier *carrier;
	uint16_t port;
	_Atomic bool stop;
	unsigned n_threads;
	struct thread threads[THREADS_MAX];
	pthread_mutex_t secret_lock; /* taken for visitors only */
	struct secret secret;
	bool has_secret;
	/* A request for counters; see stats.c. */
	pthread_mutex_t stats_lock;
	pthread_cond_t stats_done;
	struct stats *stats; /* to be filled; NULL: nobody waits */
	bool stats_good;
	_Atomic bool stats_wanted;
	/* Requests to leave; see leave.c. */
	pthread_mutex_t leave_lock;
	struct leave leaves[LEAVES_MAX];
	unsigned n_leaves;
	_Atomic bool leave_wanted, told_leave;
	/* Thread 0's alone. */
	struct comm *comms[COMMS_MAX];
	uint64_t pools;
	uint64_t started_at;
	struct udp_address group_local; /* the one interface that has multicast */
	struct rates rates;
	struct xdp_plane *xdp;
	uint64_t look_at; /* when to look at its interfaces again */
	char plane[400];  /* which plane it is, and why */
};

/* admission.c */
/* Who shows it is let in to this job. */
bool cookie_is_good(struct aggregator *aggregator, uint16_t job, uint64_t cookie);
void registry_join(struct aggregator *aggregator, const struct wire_control *header, uint32_t bytes,
                   const struct udp_address *from);

/* To a child that has asked: it is in, or has to wait. */
void admission_answer(struct aggregator *aggregator, const struct comm *comm, unsigned child);
/* All are in: sums begin, and everyone is told; or nobody is let in. */
void admission_start(struct aggregator *aggregator, struct comm *comm);
/* All children are told the same, and the communicator is over before it began. */
void admission_refuse_all(struct aggregator *aggregator, struct comm *comm, const char *why);
/* The same where other trees may help. */
void admission_abort_all(struct aggregator *aggregator, struct comm *comm, const char *why);
/* Ranks that have come, here, below, and elsewhere in the tree as far as that is known. */
uint64_t comm_arrived(const struct comm *comm);

/* place.c: where a JOIN puts its sender in a tree. */
uint64_t join_covers(const struct wire_join *join);
uint64_t join_ranks(const struct wire_join *join);
/* Can that be? Else `why` says why not. */
bool join_fault(const struct aggregator *aggregator, const struct wire_join *join, char *why,
                size_t size);
bool join_same_tree(const struct wire_join *a, const struct wire_join *b);
void hop_address(const struct wire_hop *hop, struct udp_address *out);
/* "0-2,5" */
const char *ranks_text(uint64_t ranks, char *out, size_t size);

/* parent.c: joining and leaving the aggregator above, thread 0 only. */
void parent_ask(struct aggregator *aggregator, struct comm *comm);
bool parent_take_welcome(struct aggregator *aggregator, const struct wire_control *header,
                         uint32_t bytes);
/* Not all that it needs is here yet: asks again, or tells who has come. */
void parent_tick_forming(struct aggregator *aggregator, struct comm *comm);
bool parent_is_known(const struct aggregator *aggregator, const struct wire_control *header,
                     const struct udp_address *from);
/* The aggregator that is asked has given up. False: none is. */
bool parent_take_abort(struct aggregator *aggregator, const struct wire_control *header);
void parent_check(struct thread *thread, struct lane *lane, uint64_t gap);
void parent_send_abort(struct thread *thread, struct lane *lane);
/* All children have left: true when the parent knows. */
bool parent_leave(struct thread *thread, struct lane *lane);
/* The connection to a parent is closed; thread 0 may have been asking there. */
void parent_hung_up(struct thread *thread, uint64_t link);
void parent_refused(struct aggregator *aggregator, const struct udp_address *address);

/* uplink.c: a lane's way up. */
bool uplink_open(struct aggregator *aggregator, struct lane *lane);
void uplink_close(struct lane *lane);
/* The thread takes it up, or gives it up. */
void uplink_begin(struct thread *thread, struct lane *lane);
void uplink_end(struct thread *thread, struct lane *lane);
/* The lane whose parent has sent this, or NULL. */
struct lane *uplink_find(const struct thread *thread, const struct wire_control *header);
void uplink_take_packet(struct thread *thread, struct lane *lane,
                        const struct wire_control *header);
/* A RESULT of a parent's, into its lane. False: it is none, and counted as what it is. */
bool uplink_take_result(struct thread *thread, const struct wire_header *header, uint32_t bytes,
                        const struct udp_address *from);
/* A child has reported. */
void uplink_follow(struct thread *thread, struct lane *lane, const struct wire_report *report);
/* Many sums have gone up: asks what has become of them. */
void uplink_report_raised(struct thread *thread, struct lane *lane);
void uplink_tick(struct thread *thread, struct lane *lane);
/* What the kernel has sent is in the lane's flight; and it is told what it may send from now on. */
void uplink_count_kernel(struct lane *lane);
void uplink_allow_kernel(struct lane *lane);
/* The parent shall know at once whether sums come. */
void uplink_speak(struct thread *thread, struct lane *lane);
/* A report to the parent is due at the next look. */
void uplink_say_soon(struct lane *lane);
/* What stands in front of what we send to the parent. */
struct wire_control uplink_header(const struct lane *lane, uint8_t type);

/* rates.c: how fast children may send. */
void rates_open(struct aggregator *aggregator, struct lane *lane);
void rates_close(struct aggregator *aggregator, struct lane *lane);
/* DATA comes to a lane that was at rest. */
void rates_wake(struct thread *thread, struct lane *lane);
void rates_hear(struct thread *thread, struct lane *lane, const struct wire_control *header);
/* The child has left. Thread 0 only. */
void rates_leave(struct aggregator *aggregator, const struct comm *comm, unsigned child);
/* What the child may send at first, as in a WELCOME. */
uint32_t rates_first(struct aggregator *aggregator, const struct comm *comm, unsigned child);
/* After what has come: children whose rate is another one are told at once. */
void rates_look(struct thread *thread);
void rates_fill(struct thread *thread, struct lane *lane, unsigned child,
                struct wire_status *status);
void rates_from_parent(struct thread *thread, struct lane *lane, const struct wire_status *status);
/* What the child was given, in bits a second; 0: no limit. */
double rates_given(struct aggregator *aggregator, const struct lane *lane, unsigned child);
/* What to ask the parent for, as in a REPORT. */
uint32_t rates_want(const struct thread *thread, const struct lane *lane);
void rates_tick(struct thread *thread);

/* DATA has come. */
static inline void rates_note(struct thread *thread, struct lane *lane)
{
	lane->rates.seen_at = thread->now;
	if (!lane->rates.works)
		rates_wake(thread, lane);
}

/* registry.c: the communicators, thread 0 only. */
struct comm *registry_find(struct aggregator *aggregator, uint16_t job,
                           const struct wire_join *join);
struct comm *registry_new(struct aggregator *aggregator, uint16_t job,
                          const struct wire_join *join);
/* What all children can bear. */
void registry_settle(const struct aggregator *aggregator, struct comm *comm);
/* All ranks are here: sizes are settled, lanes go to their threads. False: no memory. */
bool registry_start(struct aggregator *aggregator, struct comm *comm);
void registry_retire(struct aggregator *aggregator, struct comm *comm);
void registry_bye(struct aggregator *aggregator, struct lane *lane,
                  const struct wire_control *header, const struct udp_address *from);
void registry_tick(struct aggregator *aggregator, uint64_t gap);
void registry_refused(struct aggregator *aggregator, const struct udp_address *address);
void registry_fail_silent(struct lane *lane, unsigned child, const char *why, uint64_t silent_ns);
void registry_free(struct aggregator *aggregator);

/* failure.c: a communicator fails once, and every rank hears why. */
void registry_fail(struct comm *comm, trib_status status, unsigned rank, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void lane_send_abort(struct thread *thread, struct lane *lane, unsigned child);
/* "rank 2 (host h3, 10.0.0.3:4711, pid 99)", or the aggregator that is the child. */
const char *comm_describe_child(const struct comm *comm, unsigned child, char *out, size_t size);

/* stray.c: a cookie for a communicator of this job; false: no random numbers. */
bool cookie_make(struct aggregator *aggregator, uint16_t job, uint64_t *out);
/* A packet of a communicator that is not here: its sender is told so. */
void stray_answer(struct thread *thread, const struct wire_control *header,
                  const struct udp_address *from);
/* The answer to a goodbye: it is over, and the first echo was lost, or we have begun anew. */
void stray_echo(struct thread *thread, const struct wire_control *header,
                const struct udp_address *from);

/* watch.c: what the kernel sums, and whether what it sends arrives. */
void comm_enter_kernel(struct comm *comm, unsigned lane);
/* `hint` is for the log only. */
void comm_leave_kernel(struct comm *comm, unsigned lane, const char *hint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* How many lanes the kernel sums; *why, the others not. */
unsigned comm_in_kernel(const struct comm *comm, char *why, size_t size);
/* Ways to children have changed: can the kernel send them all? */
void lane_watch_frames(struct lane *lane);
/* The child reported; `repeat` has the results that it asks for. */
void lane_watch(struct lane *lane, unsigned child, const struct wire_report *report,
                const uint64_t *repeat);

/* crowd.c: how many use it at once. */
void crowd_enter(struct aggregator *aggregator, struct comm *comm);
void crowd_leave(struct aggregator *aggregator, struct comm *comm);
/* The lane goes away. */
void crowd_drop(struct aggregator *aggregator, struct lane *lane);
/* The controller ends a communicator here. Thread 0. */
void crowd_fence(struct thread *thread, const struct wire_control *header,
                 const struct udp_address *from);
/* The parent has answered, and misses so many of the sums that the kernel has sent. */
void lane_watch_up(struct lane *lane, uint32_t astray);

/* lane.c: the way of a packet. */
struct lane *lane_new(struct aggregator *aggregator, struct comm *comm, unsigned index);
void lane_free(struct lane *lane);
void lane_take_data(struct thread *thread, struct lane *lane, const struct wire_header *header,
                    uint32_t bytes);
void lane_take_report(struct thread *thread, struct lane *lane, const struct wire_control *header,
                      const struct udp_address *from);
void lane_take_abort(struct lane *lane, const struct wire_control *header,
                     const struct udp_address *from);
/* False: not all of the lane's results could be handed over. */
bool lane_send_results(struct thread *thread, struct lane *lane);
bool lane_queue_result(struct lane *lane, uint64_t position, uint8_t child);
/* The ranks that owe this fragment, as far as that is known here. */
uint64_t lane_waiting(const struct lane *lane, uint64_t position);
/* To all children: where the window is if that has moved on, and no result is about to say so. */
void lane_announce_low(struct thread *thread, struct lane *lane);
/* To all children: the window, and what is complete from `base` on. */
void lane_tell(struct thread *thread, struct lane *lane, uint64_t base, uint32_t bits);
/* What is not sent of a fragment, to or from children; and the same for the parent. */
struct wire_unsent lane_unsent(const struct lane *lane, uint64_t position);
struct wire_unsent uplink_unsent(const struct lane *lane, uint64_t position);
/* results.c: the header in front of the sum, to be sealed. */
void result_head(const struct lane *lane, const struct dense_cell *cell, uint8_t *packet,
                 bool again);
/* Fills thread->tx from the lane's queue; false: tx is full. */
bool results_send_udp(struct thread *thread, struct lane *lane);
/* sums.c: the same with what goes up. */
bool sums_send_udp(struct thread *thread, struct lane *lane);
void sum_head(const struct lane *lane, const struct dense_cell *cell, uint8_t *packet);

/* thread.c */
void *thread_main(void *thread);
/* A small packet, sealed and queued; dropped if there is no room. */
void thread_send(struct thread *thread, const void *packet, uint32_t bytes,
                 const struct udp_address *to);
void thread_answer(struct thread *thread, void *packet, uint32_t bytes,
                   const struct udp_address *to);
void thread_post(struct thread *thread, unsigned id, struct lane *lane);
/* Ends its sleep. Any thread may call it. */
void thread_wake(const struct thread *thread);
/* It was, or may have been, ended so. */
void thread_awake(const struct thread *thread);
/* How long a thread may sleep, in milliseconds. */
int thread_patience(const struct thread *thread);
/* Takes up lanes that thread 0 has made, and gives up those that are over. */
void thread_read_mail(struct thread *thread);
/* A packet in which the parser found this fault, or none. False: dropped, and counted. */
bool thread_take(struct thread *thread, const struct wire_header *header, uint32_t bytes,
                 enum wire_fault fault, const struct udp_address *from);

/* datagrams.c: also how a plane without datagrams answers queries. */
trib_status datagrams_open(struct thread *thread, const struct udp_address *listen);
void datagrams_close(struct thread *thread);
void datagrams_answer(struct thread *thread, void *packet, uint32_t bytes,
                      const struct udp_address *to);

/* stats.c */
void stats_open(struct aggregator *aggregator);
void stats_close(struct aggregator *aggregator);
/* Thread 0: fills what is wanted. */
void stats_serve(struct aggregator *aggregator);
void totals_read(struct aggregator *aggregator, struct totals *totals);
/* Fragments that this child was the last to bring, here or in the kernel. */
uint64_t lane_came_last(const struct lane *lane, unsigned child);

/* leave.c; thread 0: does what was asked for. */
void leaves_serve(struct aggregator *aggregator);

/* describe.c */
/* NULL: it is none. */
const char *describe_verdict(unsigned verdict);
const char *describe_drop(unsigned drop);
int describe_comm(struct aggregator *aggregator, unsigned page, char *out, size_t size);

static inline struct wire_control wire_answer(const struct comm *comm, const struct lane *lane,
                                              uint8_t type, uint8_t child)
{
	return (struct wire_control){ .magic = WIRE_MAGIC,
		                      .type = type,
		                      .cookie = comm->cookie,
		                      .job = comm->job,
		                      .comm = comm->id,
		                      .epoch = comm->epoch,
		                      .child = child,
		                      .pos = wire_pos(lane ? lane->index : 0, 0),
		                      .ack = lane ? (uint32_t)lane->dense->low : 0 };
}

#endif
