/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster in one process: an aggregator on loopback, and a thread for each rank. A failed check
 * ends the program at once, because cmocka's asserts work in its own thread only.
 */
#ifndef TRIB_TESTS_CLUSTER_H
#define TRIB_TESTS_CLUSTER_H

#include "plane/aggregator.h"
#include "tributary.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CLUSTER_RANKS_MAX 64
#define CLUSTER_COOKIE 0x5eedull
#define CLUSTER_COOKIE_TEXT "0000000000005eed"

#define countof(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Ends the test. A call that ended in another way than it should, or too late, is no crash and no
 * wrong result, and a crowded machine may be the cause: the exit status tells them apart.
 */
static inline void demand_not_met(const char *condition, const char *file, int line)
{
	static const char *const of_crowds[] = { "TRIB_OK",   "TRIB_ERR_", "NCCL_SUCCESS",
		                                 "error_has", "seconds()", "_MS" };

	fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", file, line, condition,
	        trib_last_error());
	for (size_t i = 0; i < countof(of_crowds); i++)
		if (strstr(condition, of_crowds[i]))
			syscall(SYS_exit_group,
			        1); /* at _exit() TSan calls the other ranks a leak */
	abort();
}

#define demand(condition)                                               \
	do {                                                            \
		if (!(condition))                                       \
			demand_not_met(#condition, __FILE__, __LINE__); \
	} while (0)

#define CLUSTER_BELOW 3

/* If TRIB_TEST_TREE is set, there are two levels of aggregators below the root. If TRIB_TEST_RING
 * is set, ranks do not use the aggregator: they sum around a ring. */
struct cluster {
	struct aggregator *aggregator;
	char address[32];
	struct aggregator *below[CLUSTER_BELOW]; /* NULL: none */
	char addresses[CLUSTER_BELOW][32];
};

/* Clears the settings of a job from the environment, and sets the cookie. */
void cluster_environment(void);

void cluster_start(struct cluster *cluster, unsigned threads, uint64_t pool_bytes);
void cluster_stop(struct cluster *cluster);
/*
 * Writes the text of a forest of stars, one for each cluster, with shares 1, 2, 3 ... of every
 * vector.
 */
void cluster_stars(const struct cluster *clusters, unsigned n, int ranks, char *out, size_t size);
/* The number after "name" in the given section of the aggregator's JSON. */
uint64_t cluster_count(const struct cluster *cluster, const char *section, const char *name);

/* The arguments of a rank's thread. */
struct rank {
	const struct cluster *cluster;
	int rank, size;
	trib_options options; /* for trib_init */
	trib_comm *comm;      /* opened by cluster_run */
	void *job;
};

/*
 * Runs body() in `size` threads, one for each rank. Opens a communicator before and closes it
 * after. If the options name no trees, it uses the cluster's aggregator.
 */
void cluster_run(const struct cluster *cluster, int size, const trib_options *options,
                 void (*body)(struct rank *rank), void *job);
/* Like cluster_run, without a communicator. */
void cluster_run_bare(const struct cluster *cluster, int size, const trib_options *options,
                      void (*body)(struct rank *rank), void *job);

/* Does the last error of this thread contain the text? */
bool error_has(const char *text);
uint64_t mix(uint64_t seed);
void nap_ms(unsigned ms);

#endif
