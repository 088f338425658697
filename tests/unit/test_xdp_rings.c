/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checksum of a result. The XDP program knows it from the packets that it added, if it added
 * all of them. Here the daemon adds some, scales rise, packets are corrupted and cells are reused,
 * in any order. Every result must have the right checksum.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/parse.h"
#include "xdp_rig.h"

#include <string.h>

#define PAYLOAD 512u
#define CHILDREN 3u
#define CELLS 4u
#define ROUNDS 20000u

static struct rig rig;
static struct frame frame, out;

static void start(void)
{
	rig_lane(&rig, CHILDREN, CELLS, PAYLOAD);
	rig_routes(&rig, &shape_plain);
}

static struct xdp_cell *cell_of(uint64_t position)
{
	return (void *)dense_cell(&rig.pool, dense_index(rig.dense, position));
}

/* Gives a packet to the kernel. Returns the verdict; a result is checked. */
static int by_kernel(struct rig_data data)
{
	int taken;

	frame_data(&frame, &shape_plain, &data);
	taken = rig_agree(&rig, &frame, &out);
	if (taken == DENSE_COMPLETE)
		result_check(&rig, &out, &shape_plain, data.to, data.position);
	return taken;
}

/* Gives a packet to the daemon, as if it came through a socket. */
static int by_daemon(struct rig_data data)
{
	static struct packet packet;
	uint32_t bytes = packet_data(&packet, &data);
	uint32_t index = dense_index(rig.dense, data.position);
	int taken = (int)dense_take(rig.dense, dense_cell(&rig.pool, index),
	                            dense_packet(&rig.pool, index) + WIRE_HEADER, &packet.header,
	                            packet.words, bytes - WIRE_HEADER);

	rig_copy(&rig);
	return taken;
}

static void corrupt(struct rig_data data)
{
	frame_data(&frame, &shape_plain, &data);
	frame.data[frame.at + WIRE_HEADER] ^= 1;
	assert_int_equal(rig_agree(&rig, &frame, &out), TAKEN_CORRUPTED);
}

static void ring_is_of(uint64_t position, uint64_t children)
{
	assert_int_equal(cell_of(position)->ring_of, children);
}

static void test_all_in_the_kernel(void **state)
{
	(void)state;
	start();
	for (uint32_t bytes = 0; bytes <= PAYLOAD; bytes += 8) {
		rig_clear(&rig);
		by_kernel(DATA(1, 0, .to = 2, .bytes = bytes));
		by_kernel(DATA(1, 1, .to = 2, .bytes = bytes));
		assert_int_equal(by_kernel(DATA(1, 2, .to = 2, .bytes = bytes)), DENSE_COMPLETE);
		ring_is_of(1, 7);
	}
}

/* A fragment with one contributor leaves unchanged. */
static void test_from_one(void **state)
{
	(void)state;
	start();
	for (uint8_t op = 0; op < WIRE_OPS_END; op++) {
		rig_clear(&rig);
		assert_int_equal(by_kernel(DATA(1, 1, .op = op, .from = 1, .to = 2)),
		                 DENSE_COMPLETE);
		ring_is_of(1, 2);
	}
}

static void test_daemon_takes_one(void **state)
{
	(void)state;
	start();
	for (unsigned whose = 0; whose < CHILDREN - 1; whose++) {
		rig_clear(&rig);
		for (uint8_t child = 0; child < CHILDREN; child++)
			(child == whose ? by_daemon : by_kernel)(DATA(1, child, .to = 0));
		assert_int_not_equal(cell_of(1)->ring_of, 7);
		assert_true(cell_of(1)->state.complete);
	}
}

/*
 * A checksum for the lower scale is not valid for the higher one, although the children are the
 * same.
 */
static void test_daemon_raises_the_scale(void **state)
{
	(void)state;
	start();
	by_kernel(DATA(1, 0, .to = 0, .scale = 1));
	assert_int_equal(by_daemon(DATA(1, 0, .to = 0, .scale = 2, .seed = 9)), DENSE_ADDED);
	by_kernel(DATA(1, 1, .to = 0, .scale = 2));
	assert_int_equal(by_kernel(DATA(1, 2, .to = 0, .scale = 2)), DENSE_COMPLETE);
}

static void test_corrupted_between(void **state)
{
	(void)state;
	start();
	corrupt(DATA(1, 0, .to = 0));
	by_kernel(DATA(1, 0, .to = 0));
	corrupt(DATA(1, 1, .to = 0));
	by_kernel(DATA(1, 1, .to = 0));
	corrupt(DATA(1, 2, .to = 0));
	assert_int_equal(by_kernel(DATA(1, 2, .to = 0)), DENSE_COMPLETE);
}

static void test_anything(void **state)
{
	const char *given = getenv("TRIB_TEST_SEED");
	uint64_t random = given ? strtoull(given, NULL, 0) : 1, base = 0;
	unsigned whole = 0, parts = 0, rounds = test_is_short() ? ROUNDS / 10 : ROUNDS;

	(void)state;
	printf("seed %llu (TRIB_TEST_SEED)\n", (unsigned long long)random);
	start();
	for (unsigned i = 0; i < rounds; i++) {
		uint64_t r = rig_random(&random), position = base + r % CELLS;
		uint8_t ops[] = { WIRE_ADD64, WIRE_ADD64, WIRE_ADD32, WIRE_MAX_I8 };
		struct rig_data data =
			DATA(position, r >> 8 & 3, .to = 0, .op = ops[position / 3 % countof(ops)],
		             .scale = (r >> 16 & 7) < 6 ? 1 : 2, .bytes = position % 65 * 8,
		             .ack = (uint32_t)base, .seed = rig_random(&random));
		int taken;

		data.from = position % 5 ? WIRE_ALL : position % CHILDREN;
		if (data.child >= CHILDREN)
			continue;
		if ((r >> 24 & 7) == 0) {
			by_daemon(data);
		} else if ((r >> 24 & 15) == 1 && data.bytes) {
			frame_data(&frame, &shape_plain, &data);
			frame.data[frame.at + WIRE_HEADER + (r >> 32) % data.bytes] ^= 16;
			rig_agree(&rig, &frame, &out);
		} else {
			taken = by_kernel(data);
			if (taken == DENSE_COMPLETE)
				*(cell_of(position)->ring_of == cell_of(position)->state.arrived
				          ? &whole
				          : &parts) += 1;
		}
		if ((r >> 40 & 7) == 0)
			base += r >> 48 & 3;
	}
	printf("%u results with a whole ring, %u without\n", whole, parts);
	assert_true(whole > rounds / 500 && parts > rounds / 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_in_the_kernel),
		cmocka_unit_test(test_from_one),
		cmocka_unit_test(test_daemon_takes_one),
		cmocka_unit_test(test_daemon_raises_the_scale),
		cmocka_unit_test(test_corrupted_between),
		cmocka_unit_test(test_anything),
	};
	int failed;

	rig_load(&rig, PAYLOAD);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rig_unload(&rig);
	return failed;
}
