/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of a load share: plane_load.c has lanes and their life,
 * plane_load_send.c what they send, plane_load_receive.c what comes back.
 */
#ifndef TRIB_CLI_PLANE_LOAD_INTERNAL_H
#define TRIB_CLI_PLANE_LOAD_INTERNAL_H

#include "cli/plane_join.h"
#include "cli/plane_load.h"
#include "path/tcp.h"

#include <pthread.h>

#define LOAD_BATCH 44u           /* packets in a send: 64 KB */
#define LOAD_RING (1u << 16)     /* fragments that are remembered */
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
	uint64_t sent[LOAD_CHILDREN_MAX]; /* bytes of the stream, or positions */
	uint64_t next;                    /* the first position that not all children have sent */
	uint64_t done;                    /* fragments that are not under way any more */
	uint64_t progress_at, report_at;
	struct fragment *ring;
	uint32_t *checks; /* of position checks_from + i / children, child i % children */
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

/* plane_load_send.c */

/* What is not sent of a fragment. */
struct wire_unsent load_unsent(const struct load_lane *lane, uint64_t position);
/* The checksums of what will be sent, as far as memory goes. */
void load_prepare(struct load_lane *lane);
/* For plane_frames.h: one packet, sealed; its bytes. */
uint32_t load_packet(void *lane, unsigned child, uint64_t position, void *packet);
/* Every child sends up to this position, as far as sockets take it. */
void load_send(struct load_lane *lane, uint64_t until, uint64_t now);

/* plane_load_receive.c */

/* Takes what there is for the child; what is left of it: nothing if 0 or below. */
int load_take(struct load_lane *lane, unsigned child);
/* For all who want results. Did one come that was waited for? */
bool load_take_all(struct load_lane *lane);

#endif
