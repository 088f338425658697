/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tributary: collectives that sum vectors while they travel.
 *
 * Every worker process opens a communicator. All of them call the same
 * collectives in the same order. Vectors go to an aggregator, which adds them
 * and sends one sum back. There may be a tree of aggregators, or several trees
 * at once, each with a share of every vector. Without an aggregator, the ranks
 * sum among themselves.
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
 * Results are bitwise equal on all ranks, and in every run that makes the same
 * calls. Floats are summed in fixed point with a scale for a block of elements, so
 * order never matters. Blocks depend on the length of packets; to get the same bits
 * on networks with different MTUs, set TRIB_MTU. docs/numbers.md has the error
 * bounds.
 *
 * Threads: any thread may call any function, also on the same communicator, as
 * long as all ranks start collectives on a communicator in the same order. Only
 * one thread at a time may wait for a request.
 *
 * Processes: a communicator belongs to the process that opened it. In a child made by fork(),
 * every call with it fails with TRIB_ERR_ARGUMENT, trib_finalize as well, and the parent is
 * unharmed. The child may call trib_init.
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
	TRIB_ERR_SYSTEM = -4,     /* a system call failed; the sentence has errno's text */
	TRIB_ERR_TIMEOUT = -5,    /* the deadline passed; the sentence names the missing ranks */
	TRIB_ERR_PEER = -6,       /* a rank died or left; the sentence names it */
	TRIB_ERR_AGGREGATOR = -7, /* the aggregator cannot be reached, or died */
	TRIB_ERR_MISMATCH = -8,   /* ranks called different collectives; the sentence names them */
	TRIB_ERR_REFUSED = -9,    /* the aggregator refused this worker; the sentence says why */
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
	TRIB_F8E4M3, /* 8 bits (OCP), without infinities; NaN if a sum is too large */
	TRIB_F8E5M2, /* 8 bits (OCP), with infinities */
} trib_type;

/*
 * Integer sums wrap as unsigned arithmetic in C does. TRIB_AVG is the sum
 * divided by the number of ranks (integers: towards zero, after wrapping).
 * TRIB_MIN and TRIB_MAX give NaN if any rank has NaN, and order -0 below +0.
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
 * Options of trib_init. Initialize with TRIB_OPTIONS_INIT, which sets
 * struct_size and zeroes the rest. A field left at zero is taken from the
 * environment (`trib show config` lists the variables), else from the built-in
 * default.
 */
typedef struct {
	size_t struct_size;
	const char *aggregator; /* "host:port" */
	int has_rank;           /* nonzero: rank and size below are set */
	int rank;
	int size;
	double timeout_s;    /* timeout of joining and blocking calls; all others derive from it */
	uint64_t pool_bytes; /* memory requested at the aggregator */
	uint64_t rate_bps;   /* limit on sending, in bits a second */
	int lanes;           /* independent streams to each tree, each with its own thread */
	const char *trees;   /* several aggregators: the text of TRIB_TREES */
	const char *controller; /* "host:port" of the controller, which then assigns aggregators */
	int wire_bits; /* least bits of an element of a float sum on the wire: 8, 16 or 32 */
	/*
	 * For a job with several communicators that are opened one by one: a number that all ranks
	 * of this one give, and those of no other communicator of the job. 0: the first one.
	 */
	uint64_t key;
	/*
	 * An allgather of the program's own, over the ranks of this communicator: writes the
	 * `bytes` of each rank to `all`, in the order of ranks, and returns 0. trib_init calls it
	 * a few times, on all ranks alike. Then trib_init succeeds on all ranks or fails on all of
	 * them. If no aggregator is named, the ranks find each other by it.
	 */
	int (*exchange)(void *exchange_context, const void *mine, void *all, size_t bytes);
	void *exchange_context;
	/*
	 * A thread that waits in a blocking call or in trib_wait calls this every few milliseconds,
	 * so that the program can do other work meanwhile. It must return soon, and must not call
	 * this library. NULL: nothing is called.
	 */
	void (*idle)(void *idle_context);
	void *idle_context;
} trib_options;

#define TRIB_OPTIONS_INIT                                                                      \
	{                                                                                      \
		sizeof(trib_options), NULL, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0, NULL, NULL, \
			NULL, NULL                                                             \
	}

/*
 * Joins the job and waits, up to the deadline, until all its ranks have joined.
 * Ranks and aggregator may start in any order, also before the host has a route. The
 * log says what it waits for (TRIB_LOG=notice). `options` may be NULL.
 *
 * If a controller assigns the trees, the loss of an aggregator is not an error:
 * running collectives continue in other trees, with the same sums, within their
 * deadline. The controller then also assigns rank and size.
 */
trib_status trib_init(trib_comm **comm, const trib_options *options);

/*
 * Waits for running requests, up to the deadline. Then leaves the job and frees
 * the communicator and its requests. It is no error if aggregators were lost and
 * nothing was called since. NULL is allowed. If the controller does not
 * answer, the call tries for up to two seconds to tell it that this process leaves.
 */
trib_status trib_finalize(trib_comm *comm);

/*
 * Starts a new epoch, for jobs with a controller. All remaining workers call it,
 * and *comm becomes the communicator of the next epoch. The controller decides
 * the membership, so rank and size may change:
 *
 *  - If a worker has left (trib_finalize) or died, the job's policy decides:
 *    shrink continues without it, fail ends the job, wait waits for a
 *    replacement.
 *  - A new worker becomes a member. It called trib_init as all others did, with
 *    an unused rank or without a rank, and waited there, up to its deadline.
 *
 * The old communicator may have failed: call this after TRIB_ERR_PEER to
 * continue. The old communicator is freed in any case; finalize those split
 * from it before. After an error *comm is NULL. The caller must repeat a
 * collective that failed, because only the caller knows which ranks have its
 * result.
 */
