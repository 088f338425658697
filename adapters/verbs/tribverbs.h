/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapters/verbs owns libtribverbs.so: preloaded under an unmodified RDMA program, it gives each
 * reliable connection (RC) all paths between the two hosts. It replaces functions of libibverbs and
 * carries out what src/path/verbs decides. It must not decide about order, paths or failures.
 *
 * The application's QP stays as it is. Beside it, the library has one hidden QP for each path, with
 * the same protection domain and the same completion queue (CQ). So keys of memory hold, and events
 * of the CQ come as always. Completions of hidden QPs are taken out when the application polls, or
 * by the library's thread if the application does not poll.
 *
 * Locks, in this order: world, the CQ's, the QP's, the table's. ibv_post_send waits for none of
 * them: if another thread has the QP, the request goes into a ring, and that thread posts it
 * (work_queue.c). ibv_poll_cq has to wait, as drivers do: if a program asks for events and then
 * finds no completion, none may be in the hands of another thread. ibv_post_recv waits for the QP
 * only.
 */
#ifndef TRIB_ADAPTERS_VERBS_H
#define TRIB_ADAPTERS_VERBS_H

#include "path/verbs/note.h"
#include "path/verbs/pact.h"
#include "path/verbs/splitter.h"
#include "path/verbs/work_ring.h"

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#define DEPTH_EXTRA 64u          /* places in a hidden send queue beside those of chunks */
#define ADVERTS_MAX 48u          /* notes about receives in flight */
#define OWN_QP PATHS_MAX         /* the place of the application's QP among the paths */
#define GONE_QP (PATHS_MAX + 1)  /* it was destroyed; its completions are dropped */
#define OTHER_QP (PATHS_MAX + 2) /* not of the library */
#define PORT 1                   /* the only one that is used */
#define PIECES_MAX 64u           /* of memory in one request */
#define ID_KIND_SHIFT 62
#define ID_VALUE ((1ull << ID_KIND_SHIFT) - 1)

/* The upper bits of wr_id of all that the library posts. */
enum id_kind { ID_WHOLE, ID_CHUNK, ID_RECEIVE, ID_CONTROL };
/* The values of ID_CONTROL. */
enum control_id { CONTROL_ADVERT, CONTROL_PROBE };

struct shared_cq {
	struct ibv_cq *cq;
	pthread_mutex_t lock;
	struct ibv_wc *ready; /* ring of completions for the application */
	unsigned capacity, first, n;
	unsigned spare;      /* places for completions of hidden QPs */
	atomic_uint qps;     /* QPs that have their hidden QPs here */
	atomic_uint polls;   /* of the application */
	unsigned seen_polls; /* by the library's thread */
};

struct posted_send {
	struct ibv_send_wr wr;
	struct ibv_sge *pieces;
	uint8_t *inline_bytes;
};

struct posted_receive {
	uint64_t id, address;
	uint32_t length, key; /* length 0: its memory cannot be named in one note */
	int n_pieces;
};

enum link_mode {
	LINK_PLAIN,  /* not connected, or without paths: nothing is split */
	LINK_ASKING, /* the peer is asked whether it has the library */
	LINK_MULTI,
	LINK_GONE, /* the peer has left, or died */
};

/* What a number of a QP stands for: the application's own QP, or the hidden one of a path. */
struct seat {
	struct link_qp *link;
	unsigned place;
};

/* A QP of the application, and the hidden ones. */
struct link_qp {
	struct ibv_qp *qp;
	struct ibv_context *context;
	pthread_mutex_t lock;
	struct seat seats[OWN_QP + 1];
	struct shared_cq *send_cq, *receive_cq;
	struct link_qp *next; /* in the list of all */
	bool signal_all;
	uint32_t send_max, receive_max, pieces_max, receive_pieces_max, inline_max;

	struct splitter splitter;
	struct split_entry *entries;
	struct posted_send *sends; /* ring like the splitter's */
	uint32_t *keys;            /* of the receives that SENDs go to; a ring like that of notes */

	/* Requests that found the link held by another thread. */
	struct work_ring waiting;
	_Atomic uint64_t *waiting_turns;
	struct posted_send *waiting_sends;
	atomic_uint unfinished; /* requests of the application that are not reported */
	struct batch *batch;    /* of ibv_wr_start; NULL: the QP has no such calls */

	uint64_t posting; /* the request that ibv_post_send is posting; UINT64_MAX: none */
	int refused;      /* errno of that request, if the driver did not take it */
	bool late;        /* a request is done without a completion of a QP */

