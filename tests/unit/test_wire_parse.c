/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of packets, with right and wrong ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/checksum.h"
#include "wire/parse.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define countof(array) (sizeof(array) / sizeof((array)[0]))
#define WORDS_MAX (WIRE_PACKET_MAX / 8)

static const struct form {
	uint8_t type;
	uint32_t payload;
	bool longer;    /* may be longer */
	uint32_t least; /* the least length */
	uint32_t step;  /* multiple by which it may be shorter; 0: not at all */
} forms[] = {
	{ .type = WIRE_DATA, .payload = 0, .longer = true },
	{ .type = WIRE_RESULT, .payload = 0, .longer = true },
	{ .type = WIRE_REPORT, .payload = sizeof(struct wire_report), .least = 80, .step = 8 },
	{ .type = WIRE_STATUS, .payload = sizeof(struct wire_status), .least = 48, .step = 16 },
	{ .type = WIRE_JOIN, .payload = sizeof(struct wire_welcome), .longer = true },
	{ .type = WIRE_WELCOME, .payload = sizeof(struct wire_welcome), .longer = true },
	{ .type = WIRE_ABORT, .payload = sizeof(struct wire_abort) },
	{ .type = WIRE_BYE, .payload = 0 },
	{ .type = WIRE_QUERY, .payload = 0, .longer = true },
	{ .type = WIRE_ANSWER, .payload = 8, .longer = true },
	{ .type = WIRE_TURN, .payload = sizeof(struct wire_turn), .longer = true },
};

static bool form_takes(const struct form *form, uint32_t payload)
{
	if (payload >= form->payload)
		return payload == form->payload || form->longer;
	return form->step && payload >= form->least && (payload - form->least) % form->step == 0;
}

static uint64_t buffer[WORDS_MAX + 8];

static const struct wire_unsent unsent = { 0x0123456789abcdef, 0x0300000000000000 };

static struct wire_header *make(uint8_t type)
{
	struct wire_header *header = (void *)buffer;

	memset(buffer, 0, sizeof(buffer));
	header->type = type;
	header->from = header->to = WIRE_ALL;
	return header;
}

static struct wire_control *make_control(uint8_t type)
{
	make(type);
	return (void *)buffer;
}

static bool is_fragment(void)
{
	return wire_is_fragment((const struct wire_header *)buffer);
}

static uint32_t header_bytes(void)
{
	return is_fragment() ? WIRE_HEADER : WIRE_CONTROL;
}

static void seal(size_t bytes)
{
	if (is_fragment())
		wire_seal_fragment(buffer, bytes, &unsent);
	else
		wire_seal(buffer, bytes);
}

/* Like a receiver that knows the communicator. */
static enum wire_fault parse(size_t bytes)
{
	enum wire_fault fault = wire_parse(buffer, bytes);

	if (fault == WIRE_SOUND && is_fragment() &&
	    !wire_is_intact((const struct wire_header *)buffer, bytes, &unsent))
		return WIRE_FAULT_CHECK;
	return fault;
}

static enum wire_fault parse_sealed(uint32_t payload)
{
	seal(header_bytes() + payload);
	return parse(header_bytes() + payload);
}

/* Counted entries must be present, and values must be valid. */
static void test_parse_turn(void **state)
{
	struct wire_control *header = make_control(WIRE_TURN);
	struct wire_turn *turn = (void *)(header + 1);
	uint32_t bytes = sizeof(*turn);

	(void)state;
	assert_int_equal(parse_sealed(bytes), WIRE_SOUND);
	turn->ops = 2;
	assert_int_equal(parse_sealed(bytes + 16), WIRE_FAULT_CONTENT);
	assert_int_equal(parse_sealed(bytes + 24), WIRE_SOUND);
	turn->ops = WIRE_TURN_OPS_MAX + 1;
	assert_int_equal(parse_sealed(WIRE_PACKET_MAX - WIRE_CONTROL), WIRE_FAULT_CONTENT);
	turn->ops = 0;
	turn->word = WIRE_TURN_WORDS_END;
	assert_int_equal(parse_sealed(bytes), WIRE_FAULT_CONTENT);
	turn->word = 0;
	turn->phase = WIRE_TURN_PHASES_END;
	assert_int_equal(parse_sealed(bytes), WIRE_FAULT_CONTENT);
	turn->phase = 0;
	turn->from = 1;
	assert_int_equal(parse_sealed(bytes), WIRE_FAULT_CONTENT);
}

