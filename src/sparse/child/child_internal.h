/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_SPARSE_CHILD_CHILD_INTERNAL_H
#define TRIB_SPARSE_CHILD_CHILD_INTERNAL_H

#include "sparse/child/sparse_child.h"

#include "path/closed_port.h"
#include "path/length_probe.h"

#define CHILD_BATCH 64u /* packets of one flush */

struct sparse_child {
	struct child_options options;
	enum child_state state;
	int fd;
	struct udp_rx *rx;
	struct udp_tx *tx;
	struct wire_welcome welcome;
	uint64_t nonce;
	uint32_t token;    /* proves our address there, see path/address_proof.h */
	uint64_t proof;    /* see wire_proof() */
	uint64_t deadline; /* of joining */
	uint64_t ask_at;   /* the next JOIN or heartbeat */
	uint64_t heard_at;
	uint64_t stepped_at;
	uint64_t present; /* ranks that have joined, as bits */
	struct length_probe length;
	struct closed_port closed; /* what is said of the aggregator's port */
	bool heard;                /* the aggregator has answered a JOIN */
	bool greeted;              /* the aggregator has answered a heartbeat */
	trib_status status;
	char why[2 * WIRE_TEXT_MAX];
	char wait_text[WIRE_TEXT_MAX]; /* why the aggregator waits, if not for a rank */
	char address[64];
	bool is_full;                /* the socket has not taken all of the batch */
	unsigned n;                  /* packets in `batch` */
	uint32_t bytes[CHILD_BATCH]; /* of each */
	uint8_t *at;                 /* end of the packets in `batch` */
	uint8_t *batch;
};

/* The child has failed; the first sentence stays. */
void child_fail(struct sparse_child *child, trib_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Seals a control packet and sends it. */
void child_send_control(struct sparse_child *child, void *packet, uint32_t bytes);

/* child_join.c: sends the next JOIN. */
void child_ask(struct sparse_child *child, uint64_t now);
/* Takes a WELCOME that is for this child; `bytes` is the length of the packet. */
void child_take_welcome(struct sparse_child *child, const struct wire_welcome *welcome,
                        uint32_t bytes, uint64_t now);
/* The time to join is over: fails with the reason. */
void child_give_up(struct sparse_child *child);

#endif
