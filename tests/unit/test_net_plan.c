/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "net/cluster_plan.h"

#include <string.h>

static struct cluster cluster;

static void a_relay_needs_a_link_of_the_aggregator(void **state)
{
	static const struct {
		bool is_switch, is_routed;
		unsigned servers;
		trib_status status;
	} cases[] = {
		{ false, false, 1, TRIB_OK },
		{ false, false, 3, TRIB_OK },
		{ true, true, 1, TRIB_OK },
		{ false, false, 0, TRIB_ERR_ARGUMENT },
		{ true, false, 1, TRIB_ERR_ARGUMENT },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cluster_options options = { .name = "a",
			                           .workers = 2,
			                           .servers = cases[i].servers,
			                           .is_switch = cases[i].is_switch,
			                           .is_routed = cases[i].is_routed };

		assert_int_equal(plan_make(&options, 1, &cluster), TRIB_OK);
		options.is_framed = true;
		assert_int_equal(plan_make(&options, 1, &cluster), cases[i].status);
	}
}

static void links_of_aggregators_are_cut(void **state)
{
	struct cluster_options options = { .name = "a", .workers = 2, .servers = 2 };

	(void)state;
	assert_int_equal(plan_make(&options, 1, &cluster), TRIB_OK);
	assert_false(plan_is_relayed(&cluster, 0) || plan_is_relayed(&cluster, 1));
	assert_true(plan_is_relayed(&cluster, 2) && plan_is_relayed(&cluster, 3));
	options.is_switch = options.is_routed = true;
	assert_int_equal(plan_make(&options, 1, &cluster), TRIB_OK);
	assert_true(plan_is_relayed(&cluster, 0) && plan_is_relayed(&cluster, 1));
	assert_false(plan_is_relayed(&cluster, 2) || plan_is_relayed(&cluster, 3));
}

/* All ends may be in one namespace, that of the bridge. */
static void ends_have_names_and_addresses_of_their_own(void **state)
{
	struct cluster_options options = { .name = "a", .workers = 3, .servers = 3 };
	struct link_end ends[3 * 6];
	unsigned n = 0;

	(void)state;
	assert_int_equal(plan_make(&options, 1, &cluster), TRIB_OK);
	for (unsigned i = 0; i < cluster.n; i++) {
		plan_port_end(&cluster, i, &ends[n++]);
		plan_relay_ends(&cluster, i, &ends[n], &ends[n + 1]);
		n += 2;
	}
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < i; k++) {
			assert_string_not_equal(ends[i].name, ends[k].name);
			assert_memory_not_equal(ends[i].mac, ends[k].mac, LINK_MAC_BYTES);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_relay_needs_a_link_of_the_aggregator),
		cmocka_unit_test(links_of_aggregators_are_cut),
		cmocka_unit_test(ends_have_names_and_addresses_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
