/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `trib bench glm` without input and output. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "bench/glm/glm_case.h"

#define MOST 3

static void epochs_are_read(void **state)
{
	const char *line =
		"    { \"epoch\": 2, \"loss\": 0.25, \"accuracy\": 1, \"test_loss\": null, "
		"\"test_accuracy\": null, \"seconds\": 0.5, \"total_s\": 1.75, "
		"\"saturated\": 0 },";
	struct glm_epoch epoch;

	(void)state;
	assert_true(glm_epoch_read(line, &epoch));
	assert_int_equal(epoch.number, 2);
	assert_true(epoch.loss == 0.25 && epoch.seconds == 0.5 && epoch.at_s == 1.75);
}

static void other_lines_are_not_epochs(void **state)
{
	static const char *const lines[] = {
		"",
		"  \"epochs\": [",
		"    \"loss\": 0.15,",
		"    1    0.691786     52.45 %       0.171",
		"{ \"epoch\": 0, \"loss\": 1, \"seconds\": 1, \"total_s\": 1 }",
		"{ \"epoch\": 1, \"loss\": null, \"seconds\": 1, \"total_s\": 1 }",
		"{ \"epoch\": 1, \"loss\": 1, \"seconds\": 1",
	};
	struct glm_epoch epoch;

	(void)state;
	for (unsigned i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_false(glm_epoch_read(lines[i], &epoch));
}

static void dense_data_have_a_limit(void **state)
{
	struct glm_shape shape = { .features = 1000000, .rows = 4096, .batch = 16 };

	(void)state;
	/* 512 MB have 134 rows of a million floats: 8 whole mini-batches. */
	assert_int_equal(glm_rows_fit(&shape), 128);
	shape.bits = 4;
	assert_int_equal(glm_rows_fit(&shape), 1072);
	shape.batch = 2048;
	assert_int_equal(glm_rows_fit(&shape), 2048);
	shape.nonzeros = 64;
	assert_int_equal(glm_rows_fit(&shape), 4096);
	shape = (struct glm_shape){ .features = 1000, .rows = 4096, .batch = 16 };
	assert_int_equal(glm_rows_fit(&shape), 4096);
}

static void data_have_names(void **state)
{
	struct glm_shape shape = { .features = 1000, .rows = 20, .nonzeros = 50 };
	char name[160];

	(void)state;
	glm_data_name(&shape, name, sizeof(name));
	assert_string_equal(name, "synthetic:rows=20,columns=1000,density=0.05");
	shape.nonzeros = 0;
	glm_data_name(&shape, name, sizeof(name));
	assert_string_equal(name, "synthetic:rows=20,columns=1000");
	shape.nonzeros = 1000;
	glm_data_name(&shape, name, sizeof(name));
	assert_string_equal(name, "synthetic:rows=20,columns=1000");
}

static void precisions_are_read(void **state)
{
	static const char *const wrong[] = { "", "0", "9", "4,", "x", "4,4", "float,1,2,3", "-1" };
	unsigned bits[MOST], n;
	char text[16];

	(void)state;
	assert_int_equal(glm_bits_parse("float,4", bits, MOST, &n), TRIB_OK);
	assert_int_equal(n, 2);
	assert_int_equal(bits[0], 0);
	assert_int_equal(bits[1], 4);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(glm_bits_parse(wrong[i], bits, MOST, &n), TRIB_ERR_ARGUMENT);
	glm_bits_text(1, text, sizeof(text));
	assert_string_equal(text, "1 bit");
	glm_bits_text(0, text, sizeof(text));
	assert_string_equal(text, "float");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(epochs_are_read),
		cmocka_unit_test(other_lines_are_not_epochs),
		cmocka_unit_test(dense_data_have_a_limit),
		cmocka_unit_test(data_have_names),
		cmocka_unit_test(precisions_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
