/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for large arrays is zero and aligned, for every size, also for none. */
#include "glm/data/large_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_sizes(void **state)
{
	const size_t sizes[] = {
		0, 1, 64, 65, 4097, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 5 << 20
	};

	(void)state;
	for (size_t s = 0; s < 4 * sizeof(sizes) / sizeof(sizes[0]); s++) {
		size_t size = sizes[s / 4]; /* again, with the memory that was freed */
		unsigned char *memory = large_memory(size);

		assert_non_null(memory);
		assert_int_equal((uintptr_t)memory % 64, 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(memory[i], 0);
		memset(memory, 0xa5, size);
		free(memory);
	}
}

static void test_too_much(void **state)
{
	(void)state;
	assert_null(large_memory(SIZE_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
