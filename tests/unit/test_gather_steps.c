/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allgathers in steps, of all numbers of ranks: each rank gets every vector once, from a rank that
 * has it, and as few messages as possible travel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/ring/gather_steps.h"

#define RANKS_MAX 64u

static uint64_t bits_of(unsigned first, unsigned n, unsigned size)
{
	uint64_t bits = 0;

	for (unsigned i = 0; i < n; i++)
		bits |= 1ull << (first + i) % size;
	return bits;
}

static void take_step(unsigned size, unsigned step, uint64_t has[])
{
	uint64_t had[RANKS_MAX];

	for (unsigned r = 0; r < size; r++)
		had[r] = has[r];
	for (unsigned r = 0; r < size; r++) {
		struct gather_step own = gather_step(r, size, step);
		struct gather_step other = gather_step(own.from, size, step);
		uint64_t came = bits_of(own.takes, own.n, size);

		assert_int_equal(other.to, r);
		assert_int_equal(other.sends, own.takes);
		assert_int_equal(other.n, own.n);
		assert_int_equal(came & ~had[own.from], 0);
		assert_int_equal(came & has[r], 0);
		has[r] |= came;
	}
}

static void every_rank_gets_every_vector_once(void **state)
{
	(void)state;
	for (unsigned size = 2; size <= RANKS_MAX; size++) {
		uint64_t has[RANKS_MAX];

		for (unsigned r = 0; r < size; r++)
			has[r] = 1ull << r;
		for (unsigned step = 0; step < gather_steps(size); step++)
			take_step(size, step, has);
		for (unsigned r = 0; r < size; r++)
			assert_int_equal(has[r], bits_of(0, size, size));
	}
}

/* No rank sends two messages to the same rank: messages of a call are told apart by their sender.
 */
static void ranks_differ(void **state)
{
	(void)state;
	for (unsigned size = 2; size <= RANKS_MAX; size++) {
		uint64_t to = 0, from = 0;

		for (unsigned i = 0; i < gather_steps(size); i++) {
			struct gather_step step = gather_step(1, size, i);

			assert_int_equal((to >> step.to | from >> step.from) & 1, 0);
			to |= 1ull << step.to;
			from |= 1ull << step.from;
		}
	}
}

static void steps_save_messages(void **state)
{
	(void)state;
	assert_int_equal(gather_steps(8), 3);
	assert_int_equal(gather_steps(9), 4);
	assert_int_equal(gather_steps(64), 6);
	for (unsigned size = 2; size <= RANKS_MAX; size++)
		assert_int_equal(gather_takes_steps(size), size > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rank_gets_every_vector_once),
		cmocka_unit_test(ranks_differ),
		cmocka_unit_test(steps_save_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
