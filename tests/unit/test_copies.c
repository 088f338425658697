/* SPDX-License-Identifier: Apache-2.0 */
/* Results of neighbouring slots leave as one message for each child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plane/udp/udp_carrier.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHILDREN 3u
#define LENGTH 1048u

struct rig {
	struct thread thread;
	struct agg_lane lane, other;
	int children[CHILDREN];
	struct udp_rx *rx;
	uint64_t next[CHILDREN]; /* number of the next packet of each child */
	uint64_t sent;
};

static struct rig *rig_new(void)
{
	const struct udp_options options = { .offload = true,
		                             .receive_bytes = 4 << 20,
		                             .send_bytes = 4 << 20 };
	struct rig *rig = calloc(1, sizeof(*rig));
	struct udp_address any;
	bool gso;

	assert_non_null(rig);
	assert_int_equal(udp_resolve("127.0.0.1:0", 0, &any), TRIB_OK);
	assert_int_equal(udp_open(&any, NULL, &options, &rig->thread.fd, &gso), TRIB_OK);
	rig->thread.tx = udp_tx_new(64, gso);
	rig->rx = udp_rx_new(16, false);
	for (unsigned i = 0; i < CHILDREN; i++) {
		struct udp_address *to = &rig->lane.addresses[i];

		assert_int_equal(udp_open(&any, NULL, &options, &rig->children[i], &gso), TRIB_OK);
		to->length = sizeof(to->storage);
		assert_int_equal(getsockname(rig->children[i], (void *)&to->storage, &to->length),
		                 0);
		rig->other.addresses[i] = *to;
	}
	rig->lane.known = rig->other.known = 7;
	return rig;
}

static void rig_free(struct rig *rig)
{
	for (unsigned i = 0; i < CHILDREN; i++)
		close(rig->children[i]);
	close(rig->thread.fd);
	udp_tx_free(rig->thread.tx);
	udp_rx_free(rig->rx);
	free(rig);
}

static void add(struct rig *rig, const struct agg_lane *lane, uint32_t bytes, uint64_t to)
{
	uint64_t packet[LENGTH / 8] = { rig->sent++ };

	copies_add(&rig->thread, lane, packet, bytes, to);
}

/* The child has got so many messages, with these packets. */
static void arrived(struct rig *rig, unsigned child, int messages, unsigned packets)
{
	unsigned n = 0;

	assert_int_equal(udp_receive(rig->rx, rig->children[child]), messages);
	for (int i = 0; i < messages; i++) {
		const struct udp_message *message = udp_message(rig->rx, i);

		for (uint32_t at = 0; at < message->bytes; at += message->segment, n++) {
			uint64_t number;

			memcpy(&number, message->data + at, sizeof(number));
			assert_true(number >= rig->next[child]);
			rig->next[child] = number + 1;
		}
	}
	assert_int_equal(n, packets);
}

static void test_neighbours_share_a_message(void **state)
{
	struct rig *rig = rig_new();

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		add(rig, &rig->lane, LENGTH, 7);
	add(rig, &rig->lane, 40, 7); /* the last may be shorter */
	arrived(rig, 0, 0, 0);       /* nothing leaves before the flush */
	copies_flush(&rig->thread);
	for (unsigned child = 0; child < CHILDREN; child++)
		arrived(rig, child, 1, 17);
	copies_flush(&rig->thread);
	arrived(rig, 0, 0, 0);
	assert_int_equal(rig->thread.counters.sends, 17 * CHILDREN);
	rig_free(rig);
}

static void test_others_do_not(void **state)
{
	struct rig *rig = rig_new();

	(void)state;
	add(rig, &rig->lane, 40, 7);
	add(rig, &rig->lane, LENGTH, 7); /* longer than the first */
	add(rig, &rig->lane, 40, 7);
	add(rig, &rig->lane, 40, 7); /* follows a short one */
	add(rig, &rig->lane, 40, 1); /* to other children */
	add(rig, &rig->other, 40, 1);
	copies_flush(&rig->thread);
	arrived(rig, 0, 5, 6);
	arrived(rig, 1, 3, 4);
	rig_free(rig);
}

static void test_no_message_is_too_long(void **state)
{
	struct rig *rig = rig_new();

	(void)state;
	for (unsigned i = 0; i < 200; i++) /* 64 packets of 40 bytes at most */
		add(rig, &rig->lane, 40, 4);
	copies_flush(&rig->thread);
	arrived(rig, 2, 4, 200);
	for (unsigned i = 0; i < 64; i++) /* 65,000 bytes at most */
		add(rig, &rig->lane, LENGTH, 4);
	copies_flush(&rig->thread);
	arrived(rig, 2, 2, 64);
	rig_free(rig);
}

static void test_a_lane_that_ends(void **state)
{
	struct rig *rig = rig_new();

	(void)state;
	add(rig, &rig->lane, LENGTH, 7);
	carrier_udp.forget(&rig->thread, &rig->lane);
	copies_flush(&rig->thread);
	arrived(rig, 0, 0, 0);
	add(rig, &rig->other, LENGTH, 8); /* a child whose address is not known */
	copies_flush(&rig->thread);
	for (unsigned child = 0; child < CHILDREN; child++)
		arrived(rig, child, 0, 0);
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_neighbours_share_a_message),
		cmocka_unit_test(test_others_do_not),
		cmocka_unit_test(test_no_message_is_too_long),
		cmocka_unit_test(test_a_lane_that_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
