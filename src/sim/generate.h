/* SPDX-License-Identifier: Apache-2.0 */
/* Random jobs, the same for the same seed. */
#ifndef TRIB_SIM_GENERATE_H
#define TRIB_SIM_GENERATE_H

#include "sim/read.h"

#define GENERATE_SIZES_MAX 16u

/* How often jobs have how many hosts. */
struct generate_sizes {
	unsigned n;
	uint32_t hosts[GENERATE_SIZES_MAX], weight[GENERATE_SIZES_MAX];
};

/* MINA's traces #1 to #10, from index 0: what Microsoft's clusters were asked for. */
#define GENERATE_TRACES 10u
extern const struct generate_sizes generate_traces[GENERATE_TRACES];

struct generate {
	uint32_t jobs;
	uint32_t models; /* each as likely */
	const struct generate_sizes *sizes;
	double arrivals; /* jobs a second, at random times; 0: all are there from the start */
	uint64_t seed;
};

/* Steps are 10, 20 ... 100, each as likely. */
trib_status generate_jobs(struct sim_list *list, const struct generate *generate);

/* "1:3,8:1": a quarter of the jobs has 8 hosts. */
trib_status generate_sizes_parse(struct generate_sizes *sizes, const char *text);

/* A random time with that mean, by chance as likely in each moment. */
double generate_gap(uint64_t *seed, double mean);

#endif
