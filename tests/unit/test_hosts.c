/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a cluster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/cluster/hosts.h"

#include <stdio.h>
#include <string.h>

#define MAX 8

static struct plan_host hosts[MAX];
static char text[1000];

static trib_status parse(const char *from, unsigned *n)
{
	uint32_t order[MAX];

	snprintf(text, sizeof(text), "%s", from);
	return hosts_parse(text, hosts, MAX, order, n);
}

static void test_reads(void **state)
{
	unsigned n;

	(void)state;
	assert_int_equal(parse("# a cluster\n"
	                       "h1 10.0.0.1:7700 10gbit 4 16G/64G 0 round=0.25 # slow\n"
	                       "\n"
	                       "\ts1\t10.0.0.9:7700\t40gbit/25gbit 16.5 - - never\r\n"
	                       "sw [fe80::1%eth0]:7700 1e9 8 32G - switch",
	                       &n),
	                 TRIB_OK);
	assert_int_equal(n, 3);
	assert_string_equal(hosts[0].name, "h1");
	assert_string_equal(hosts[0].address, "10.0.0.1:7700");
	assert_true(hosts[0].in_bps == 10e9 && hosts[0].out_bps == 10e9);
	assert_true(hosts[0].idle_cores == 4 && hosts[0].round_s == 0.25);
	assert_true(hosts[0].memory_used == 16ull << 30 && hosts[0].memory_total == 64ull << 30);
	assert_int_equal(hosts[0].rank, 0);
	assert_true(hosts[0].may_aggregate && !hosts[0].is_switch);
	assert_true(hosts[1].in_bps == 40e9 && hosts[1].out_bps == 25e9);
	assert_true(hosts[1].idle_cores == 16.5 && !hosts[1].memory_total);
	assert_int_equal(hosts[1].rank, -1);
	assert_false(hosts[1].may_aggregate);
	assert_true(hosts[2].is_switch && hosts[2].may_aggregate);
	assert_true(hosts[2].memory_total == 32ull << 30 && !hosts[2].memory_used);
	assert_int_equal(parse("", &n), TRIB_OK);
	assert_int_equal(n, 0);
}

static void test_refuses_with_line(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "h1", "line 1: a host has a name" },
		{ "\n\nh1 a:1 10gbit 4 -", "line 3: a host has a name" },
		{ "h1 a:1 fast 4 - 0", "line 1: " },
		{ "h1 a:1 0 4 - 0", "above 0" },
		{ "h1 a:1 10gbit/0 4 - 0", "above 0" },
		{ "h1 a:1 10gbit/ 4 - 0", "line 1: " },
		{ "h1 a(1 10gbit 4 - 0", "is no address" },
		{ "h1 a:1 10gbit -4 - 0", "cores" },
		{ "h1 a:1 10gbit nan - 0", "cores" },
		{ "h1 a:1 10gbit 1e300 - 0", "cores" },
		{ "h1 a:1 10gbit 4 8G/4G 0", "more memory is used" },
		{ "h1 a:1 10gbit 4 much 0", "line 1: " },
		{ "h1 a:1 10gbit 4 - first", "is no rank" },
		{ "h1 a:1 10gbit 4 - 1.5", "is no rank" },
		{ "h1 a:1 10gbit 4 - 65536", "is no rank" },
		{ "h1 a:1 10gbit 4 - 0 maybe", "is none of" },
		{ "h1 a:1 10gbit 4 - 0 round=", "is none of" },
		{ "h1 a:1 10gbit 4 - 0\nh2 a:1 10gbit 4 - 1", "h1 and h2 have the same address" },
		{ "a a 1 1 - -\nb b 1 1 - -\nc c 1 1 - -\nd d 1 1 - -\ne e 1 1 - -\n"
		  "f f 1 1 - -\ng g 1 1 - -\nh h 1 1 - -\ni i 1 1 - -",
		  "line 9: more than 8 hosts" },
	};
	unsigned n;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_true(parse(wrong[i].text, &n) < 0);
		if (!strstr(trib_last_error(), wrong[i].says))
			fail_msg("\"%s\" does not say \"%s\"", trib_last_error(), wrong[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_refuses_with_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
