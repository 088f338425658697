/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs owns how the work requests of an RDMA queue pair (QP) travel over several paths: cutting
 * them into chunks (splitter.h), the agreement of both sides about paths (pact.h), and notes that
 * one side writes into the memory of the other (note.h). Pure: it must not touch libibverbs,
 * sockets or clocks.
 *
 * splitter: the send queue of one QP. A large request is split: its bytes travel as chunks, each an
 * RDMA WRITE or READ at its right address on a hidden QP of a path. A small request goes whole on
 * the application's own QP, or as one chunk if the own QP's path is down. If a split request
 * consumes a receive, a request of 0 bytes follows on the own QP when all chunks are in place.
 * Rules of order:
 *
 * - Requests complete in the order of posting, each once.
 * - A request on the own QP waits until all split requests before it are in place.
 * - A chunk waits for earlier chunks and requests with common bytes.
 * - Chunks of a path that failed are parked until both sides have closed its QPs. Then they go
 *   again, on any path. So a late packet never changes memory that the application has reused.
 * - The own QP can fail and be connected again, on another path. The peer then says how many
 * receives it has consumed, which tells what has to go again.
 */
#ifndef TRIB_PATH_VERBS_SPLITTER_H
#define TRIB_PATH_VERBS_SPLITTER_H

#include "path/balance/balancer.h"

#define SPLIT_DEPTH_MAX 32u                        /* chunks in flight on a path at most */
#define SPLIT_CHUNKS (PATHS_MAX * SPLIT_DEPTH_MAX) /* chunks in flight at most */
#define SPLIT_LEAST 8192u                          /* bytes: a chunk is not cut below */
#define SPLIT_REFUSALS 4u
#define SPLIT_OK 0 /* the status of a request that is done */

enum split_op {
	SPLIT_WRITE,
	SPLIT_READ,
	SPLIT_SEND,  /* its bytes go to the memory of the receive that it will consume */
	SPLIT_OTHER, /* atomics and the like: always whole */
};

/* A work request as the application posted it. */
struct split_request {
	enum split_op op;
	bool consumes;          /* a receive of the peer: SEND, and WRITE with immediate */
	bool fence;             /* waits until all READs before it are done */
	bool whole;             /* must not be split, whatever its length */
	uint64_t remote, local; /* addresses; local counts for READ, whose memory is one piece */
	uint32_t length;
};

enum split_action_kind {
	SPLIT_NOTHING,
	SPLIT_POST_CHUNK, /* on the hidden QP of `path`; its completion is splitter_chunk_done */
	SPLIT_POST_NOTE,  /* as a chunk: the note of a split request that consumes a receive */
	SPLIT_POST_WHOLE, /* on the own QP; its completion is splitter_whole_done */
	SPLIT_POST_END,   /* as a whole, 0 bytes: the request was split and consumes a receive */
};

struct split_action {
	enum split_action_kind kind;
	uint64_t request; /* number of the request: 0, 1, 2 in the order of posting */
	unsigned path;
	uint32_t id; /* of the chunk, for splitter_chunk_done */
	uint32_t offset, length;
	uint64_t receive; /* number of the receive that the request consumes */
};

struct split_done {
	uint64_t request;
	int status; /* SPLIT_OK, or what the caller gave */
};

enum split_state { CHUNK_FREE, CHUNK_AGAIN, CHUNK_FLYING, CHUNK_PARKED };

struct split_chunk {
	enum split_state state;
	bool note;
	uint32_t generation;
	unsigned path;
	unsigned refused; /* times */
	uint64_t request, sent;
	uint32_t offset, length;
};

struct split_entry {
	struct split_request request;
	uint64_t receive;    /* number of the receive that it consumes */
	uint64_t remote;     /* where the chunks go; of a SEND, the memory of the receive */
	uint32_t part, next; /* bytes of a chunk; the offset of the next one */
	uint32_t open;       /* chunks that are not done */
	bool split, decided, noted, posted, done;
	int status;
};

struct split_config {
	uint32_t chunk;    /* bytes of a chunk at most; TRIB_CHUNK */
	uint32_t least;    /* bytes: shorter requests go whole */
	unsigned depth;    /* chunks in flight on a path, at most SPLIT_DEPTH_MAX */
	uint32_t capacity; /* requests at most; a power of 2 */
	enum balancer_kind balancer;
	enum monitor_kind monitor;
};

/*
 * Where SEND number `receive` of the application goes. False: unknown, and it goes whole. The
 * splitter asks once for each SEND.
 */
typedef bool (*split_find_receive)(void *user, uint64_t receive, uint32_t length, uint64_t *remote);

