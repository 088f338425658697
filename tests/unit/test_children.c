/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages from an aggregator to each of its children. The children are simulated by the test and
 * use real packets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster.h"
#include "path/udp.h"
#include "wire/parse.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define JOB 1
#define LOOPBACK "127.0.0.1"
#define ELSEWHERE "10.84.255.1"
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
	uint32_t token; /* proves its address */
	int fd;
	uint8_t rank, size;
	uint32_t stamp; /* stamp of its last report */
	struct wire_welcome welcome;
};

static void child_open(struct child *child, const struct cluster *cluster, const char *from)
{
	struct udp_options options = { .receive_bytes = 1 << 20, .send_bytes = 1 << 20 };
	struct udp_address own, peer;
	bool gso;

	demand(udp_resolve(from, 0, &own) == TRIB_OK);
	demand(udp_resolve(cluster->address, UDP_DEFAULT_PORT, &peer) == TRIB_OK);
	demand(udp_open(&own, &peer, &options, &child->fd, &gso) == TRIB_OK);
}

static void child_send(const struct child *child, const union packet *packet, uint32_t bytes)
{
	demand(send(child->fd, packet, bytes, 0) == (ssize_t)bytes);
}

/* The next packet's type; 0: none arrived. */
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

static void child_ask_in(struct child *child, uint64_t key)
{
	struct wire_join join = { .key = key,
		                  .size = child->size,
		                  .rank = child->rank,
		                  .payload = 1024,
		                  .lanes = 1,
		                  .pool_bytes = 1 << 20,
		                  .timeout_ms = 20000,
		                  .host = "raw" };
	union packet packet = { .control = { .type = WIRE_JOIN,
		                             .cookie = CLUSTER_COOKIE,
		                             .job = JOB,
		                             .child = child->rank,
		                             .token = child->token } };

	memcpy(&packet.control + 1, &join, sizeof(join));
	wire_seal(&packet, WIRE_JOIN_LEAST);
	child_send(child, &packet, WIRE_JOIN_LEAST);
}

/* Children at these addresses send JOIN until all have joined a communicator with this key. */
static void children_join(struct child *children, unsigned n, const struct cluster *cluster,
                          uint64_t key, const char *const *from)
{
	unsigned joined = 0;
	union packet packet;

	for (unsigned i = 0; i < n; i++) {
		children[i] = (struct child){ .rank = (uint8_t)i, .size = (uint8_t)n };
		child_open(&children[i], cluster, from[i]);
	}
	while (joined < n) {
		joined = 0;
		for (unsigned i = 0; i < n; i++) {
			struct wire_welcome *welcome = &children[i].welcome;

			if (welcome->verdict != WIRE_JOINED || !welcome->cookie) {
				child_ask_in(&children[i], key);
				if (child_receive(&children[i], &packet, 20) == WIRE_WELCOME) {
					memcpy(welcome, &packet.control + 1, sizeof(*welcome));
					children[i].token = packet.control.token;
				}
			}
			joined += welcome->verdict == WIRE_JOINED && welcome->cookie;
		}
	}
}