/* A message followed by an aggregator's address, and by nothing else. */
static void test_parse_move(void **state)
{
	struct wire_turn *turn = (void *)(buffer + WIRE_CONTROL / 8);
	struct wire_hop *hop = (void *)(turn + 1);
	const uint32_t bytes = sizeof(*turn) + sizeof(*hop);

	(void)state;
	make(WIRE_TURN);
	turn->word = WIRE_TURN_MOVE;
	for (unsigned family = 0; family < 256; family++) {
		hop->family = (uint8_t)family;
		assert_int_equal(parse_sealed(bytes),
		                 family == 4 || family == 6 ? WIRE_SOUND : WIRE_FAULT_CONTENT);
	}
	hop->family = 4;
	assert_int_equal(parse_sealed(sizeof(*turn)), WIRE_FAULT_CONTENT);
	assert_int_equal(parse_sealed(bytes - 8), WIRE_FAULT_CONTENT);
	assert_int_equal(parse_sealed(bytes + 8), WIRE_FAULT_CONTENT);
	turn->ops = 1;
	assert_int_equal(parse_sealed(bytes), WIRE_FAULT_CONTENT);
	turn->ops = 0;
	turn->word = WIRE_TURN_WORDS_END;
	assert_int_equal(parse_sealed(bytes), WIRE_FAULT_CONTENT);
}

static void test_parse_lengths(void **state)
{
	(void)state;
	for (size_t f = 0; f < countof(forms); f++) {
		uint32_t header, most;
		size_t whole;

		make(forms[f].type);
		header = header_bytes();
		most = WIRE_PACKET_MAX - header;
		for (uint32_t payload = 0; payload <= most + 16; payload += 8) {
			bool right = form_takes(&forms[f], payload);

			assert_int_equal(parse_sealed(payload), payload > most ? WIRE_FAULT_LENGTH
			                                        : right        ? WIRE_SOUND
			                                                : WIRE_FAULT_CONTENT);
		}
		/* Truncated anywhere, with the checksum of the whole. */
		whole = header + forms[f].payload;
		seal(whole);
		for (size_t bytes = 0; bytes < whole; bytes++)
			assert_int_equal(parse(bytes), bytes < header || bytes % 8
			                                       ? WIRE_FAULT_LENGTH
			                                       : WIRE_FAULT_CHECK);
		for (unsigned odd = 1; odd < 8; odd++)
			assert_int_equal(parse(whole + odd), WIRE_FAULT_LENGTH);
	}
}

static void test_parse_header(void **state)
{
	(void)state;
	for (size_t f = 0; f < countof(forms); f++) {
		struct wire_header *header = make(forms[f].type);
		uint8_t type = header->type;

		assert_int_equal(parse_sealed(forms[f].payload), WIRE_SOUND);
		header->magic ^= 0x0100; /* a future version */
		assert_int_equal(parse(header_bytes() + forms[f].payload), WIRE_FAULT_MAGIC);
		for (unsigned other = 0; other < 256; other++) {
			header->type = (uint8_t)other;
			if (other == 0 || other >= WIRE_TYPES_END)
				assert_int_equal(parse_sealed(forms[f].payload), WIRE_FAULT_TYPE);
		}
		header->type = type;
		for (unsigned child = 0; child < 256; child++) {
			bool from_child = type == WIRE_DATA || type == WIRE_REPORT;
			bool right =
				child < WIRE_CHILDREN_MAX || (child == WIRE_ALL && !from_child);

			header->child = (uint8_t)child;
			assert_int_equal(parse_sealed(forms[f].payload),
			                 right ? WIRE_SOUND : WIRE_FAULT_CONTENT);
		}
		header->child = 0;
		for (unsigned lane = 0; lane < 256 && !is_fragment(); lane++) {
			struct wire_control *control = (void *)buffer;

			control->pos = wire_pos(lane, WIRE_POSITION_MASK);
			assert_int_equal(parse_sealed(forms[f].payload),
			                 lane < WIRE_LANES_MAX ? WIRE_SOUND : WIRE_FAULT_CONTENT);
			control->pos = 0;
		}
		for (unsigned value = 0; value < 256; value++) {
			bool fragment = type == WIRE_DATA || type == WIRE_RESULT;
			bool index = value < WIRE_CHILDREN_MAX || value == WIRE_ALL;

			header->op = (uint8_t)value;
			assert_int_equal(parse_sealed(forms[f].payload),
			                 !fragment || value < WIRE_OPS_END ? WIRE_SOUND
			                                                   : WIRE_FAULT_CONTENT);
			header->op = 0;
			header->from = (uint8_t)value;
			assert_int_equal(parse_sealed(forms[f].payload),
			                 !fragment || index ? WIRE_SOUND : WIRE_FAULT_CONTENT);
			header->from = WIRE_ALL;
			header->to = (uint8_t)value;
			assert_int_equal(parse_sealed(forms[f].payload), WIRE_SOUND);
			header->to = WIRE_ALL;
		}
	}
}

