/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of a load: load.c has the lanes and their threads, load_send.c sends,
 * load_receive.c receives.
 */
#ifndef TRIB_BENCH_LOAD_LOAD_LANE_H
#define TRIB_BENCH_LOAD_LOAD_LANE_H

#include "bench/load/join_children.h"
#include "bench/load/load.h"
#include "path/tcp.h"

#include <pthread.h>

#define LOAD_BATCH 44u           /* packets in a send: 64 KB */
#define LOAD_RING (1u << 16)     /* fragments whose state is remembered */
#define LOAD_WORD 0x100000001ull /* the same in both halves */

/* Latencies in steps of 1/32 of their size, from 64 ns to 2 minutes. */
#define LOAD_STEPS_OF_TWO 32u
#define LOAD_BUCKETS (32u * LOAD_STEPS_OF_TWO)

enum fragment_state { FRAGMENT_NONE, FRAGMENT_SENT, FRAGMENT_LOST };

struct fragment {
	uint64_t position, sent_at;
	enum fragment_state state;
};

struct load_lane {
	struct load *load;
	unsigned index;
	pthread_t thread;
	bool started;
	int fds[LOAD_CHILDREN_MAX];
	struct udp_rx *rx;
	struct tcp_rx bytes;
	struct tcp_tail tails[LOAD_CHILDREN_MAX];
	uint64_t sent[LOAD_CHILDREN_MAX]; /* bytes of the stream on TCP, positions on UDP */
	uint64_t next;                    /* the first position that not all children have sent */
	uint64_t done;                    /* fragments that are not in flight any more */
	uint64_t progress_at, report_at;
	struct fragment *ring;
	uint32_t *checks; /* checksum of position checks_from + i / children, child i % children */
	uint64_t checks_from, n_checks;
	struct wire_header headers[LOAD_BATCH];
	struct iovec vectors[2 * LOAD_BATCH];
	uint32_t *latencies;
	_Atomic uint64_t packets, fragments, results, copies, wrong, repeated;
};

struct load {
	struct load_options options;
	struct wire_welcome welcome;
	struct load_lane lanes[LOAD_LANES_MAX];
	uint32_t bytes, stride; /* of payload; of a packet */
	uint64_t *payloads[LOAD_CHILDREN_MAX];
	uint64_t total; /* the sum of all children's factors */
	double rate, seconds;
	pthread_barrier_t ready;
	_Atomic bool stop, note;
};

/* load_send.c */

/* What the checksum of a fragment covers without being sent. */
struct wire_unsent load_unsent(const struct load_lane *lane, uint64_t position);
/* Makes the checksums of what will be sent, as far as memory allows. */
void load_prepare(struct load_lane *lane);
/* For frame_sender.h: makes one sealed packet; returns its bytes. */
uint32_t load_packet(void *lane, unsigned child, uint64_t position, void *packet);
/* Every child sends up to this position, as far as the sockets take it. */
void load_send(struct load_lane *lane, uint64_t until, uint64_t now);

/* load_receive.c */

/* Receives once for the child. Gives the bytes or packets received; 0 or below: none. */
int load_take(struct load_lane *lane, unsigned child);
/* Receives for all children that want results. True: a result in flight has come. */
bool load_take_all(struct load_lane *lane);

#endif
