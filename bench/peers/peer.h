/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers: one small program for each system. All have the same command line and
 * the same output, so that `trib bench` compares like with like:
 *
 *     PROGRAM --bytes B --iterations I --warmup W [--type f32|f16|bf16|i32] [--check]
 *             [--late RANK=SECONDS] [--to-one] [--many N]
 *             [--collective allreduce|reduce-scatter|allgather]
 *
 * prints a line `SAMPLE <rank> <iteration> <seconds>` for every timed sum
 * allreduce of B bytes. With --many N, a sample is the time of N allreduces of B
 * bytes each, which are posted together. Some also print a line `CPU <seconds>`. It exits with 1 if
 * a sum is wrong. A program has only to provide a barrier and its collectives; the rest is in
 * peer.c. B is the whole vector: each rank gets its share of a reduce-scatter, and gives its share
 * of an allgather.
 *
 * Each rank takes its own times: from the barrier, which is not timed, to the end of
 * its allreduce.
 */
#ifndef TRIB_BENCH_PEER_H
#define TRIB_BENCH_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEER_LATE_MAX 128

#ifdef __cplusplus
extern "C" {
#endif

enum peer_type { PEER_F32, PEER_F16, PEER_BF16, PEER_I32 };
enum peer_collective { PEER_ALLREDUCE, PEER_REDUCE_SCATTER, PEER_ALLGATHER };

struct peer_options {
	size_t bytes;
	enum peer_type type;
	enum peer_collective collective;
	unsigned iterations, warmup;
	unsigned many;    /* vectors that are posted together; 1: a blocking allreduce */
	bool check;       /* check every sum; otherwise the first and the last */
	bool to_one;      /* only rank 0 wants the sum; not every system can do that */
	bool no_cpu_time; /* a system call that other ranks of the core would wait for */
	struct {
		int rank;
		double seconds; /* delay of this rank before every allreduce */
	} late[PEER_LATE_MAX];
	unsigned n_late;
	const char *algorithm;
};

struct peer {
	int rank, size;
	void *context;
	/* Both return 0, or -1 after an error message on stderr. */
	int (*barrier)(void *context);
	int (*allreduce)(void *context, void *data, size_t count, enum peer_type type);
	/* Posts `many` vectors that follow each other in memory, and waits for all sums. NULL:
	 * the system cannot post, so it sums them one after another. */
	int (*allreduce_many)(void *context, void *data, size_t count, enum peer_type type,
	                      unsigned many);
	/* Sums the vectors `in` of all ranks, `count` elements for each rank, and stores this
	 * rank's share. It may change `in`. NULL: the system cannot do it. */
	int (*reduce_scatter)(void *context, void *in, void *out, size_t count,
	                      enum peer_type type);
	/* Stores the `count` elements of each rank one after another. NULL: as above. */
	int (*allgather)(void *context, const void *in, void *out, size_t count,
	                 enum peer_type type);
};

static inline size_t peer_type_size(enum peer_type type)
{
	return type == PEER_F32 || type == PEER_I32 ? 4 : 2;
}

/* to[i] += from[i], rounded to the type: what a ring does at each hop. */
void peer_add(enum peer_type type, void *to, const void *from, size_t n);

/*
 * Exits with 2 and a message if the command line is wrong. Warm-ups of short vectors are so many
 * that the burst of a shaped link is used up: else calls would be faster than the link.
 */
void peer_parse(int argc, char **argv, struct peer_options *options);

/*
 * Tributary with an aggregator: no call is timed until the library knows which way is faster
 * (TRIB_WAY=auto), which takes 9 blocks of 512 KiB.
 */
void peer_warm_up_ways(struct peer_options *options);

/* Reads rank and size from TRIB_RANK and TRIB_SIZE; exits with 2 if they are missing. */
void peer_rank_from_env(int *rank, int *size);

/* Reads "ADDRESS:PORT" from this variable; exits with 2 if it has another form. */
void peer_address_from_env(const char *variable, struct sockaddr_in *out);

/* Fills samples[iterations] with seconds. 0: done, and every sum that was checked is right. */
int peer_measure(const struct peer *peer, const struct peer_options *options, double *samples);

void peer_print(int rank, const double *samples, unsigned iterations);
/* Prints `CPU <seconds>`: the CPU time of this process in all timed allreduces of peer_measure. */
void peer_print_cpu(void);

/* Allocates the vector on pages of its own. Exits with 1 if there is no memory. */
void *peer_alloc(size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
