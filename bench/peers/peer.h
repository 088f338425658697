/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers: one small program a system, all with the same command line and the
 * same output, so that `trib bench` compares like with like:
 *
 *     PROGRAM --bytes B --iterations I --warmup W [--check] [--late RANK=SECONDS] [--to-one]
 *
 * prints a line `SAMPLE <rank> <iteration> <seconds>` for every timed f32 sum
 * allreduce of B bytes, and exits with 1 when a sum is wrong. A program has
 * only to bring a barrier and an allreduce; the rest is here.
 */
#ifndef TRIB_BENCH_PEER_H
#define TRIB_BENCH_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEER_LATE_MAX 128

#ifdef __cplusplus
extern "C" {
#endif

struct peer_options {
	size_t bytes;
	unsigned iterations, warmup;
	bool check;  /* every sum; otherwise the first and the last */
	bool to_one; /* the sum is wanted on rank 0 only; not every system has that */
	struct {
		int rank;
		double seconds; /* it comes to every allreduce so much later */
	} late[PEER_LATE_MAX];
	unsigned n_late;
	const char *algorithm;
};

struct peer {
	int rank, size;
	void *context;
	/* Both return 0, or -1 after they have said on stderr what went wrong. */
	int (*barrier)(void *context);
	int (*allreduce)(void *context, float *data, size_t count);
};

/* Exits with 2 and a sentence on a wrong command line. */
void peer_parse(int argc, char **argv, struct peer_options *options);

/* Rank and size from TRIB_RANK and TRIB_SIZE; exits with 2 where they are missing. */
void peer_rank_from_env(int *rank, int *size);

/* Fills samples[iterations] with seconds. 0: done, and every sum looked at was right. */
int peer_measure(const struct peer *peer, const struct peer_options *options, double *samples);

void peer_print(int rank, const double *samples, unsigned iterations);

/* The vector, on pages of its own. Exits with 1 where there is no memory. */
void *peer_alloc(size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
