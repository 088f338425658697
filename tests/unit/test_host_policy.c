/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts for jobs: racks of different sizes, the order of waiting jobs, no host given twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "control/policy/host_policy.h"
#include "plan/cluster/draw.h"

#include <stdio.h>
#include <string.h>

#define HOSTS_MAX 64u

static void paths(void **state)
{
	char path[RACK_MAX] = "pod1/rack2";

	(void)state;
	assert_true(rack_is_good(""));
	assert_true(rack_is_good("pod1/rack2"));
	assert_true(rack_is_good("a/b.c/d-e/f_g"));
	assert_false(rack_is_good("a/b/c/d/e")); /* more names than a fabric has levels */
	assert_false(rack_is_good("/a"));
	assert_false(rack_is_good("a/"));
	assert_false(rack_is_good("a//b"));
	assert_false(rack_is_good("a b"));
	assert_true(rack_is_below("pod1/rack2", "pod1"));
	assert_true(rack_is_below("pod1/rack2", "pod1/rack2"));
	assert_true(rack_is_below("pod1", ""));
	assert_false(rack_is_below("pod10", "pod1"));
	assert_false(rack_is_below("pod1", "pod1/rack2"));
	rack_meet(path, "pod1/rack2");
	assert_string_equal(path, "pod1/rack2");
	rack_meet(path, "pod1/rack20");
	assert_string_equal(path, "pod1");
	rack_meet(path, "pod2/rack2");
	assert_string_equal(path, "");
}

/* Racks and pods become parts of the fabric. */
static void numbers(void **state)
{
	static const char *const racks[] = { "b/2", "a/1", "b/10", "a/1", "b/2", "", "a/1", "b" };
	uint32_t number[8];
	struct fabric fabric;
	unsigned names;

	(void)state;
	assert_int_equal(topology_number(racks, 8, &fabric, number, &names), TRIB_OK);
	assert_int_equal(names, 2);
	assert_int_equal(fabric.levels, 3);
	assert_int_equal(fabric.down[0], 3); /* hosts of a/1 */
	assert_int_equal(fabric.down[1], 3); /* b, b/2 and b/10 */
	assert_int_equal(fabric.down[2], 3); /* nowhere, a, b */
	for (unsigned i = 0; i < 8; i++)
		for (unsigned k = 0; k < i; k++) {
			const char *a = racks[i], *b = racks[k];
			bool pod = *a == *b, rack = !strcmp(a, b);

			assert_int_not_equal(number[i], number[k]);
			assert_int_equal(number[i] / fabric.size[1] == number[k] / fabric.size[1],
			                 rack);
			assert_int_equal(number[i] / fabric.size[2] == number[k] / fabric.size[2],
			                 pod);
		}
}

/*
 * One rack is huge, and there are many others: the last levels are ignored, and all hosts have a
 * number.
 */
static void unlike(void **state)
{
	static char text[6000][16];
	static const char *racks[6000];
	static uint32_t number[6000];
	struct fabric fabric;
	unsigned names;

	(void)state;
	for (unsigned i = 0; i < 6000; i++) {
		if (i < 4000)
			snprintf(text[i], sizeof(text[i]), "all/one");
		else
			snprintf(text[i], sizeof(text[i]), "p%u/%u", i % 100, i);
		racks[i] = text[i];
	}
	assert_int_equal(topology_number(racks, 6000, &fabric, number, &names), TRIB_OK);
	assert_true(names < 2);
	for (unsigned i = 0; i < 6000; i++)
		assert_true(number[i] < fabric.hosts);
}

static struct host_candidate hosts[HOSTS_MAX];
static struct host_policy_input input = { .hosts = hosts };

static void setup(uint32_t n, const char *const *racks, uint32_t racks_n)
{
	input = (struct host_policy_input){ .hosts = hosts, .n = n, .alpha = 0.5 };
	for (uint32_t i = 0; i < n; i++)
		hosts[i] = (struct host_candidate){ racks[i % racks_n], HOST_FREE };
}

/* Two racks of four hosts: a job of two fills the gap, and a job of four gets the whole rack. */
static void smart(void **state)
{
	static const char *const racks[] = { "a", "b" };
	static const uint32_t wants[] = { 2, 4, 2 };
	uint32_t chosen[8], seen = 0;
	struct host_policy_result result;

	(void)state;
	setup(8, racks, 2);
	assert_int_equal(host_policy_run(&input, wants, 3, chosen, &result), TRIB_OK);
	assert_int_equal(result.admitted, 3);
	for (unsigned i = 0; i < 8; i++)
		seen |= 1u << chosen[i];
	assert_int_equal(seen, 0xff);
	assert_ptr_equal(hosts[chosen[0]].rack, hosts[chosen[1]].rack);
	for (unsigned i = 2; i < 6; i++)
		assert_ptr_not_equal(hosts[chosen[i]].rack, hosts[chosen[0]].rack);
	/* `first` ignores racks; and no job gets a host that is away. */
	input.policy = HOST_POLICY_FIRST;
	hosts[0].state = HOST_AWAY;
	hosts[2].state = HOST_BUSY;
	assert_int_equal(host_policy_run(&input, wants + 1, 2, chosen, &result), TRIB_OK);
	assert_int_equal(result.admitted, 2);
	for (unsigned i = 0; i < 6; i++)
		assert_true(chosen[i] != 0 && chosen[i] != 2);
}

