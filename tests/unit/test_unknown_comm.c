/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets for a communicator that an aggregator does not have, as after its restart. Their senders
 * are told, but not flooded with answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/secret.h"
#include "cluster.h"
#include "path/udp.h"
#include "wire/parse.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#define JOB 7

struct stranger {
	struct cluster cluster;
	int fd;
};

static void stranger_open(struct stranger *stranger)
{
	struct udp_options options = { .receive_bytes = 1 << 20, .send_bytes = 1 << 20 };
	struct udp_address peer;
	bool gso;

	cluster_start(&stranger->cluster, 1, 0);
	demand(udp_resolve(stranger->cluster.address, UDP_DEFAULT_PORT, &peer) == TRIB_OK);
	demand(udp_open(NULL, &peer, &options, &stranger->fd, &gso) == TRIB_OK);
}

static void stranger_close(struct stranger *stranger)
{
	close(stranger->fd);
	cluster_stop(&stranger->cluster);
}

static void say(const struct stranger *stranger, uint8_t type, uint64_t cookie)
{
	struct {
		struct wire_control header;
		struct wire_report report;
		struct wire_abort unused; /* the longest payload used here */
	} packet = { .header = { .type = type,
		                 .cookie = cookie,
		                 .job = JOB,
		                 .comm = 3,
		                 .epoch = 2,
		                 .child = 5 } };
	uint32_t payload = type == WIRE_REPORT   ? sizeof(struct wire_report)
	                   : type == WIRE_STATUS ? sizeof(struct wire_status)
	                   : type == WIRE_ABORT  ? sizeof(struct wire_abort)
	                                         : 64;

	if (type == WIRE_DATA || type == WIRE_RESULT)
		wire_seal_fragment(&packet, WIRE_CONTROL + payload,
		                   &(struct wire_unsent){ .proof = wire_proof(cookie, JOB, 2) });
	else
		wire_seal(&packet, WIRE_CONTROL + payload);
	demand(send(stranger->fd, &packet, WIRE_CONTROL + payload, 0) > 0);
}

/* The number of answers until none has come for a while. All must fit the question. */
static unsigned hear(const struct stranger *stranger, uint64_t cookie)
{
	struct pollfd wait = { .fd = stranger->fd, .events = POLLIN };
	uint64_t packet[WIRE_PACKET_MAX / 8];
	const struct wire_control *header = (const void *)packet;
	const struct wire_abort *abort_ = (const void *)(header + 1);
	unsigned n = 0;

	for (; poll(&wait, 1, 200) > 0; n++) {
		ssize_t bytes = recv(stranger->fd, packet, sizeof(packet), 0);

		demand(bytes > 0 && wire_parse(packet, (size_t)bytes) == WIRE_SOUND);
		demand(header->type == WIRE_ABORT && header->cookie == cookie);
		demand(header->job == JOB && header->comm == 3 && header->epoch == 2 &&
		       header->child == 5);
		demand(abort_->status == TRIB_ERR_AGGREGATOR && strstr(abort_->text, "job 7"));
	}
	return n;
}

static void test_who_sends_is_told(void **state)
{
	struct stranger stranger;

	(void)state;
	stranger_open(&stranger);
	say(&stranger, WIRE_REPORT, 77);
	assert_int_equal(hear(&stranger, 77), 1);
	/* The packet has no cookie that could be shown. */
	say(&stranger, WIRE_DATA, 77);
	/* Types that only an aggregator sends. */
	say(&stranger, WIRE_ABORT, 77);
	say(&stranger, WIRE_STATUS, 77);
	say(&stranger, WIRE_RESULT, 77);
	assert_int_equal(hear(&stranger, 77), 0);
	stranger_close(&stranger);
}

/*
 * With a controller's secret, only packets whose cookie that controller's aggregators could have
 * given.
 */
static void test_only_cookies_of_ours(void **state)
{
	const struct secret secret = { { 1, 2, 3 } };
	uint64_t ticket = secret_ticket(&secret, JOB, 4711);
	struct stranger stranger;

	(void)state;
	stranger_open(&stranger);
	aggregator_set_secret(stranger.cluster.aggregator, &secret);
	say(&stranger, WIRE_REPORT, 77);
	say(&stranger, WIRE_REPORT, ticket ^ 1);
	say(&stranger, WIRE_REPORT, secret_ticket(&secret, JOB + 1, 4711));
	assert_int_equal(hear(&stranger, 77), 0);
	say(&stranger, WIRE_REPORT, ticket);
	assert_int_equal(hear(&stranger, ticket), 1);
	stranger_close(&stranger);
}

static void test_a_flood_makes_none(void **state)
{
	struct stranger stranger;
	uint64_t start;
	unsigned heard, most;

	(void)state;
	stranger_open(&stranger);
	start = clock_now();
	for (unsigned i = 0; i < 20000; i++)
		say(&stranger, WIRE_REPORT, 77);
	heard = hear(&stranger, 77);
	most = 64 * (unsigned)((clock_now() - start) / 50000000 + 2);
	assert_in_range(heard, 1, most);
	stranger_close(&stranger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_sends_is_told),
		cmocka_unit_test(test_only_cookies_of_ours),
		cmocka_unit_test(test_a_flood_makes_none),
	};

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
