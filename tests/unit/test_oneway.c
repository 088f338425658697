/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A way that carries long packets up and none down: a long JOIN comes to the
 * aggregator whose WELCOME never comes back. Nobody may be let in with
 * packets so long. A relay in this process is that way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster.h"
#include "path/udp.h"
#include "wire/packet.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define DOWN_MAX 1500 /* bytes; loopback carries the longest packets that there are */
#define COUNT 100000

struct relay {
	int front, back; /* to who joins, and to the aggregator */
	char address[32];
	pthread_t thread;
	_Atomic bool stop;
	unsigned dropped;
};

static void *relay_main(void *argument)
{
	struct relay *relay = argument;
	struct pollfd waits[2] = { { .fd = relay->front, .events = POLLIN },
		                   { .fd = relay->back, .events = POLLIN } };
	struct sockaddr_storage child;
	static char packet[WIRE_PACKET_MAX];
	socklen_t length = 0;

	while (!atomic_load(&relay->stop)) {
		ssize_t bytes;

		poll(waits, 2, 10);
		for (;; length = sizeof(child)) {
			socklen_t room = sizeof(child);

			bytes = recvfrom(relay->front, packet, sizeof(packet), MSG_DONTWAIT,
			                 (void *)&child, &room);
			if (bytes < 0)
				break;
			(void)!send(relay->back, packet, (size_t)bytes, 0);
		}
		while (length &&
		       (bytes = recv(relay->back, packet, sizeof(packet), MSG_DONTWAIT)) >= 0) {
			if (bytes > DOWN_MAX)
				relay->dropped++;
			else
				(void)!sendto(relay->front, packet, (size_t)bytes, 0,
				              (void *)&child, sizeof(struct sockaddr_in));
		}
	}
	return NULL;
}

static void relay_start(struct relay *relay, const struct cluster *cluster)
{
	const struct udp_options options = { .receive_bytes = 8 << 20, .send_bytes = 1 << 20 };
	struct udp_address any, peer;
	bool gso;

	*relay = (struct relay){ 0 };
	demand(udp_resolve("127.0.0.1:0", 0, &any) == TRIB_OK);
	demand(udp_resolve(cluster->address, UDP_DEFAULT_PORT, &peer) == TRIB_OK);
	demand(udp_open(&any, NULL, &options, &relay->front, &gso) == TRIB_OK);
	demand(udp_open(NULL, &peer, &options, &relay->back, &gso) == TRIB_OK);
	any.length = sizeof(any.storage);
	demand(getsockname(relay->front, (void *)&any.storage, &any.length) == 0);
	udp_text(&any, relay->address, sizeof(relay->address));
	demand(pthread_create(&relay->thread, NULL, relay_main, relay) == 0);
}

/* So many long packets were lost; without any the test would show nothing. */
static void relay_stop(struct relay *relay)
{
	atomic_store(&relay->stop, true);
	demand(pthread_join(relay->thread, NULL) == 0);
	assert_in_range(relay->dropped, 1, 100);
	close(relay->front);
	close(relay->back);
}

static void sum_body(struct rank *rank)
{
	int32_t *values = malloc(COUNT * sizeof(*values));
	trib_comm *comm;

	demand(values);
	if (rank->job && rank->rank == 1)
		rank->options.aggregator = ((const struct relay *)rank->job)->address;
	demand(trib_init(&comm, &rank->options) == TRIB_OK);
	for (int i = 0; i < COUNT; i++)
		values[i] = i + rank->rank;
	demand(trib_allreduce(comm, TRIB_IN_PLACE, values, COUNT, TRIB_I32, TRIB_SUM) == TRIB_OK);
	for (int i = 0; i < COUNT; i++)
		demand(values[i] == 2 * i + 1);
	demand(trib_finalize(comm) == TRIB_OK);
	free(values);
}

static void test_a_worker(void **state)
{
	const trib_options options = { .struct_size = sizeof(options),
		                       .lanes = 1,
		                       .timeout_s = 20 };
	struct cluster cluster;
	struct relay relay;

	(void)state;
	cluster_start(&cluster, 1, 0);
	relay_start(&relay, &cluster);
	cluster_run_bare(&cluster, 2, &options, sum_body, &relay);
	relay_stop(&relay);
	cluster_stop(&cluster);
}

static void test_an_aggregator_below(void **state)
{
	trib_options options = { .struct_size = sizeof(options), .lanes = 1, .timeout_s = 20 };
	struct cluster root, below;
	struct relay relay;
	char trees[100];

	(void)state;
	cluster_start(&root, 1, 0);
	cluster_start(&below, 1, 0);
	relay_start(&relay, &root);
	snprintf(trees, sizeof(trees), "%s(%s(0,1))", relay.address, below.address);
	options.trees = trees;
	cluster_run_bare(&below, 2, &options, sum_body, NULL);
	relay_stop(&relay);
	cluster_stop(&below);
	cluster_stop(&root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_worker),
		cmocka_unit_test(test_an_aggregator_below),
	};

	cluster_environment();
	unsetenv("TRIB_TEST_TREE");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
