/* SPDX-License-Identifier: Apache-2.0 */
/* The bit-weaved layout: each bit stands where weave.h says, and rows come back as they were. */
#include "glm/kernel/weave.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COLUMNS 300u

static void test_each_bit_has_its_place(void **state)
{
	uint8_t row[3 * 8 * GLM_PLANE], codes[COLUMNS];

	(void)state;
	for (uint32_t bits = 1; bits <= GLM_BITS_MAX; bits++) {
		for (uint32_t column = 0; column < COLUMNS; column++) {
			for (uint32_t bit = 0; bit < bits; bit++) {
				uint32_t inside = column % 128, plane = bits - 1 - bit;
				size_t byte =
					(size_t)(column / 128 * bits + plane) * 16 + inside % 16;

				memset(codes, 0, sizeof(codes));
				codes[column] = (uint8_t)(1u << bit);
				weave_row(row, codes, COLUMNS, bits);
				for (size_t i = 0; i < weave_row_bytes(COLUMNS, bits); i++)
					assert_int_equal(row[i], i == byte ? 1u << inside / 16 : 0);
			}
		}
	}
}

static void test_rows_come_back(void **state)
{
	(void)state;
	srand(1);
	for (uint32_t bits = 1; bits <= GLM_BITS_MAX; bits++) {
		for (uint32_t columns = 0; columns <= COLUMNS; columns++) {
			uint8_t row[3 * 8 * GLM_PLANE], codes[COLUMNS], back[COLUMNS + 1];

			for (uint32_t i = 0; i < columns; i++)
				codes[i] = (uint8_t)(rand() & ((1 << bits) - 1));
			memset(back, 0xa5, sizeof(back));
			assert_int_equal(weave_row_bytes(columns, bits),
			                 (columns + 127) / 128 * 16 * bits);
			weave_row(row, codes, columns, bits);
			unweave_row(back, row, columns, bits);
			assert_memory_equal(codes, back, columns);
			assert_int_equal(back[columns],
			                 0xa5); /* nothing behind the row is written */
			for (uint32_t i = 0; i < columns; i++)
				assert_int_equal(weave_code(row, i, bits), codes[i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_bit_has_its_place),
		cmocka_unit_test(test_rows_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
