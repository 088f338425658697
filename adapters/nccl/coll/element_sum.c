/* SPDX-License-Identifier: Apache-2.0 */
#include "element_sum.h"

#include <string.h>

#define SPECIAL_BYTE 255
#define SPECIAL_WORD 65535
/* Where an integer counts the ranks that have +inf, -inf and NaN: 10 bits each. */
#define COUNT_BITS 10
#define COUNT_MASK ((1 << COUNT_BITS) - 1)

trib_type element_class_type(trib_type type)
{
	return number_class_is_byte(type) ? TRIB_U8 : TRIB_I32;
}

trib_type element_integer_type(trib_type type)
{
	return number_wire_size(type) == 8 ? TRIB_I64 : TRIB_I32;
}

static uint16_t class_at(trib_type type, const void *classes, size_t i)
{
	return number_class_is_byte(type) ? ((const uint8_t *)classes)[i]
	                                  : (uint16_t)((const int32_t *)classes)[i];
}

static bool is_special(trib_type type, uint16_t klass)
{
	return klass == (number_class_is_byte(type) ? SPECIAL_BYTE : SPECIAL_WORD);
}

void element_classify(trib_type type, const void *elements, size_t n, void *classes)
{
	const size_t size = trib_type_size(type);

	for (size_t i = 0; i < n; i++) {
		bool special = false;
		uint16_t klass =
			number_classify(type, (const uint8_t *)elements + i * size, 1, &special);

		if (number_class_is_byte(type))
			((uint8_t *)classes)[i] = special ? SPECIAL_BYTE : (uint8_t)klass;
		else
			((int32_t *)classes)[i] = special ? SPECIAL_WORD : klass;
	}
}

/* Elements from `first` on that have the same class. */
static size_t run_of(trib_type type, const void *classes, size_t first, size_t n)
{
	size_t end = first + 1;

	while (end < n && class_at(type, classes, end) == class_at(type, classes, first))
		end++;
	return end - first;
}

/* A 1 where the integer counts what the element is; 0 if it is finite. */
static int32_t count_special(trib_type type, const void *element)
{
	uint8_t mask = 0;

	number_mask(type, element, 1, &mask, 0);
	return mask ? 1 << (mask - 1) * COUNT_BITS : 0;
}

/* What the counts of all ranks say: bits as in number_mask(). */
static uint8_t mask_of(int64_t counts)
{
	bool plus = counts & COUNT_MASK, minus = counts >> COUNT_BITS & COUNT_MASK;

	return counts >> 2 * COUNT_BITS || (plus && minus) ? 3 : (uint8_t)(plus + 2 * minus);
}

void element_encode(trib_type type, const void *elements, size_t n, const void *classes,
                    unsigned workers, void *integers)
{
	const size_t size = trib_type_size(type), wire = number_wire_size(type);
	const uint8_t *in = elements;
	uint8_t *out = integers;

	for (size_t i = 0, run; i < n; i += run) {
		uint16_t klass = class_at(type, classes, i);

		run = run_of(type, classes, i, n);
		if (!is_special(type, klass)) {
			number_encode(type, in + i * size, run, klass, workers, out + i * wire);
			continue;
		}
		for (size_t k = i; k < i + run; k++) {
			int64_t count = count_special(type, in + k * size);

			memcpy(out + k * wire, &count, wire);
		}
	}
}

void element_decode(trib_type type, const void *integers, size_t n, const void *classes,
                    unsigned workers, bool average, void *elements)
{
	const size_t size = trib_type_size(type), wire = number_wire_size(type);
	const uint8_t *in = integers;
	uint8_t *out = elements;

	for (size_t i = 0, run; i < n; i += run) {
		uint16_t klass = class_at(type, classes, i);

		run = run_of(type, classes, i, n);
		if (!is_special(type, klass)) {
			number_decode(type, in + i * wire, run, klass, workers, average,
			              out + i * size);
			continue;
		}
		for (size_t k = i; k < i + run; k++) {
			int64_t counts = 0;
			uint8_t mask;

			memcpy(&counts, in + k * wire, wire);
			mask = mask_of(counts);
			number_unmask(type, &mask, 0, 1, out + k * size);
		}
	}
}
