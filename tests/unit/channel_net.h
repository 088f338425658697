/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network with its own clock between the two ends of a channel: paths with a rate, a latency, a
 * queue, background traffic and faults.
 */
#ifndef TRIB_TESTS_CHANNEL_NET_H
#define TRIB_TESTS_CHANNEL_NET_H

#include "path/channel/channel.h"

#define NET_MS 1000000ull
#define NET_S 1000000000ull
#define NET_BPS 2e8 /* rate of a path */

struct net_path {
	double bps;
	double load;       /* share of the rate that background traffic takes */
	uint64_t delay;    /* ns in each direction */
	uint64_t queue_ns; /* longest wait in the queue; what would wait longer is dropped */
	double loss, duplicate, corrupt;
	double late; /* share of packets that are up to 2 ms late */
	bool cut;
	uint32_t most;       /* bytes of the longest packet that passes; 0: any */
	unsigned link;       /* the path whose link this one shares; by default its own */
	uint64_t busy[2];    /* until when the link of each direction is busy */
	uint64_t carried[2]; /* bytes of packets in each direction */
};

struct net_event;

struct net {
	uint64_t now, random;
	unsigned n_paths;
	struct net_path paths[PATHS_MAX];
	struct channel *ends[2]; /* 0 connects */
	struct net_event *events;
	unsigned n_events, room;
	uint64_t order;
	void (*work)(struct net *net, void *user); /* called after each event */
	void *user;
};

/* Equal paths of NET_BPS with 20 ms queues. The ends are not opened yet. */
void net_init(struct net *net, unsigned paths, uint64_t seed);
void net_free(struct net *net);
/* A configuration for one end: unit 1448, chunk 50 KB, 2 s timeout. */
struct channel_config net_config(unsigned end);
/* Both ends, with all paths. */
void net_open(struct net *net, const struct channel_config config[2]);
/* Lets packets travel until this time. */
void net_run(struct net *net, uint64_t until);
double net_random(struct net *net);

#endif