static void test_parse_payload(void **state)
{
	static const uint32_t too_many[] = { WIRE_GROUP + 1, 1u << 31, UINT32_MAX };
	static const uint16_t too_many_for_report[] = { WIRE_GROUP + 1, 1u << 15, UINT16_MAX };
	static const struct {
		uint8_t type;
		size_t text, size, payload;
	} texts[] = {
		{ WIRE_JOIN, offsetof(struct wire_join, host), WIRE_NAME_MAX,
		  WIRE_JOIN_LEAST - WIRE_CONTROL },
		{ WIRE_WELCOME, offsetof(struct wire_welcome, text), WIRE_TEXT_MAX,
		  sizeof(struct wire_welcome) },
		{ WIRE_ABORT, offsetof(struct wire_abort, text), WIRE_TEXT_MAX,
		  sizeof(struct wire_abort) },
		{ WIRE_ANSWER, 0, 64, 64 },
	};
	uint8_t *payload = (uint8_t *)(buffer + WIRE_CONTROL / 8);

	(void)state;
	make(WIRE_REPORT);
	for (size_t i = 0; i < countof(too_many_for_report); i++) {
		((struct wire_report *)(void *)payload)->bits = too_many_for_report[i];
		assert_int_equal(parse_sealed(sizeof(struct wire_report)), WIRE_FAULT_CONTENT);
	}
	((struct wire_report *)(void *)payload)->bits = WIRE_GROUP;
	assert_int_equal(parse_sealed(sizeof(struct wire_report)), WIRE_SOUND);
	make(WIRE_STATUS);
	for (size_t i = 0; i < countof(too_many); i++) {
		((struct wire_status *)(void *)payload)->bits = too_many[i];
		assert_int_equal(parse_sealed(sizeof(struct wire_status)), WIRE_FAULT_CONTENT);
	}
	for (size_t i = 0; i < countof(texts); i++) {
		make(texts[i].type);
		memset(payload + texts[i].text, 'x', texts[i].size);
		assert_int_equal(parse_sealed((uint32_t)texts[i].payload), WIRE_FAULT_CONTENT);
		payload[texts[i].text + texts[i].size - 1] = 0;
		assert_int_equal(parse_sealed((uint32_t)texts[i].payload), WIRE_SOUND);
	}
}

/* A plan may be longer than a sentence. It must end with the packet. */
static void test_parse_plan(void **state)
{
	struct wire_control *header = make_control(WIRE_WELCOME);
	struct wire_welcome *welcome = (void *)(header + 1);
	uint8_t *text = (uint8_t *)welcome + offsetof(struct wire_welcome, text);
	uint32_t payload = sizeof(*welcome) + 800;

	(void)state;
	memset(text, 'x', WIRE_TEXT_MAX + 800);
	for (uint32_t verdict = WIRE_JOINED; verdict <= WIRE_PLAN; verdict++) {
		welcome->verdict = verdict;
		text[WIRE_TEXT_MAX + 799] = 'x';
		assert_int_equal(parse_sealed(payload), WIRE_FAULT_CONTENT);
		text[WIRE_TEXT_MAX + 799] = 0;
		assert_int_equal(parse_sealed(payload),
		                 verdict == WIRE_PLAN ? WIRE_SOUND : WIRE_FAULT_CONTENT);
		assert_int_equal(parse_sealed(payload - 8), WIRE_FAULT_CONTENT);
	}
}

/* Every single wrong bit in every type of packet is detected. */
static void test_parse_flips(void **state)
{
	(void)state;
	for (size_t f = 0; f < countof(forms); f++) {
		size_t bytes;

		make(forms[f].type);
		bytes = header_bytes() + forms[f].payload;
		assert_int_equal(parse_sealed(forms[f].payload), WIRE_SOUND);
		for (size_t bit = 0; bit < bytes * 8; bit++) {
			buffer[bit / 64] ^= 1ull << bit % 64;
			/* The length may fit another type, but the checksum does not. */
			assert_int_not_equal(parse(bytes), WIRE_SOUND);
			buffer[bit / 64] ^= 1ull << bit % 64;
		}
	}
}

static void test_widen(void **state)
{
	static const uint64_t nears[] = { 0,          1,          1ull << 31, (1ull << 32) - 1,
		                          1ull << 32, 5ull << 32, 1ull << 40, WIRE_POSITION_MASK };
	static const int64_t steps[] = { 0, 1, -1, 1000, -1000, INT32_MAX, INT32_MIN };

	(void)state;
	for (size_t i = 0; i < countof(nears); i++) {
		for (size_t k = 0; k < countof(steps); k++) {
			uint64_t position = nears[i] + (uint64_t)steps[k];

			assert_true(wire_widen((uint32_t)position, nears[i]) == position);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_turn),    cmocka_unit_test(test_parse_move),
		cmocka_unit_test(test_parse_lengths), cmocka_unit_test(test_parse_header),
		cmocka_unit_test(test_parse_payload), cmocka_unit_test(test_parse_plan),
		cmocka_unit_test(test_parse_flips),   cmocka_unit_test(test_widen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
