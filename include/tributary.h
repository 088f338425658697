/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tributary: vectors are summed while they travel.
 *
 * Every worker process opens a communicator, and all of them call the same
 * collectives in the same order. Vectors go to an aggregator, which adds them
 * up and sends one sum back; or by a tree of them, or by several trees at once,
 * each with a share of every vector.
 *
 *     #include <tributary.h>
 *
 *     trib_comm *comm;
 *     if (trib_init(&comm, NULL) != TRIB_OK)
 *         errx(1, "%s", trib_last_error());
 *     float grad[1000] = { ... };
 *     if (trib_allreduce(comm, TRIB_IN_PLACE, grad, 1000, TRIB_F32, TRIB_SUM) != TRIB_OK)
 *         errx(1, "%s", trib_last_error());
 *     trib_finalize(comm);
 *
 * Results are bitwise equal on all ranks, and from run to run: sums of floats
 * are taken in fixed point with a scale per block, so order never matters. A
 * block is what fits a packet; TRIB_MTU gives the same bits on unlike networks.
 * See docs/numbers.md for the error bound.
 *
 * Threads: any thread may call any function, also on one communicator, as
 * long as all ranks post collectives on a communicator in the same order. A
 * request is waited for by one thread at a time.
 */
#ifndef TRIBUTARY_H
#define TRIBUTARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRIB_VERSION "0.1.0"

/* 0 is done, a positive value is in progress, negatives are errors. */
typedef enum {
	TRIB_OK = 0,
	TRIB_IN_PROGRESS = 1,
	TRIB_ERR_ARGUMENT = -1, /* a wrong argument; nothing was sent */
	TRIB_ERR_CONFIG = -2,   /* a setting is missing or malformed */
	TRIB_ERR_NO_MEMORY = -3,
	TRIB_ERR_SYSTEM = -4,     /* a system call failed; the sentence has errno's words */
	TRIB_ERR_TIMEOUT = -5,    /* the deadline passed; the sentence names the missing ranks */
	TRIB_ERR_PEER = -6,       /* a rank died or left; the sentence names it */
	TRIB_ERR_AGGREGATOR = -7, /* the aggregator cannot be reached, or died */
	TRIB_ERR_MISMATCH = -8,   /* ranks called different collectives; the sentence names them */
	TRIB_ERR_REFUSED = -9,    /* the aggregator refused this worker, and said why */
	TRIB_ERR_CLOSED = -10,    /* stopped from outside, e.g. by a signal */
} trib_status;

typedef enum {
	TRIB_I8,
	TRIB_I32,
	TRIB_I64,
	TRIB_U8,
	TRIB_U32,
	TRIB_U64,
	TRIB_F16,
	TRIB_BF16,
	TRIB_F32,
	TRIB_F64,
} trib_type;

/*
 * Integer sums wrap as unsigned arithmetic in C does. TRIB_AVG is the sum
 * divided by the number of ranks (integers: towards zero, after wrapping).
 * TRIB_MIN and TRIB_MAX give NaN where any rank has NaN, and order -0 below +0.
 */
typedef enum {
	TRIB_SUM,
	TRIB_MIN,
	TRIB_MAX,
	TRIB_AVG,
} trib_op;

typedef struct trib_comm trib_comm;
typedef struct trib_request trib_request;

/* As the send buffer: take the input from the receive buffer. */
#define TRIB_IN_PLACE ((const void *)(intptr_t)-1)

/*
 * Options of trib_init. Set struct_size to sizeof(trib_options) and the rest
 * to zero (TRIB_OPTIONS_INIT does both); a field left at zero is taken from
 * the environment (`trib show config` lists the variables), then from the
 * built-in default.
 */
typedef struct {
	size_t struct_size;
	const char *aggregator; /* "host:port" */
	int has_rank;           /* nonzero: rank and size below are set */
	int rank;
	int size;
	double timeout_s;    /* the one deadline; every other one is derived from it */
	uint64_t pool_bytes; /* memory asked for at the aggregator */
	uint64_t rate_bps;   /* pace sending to this many bits a second */
	int lanes;           /* independent streams of a tree, each with its own thread */
	const char *trees;   /* several aggregators: the text of TRIB_TREES */
	/* "host:port" of the one that knows the aggregators, instead of any */
	const char *controller;
} trib_options;

#define TRIB_OPTIONS_INIT                                                   \
	{                                                                   \
		sizeof(trib_options), NULL, 0, 0, 0, 0, 0, 0, 0, NULL, NULL \
	}

/*
 * Joins the job and waits, up to the deadline, until all its ranks are there,
 * in whatever order they and the aggregator start. `options` may be NULL.
 *
 * Where a controller gives the trees, the loss of an aggregator is no error:
 * what is under way goes on in other trees, with the same sums, as long as the
 * deadline allows. Rank and size are then those that the controller gives.
 */
trib_status trib_init(trib_comm **comm, const trib_options *options);