	struct posted_receive *receives; /* ring */
	struct ibv_sge *receive_pieces;  /* receive_pieces_max for each */
	uint32_t receive_ring;           /* its places; a power of 2 */
	unsigned receive_held;           /* receives that the own QP has */
	unsigned receive_lost;           /* receives that it has flushed when it failed */
	uint64_t receive_posted, receive_done, advertised;
	int advert_path; /* -1: none */
	unsigned adverts;

	struct ibv_qp_attr init, rtr, rts; /* what the application has set */
	atomic_bool mending;               /* the own QP has failed, and will be connected again */
	enum link_mode mode;
	struct pact own, peer;
	struct ibv_qp *hidden[PATHS_MAX];
	uint8_t gid_index[PATHS_MAX];
	unsigned posted[OWN_QP + 1]; /* requests without a completion */
	bool probing[PATHS_MAX];
	uint64_t probe_sent[PATHS_MAX];
	struct note *rings; /* what the peer writes: receives, then lengths */
	struct ibv_mr *rings_mr;
	unsigned n_paths; /* of both sides; 0: no agreement */

	int sockets[PATHS_MAX];       /* one at each own address, for datagrams about paths */
	uint64_t heard_on[PATHS_MAX]; /* time of the last datagram of the peer on each path */
	uint64_t asked, asked_since, heard, gone_since;
	bool told, wants_send;
};

/* What the library replaces. */
struct real_verbs {
	struct ibv_device **(*get_device_list)(int *);
	struct ibv_context *(*open_device)(struct ibv_device *);
	struct ibv_cq *(*create_cq)(struct ibv_context *, int, void *, struct ibv_comp_channel *,
	                            int);
	int (*destroy_cq)(struct ibv_cq *);
	struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
	int (*destroy_qp)(struct ibv_qp *);
	int (*modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
	struct ibv_mr *(*reg_mr_iova2)(struct ibv_pd *, void *, size_t, uint64_t, unsigned);
	int (*dereg_mr)(struct ibv_mr *);
	/* Operations of contexts. All contexts of a provider have the same ones. */
	int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
	int (*post_recv)(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **);
	int (*poll_cq)(struct ibv_cq *, int, struct ibv_wc *);
	int (*bind_mw)(struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *);
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *, struct ibv_qp_init_attr_ex *);
};

/* real_verbs.c: what libibverbs has behind the names that the library replaces. */
extern struct real_verbs real;
/* Before any function of libibverbs is used. Operations of contexts come with the first one. */
void real_find(void);

/* object_table.c: from objects of libibverbs to those of the library. */
void table_add_number(const struct ibv_context *context, uint32_t number, const struct seat *seat);
/* The QP is destroyed. Its completions may still be in the CQ. */
void table_remove_number(const struct ibv_context *context, uint32_t number);
/* A QP of another kind has the number now. */
void table_forget_number(const struct ibv_context *context, uint32_t number);
/* If its link is NULL, the place is GONE_QP or OTHER_QP. The link lasts while the caller has the
 * lock of one of its CQs. */
const struct seat *table_find_number(const struct ibv_context *context, uint32_t number);
struct link_qp *table_find_qp(const struct ibv_qp *qp);
void table_add_cq(const struct shared_cq *cq);
void table_remove_cq(const struct shared_cq *cq);
struct shared_cq *table_find_cq(const struct ibv_cq *cq);
void table_add_mr(const struct ibv_mr *mr);
void table_remove_mr(const struct ibv_mr *mr);
bool table_find_key(uint32_t lkey, uint32_t *rkey);
extern pthread_mutex_t world; /* connecting, leaving, and the library's thread */
/* All QPs; with world. */
extern struct link_qp *links;

/* link_life.c: the life of a link. */
struct link_qp *link_create(struct ibv_qp *qp, const struct ibv_qp_cap *cap, bool signal_all);
void link_destroy(struct link_qp *link);
/* The application has changed the state of its QP. */
void link_modified(struct link_qp *link, const struct ibv_qp_attr *attr, int mask);

/* hidden_qps.c: with world, without the link's lock. */
/* Finds own addresses, each of which is a path. */
unsigned hidden_find_addresses(struct link_qp *link);
bool hidden_create(struct link_qp *link);
void hidden_destroy(struct link_qp *link);
/* With the link's lock. */
void hidden_free_rings(struct link_qp *link);
void hidden_fail(struct link_qp *link, unsigned path);
bool hidden_renew(struct link_qp *link, unsigned path);
bool hidden_connect(struct link_qp *link, unsigned path);
/* How packets of a path travel. */
void hidden_route(const struct link_qp *link, unsigned path, struct ibv_ah_attr *route);
/* A random number of a first packet. */
uint32_t hidden_psn(void);
/* A completion says that the path failed. */
void link_path_failed(struct link_qp *link, unsigned path, enum ibv_wc_status status);

