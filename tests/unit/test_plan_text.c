/* SPDX-License-Identifier: Apache-2.0 */
/* A plan in parts: complete when all parts have arrived, in any order, and of one plan only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/trees/plan_text.h"

static char whole[WIRE_PLAN_MAX];

static void whole_fill(uint32_t bytes, char first)
{
	for (uint32_t i = 0; i < bytes; i++)
		whole[i] = (char)('!' + (i * 7 + i / 100 + (uint32_t)first) % 90);
	whole[bytes] = '\0';
}

static bool take(struct plan_text *plan, uint32_t generation, uint32_t bytes, uint32_t part)
{
	struct wire_welcome welcome = { .generation = generation,
		                        .text_bytes = bytes,
		                        .text_from = part * WIRE_PLAN_PART };
	char text[WIRE_PLAN_PART + 1];
	size_t length = strnlen(whole + welcome.text_from, WIRE_PLAN_PART);

	memcpy(text, whole + welcome.text_from, length);
	text[length] = '\0';
	return plan_text_take(plan, &welcome, text);
}

static void test_one_packet(void **state)
{
	struct plan_text plan = { 0 };

	(void)state;
	for (uint32_t bytes = 1; bytes <= WIRE_PLAN_PART; bytes += WIRE_PLAN_PART - 1) {
		whole_fill(bytes, 'a');
		assert_true(take(&plan, bytes, bytes, 0));
		assert_string_equal(plan.text, whole);
	}
}

static void test_any_order(void **state)
{
	struct plan_text plan = { 0 };
	uint32_t bytes = WIRE_PLAN_MAX - 1, parts = plan_text_parts(bytes);

	(void)state;
	whole_fill(bytes, 'b');
	assert_int_equal(parts, 16);
	for (uint32_t i = 0; i + 1 < parts; i++) {
		assert_false(take(&plan, 3, bytes, (i * 5 + 2) % parts));
		assert_false(take(&plan, 3, bytes, (i * 5 + 2) % parts)); /* twice */
	}
	assert_true(take(&plan, 3, bytes, ((parts - 1) * 5 + 2) % parts));
	assert_string_equal(plan.text, whole);
}

/* Parts of two plans are not mixed. */
static void test_newer_plan(void **state)
{
	struct plan_text plan = { 0 };
	uint32_t bytes = 2 * WIRE_PLAN_PART;

	(void)state;
	whole_fill(bytes, 'c');
	assert_false(take(&plan, 1, bytes, 0));
	whole_fill(bytes, 'd');
	assert_false(take(&plan, 2, bytes, 1));
	assert_true(take(&plan, 2, bytes, 0));
	assert_string_equal(plan.text, whole);
	assert_false(take(&plan, 2, bytes - 1, 0)); /* another length: another plan */
}

static void test_nonsense(void **state)
{
	static const struct {
		uint32_t generation, bytes, from, length;
	} wrong[] = {
		{ 0, 10, 0, 10 },              /* no plan number */
		{ 1, 0, 0, 0 },                /* empty */
		{ 1, WIRE_PLAN_MAX, 0, 1336 }, /* no room for the terminator */
		{ 1, UINT32_MAX, 0, 1336 },
		{ 1, 2000, 2000, 0 },
		{ 1, 2000, 4008, 10 },  /* beyond the end */
		{ 1, 2000, 1, 1336 },   /* not the start of a part */
		{ 1, 2000, 0, 1335 },   /* too short */
		{ 1, 2000, 1336, 665 }, /* too long */
	};
	struct plan_text plan = { 0 };
	char text[WIRE_PLAN_PART + 1];

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct wire_welcome welcome = { .generation = wrong[i].generation,
			                        .text_bytes = wrong[i].bytes,
			                        .text_from = wrong[i].from };

		memset(text, 'x', wrong[i].length);
		text[wrong[i].length] = '\0';
		assert_false(plan_text_take(&plan, &welcome, text));
		assert_int_equal(plan.have, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_packet),
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_newer_plan),
		cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
