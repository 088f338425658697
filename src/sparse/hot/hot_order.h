/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot_order: rows in ascending order, as packets have them. An entry is a row's number and the
 * row's place before sorting. Pure.
 */
#ifndef TRIB_SPARSE_HOT_HOT_ORDER_H
#define TRIB_SPARSE_HOT_HOT_ORDER_H

#include <stdint.h>
#include <stdlib.h>

/* `row` and `place` are below 2^16. */
static inline uint32_t hot_order_entry(uint32_t row, uint32_t place)
{
	return row << 16 | place;
}

static inline uint16_t hot_order_row(uint32_t entry)
{
	return (uint16_t)(entry >> 16);
}

static inline uint32_t hot_order_place(uint32_t entry)
{
	return entry & 0xffff;
}

static inline int hot_order_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static inline void hot_order_sort(uint32_t *entries, uint32_t n)
{
	qsort(entries, n, sizeof(*entries), hot_order_compare);
}

#endif
