/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that every rank can draw for every other one, and what they reduce to. */
#ifndef WORKER_VALUES_H
#define WORKER_VALUES_H

#include <tributary.h>

#include <stdbool.h>
#include <stdint.h>

#define N_TYPES 10
#define N_OPS 4

struct values {
	trib_type type;
	trib_op op;
	uint64_t seed;
	size_t count;
	int ranks;
	bool wild; /* any numbers; else small whole ones, whose float sums are exact */
};

/* splitmix64 */
static inline uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* The input of a rank; `part` tells apart the vectors that one rank gives. */
void values_draw(const struct values *values, int rank, size_t part, void *out);
/* Does values_reduce know all bits of the result? */
bool values_exact(const struct values *values);
void values_reduce(const struct values *values, size_t part, void *out);

#endif
