/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an aggregator tells its children, each by itself: those are made by hand,
 * and speak to it by real packets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster.h"
#include "path/udp.h"
#include "wire/parse.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define JOB 1
#define CHILDREN 2u
#define BYTES 64u
#define PATIENCE_MS 5000
#define YOUNG_US 20000u
#define FOREVER_US 100000000u

union packet {
	struct wire_header header;
	struct wire_control control;
	uint64_t words[(WIRE_PACKET_MAX + 64) / 8];
};

struct child {
	int fd;
	uint8_t rank;
	uint32_t stamp; /* of its last report */
	struct wire_welcome welcome;
};

static void child_open(struct child *child, const struct cluster *cluster, unsigned rank)
{
	struct udp_options options = { .receive_bytes = 1 << 20, .send_bytes = 1 << 20 };
	struct udp_address peer;
	bool gso;

	*child = (struct child){ .rank = (uint8_t)rank };
	demand(udp_resolve(cluster->address, UDP_DEFAULT_PORT, &peer) == TRIB_OK);
	demand(udp_open(NULL, &peer, &options, &child->fd, &gso) == TRIB_OK);
}

static void child_send(const struct child *child, const union packet *packet, uint32_t bytes)
{
	demand(send(child->fd, packet, bytes, 0) == (ssize_t)bytes);
}

/* The next packet's type; 0: none came. */
static uint8_t child_receive(const struct child *child, union packet *packet, int wait_ms)
{
	struct pollfd wait = { .fd = child->fd, .events = POLLIN };
	ssize_t bytes;

	if (poll(&wait, 1, wait_ms) <= 0)
		return 0;
	bytes = recv(child->fd, packet, sizeof(*packet), 0);
	demand(bytes > 0 && wire_parse(packet, (size_t)bytes) == WIRE_SOUND);
	return packet->header.type;
}

static void child_ask_in(const struct child *child)
{
	struct wire_join join = { .size = CHILDREN,
		                  .rank = child->rank,
		                  .payload = 1024,
		                  .lanes = 1,
		                  .pool_bytes = 1 << 20,
		                  .timeout_ms = 20000,
		                  .host = "raw" };
	union packet packet = { .control = { .type = WIRE_JOIN,
		                             .cookie = CLUSTER_COOKIE,
		                             .job = JOB,
		                             .child = child->rank } };

	memcpy(&packet.control + 1, &join, sizeof(join));
	wire_seal(&packet, WIRE_CONTROL + sizeof(join));
	child_send(child, &packet, WIRE_CONTROL + sizeof(join));
}

/* Both ask until both are in. */
static void children_join(struct child *children)
{
	unsigned joined = 0;
	union packet packet;

	while (joined < CHILDREN) {
		joined = 0;
		for (unsigned i = 0; i < CHILDREN; i++) {
			struct wire_welcome *welcome = &children[i].welcome;

			if (welcome->verdict != WIRE_JOINED || !welcome->cookie) {
				child_ask_in(&children[i]);
				if (child_receive(&children[i], &packet, 20) == WIRE_WELCOME)
					memcpy(welcome, &packet.control + 1, sizeof(*welcome));
			}
			joined += welcome->verdict == WIRE_JOINED && welcome->cookie;
		}
	}
}

static void child_data(const struct child *child, uint64_t position)
{
	const struct wire_welcome *welcome = &child->welcome;
	const struct wire_unsent unsent = { .proof = wire_proof(welcome->cookie, JOB,
		                                                welcome->epoch),
		                            .pos = wire_pos(0, position) };
	union packet packet = { .header = { .type = WIRE_DATA,
		                            .comm = welcome->comm,
		                            .child = child->rank,
		                            .op = WIRE_ADD64,
		                            .pos = (uint32_t)position,
		                            .from = WIRE_ALL,
		                            .to = WIRE_ALL } };

	memset(&packet.header + 1, 1, BYTES);
	wire_seal_fragment(&packet, WIRE_HEADER + BYTES, &unsent);
	child_send(child, &packet, WIRE_HEADER + BYTES);
}

/* Each brings its part, and gets the result. */
static void complete(struct child *children, uint64_t position)
{
	union packet packet;

	for (unsigned i = 0; i < CHILDREN; i++)
		child_data(&children[i], position);
	for (unsigned i = 0; i < CHILDREN; i++)
		do
			demand(child_receive(&children[i], &packet, PATIENCE_MS));
		while (packet.header.type != WIRE_RESULT || packet.header.pos != position);
}

/* Asks for a result that may be late. Does it come, before the answer? */
static bool child_asks(struct child *child, uint64_t position, uint32_t young)
{
	struct wire_report report = { .base = position,
		                      .bits = 1,
		                      .stamp = ++child->stamp,
		                      .young = young,
		                      .missing = { 1 } };
	union packet packet = { .control = { .type = WIRE_REPORT,
		                             .cookie = child->welcome.cookie,
		                             .job = JOB,
		                             .comm = child->welcome.comm,
		                             .epoch = child->welcome.epoch,
		                             .child = child->rank } };
	const struct wire_status *status = (const void *)(&packet.control + 1);
	bool came = false;

	memcpy(&packet.control + 1, &report, sizeof(report));
	wire_seal(&packet, WIRE_CONTROL + sizeof(report));
	child_send(child, &packet, WIRE_CONTROL + sizeof(report));
	for (;;) {
		uint8_t type = child_receive(child, &packet, PATIENCE_MS);

		demand(type);
		if (type == WIRE_RESULT && packet.header.pos == position)
			came = true;
		if (type != WIRE_STATUS || packet.control.child == WIRE_ALL)
			continue;
		if (status->stamp == child->stamp)
			return came;
	}
}

/* What one child got again is not on its way to another. */
static void test_each_by_itself(void **state)
{
	struct child children[CHILDREN];
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 1, 0);
	for (unsigned i = 0; i < CHILDREN; i++)
		child_open(&children[i], &cluster, i);
	children_join(children);
	complete(children, 0);
	while (!child_asks(&children[0], 0, YOUNG_US))
		; /* it has just left: until that is long ago */
	assert_true(child_asks(&children[1], 0, YOUNG_US));
	assert_true(child_asks(&children[0], 0, 0));
	assert_false(child_asks(&children[0], 0, FOREVER_US));
	complete(children, 1);
	assert_false(child_asks(&children[1], 1, FOREVER_US));
	for (unsigned i = 0; i < CHILDREN; i++)
		close(children[i].fd);
	cluster_stop(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_each_by_itself) };

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