/*
 * A job of four gets the whole rack. If alpha makes free hosts count more, it gets parts of two
 * other racks.
 */
static void alpha(void **state)
{
	static const char *const racks[] = { "a", "b", "c" };
	static const uint32_t wants[] = { 4 };
	uint32_t chosen[4];
	struct host_policy_result result;

	(void)state;
	for (unsigned larger = 0; larger < 2; larger++) {
		setup(12, racks, 3);
		for (unsigned i = 0; i < 6; i++)
			hosts[i].state = racks[i % 3] == racks[0] ? HOST_FREE : HOST_BUSY;
		input.alpha = larger ? 2 : 0.5;
		assert_int_equal(host_policy_run(&input, wants, 1, chosen, &result), TRIB_OK);
		assert_int_equal(result.admitted, 1);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(hosts[chosen[i]].rack == racks[0], !larger);
	}
}

/* The first waiting job gets hosts first: no job overtakes it. */
static void order(void **state)
{
	static const char *const racks[] = { "a/1", "a/2", "b/1" };
	static const uint32_t wants[] = { 3, 6, 1 };
	uint32_t chosen[10];
	struct host_policy_result result;

	(void)state;
	for (unsigned policy = 0; policy < HOST_POLICIES_END; policy++) {
		setup(8, racks, 3);
		input.policy = policy;
		input.seed = 3;
		assert_int_equal(host_policy_run(&input, wants, 3, chosen, &result), TRIB_OK);
		assert_int_equal(result.admitted, 1);
		assert_int_equal(host_policy_run(&input, wants + 1, 2, chosen, &result), TRIB_OK);
		assert_int_equal(result.admitted, 2);
		hosts[0].state = hosts[1].state = hosts[2].state = HOST_BUSY;
		assert_int_equal(host_policy_run(&input, wants + 1, 2, chosen, &result), TRIB_OK);
		assert_int_equal(result.admitted, 0);
	}
}

/*
 * Jobs come, hosts go and jobs end at random. No host is given to two jobs, nor a host that is
 * away.
 */
static void never_twice(void **state)
{
	static const char *const racks[] = { "a/1", "a/2", "b/1", "b/2", "b/2", "c", "" };
	uint32_t has[HOSTS_MAX], wants[4], chosen[4 * 16];
	uint64_t seed = 11;
	unsigned placed = 0;

	(void)state;
	setup(40, racks, 7);
	memset(has, 0, sizeof(has));
	for (uint32_t round = 1; round < 3000; round++) {
		uint32_t gone = 1 + draw_below(&seed, round), flips = draw_below(&seed, 40), *own;
		struct host_policy_result result;
		unsigned admitted, unused = 0, n = 1 + draw_below(&seed, 4);

		for (uint32_t h = 0; h < 40; h++)
			if (has[h] && has[h] % 7 == gone % 7) {
				has[h] = 0;
				if (hosts[h].state == HOST_BUSY)
					hosts[h].state = HOST_FREE;
			}
		if (!has[flips])
			hosts[flips].state =
				hosts[flips].state == HOST_AWAY ? HOST_FREE : HOST_AWAY;
		for (unsigned i = 0; i < n; i++)
			wants[i] = 1 + draw_below(&seed, 16);
		input.policy = round % HOST_POLICIES_END;
		input.seed = round;
		assert_int_equal(host_policy_run(&input, wants, n, chosen, &result), TRIB_OK);
		admitted = result.admitted;
		for (uint32_t h = 0; h < 40; h++)
			unused += hosts[h].state == HOST_FREE;
		assert_true(admitted || wants[0] > unused);
		own = chosen;
		for (unsigned i = 0; i < admitted; own += wants[i++])
			for (uint32_t k = 0; k < wants[i]; k++) {
				assert_int_equal(hosts[own[k]].state, HOST_FREE);
				assert_int_equal(has[own[k]], 0);
				hosts[own[k]].state = HOST_BUSY;
				has[own[k]] = round;
			}
		placed += admitted;
	}
	assert_true(placed > 500);
}

/* A large cluster, half of it busy: prints how long a decision takes. */
static void large(void **state)
{
	static struct host_candidate many[16384];
	static char text[16384][24];
	static uint32_t chosen[64];
	static const uint32_t want = 64;
	uint64_t seed = 1;

	(void)state;
	for (uint32_t n = 1024; n <= 16384; n *= 4) {
		struct host_policy_input world = { .hosts = many, .n = n, .alpha = 0.5 };
		struct host_policy_result result;
		uint64_t began;

		for (uint32_t i = 0; i < n; i++) {
			snprintf(text[i], sizeof(text[i]), "pod%u/rack%u", i / 64, i / 8);
			many[i] = (struct host_candidate){ text[i], draw_below(&seed, 2)
				                                            ? HOST_FREE
				                                            : HOST_BUSY };
		}
		began = clock_now();
		assert_int_equal(host_policy_run(&world, &want, 1, chosen, &result), TRIB_OK);
		print_message("%u hosts: %.3f ms for a job of %u\n", n,
		              (double)(clock_now() - began) / 1e6, want);
		assert_int_equal(result.admitted, 1);
		assert_false(result.is_cut);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths),       cmocka_unit_test(numbers), cmocka_unit_test(unlike),
		cmocka_unit_test(smart),       cmocka_unit_test(alpha),   cmocka_unit_test(order),
		cmocka_unit_test(never_twice), cmocka_unit_test(large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
