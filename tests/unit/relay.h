/* SPDX-License-Identifier: Apache-2.0 */
/* relay: a thread between workers and an aggregator. The test decides which packets pass. */
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
/* Called in the relay's thread. `up`: the packet goes to the aggregator. */
typedef bool relay_passes(struct relay *relay, bool up, const struct wire_header *packet,
                          size_t bytes);

struct relay {
	int front;
	char address[32]; /* use it in place of the aggregator's address */
	struct udp_address aggregator;
	relay_passes *passes;
	/* The children that have sent, and the socket that the aggregator sees for each. */
	unsigned children;
	struct sockaddr_in child[RELAY_CHILDREN];
	int back[RELAY_CHILDREN];
	pthread_t thread;
	_Atomic bool stop;
	/* For the test, which may read them after the relay has stopped. */
	unsigned dropped;
	size_t most, longest; /* bytes: of any packet; of the packets that the test looks at */
};

void relay_open(struct relay *relay, const char *aggregator, relay_passes *passes);
void relay_stop(struct relay *relay);

#endif