struct splitter {
	struct split_config config;
	split_find_receive find;
	void *user;
	struct split_entry *entries; /* ring; its memory is the caller's */
	uint64_t head;               /* the oldest request that is not reported */
	uint64_t posted;             /* the next number */
	uint64_t cut;                /* the oldest request that may have chunks to cut */
	uint64_t whole;              /* the next request for the own QP */
	uint64_t limit;              /* a chunk of this request failed for good; UINT64_MAX: none */
	int limit_status;
	int broken;           /* a status: no request succeeds any more; SPLIT_OK: it works */
	uint64_t receives;    /* of the peer, that requests so far consume */
	uint64_t consumed;    /* of these, known to be consumed */
	uint32_t notes_ahead; /* notes may be written for so many receives beyond `consumed` */
	unsigned n_paths;     /* 0: no agreement, all requests go whole */
	unsigned own;         /* the path of the own QP */
	bool own_down; /* the own QP has failed: what it holds is lost, and nothing is posted */
	bool hold;     /* requests that may be split wait: the agreement is near */
	bool up[PATHS_MAX]; /* the path takes chunks */
	unsigned flying[PATHS_MAX];
	struct monitor estimates;
	struct balancer balancer;
	struct split_chunk chunks[SPLIT_CHUNKS];
	unsigned top;              /* chunks at this place and above were never used */
	unsigned n_again;          /* chunks to go again */
	uint64_t resent, failures; /* chunks that went again; paths that failed */
};

/* `entries`: memory for config->capacity requests. */
void splitter_init(struct splitter *s, const struct split_config *config,
                   struct split_entry *entries, split_find_receive find, void *user);
/* Both sides agree on `paths` paths, none of which is up. `own`: that of the own QP. */
void splitter_agree(struct splitter *s, unsigned paths, unsigned own, uint32_t notes_ahead,
                    uint64_t now);

/* False: the queue is full. */
bool splitter_post(struct splitter *s, const struct split_request *request);
/* The newest request could not be posted on the own QP: it is forgotten. False: it is not the
 * newest. */
bool splitter_take_back(struct splitter *s, uint64_t request);
/* What to post next. The caller asks until the answer is SPLIT_NOTHING, after every event. */
struct split_action splitter_next(struct splitter *s, uint64_t now);

/* A chunk or a note is in place. False: it was unknown (of a time before splitter_break). */
bool splitter_chunk_done(struct splitter *s, uint32_t id, uint64_t now);
/* Its QP failed, or flushed it. It is parked until splitter_fenced. */
bool splitter_chunk_lost(struct splitter *s, uint32_t id, uint64_t now);
/*
 * The peer's QP refused the chunk without a reason that holds for other QPs. It is lost, or wrong
 * if this has happened SPLIT_REFUSALS times.
 */
bool splitter_chunk_refused(struct splitter *s, uint32_t id, int status, uint64_t now);
/* The request of the chunk is wrong (an address, a key): it fails, and all after it. */
bool splitter_chunk_wrong(struct splitter *s, uint32_t id, int status, uint64_t now);
void splitter_whole_done(struct splitter *s, uint64_t request, int status);

void splitter_path_up(struct splitter *s, unsigned path, uint64_t now, uint64_t rtt_ns);
void splitter_path_down(struct splitter *s, unsigned path, uint64_t now);
/* Both QPs of the path are closed: what it held goes again on others. */
void splitter_fenced(struct splitter *s, unsigned path);

/* The own QP has failed, or the peer's. Its requests have no answer any more. */
void splitter_own_down(struct splitter *s);
/*
 * It is connected again, on path `own`. `consumed`: the peer's QP has consumed so many receives
 * since the beginning. False: a request was lost that cannot go twice, such as an atomic; the
 * caller breaks.
 */
bool splitter_own_up(struct splitter *s, unsigned own, uint64_t consumed);

/*
 * The peer is gone, or a request failed: from now on each request is to be posted on the own QP,
 * which the caller has put into its error state, and which flushes it. The oldest request gets
 * `status`.
 */
void splitter_break(struct splitter *s, int status);
/* Is a request wrong, and are all before it done? Then the caller breaks with *status. */
bool splitter_is_wrong(const struct splitter *s, int *status);

/* The next request that is done, in the order of posting. */
bool splitter_take_done(struct splitter *s, struct split_done *done);
/* Are there requests that are not done? */
bool splitter_is_busy(const struct splitter *s);
/* Is there more to post when completions come? If not, the QPs do the rest alone. */
bool splitter_has_more(const struct splitter *s);
/* Are there requests that cannot go on before the peer answers? */
bool splitter_is_stuck(const struct splitter *s);

#endif
