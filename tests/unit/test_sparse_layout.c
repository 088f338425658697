/* SPDX-License-Identifier: Apache-2.0 */
/* Which gradients share a packet: Algorithm 1 of Libra beside its text, and rows in blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "short.h"
#include "sparse/layout/layout.h"
#include "sparse/layout/row_room.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 33) % below);
}

/* ---- registers ---- */

static bool has_register(const uint32_t *registers, const uint32_t *packet_of, uint32_t n,
                         uint32_t packet, uint32_t k)
{
	for (uint32_t i = 0; i < n; i++)
		if (packet_of[i] == packet && registers[i] == k)
			return true;
	return false;
}

static uint32_t packet_fill(const uint32_t *packet_of, uint32_t n, uint32_t packet)
{
	uint32_t fill = 0;

	for (uint32_t i = 0; i < n; i++)
		fill += packet_of[i] == packet;
	return fill;
}

/* Algorithm 1 as the paper writes it: all packets are looked at for each gradient. */
static uint32_t pack_slowly(const struct layout *layout, const uint32_t *registers, uint32_t n,
                            uint32_t *packet_of)
{
	uint32_t packets = (n + layout->room - 1) / layout->room, rest = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t p = 0;

		while (p < packets && (packet_fill(packet_of, i, p) == layout->room ||
		                       has_register(registers, packet_of, i, p, registers[i])))
			p++;
		packet_of[i] = p < packets ? p : packets + rest++ / layout->room;
	}
	return packets + (rest + layout->room - 1) / layout->room;
}

static uint64_t recirculations_slowly(const struct layout *layout, const uint32_t *registers,
                                      uint32_t n, const uint32_t *packet_of, uint32_t packets)
{
	uint64_t sum = 0;

	for (uint32_t p = 0; p < packets; p++) {
		uint32_t most = 1;

		for (uint32_t k = 0; k < layout->registers; k++) {
			uint32_t uses = 0;

			for (uint32_t i = 0; i < n; i++)
				uses += packet_of[i] == p && registers[i] == k;
			most = uses > most ? uses : most;
		}
		sum += most - 1;
	}
	return sum;
}

#define GRADIENTS_MAX 120u

static void packing_is_algorithm_1(void **state)
{
	uint64_t cases = test_cases("batches", 6000);
	unsigned with_rest = 0;

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (uint64_t c = 0; c < cases; c++) {
		struct layout layout = { 1 + draw(20), 1 + draw(12) };
		uint32_t n = draw(GRADIENTS_MAX + 1), packets, skew = 1 + draw(layout.registers);
		uint32_t registers[GRADIENTS_MAX], fast[GRADIENTS_MAX], slow[GRADIENTS_MAX];
		uint32_t *scratch = malloc(layout_scratch(&layout, n) * sizeof(*scratch));

		assert_non_null(scratch);
		for (uint32_t i = 0; i < n; i++)
			registers[i] = draw(1 + draw(skew));
		packets = layout_pack(&layout, registers, n, fast, scratch);
		assert_int_equal(packets, pack_slowly(&layout, registers, n, slow));
		assert_memory_equal(fast, slow, n * sizeof(*fast));
		with_rest += packets > layout_estimate(&layout, n);
		assert_true(layout_recirculations(&layout, registers, n, fast, packets, scratch) ==
		            recirculations_slowly(&layout, registers, n, fast, packets));
		packets = layout_pack_in_order(&layout, n, fast);
		assert_true(layout_recirculations(&layout, registers, n, fast, packets, scratch) ==
		            recirculations_slowly(&layout, registers, n, fast, packets));
		free(scratch);
	}
	assert_true(with_rest > 0 && with_rest < cases);
}

/* A large batch. An algorithm that looks at all packets for each gradient would take hours. */
static void large_batches_are_packed(void **state)
{
	struct layout layout = { 32, 16 };
	uint32_t n = (uint32_t)test_count("gradients", 1000000, 100000), packets;
	uint32_t *numbers = malloc((2ull * n + layout_scratch(&layout, n)) * sizeof(*numbers));
	uint32_t *registers = numbers, *packet_of = numbers + n, *scratch = packet_of + n;
	clock_t began;

	(void)state;
	assert_non_null(numbers);
	for (uint32_t i = 0; i < n; i++)
		registers[i] = layout_register(&layout, draw(30000));
	began = clock();
	packets = layout_pack(&layout, registers, n, packet_of, scratch);
	printf("%u gradients are packed in %.0f ms of processor time\n", n,
	       1e3 * (double)(clock() - began) / CLOCKS_PER_SEC);
	assert_true(packets >= n / 16 && packets < n / 16 + n / 100);
	/* All are random, so little is left for packets with recirculations. */
	assert_true(layout_recirculations(&layout, registers, n, packet_of, packets, scratch) <
	            n / 100);
	/* The worst case: one register, and then all others. */
	for (uint32_t i = 0; i < n; i++)
		registers[i] = i < n / 2 ? 0 : i % 32;
	packets = layout_pack(&layout, registers, n, packet_of, scratch);
	assert_true(packets < 2 * (n / 16 + 1));
	free(numbers);
}

static void random_registers_are_used_alike(void **state)
{
	struct layout layout = { 8, 1 };
	unsigned uses[8] = { 0 }, others = 0;

	(void)state;
	for (uint32_t i = 0; i < 8000; i++) {
		uint32_t k = layout_register_random(&layout, i, 1);

		assert_true(k < 8);
		uses[k]++;
		others += k != layout_register_random(&layout, i, 2);
	}
	for (unsigned k = 0; k < 8; k++)
		assert_in_range(uses[k], 850, 1150);
	assert_in_range(others, 6500, 7500);
}

/* ---- blocks ---- */

static void rows_fit_into_memory(void **state)
{
	(void)state;
	/*
	 * 1 MiB has 704 cells of 1488 bytes; a third of them are blocks. A block has (1424 - 8) /
	 * 64 rows.
	 */
	assert_int_equal(layout_rows_fit(1 << 20, 1424, 16, true), 234 * 22);
	assert_int_equal(layout_rows_fit(1 << 20, 1424, 16, false), 352 * 22);
	assert_int_equal(layout_rows_fit(512 * 1488, 1424, 16, false), 256 * 22);
	assert_int_equal(layout_rows_fit(512 * 1488 - 1, 1424, 16, false), 255 * 22);
	assert_int_equal(layout_rows_fit(1 << 20, 1424, 1, true), 234 * 64);
	assert_int_equal(layout_rows_fit(1 << 20, 1424, 400, true), 0);
	assert_int_equal(layout_rows_fit(1487, 1424, 16, true), 0);
	assert_int_equal(layout_rows_fit(UINT64_MAX, 1424, 1, true), 65536);
	/* Each block has one row, and there are at most 65536 cells. */
	assert_int_equal(layout_rows_fit(UINT64_MAX, 1424, 350, true), 65536 / 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packing_is_algorithm_1),
		cmocka_unit_test(large_batches_are_packed),
		cmocka_unit_test(random_registers_are_used_alike),
		cmocka_unit_test(rows_fit_into_memory),
	};
	const char *given = getenv("TRIB_TEST_SEED");

	if (given)
		seed = strtoull(given, NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
