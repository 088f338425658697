/* SPDX-License-Identifier: Apache-2.0 */
/* generate: random jobs. The same seed gives the same jobs. */
#ifndef TRIB_SIM_GENERATE_H
#define TRIB_SIM_GENERATE_H

#include "sim/read.h"

#define GENERATE_SIZES_MAX 16u

/* The distribution of job sizes: hosts[i] occurs with weight[i]. */
struct generate_sizes {
	unsigned n;
	uint32_t hosts[GENERATE_SIZES_MAX], weight[GENERATE_SIZES_MAX];
};

/* The size distributions of MINA's traces #1 to #10 (from Microsoft's clusters), from index 0. */
#define GENERATE_TRACES 10u
extern const struct generate_sizes generate_traces[GENERATE_TRACES];

struct generate {
	uint32_t jobs;
	uint32_t models; /* number of models, equally likely */
	const struct generate_sizes *sizes;
	double arrivals; /* jobs a second, at random times; 0: all arrive at the start */
	uint64_t seed;
};

/* The number of steps is 10, 20 ... 100, equally likely. */
trib_status generate_jobs(struct sim_list *list, const struct generate *generate);

/* Reads "1:3,8:1": a quarter of the jobs has 8 hosts. */
trib_status generate_sizes_parse(struct generate_sizes *sizes, const char *text);

#endif
