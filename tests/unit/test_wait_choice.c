/* SPDX-License-Identifier: Apache-2.0 */
/* When a thread polls, and when it sleeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/wait_choice.h"

#define US 1000ull
#define MS (1000 * US)

/* `n` waits: before each the thread computes, and in each a yield takes so long. */
static unsigned sleeps_in(struct wait_choice *choice, unsigned n, uint64_t computed, uint64_t yield)
{
	unsigned slept = 0;

	for (unsigned i = 0; i < n; i++) {
		wait_choice_begin(choice, computed);
		if (choice->way == WAIT_SLEEP)
			slept++;
		else
			wait_choice_yielded(choice, yield);
		wait_choice_waited(choice);
	}
	return slept;
}

static void polls_on_an_idle_machine(void **state)
{
	struct wait_choice choice = { 0 };

	(void)state;
	assert_int_equal(sleeps_in(&choice, 10000, 5 * US, 20 * US), 0);
}

/* It tries again to poll, less and less often. */
static void sleeps_beside_programs(void **state)
{
	struct wait_choice choice = { 0 };

	(void)state;
	assert_in_range(sleeps_in(&choice, 10000, 5 * US, 300 * US), 9800, 9990);
	choice = (struct wait_choice){ 0 };
	assert_in_range(sleeps_in(&choice, 10000, 60 * US, 4 * MS), 9800, 9990);
	choice = (struct wait_choice){ 0 };
	assert_in_range(sleeps_in(&choice, 10000, 10 * MS, 4 * MS), 9800, 9990);
}

/* Ranks of the same job that compute as long as this one are no foreign programs. */
static void polls_beside_ranks_that_compute(void **state)
{
	struct wait_choice choice = { 0 };

	(void)state;
	sleeps_in(&choice, 1000, 60 * US, 200 * US); /* learns how long the thread computes */
	assert_int_equal(sleeps_in(&choice, 10000, 60 * US, 400 * US), 0);
	/* Some sums follow each other at once, or the thread was interrupted. */
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(sleeps_in(&choice, 3, 1 * US, 0), 0);
		assert_int_equal(sleeps_in(&choice, 30, 60 * US, 400 * US), 0);
		assert_int_equal(sleeps_in(&choice, 1, 8 * MS, 400 * US), 0);
	}
}

/* `n` waits: in each the thread works so long at once, and so do the ranks that a yield lets run.
 */
static unsigned sleeps_at_work(struct wait_choice *choice, unsigned n, uint64_t work,
                               uint64_t yield)
{
	unsigned slept = 0;

	for (unsigned i = 0; i < n; i++) {
		wait_choice_begin(choice, 5 * US);
		slept += choice->way == WAIT_SLEEP;
		if (choice->way == WAIT_POLL) {
			wait_choice_worked(choice, work / 10);
			wait_choice_yielded(choice, yield);
			wait_choice_worked(choice, work);
		}
		wait_choice_waited(choice);
	}
	return slept;
}

/* Ranks that add as long a vector as this one are no foreign programs, also in the first sums. */
static void polls_beside_ranks_that_add(void **state)
{
	struct wait_choice choice = { 0 };

	(void)state;
	assert_int_equal(sleeps_at_work(&choice, 10000, 300 * US, 900 * US), 0);
	/* A program's slice is longer, and a slice within the work does not hide the next ones. */
	assert_in_range(sleeps_at_work(&choice, 10000, 300 * US, 4 * MS), 9800, 9990);
	choice = (struct wait_choice){ 0 };
	sleeps_at_work(&choice, 1000, 10 * US, 20 * US);
	sleeps_at_work(&choice, 1, 4 * MS, 20 * US);
	assert_in_range(sleeps_at_work(&choice, 10000, 10 * US, 700 * US), 9800, 9990);
	/* What it has learned stays while it sleeps. */
	choice = (struct wait_choice){ 0 };
	sleeps_at_work(&choice, 1000, 300 * US, 900 * US);
	sleeps_at_work(&choice, 1000, 300 * US, 4 * MS);
	sleeps_at_work(&choice, WAIT_ASLEEP, 300 * US, 900 * US);
	assert_int_equal(sleeps_at_work(&choice, 10000, 300 * US, 900 * US), 0);
}

static void comes_back_to_polling(void **state)
{
	struct wait_choice choice = { 0 };

	(void)state;
	sleeps_in(&choice, 10000, 5 * US, 4 * MS);
	sleeps_in(&choice, WAIT_ASLEEP, 5 * US, 10 * US);
	assert_int_equal(sleeps_in(&choice, 10000, 5 * US, 10 * US), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(polls_on_an_idle_machine),
		cmocka_unit_test(sleeps_beside_programs),
		cmocka_unit_test(polls_beside_ranks_that_compute),
		cmocka_unit_test(polls_beside_ranks_that_add),
		cmocka_unit_test(comes_back_to_polling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