/*
 * Waits for requests in flight, up to the deadline, leaves, and frees, requests
 * that were never waited for as well. NULL is allowed. A controller that does not
 * answer is told for up to two seconds that this process leaves.
 */
trib_status trib_finalize(trib_comm *comm);

/*
 * An epoch's border, for jobs with a controller: all who are still there call
 * it, and get the communicator of the next epoch in place of this one. The
 * controller says who is in, which may change the rank and the size:
 *
 *  - A worker that has left (trib_finalize) or died is no longer in, or the job
 *    ends, or its place is waited for, as the job's owner chose (policy shrink,
 *    fail, wait).
 *  - A worker that has come since is in. It called trib_init as all others did,
 *    with a rank that nobody has or with none, and has waited there, up to its
 *    deadline, for this border.
 *
 * The old communicator may have failed: after TRIB_ERR_PEER this is the way to
 * go on. It is gone in any case, and so should be those that were split from
 * it; after an error *comm is NULL. What was summed at the time of a failure
 * has to be done again by the caller, who knows what all ranks have.
 */
trib_status trib_regroup(trib_comm **comm);

/*
 * A new communicator of all ranks that give the same color, ordered by key,
 * then by rank. Collective over `comm`. A negative color takes part and gets
 * *out = NULL.
 */
trib_status trib_split(trib_comm *comm, int color, int key, trib_comm **out);

int trib_rank(const trib_comm *comm);
int trib_size(const trib_comm *comm);

/*
 * Collectives. `count` is in elements and may be 0. A send buffer may be
 * TRIB_IN_PLACE or equal to the receive buffer; otherwise they must not
 * overlap. Each returns when the result is there or an error is certain.
 *
 * allgather: every rank gives `count`, gets size * count; in place, rank r's
 * part is read from recv[r * count]. reduce_scatter: every rank gives
 * size * count and gets `count`, its own part of the result; in place, the
 * whole input is in recv, and the result is at its start. reduce: `recv` is
 * written on `root` only and may be NULL elsewhere unless it is the input.
 */
trib_status trib_allreduce(trib_comm *comm, const void *send, void *recv, size_t count,
                           trib_type type, trib_op op);
trib_status trib_reduce(trib_comm *comm, const void *send, void *recv, size_t count, trib_type type,
                        trib_op op, int root);
trib_status trib_broadcast(trib_comm *comm, void *buffer, size_t count, trib_type type, int root);
trib_status trib_allgather(trib_comm *comm, const void *send, void *recv, size_t count,
                           trib_type type);
trib_status trib_reduce_scatter(trib_comm *comm, const void *send, void *recv, size_t count,
                                trib_type type, trib_op op);
trib_status trib_barrier(trib_comm *comm);

/*
 * The same, started and not waited for. Buffers belong to the library until
 * the request is done. Progress is made by the library's own threads.
 */
trib_status trib_iallreduce(trib_comm *comm, const void *send, void *recv, size_t count,
                            trib_type type, trib_op op, trib_request **request);
trib_status trib_ireduce(trib_comm *comm, const void *send, void *recv, size_t count,
                         trib_type type, trib_op op, int root, trib_request **request);
trib_status trib_ibroadcast(trib_comm *comm, void *buffer, size_t count, trib_type type, int root,
                            trib_request **request);
trib_status trib_iallgather(trib_comm *comm, const void *send, void *recv, size_t count,
                            trib_type type, trib_request **request);
trib_status trib_ireduce_scatter(trib_comm *comm, const void *send, void *recv, size_t count,
                                 trib_type type, trib_op op, trib_request **request);
trib_status trib_ibarrier(trib_comm *comm, trib_request **request);

/*
 * trib_test looks, trib_wait waits up to `seconds` (negative: up to the
 * communicator's deadline). When the request has ended, well or badly, it is
 * freed and *request becomes NULL. TRIB_IN_PROGRESS (from trib_test) and
 * TRIB_ERR_TIMEOUT (from trib_wait) leave it alive: it may be waited for again.
 */
trib_status trib_test(trib_request **request);
trib_status trib_wait(trib_request **request, double seconds);

/* Counters of a communicator since trib_init; struct_size as in trib_options. */
typedef struct {
	size_t struct_size;
	uint64_t rounds;          /* collectives finished */
	uint64_t sent_packets;    /* data packets sent, repeats included */
	uint64_t resent_packets;  /* repeats among them */
	uint64_t results;         /* result packets taken */
	uint64_t duplicates;      /* result packets that were there already */
	uint64_t dropped_packets; /* malformed, corrupted or foreign packets */
	double wait_s;            /* time the program spent waiting in collectives */
} trib_stats;

trib_status trib_get_stats(trib_comm *comm, trib_stats *stats);

/* The sentence of the last error in this thread; never NULL. */
const char *trib_last_error(void);

/* The name of a status, e.g. "timeout". */
const char *trib_status_name(trib_status status);

/* Bytes of one element. */
size_t trib_type_size(trib_type type);

#ifdef __cplusplus
}
#endif
#endif
