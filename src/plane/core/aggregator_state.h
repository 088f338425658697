/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane/core: what the rooms of an aggregator share. It owns the data (the
 * aggregator, its threads, its communicators), the two tables (struct carrier,
 * struct kernel_ops), and helpers that need nothing else.
 *
 * It must not call another room of src/plane, nor name a carrier or XDP.
 *
 * Thread t listens on port + t and owns lane t of every communicator, so no
 * packet waits for a lock. Thread 0 also owns the table of communicators.
 */
#ifndef TRIB_PLANE_CORE_AGGREGATOR_STATE_H
#define TRIB_PLANE_CORE_AGGREGATOR_STATE_H

#include "plane/core/job_roster.h"
#include "base/secret.h"
#include "engine/engine_table.h"
#include "plane/core/carrier.h"
#include "plane/core/kernel.h"
#include "plane/core/link_rates.h"
#include "plane/core/aggregator_options.h"
#include "plane/core/thread.h"

#define DRAINS_MAX 64u

struct stats;

/* A request to leave trees: those of one plan of a communicator, or all. */
struct drain_request {
	uint16_t job;
	uint64_t key;
	uint32_t generation;
	bool all;
	char why[200];
};

/* Communicators with sums in flight; see lane/occupancy.h. */
struct occupancy {
	_Atomic unsigned now, most;
	_Atomic uint64_t times; /* times that a communicator began */
	_Atomic uint64_t over;  /* times that a communicator began beyond the capacity */
};

struct aggregator {
	struct aggregator_options options;
	struct occupancy occupancy;
	const struct carrier *carrier;
	const char *plane_name;              /* if there is no kernel part */
	const struct engine *const *engines; /* those of the plane, by number; NULL: none */
	struct kernel *kernel;               /* NULL: the plane has no kernel part */
	_Atomic bool kernel_left;            /* its program is attached nowhere any more */
	uint16_t port;
	_Atomic bool stop;
	unsigned n_threads;
	struct thread threads[THREADS_MAX];
	struct secret address_secret; /* of address_token; drawn when the process starts */
	pthread_mutex_t secret_lock;  /* never taken for DATA, RESULT or REPORT of a known lane */
	struct secret secret;
	bool has_secret, has_roster;
	struct job_roster roster; /* the jobs of the controller */
	/* A request for counters; see stats/stats.h. */
	pthread_mutex_t stats_lock;
	pthread_cond_t stats_done;
	struct stats *stats; /* to be filled; NULL: no request */
	bool stats_good;
	_Atomic bool stats_wanted;
	/* Requests to drain; see membership/drain.h. */
	pthread_mutex_t drain_lock;
	struct drain_request drains[DRAINS_MAX];
	unsigned n_drains;
	_Atomic bool drain_wanted;
	_Atomic bool drain_told; /* the last request ended a communicator */
	/* Used by thread 0 alone: */
	struct comm *comms[COMMS_MAX];
	uint64_t pools; /* bytes of all pools */
	uint64_t started_at;
	struct udp_address group_local; /* address of the interface that multicast leaves by */
	struct link_rates rates;
	uint64_t check_at;            /* time of the next look at the kernel part */
	struct engine_use switch_use; /* of the last lane on a switch; no stages: there was none */
	char plane[400];              /* the plane at the start, and why */
	char left[400];               /* the plane since kernel_left, and why */
};

/* The kernel part for communicators that begin now; NULL: none. */
static inline struct kernel *aggregator_kernel(const struct aggregator *aggregator)
{
	return atomic_load(&aggregator->kernel_left) ? NULL : aggregator->kernel;
}

/* The plane in use, and why: "udp", "xdp: on p1 (driver mode)". */
static inline const char *plane_text(const struct aggregator *aggregator)
{
	return atomic_load(&aggregator->kernel_left) ? aggregator->left : aggregator->plane;
}

/* The engine that this aggregator runs for a number; NULL: there is none. */
static inline const struct engine *aggregator_engine(const struct aggregator *aggregator,
                                                     uint8_t number)
{
	const struct engine *own = NULL;

	if (aggregator->engines && number < ENGINES_MAX)
		own = aggregator->engines[number];
	return own ? own : engine_find(number);
}

#endif
