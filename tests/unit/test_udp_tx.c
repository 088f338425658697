/* SPDX-License-Identifier: Apache-2.0 */
/* Packets arrive as they lie in memory: side by side or apart, joined by the kernel or single. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/udp.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define APART 1472u
#define PACKETS 24u
#define MESSAGES 10u

static uint8_t memory[MESSAGES][PACKETS * APART];

static void fill(void)
{
	for (unsigned m = 0; m < MESSAGES; m++)
		for (unsigned i = 0; i < PACKETS * APART; i++)
			memory[m][i] = (uint8_t)(m * 31 + i % 251 + i / 251);
}

static void sockets_open(int *from, int *to)
{
	const struct udp_options options = { .receive_bytes = 4 << 20, .send_bytes = 4 << 20 };
	struct udp_address local, there = { .length = sizeof(there.storage) };
	bool gso;

	assert_int_equal(udp_resolve("127.0.0.1:0", 0, &local), TRIB_OK);
	assert_int_equal(udp_open(&local, NULL, &options, to, &gso), TRIB_OK);
	assert_int_equal(getsockname(*to, (void *)&there.storage, &there.length), 0);
	assert_int_equal(udp_open(&local, NULL, &options, from, &gso), TRIB_OK);
	assert_int_equal(connect(*from, (void *)&there.storage, there.length), 0);
}

/* All packets have arrived, in order, and each as long as it was sent. */
static void packets_take(int fd, uint32_t segment, uint32_t apart, uint32_t last)
{
	struct udp_rx *rx = udp_rx_new(1, false);
	unsigned packet = 0;
	int n;

	assert_non_null(rx);
	while ((n = udp_receive(rx, fd)) > 0)
		for (int i = 0; i < n; i++) {
			const struct udp_message *message = udp_message(rx, i);

			for (uint32_t at = 0; at < message->bytes; at += message->segment) {
				uint32_t left = message->bytes - at;
				uint32_t here = left < message->segment ? left : message->segment;
				unsigned k = packet % PACKETS;

				assert_true(packet < MESSAGES * PACKETS);
				assert_int_equal(here, k + 1 < PACKETS ? segment : last);
				assert_memory_equal((const uint8_t *)message->data + at,
				                    memory[packet / PACKETS] + k * apart, here);
				packet++;
			}
		}
	assert_int_equal(packet, MESSAGES * PACKETS);
	udp_rx_free(rx);
}

/* Several messages in one call; there are more pieces of memory than one call takes. */
static void messages_cross(bool gso, uint32_t segment, uint32_t apart, uint32_t last)
{
	struct udp_tx *tx = udp_tx_new(MESSAGES, gso);
	uint32_t bytes = (PACKETS - 1) * segment + last;
	int from, to;

	assert_non_null(tx);
	sockets_open(&from, &to);
	for (unsigned m = 0; m < MESSAGES; m++)
		udp_tx_add_apart(tx, memory[m], bytes, segment, apart, NULL);
	assert_int_equal(udp_send(tx, from), 0);
	assert_true(udp_tx_is_empty(tx));
	packets_take(to, segment, apart, last);
	close(from);
	close(to);
	udp_tx_free(tx);
}

static void test_apart(void **state)
{
	(void)state;
	for (int gso = 0; gso < 2; gso++) {
		messages_cross(gso, 1448, APART, 1448);
		messages_cross(gso, 1448, APART, 40); /* only the last one may be shorter */
		messages_cross(gso, 24, APART, 24);
	}
}

static void test_side_by_side(void **state)
{
	(void)state;
	for (int gso = 0; gso < 2; gso++) {
		messages_cross(gso, APART, APART, APART);
		messages_cross(gso, APART, APART, 40);
	}
}

#define HEAD 24u

static uint8_t heads[MESSAGES][PACKETS * APART], bodies[MESSAGES][PACKETS * APART];

/* All packets but the last one of a message have their bodies elsewhere. */
static struct udp_tx *bodies_queue(bool gso)
{
	const uint32_t body = APART - HEAD;
	struct udp_tx *tx = udp_tx_new(MESSAGES, gso);

	assert_non_null(tx);
	memset(heads, 0, sizeof(heads));
	for (unsigned m = 0; m < MESSAGES; m++) {
		for (unsigned k = 0; k < PACKETS; k++) {
			bool whole = k + 1 == PACKETS;

			memcpy(heads[m] + k * APART, memory[m] + k * APART, whole ? APART : HEAD);
			memcpy(bodies[m] + k * body, memory[m] + k * APART + HEAD, body);
		}
		udp_tx_add_split(tx, heads[m], PACKETS * APART, APART, bodies[m], PACKETS - 1,
		                 HEAD);
	}
	return tx;
}

static void test_bodies(void **state)
{
	(void)state;
	for (int gso = 0; gso < 2; gso++) {
		struct udp_tx *tx = bodies_queue(gso);
		int from, to;

		sockets_open(&from, &to);
		assert_int_equal(udp_send(tx, from), 0);
		packets_take(to, APART, APART, APART);
		close(from);
		close(to);
		udp_tx_free(tx);
	}
}

/* When the socket is full, what is queued does not need its bodies any more. A local socket is full
 * after few packets. */
static void test_full(void **state)
{
	struct udp_tx *tx = bodies_queue(false);
	uint8_t packet[APART];
	unsigned taken = 0;
	int ends[2], sent;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends), 0);
	assert_int_equal(udp_send(tx, ends[0]), -EAGAIN);
	memset(bodies, 0, sizeof(bodies));
	do {
		sent = udp_send(tx, ends[0]);
		for (; recv(ends[1], packet, sizeof(packet), 0) == (ssize_t)APART; taken++)
			assert_memory_equal(
				packet, memory[taken / PACKETS] + taken % PACKETS * APART, APART);
	} while (sent == -EAGAIN);
	assert_int_equal(sent, 0);
	assert_int_equal(taken, MESSAGES * PACKETS);
	close(ends[0]);
	close(ends[1]);
	udp_tx_free(tx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_apart),
		cmocka_unit_test(test_side_by_side),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_full),
	};

	fill();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
