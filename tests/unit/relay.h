/* SPDX-License-Identifier: Apache-2.0 */
/* A way to an aggregator, by a thread of this process: what passes is for the test to say. */
#ifndef TRIB_TESTS_RELAY_H
#define TRIB_TESTS_RELAY_H

#include "path/udp.h"
#include "wire/packet.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define RELAY_CHILDREN 4u

struct relay;
/* By the relay's thread. `up`: to the aggregator. */
typedef bool relay_passes(struct relay *relay, bool up, const struct wire_header *packet,
                          size_t bytes);

struct relay {
	int front;
	char address[32]; /* instead of the aggregator's */
	struct udp_address aggregator;
	relay_passes *passes;
	/* Who has spoken, and the socket by which the aggregator knows it. */
	unsigned children;
	struct sockaddr_in child[RELAY_CHILDREN];
	int back[RELAY_CHILDREN];
	pthread_t thread;
	_Atomic bool stop;
	/* For the test; its thread reads them when the relay has stopped. */
	unsigned dropped;
	size_t most, longest; /* bytes: of any packet, and of what the test looks at */
};

void relay_start(struct relay *relay, const char *aggregator, relay_passes *passes);
void relay_stop(struct relay *relay);

#endif