static void children_close(const struct child *children, unsigned n)
{
	while (n--)
		close(children[n].fd);
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

/* Each child sends its part and gets the result. */
static void complete(struct child *children, unsigned n, uint64_t position)
{
	union packet packet;

	for (unsigned i = 0; i < n; i++)
		child_data(&children[i], position);
	for (unsigned i = 0; i < n; i++)
		do
			demand(child_receive(&children[i], &packet, PATIENCE_MS));
		while (packet.header.type != WIRE_RESULT || packet.header.pos != position);
}

/* Asks for a result that may be late. Does the result arrive before the answer? */
static bool child_asks(struct child *child, uint64_t position, uint32_t young)
{
	struct wire_report report = { .base = position,
		                      .bits = 1,
		                      .stamp = ++child->stamp,
		                      .serial = child->stamp,
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

/* A result sent again to one child is not in flight to another. */
static void test_repeats(void **state)
{
	static const char *const from[] = { LOOPBACK, LOOPBACK };
	struct child children[2];
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 1, 0);
	children_join(children, 2, &cluster, 0, from);
	complete(children, 2, 0);
	while (!child_asks(&children[0], 0, YOUNG_US))
		; /* it was sent just now: wait until that is long ago */
	assert_true(child_asks(&children[1], 0, YOUNG_US));
	assert_true(child_asks(&children[0], 0, 0));
	assert_false(child_asks(&children[0], 0, FOREVER_US));
	complete(children, 2, 1);
	assert_false(child_asks(&children[1], 1, FOREVER_US));
	children_close(children, 2);
	cluster_stop(&cluster);
}

/* ---- which children are offered a multicast group ---- */

/* Creates a network namespace whose loopback has a second address. */
static bool network_make(void)
{
	struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct ifreq other = { .ifr_name = "lo:1" };
	struct sockaddr_in *address = (void *)&other.ifr_addr;
	int fd;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	demand(fd >= 0);
	address->sin_family = AF_INET;
	demand(inet_pton(AF_INET, ELSEWHERE, &address->sin_addr) == 1);
	demand(ioctl(fd, SIOCSIFFLAGS, &up) == 0);
	demand(ioctl(fd, SIOCSIFADDR, &other) == 0);
	close(fd);
	return true;
}

/*
 * The children at these addresses that are offered a multicast group, as bits. It is the same group
 * for all.
 */
static unsigned offered(const struct cluster *cluster, uint64_t key, unsigned n,
                        const char *const *from)
{
	struct child children[4];
	unsigned bits = 0;

	children_join(children, n, cluster, key, from);
	for (unsigned i = 0; i < n; i++) {
		const struct wire_welcome *welcome = &children[i].welcome;

		assert_int_equal(welcome->multicast_port != 0, welcome->multicast_group != 0);
		bits |= (welcome->multicast_port != 0) << i;
		if (welcome->multicast_port)
			assert_int_equal(welcome->multicast_group,
			                 children[__builtin_ctz(bits)].welcome.multicast_group);
	}
	children_close(children, n);
	return bits;
}

static void multicast_start(struct cluster *cluster)
{
	struct aggregator_options options = {
		.cookie = CLUSTER_COOKIE,
		.threads = 1,
		.multicast = true,
		.socket = { .receive_bytes = 1 << 20, .send_bytes = 1 << 20 },
	};

	*cluster = (struct cluster){ .aggregator = NULL };
	demand(udp_resolve(LOOPBACK ":0", 0, &options.listen) == TRIB_OK);
	demand(aggregator_start(&options, &cluster->aggregator) == TRIB_OK);
	snprintf(cluster->address, sizeof(cluster->address), LOOPBACK ":%u",
	         aggregator_port(cluster->aggregator));
}

/* Multicast leaves through one interface. Children elsewhere would wait for it in vain. */
static void test_offers(void **state)
{
	static const char *const apart[] = { LOOPBACK, ELSEWHERE };
	static const char *const most[] = { LOOPBACK, ELSEWHERE, LOOPBACK, ELSEWHERE };
	static const char *const three[] = { LOOPBACK, ELSEWHERE, ELSEWHERE };
	static const char *const here[] = { LOOPBACK, LOOPBACK };
	struct cluster cluster;

	if (!*(const bool *)*state)
		skip();
	multicast_start(&cluster);
	assert_int_equal(offered(&cluster, 1, 2, apart), 0);
	assert_int_equal(offered(&cluster, 2, 3, three), 6);
	/* From now on the aggregator's sockets send multicast through that interface. */
	assert_int_equal(offered(&cluster, 3, 4, most), 10);
	assert_int_equal(offered(&cluster, 4, 2, here), 0);
	cluster_stop(&cluster);
	multicast_start(&cluster);
	assert_int_equal(offered(&cluster, 1, 2, here), 3);
	cluster_stop(&cluster);
}

int main(void)
{
	bool has_network = network_make();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_repeats),
		cmocka_unit_test_prestate(test_offers, &has_network),
	};

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