/* work_queue.c */
bool work_allocate(struct link_qp *link, uint32_t capacity);
void work_release(struct link_qp *link, uint32_t capacity);
/* The application resets its QP: what it has posted is forgotten. */
void work_reset(struct link_qp *link);
void link_lock(struct link_qp *link);
/* Also posts what other threads have added meanwhile. */
void link_unlock(struct link_qp *link);
/* ibv_post_send. */
int work_post(struct link_qp *link, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* False: the send queue is full. */
bool work_begin(struct link_qp *link);
/* A request is reported, or was refused. */
void work_end(struct link_qp *link);

/* send_queue.c: with the link's lock. */
/* Copies what a request points to. */
void send_keep(const struct link_qp *link, struct posted_send *send, const struct ibv_send_wr *wr);
/* One request, for which work_begin has made room. An error: the driver refused it, and it is
 * forgotten. */
int send_start(struct link_qp *link, const struct ibv_send_wr *wr);
/* The same for a request that ibv_post_send has taken already: an error becomes a completion. */
void send_start_late(struct link_qp *link, const struct ibv_send_wr *wr);
/* Binds a memory window, which drivers post by themselves. */
int send_bind(struct link_qp *link, struct ibv_mw *mw, const struct ibv_mw_bind *bind);
/* Posts what the splitter has to post. */
void send_pump(struct link_qp *link);
/* A completion of a request in the send queue of the own QP or a hidden one. */
void send_completed(struct link_qp *link, unsigned place, const struct ibv_wc *wc);
/* The next completion for the application. */
bool send_take_done(struct link_qp *link, struct ibv_wc *wc);
bool send_find_receive(void *user, uint64_t receive, uint32_t length, uint64_t *remote);
bool send_probe(struct link_qp *link, unsigned path);
/* Requests may be done without a completion of a QP. The completion of a probe is an event for a
 * program that sleeps. */
void send_done_late(struct link_qp *link);

/* own_qp.c: with the link's lock. */
void own_step(struct link_qp *link);
/* A completion of the own QP. True: the request will go again. */
bool own_is_lost(struct link_qp *link, enum ibv_wc_status status);
/* The peer is gone: all that is posted fails. */
void own_break(struct link_qp *link, enum ibv_wc_status status);

/* receive_queue.c: with the link's lock. */
int receive_post(struct link_qp *link, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* False: the own QP has failed, and the receive will be posted again. */
bool receive_completed(struct link_qp *link, struct ibv_wc *wc);
/* Posts all receives that have not been consumed. */
bool receive_post_again(struct link_qp *link);
/* The own QP has failed for good: the next receive that it has flushed. */
bool receive_take_lost(struct link_qp *link, struct ibv_wc *wc);
/* Tells the peer where receives are. */
void receive_advertise(struct link_qp *link);
/* The path of the notes has failed and is fenced, or the agreement is new. */
void receive_advertise_again(struct link_qp *link);

/* completion.c */
int cq_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc);
/* The library's thread: takes what the application does not take. */
void cq_progress(struct shared_cq *cq);
/* Hands over what is done without a completion of a QP. */
void cq_take_late(struct link_qp *link);

/* agreement_send.c: datagrams to the peer about paths. */
/* A socket at an address of the QP. Negative: errno. */
int agreement_socket(const uint8_t address[16], uint32_t qpn);
/* The path that the application's QP takes. */
unsigned agreement_own_path(const struct link_qp *link);
void agreement_tell(struct link_qp *link, uint64_t now);
/* Says that the QP is going. */
void agreement_leave(struct link_qp *link);
bool agreement_is_from_peer(const struct link_qp *link, const struct sockaddr_in *from);
/* The thread looks at all links. */
void agreement_wake(void);
/* What agreement_wake makes readable. Negative: errno. */
int agreement_wake_open(void);

/* agreement.c: the library's thread, and what the peer says. It calls all others. */
/* Starts the library's thread, if it does not run. False: it cannot. */
bool agreement_start(void);

/* work_api.c: ibv_wr_start and the like. */
void work_api_replace(struct ibv_qp *qp);
void work_api_forget(struct link_qp *link);

#endif
