/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tributary sparse: a table of rows of floats, by 64-bit key, that many workers train together.
 * Workers push gradients of rows and pull rows. Parameter servers keep the rows and apply an
 * optimizer. If there is an aggregator, it sums the gradients of hot rows before they reach a
 * server.
 *
 *     #include <tributary/sparse.h>
 *
 *     trib_sparse_options options = TRIB_SPARSE_OPTIONS_INIT;
 *     trib_sparse *table;
 *     options.width = 16;
 *     if (trib_sparse_open(&table, &options) != TRIB_OK)
 *         errx(1, "%s", trib_last_error());
 *     trib_sparse_pull(table, keys, rows, n, NULL);
 *     ... gradients of these rows ...
 *     trib_sparse_push(table, keys, gradients, n, NULL);
 *     trib_sparse_step(table);
 *     trib_sparse_close(table);
 *
 * Each pushed gradient is applied exactly once. A push has ended when its gradients are in the
 * servers' logs: whatever process dies later, they are not lost. Order between pushes of different
 * workers is free. docs/sparse.md describes the system.
 *
 * A table may be used by one thread at a time. Errors are statuses of <tributary.h>, and
 * trib_last_error has the sentence.
 */
#ifndef TRIBUTARY_SPARSE_H
#define TRIBUTARY_SPARSE_H

#include <tributary.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_sparse trib_sparse;
typedef struct trib_sparse_request trib_sparse_request;

/*
 * Options of trib_sparse_open. Initialize with TRIB_SPARSE_OPTIONS_INIT, which sets struct_size and
 * zeroes the rest. A field left at zero has the default. All workers must have the same options but
 * for rank, servers and timeout_s.
 */
typedef struct {
	size_t struct_size;
	const char *name;      /* of the table; a job may have several ("default") */
	uint64_t parameters;   /* keys are below; 0: every key but 2^64 - 1 */
	uint32_t width;        /* floats in a row, 1 to 4096 (required) */
	const char *optimizer; /* "sgd" (default), "momentum", "adagrad", "adam" */
	double rate;           /* learning rate (0.01) */
	double momentum;       /* of "momentum" (0.9) */
	double beta1, beta2;   /* of "adam" (0.9, 0.999) */
	double epsilon;        /* of "adagrad" and "adam" (1e-8) */
	double init;           /* rows begin with values in [-init, init); the same for a key and
	                          seed (0: zeros) */
	uint64_t seed;
	const char *servers; /* "HOST:PORT,HOST:PORT" (TRIB_SPARSE_SERVERS) */
	int workers;         /* number of workers (TRIB_SIZE; 1) */
	int rank;            /* of this one (TRIB_RANK; 0); set it together with `workers` */
	int is_bounded;      /* 1: no worker is more than `staleness` steps ahead; 0: no bound */
	int staleness;       /* with is_bounded; 0: all workers take each step together */
	const char *wire;    /* of rows to and from servers: "f32" (default), "f16" */
	const char *path;    /* "auto" (default): hot rows by an aggregator if the servers have
	                        one; "servers": all rows by the servers */
	const char *sums;    /* of hot rows: "fixed" (default) or "table" */
	double largest;      /* "fixed": gradients up to this magnitude may be hot, others are
	                        sent to the servers (1) */
	double timeout_s;    /* of every call that waits (TRIB_TIMEOUT; 30) */
} trib_sparse_options;

#define TRIB_SPARSE_OPTIONS_INIT                           \
	{                                                  \
		.struct_size = sizeof(trib_sparse_options) \
	}

/* Opens the table at the servers, or makes it there. All workers call it. */
trib_status trib_sparse_open(trib_sparse **table, const trib_sparse_options *options);

/*
 * Waits for all pushes to end, and closes. Frees the table even if it fails. With is_bounded it
 * also waits for servers that are away, so that all of them hear that no one has to wait for this
 * worker.
 */
trib_status trib_sparse_close(trib_sparse *table);

/*
 * Adds gradients: row i of `rows` is the gradient of keys[i]. A key may occur several times. Keys
 * and rows are copied before it returns. With a request it returns at once, unless too much is in
 * flight; the request ends when the gradients are durable. With NULL nobody waits for this push
 * alone: trib_sparse_flush or trib_sparse_close reports a failure.
 */
trib_status trib_sparse_push(trib_sparse *table, const uint64_t *keys, const float *rows, size_t n,
                             trib_sparse_request **request);

/*
 * Reads rows: row i of `rows` becomes the row of keys[i]. `rows` has to stay valid until the
 * request has ended. With NULL the call waits. The rows include this worker's gradients whose push
 * has ended.
 */
trib_status trib_sparse_pull(trib_sparse *table, const uint64_t *keys, float *rows, size_t n,
                             trib_sparse_request **request);

/* As trib_test and trib_wait of <tributary.h>. */
trib_status trib_sparse_test(trib_sparse_request **request);
trib_status trib_sparse_wait(trib_sparse_request **request, double seconds);

/* Waits until all pushes of this worker have ended. */
trib_status trib_sparse_flush(trib_sparse *table);

/*
 * Ends a step of this worker. With is_bounded it waits until no worker is more than `staleness`
 * steps behind. Later pulls include all gradients of the steps that it has waited for.
 */
trib_status trib_sparse_step(trib_sparse *table);

/*
 * Tells the servers how often keys will be used, as counted in a sample of the data. They choose
 * the first hot rows by it. Without it they choose by the pushes that they see.
 */
trib_status trib_sparse_heat(trib_sparse *table, const uint64_t *keys, const uint64_t *counts,
                             size_t n);

typedef struct {
	size_t struct_size;
	uint64_t pushed_rows;    /* after equal keys of a push were added up */
	uint64_t hot_rows;       /* of these, sent to an aggregator */
	uint64_t hot_packets;    /* packets with these rows, without repeats */
	uint64_t resent_packets; /* repeats among packets to an aggregator */
	uint64_t server_bytes_sent, server_bytes_received;
	uint64_t pulled_rows;
	uint64_t hot_pulled_rows; /* of these, from an aggregator's cache */
	uint32_t hot_set;         /* rows that are hot now, on all servers */
	uint32_t moves;           /* times that an aggregator was lost and another one found */
} trib_sparse_stats;

trib_status trib_sparse_get_stats(trib_sparse *table, trib_sparse_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
