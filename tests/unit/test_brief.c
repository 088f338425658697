/* SPDX-License-Identifier: Apache-2.0 */
/* REPORT and STATUS: shortened by the empty ends of their bitmaps, and restored. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "wire/brief.h"
#include "wire/parse.h"

#include <stdlib.h>
#include <string.h>

#define WORDS (WIRE_GROUP / 64)

static uint64_t random_word(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 11 | 1;
}

static struct wire_whole make(uint8_t type)
{
	struct wire_whole whole;

	memset(&whole, 0, sizeof(whole));
	whole.header.type = type;
	whole.header.ack = 4711;
	return whole;
}

static uint32_t whole_bytes(uint8_t type)
{
	return WIRE_CONTROL + (uint32_t)(type == WIRE_REPORT ? sizeof(struct wire_report)
	                                                     : sizeof(struct wire_status));
}

/* Shortens, sends and parses, in memory of exactly that length. Returns the length. */
static uint32_t there_and_back(const struct wire_whole *sent)
{
	struct wire_whole packet = *sent, room;
	uint32_t bytes = wire_cut(&packet), whole = whole_bytes(sent->header.type);
	struct wire_control *received = malloc(bytes);
	const struct wire_control *made;

	assert_non_null(received);
	assert_true(bytes <= whole);
	wire_seal(&packet, bytes);
	memcpy(received, &packet, bytes);
	assert_int_equal(wire_parse(received, bytes), WIRE_SOUND);
	made = wire_make_whole(received, bytes, &room);
	assert_true((made == received) == (bytes == whole));
	assert_memory_equal(wire_payload(made), &sent->report, whole - WIRE_CONTROL);
	assert_int_equal(made->ack, sent->header.ack);
	free(received);
	return bytes;
}

static void test_empty_bitmaps_are_not_sent(void **state)
{
	struct wire_whole report = make(WIRE_REPORT), status = make(WIRE_STATUS);

	(void)state;
	report.report.bits = status.status.bits = WIRE_GROUP;
	report.report.lost = 77;
	status.status.serial = 88;
	assert_int_equal(there_and_back(&report), WIRE_CONTROL + 80);
	assert_int_equal(there_and_back(&status), WIRE_CONTROL + 48);
}

static void test_what_is_set_is_sent(void **state)
{
	(void)state;
	for (unsigned word = 0; word < WORDS; word++) {
		struct wire_whole report = make(WIRE_REPORT), status = make(WIRE_STATUS);

		report.report.missing[word] = 1;
		assert_int_equal(there_and_back(&report), WIRE_CONTROL + 80 + 8 * (word + 1));
		status.status.missing[word] = 1ull << 63;
		status.status.complete[word / 2] = 1;
		assert_int_equal(there_and_back(&status), WIRE_CONTROL + 48 + 16 * (word + 1));
		status.status.missing[word] = 0;
		status.status.complete[word] = 1;
		assert_int_equal(there_and_back(&status), WIRE_CONTROL + 48 + 16 * (word + 1));
	}
}

static void test_any_bitmap_comes_whole(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		struct wire_whole report = make(WIRE_REPORT), status = make(WIRE_STATUS);
		uint64_t one = random_word(&seed) % (WORDS + 1);
		uint64_t two = random_word(&seed) % (WORDS + 1);

		for (unsigned word = 0; word < one; word++) {
			report.report.missing[word] = random_word(&seed);
			status.status.missing[word] = random_word(&seed);
		}
		for (unsigned word = 0; word < two; word++)
			status.status.complete[word] = random_word(&seed);
		there_and_back(&report);
		there_and_back(&status);
	}
}

/* The two bitmaps of a STATUS have the same length, so some lengths are invalid. */
static void test_half_a_pair_is_no_status(void **state)
{
	struct wire_whole status = make(WIRE_STATUS), report = make(WIRE_REPORT);

	(void)state;
	wire_seal(&status, WIRE_CONTROL + 48 + 8);
	assert_int_equal(wire_parse(&status, WIRE_CONTROL + 48 + 8), WIRE_FAULT_CONTENT);
	wire_seal(&status, WIRE_CONTROL + 32);
	assert_int_equal(wire_parse(&status, WIRE_CONTROL + 32), WIRE_FAULT_CONTENT);
	wire_seal(&report, WIRE_CONTROL + 48);
	assert_int_equal(wire_parse(&report, WIRE_CONTROL + 48), WIRE_FAULT_CONTENT);
}

/* Packets of other types are unchanged. */
static void test_others_stay(void **state)
{
	struct wire_whole packet = make(WIRE_BYE), room;

	(void)state;
	assert_ptr_equal(wire_make_whole(&packet.header, WIRE_CONTROL, &room), &packet.header);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_bitmaps_are_not_sent),
		cmocka_unit_test(test_what_is_set_is_sent),
		cmocka_unit_test(test_any_bitmap_comes_whole),
		cmocka_unit_test(test_half_a_pair_is_no_status),
		cmocka_unit_test(test_others_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
