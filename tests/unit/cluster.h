/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster in one process: an aggregator on loopback, and threads that are
 * the ranks. A wrong thing ends the program at once, from whatever thread, as
 * cmocka's asserts work in its own thread only.
 */
#ifndef TRIB_TESTS_CLUSTER_H
#define TRIB_TESTS_CLUSTER_H

#include "plane/core/aggregator.h"
#include "tributary.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define CLUSTER_RANKS_MAX 64
#define CLUSTER_COOKIE 0x5eedull
#define CLUSTER_COOKIE_TEXT "5eed"

#define countof(array) (sizeof(array) / sizeof((array)[0]))

#define demand(condition)                                                                 \
	do {                                                                              \
		if (!(condition)) {                                                       \
			fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, \
			        __LINE__, #condition, trib_last_error());                 \
			abort();                                                          \
		}                                                                         \
	} while (0)

#define CLUSTER_BELOW 3

/* With TRIB_TEST_TREE in the environment there are aggregators below, in two levels. */
struct cluster {
	struct aggregator *aggregator;
	char address[32];
	struct aggregator *below[CLUSTER_BELOW]; /* NULL: none */
	char addresses[CLUSTER_BELOW][32];
};

/* Clears what the environment says about jobs, and sets the cookie. */
void cluster_environment(void);

void cluster_start(struct cluster *cluster, unsigned threads, uint64_t pool_bytes);
void cluster_stop(struct cluster *cluster);
/* The text of a forest of stars, one at each, with shares 1, 2, 3 ... of every vector. */
void cluster_stars(const struct cluster *clusters, unsigned n, int ranks, char *out, size_t size);
/* The number behind "name" in the part of the aggregator's JSON that `section` names. */
uint64_t cluster_count(const struct cluster *cluster, const char *section, const char *name);

/* What a rank is told. */
struct rank {
	const struct cluster *cluster;
	int rank, size;
	trib_options options; /* as trib_init gets them */
	trib_comm *comm;      /* opened already, by cluster_run */
	void *job;
};

/*
 * `size` threads run body() as ranks with a communicator that is opened before
 * and closed after, at the cluster's aggregator where options name no trees.
 */
void cluster_run(const struct cluster *cluster, int size, const trib_options *options,
                 void (*body)(struct rank *rank), void *job);
/* The same without the communicator. */
void cluster_run_bare(const struct cluster *cluster, int size, const trib_options *options,
                      void (*body)(struct rank *rank), void *job);

/* Does the last error of this thread have the text in it? */
bool error_has(const char *text);
uint64_t mix(uint64_t seed);
void nap_ms(unsigned ms);

#endif