trib_status trib_regroup(trib_comm **comm);

/*
 * Creates a communicator of all ranks with the same color, ordered by key, then
 * by rank. Collective over `comm`. A rank with a negative color takes part and
 * gets *out = NULL.
 */
trib_status trib_split(trib_comm *comm, int color, int key, trib_comm **out);

int trib_rank(const trib_comm *comm);
int trib_size(const trib_comm *comm);

/*
 * Collectives. `count` is in elements and may be 0. A send buffer may be
 * TRIB_IN_PLACE or equal to the receive buffer; otherwise they must not
 * overlap. Each call returns when the result has arrived or an error is certain.
 * All ranks make the same calls in the same order, with the same count, type,
 * operation and root; otherwise all get TRIB_ERR_MISMATCH. A rank that needs nothing
 * from others (the root of a broadcast, a large reduce) may get it from its next call.
 *
 * allgather: every rank sends `count` elements and receives size * count. In
 * place, rank r's part is read from recv[r * count].
 * reduce_scatter: every rank sends size * count elements and receives `count`,
 * its own part of the result. In place, recv holds the whole input, and the
 * result is at its start.
 * reduce: only `root` writes `recv`. Elsewhere it may be NULL unless it is the
 * input.
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
 * Options of one sum, in place of the communicator's. Initialize with TRIB_CALL_INIT. All ranks
 * have to give the same wire_bits.
 *
 * wire_bits: fewer bits than an element has make a sum of more than 16384 elements faster and less
 * exact; docs/numbers.md has the error bounds. With 8 bits, elements are rounded up or down by
 * chance, unless there is a residual. Integers and f64 always have all their bits.
 *
 * residual: error feedback for sums of f32. The library keeps what rounding took from this rank's
 * vector, and adds it to the vector of the next call with the same name. A residual belongs to
 * the communicator. It takes 4 bytes an element, and starts as zeros. At most one call at a time
 * may use it, and all its calls must have the same count. trib_drop_residual frees one, or all
 * of them if `name` is NULL.
 */
typedef struct {
	size_t struct_size;
	int wire_bits;        /* 8, 16 or 32; 0: as the communicator has it */
	const char *residual; /* its name; NULL: none */
} trib_call;

#define TRIB_CALL_INIT                     \
	{                                  \
		sizeof(trib_call), 0, NULL \
	}

/* `call` may be NULL. */
trib_status trib_allreduce_with(trib_comm *comm, const void *send, void *recv, size_t count,
                                trib_type type, trib_op op, const trib_call *call);
trib_status trib_reduce_with(trib_comm *comm, const void *send, void *recv, size_t count,
                             trib_type type, trib_op op, int root, const trib_call *call);
trib_status trib_reduce_scatter_with(trib_comm *comm, const void *send, void *recv, size_t count,
                                     trib_type type, trib_op op, const trib_call *call);
trib_status trib_drop_residual(trib_comm *comm, const char *name);

/*
 * The nonblocking variants. Buffers belong to the library until the request has
 * ended. The library's own threads make progress.
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
trib_status trib_iallreduce_with(trib_comm *comm, const void *send, void *recv, size_t count,
                                 trib_type type, trib_op op, const trib_call *call,
                                 trib_request **request);
trib_status trib_ireduce_with(trib_comm *comm, const void *send, void *recv, size_t count,
                              trib_type type, trib_op op, int root, const trib_call *call,
                              trib_request **request);
trib_status trib_ireduce_scatter_with(trib_comm *comm, const void *send, void *recv, size_t count,
                                      trib_type type, trib_op op, const trib_call *call,
                                      trib_request **request);

/*
 * trib_test checks without waiting. trib_wait waits up to `seconds` (negative:
 * the communicator's timeout). When the request has ended, with success or an
 * error, it is freed and *request becomes NULL. After TRIB_IN_PROGRESS (from
 * trib_test) or TRIB_ERR_TIMEOUT (from trib_wait) the request still runs and can
 * be waited for again.
 */
trib_status trib_test(trib_request **request);
trib_status trib_wait(trib_request **request, double seconds);

/* Counters of a communicator since trib_init; struct_size as in trib_options. */
typedef struct {
	size_t struct_size;
	uint64_t rounds;          /* collectives finished */
	uint64_t sent_packets;    /* data packets sent, repeats included */
	uint64_t resent_packets;  /* data packets sent again */
	uint64_t results;         /* result packets accepted */
	uint64_t duplicates;      /* result packets that had arrived before */
	uint64_t dropped_packets; /* malformed, corrupted or foreign packets */
	double wait_s;            /* time the program spent waiting in collectives */
} trib_stats;

trib_status trib_get_stats(trib_comm *comm, trib_stats *stats);

/* The sentence of the last error in this thread; never NULL. */
const char *trib_last_error(void);

/* Sets that sentence and returns `status`: for libraries that are built on this one. */
trib_status trib_set_error(trib_status status, const char *sentence);

/* TRIB_VERSION of the library that is loaded, for programs that find it while they run. */
const char *trib_version(void);

/* The name of a status, e.g. "timeout". */
const char *trib_status_name(trib_status status);

/* Bytes of one element. */
size_t trib_type_size(trib_type type);

#ifdef __cplusplus
}
#endif
#endif
