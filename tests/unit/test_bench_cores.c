/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "bench/bed/host_cores.h"

#include <string.h>

static const struct cluster three = {
	.n = 3, .hosts = { { .name = "h1" }, { .name = "h2" }, { .name = "s1", .is_server = true } }
};

static void lists_are_read(void **state)
{
	struct bench_cores cores;

	(void)state;
	assert_int_equal(cores_parse("s1=1", &cores), TRIB_OK);
	assert_string_equal(cores.host, "s1");
	assert_int_equal(CPU_COUNT(&cores.set), 1);
	assert_true(CPU_ISSET(1, &cores.set));
	assert_int_equal(cores_parse("h2=2-4,6", &cores), TRIB_OK);
	assert_int_equal(CPU_COUNT(&cores.set), 4);
	assert_true(CPU_ISSET(4, &cores.set) && CPU_ISSET(6, &cores.set));
}

static void what_is_no_list_is_refused(void **state)
{
	static const char *const wrong[] = {
		"",      "s1",    "s1=",   "=1",    "s1=a",   "s1=1,",   "s1=2-1",
		"s1=1-", "s1=1 ", "s1=-1", "s1=,1", "s1=1;2", "s1=9999", "a_name_of_16_by=1x"
	};
	struct bench_cores cores;

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(cores_parse(wrong[i], &cores), TRIB_ERR_ARGUMENT);
}

/* The first core that this process may use. */
static struct bench_cores one_for(const char *host)
{
	struct bench_cores given;
	cpu_set_t all;
	unsigned core = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(core, &all))
		core++;
	memset(&given, 0, sizeof(given));
	strcpy(given.host, host);
	CPU_SET(core, &given.set);
	return given;
}

static void the_others_share_what_is_left(void **state)
{
	struct bench_cores given = one_for("s1");
	cpu_set_t all, out[3], both, servers;

	(void)state;
	sched_getaffinity(0, sizeof(all), &all);
	if (CPU_COUNT(&all) < 2) {
		assert_int_equal(cores_share(&given, 1, &three, out), TRIB_ERR_ARGUMENT);
		return;
	}
	assert_int_equal(cores_share(&given, 1, &three, out), TRIB_OK);
	assert_true(CPU_EQUAL(&out[2], &given.set));
	assert_true(CPU_EQUAL(&out[0], &out[1]));
	CPU_AND(&both, &out[0], &out[2]);
	assert_int_equal(CPU_COUNT(&both), 0);
	assert_int_equal(CPU_COUNT(&out[0]), CPU_COUNT(&all) - 1);
	cores_of_servers(out, &three, &servers);
	assert_true(CPU_EQUAL(&servers, &given.set));
}

static void a_server_that_shares_cores_has_none_of_its_own(void **state)
{
	struct bench_cores given[] = { one_for("s1"), one_for("h1"), one_for("h2") };
	cpu_set_t out[3], servers;

	(void)state;
	assert_int_equal(cores_share(given, 3, &three, out), TRIB_OK);
	cores_of_servers(out, &three, &servers);
	assert_int_equal(CPU_COUNT(&servers), 0);
}

static void hosts_and_cores_must_be_there(void **state)
{
	struct bench_cores stranger = one_for("s9"), beyond = one_for("s1");
	cpu_set_t out[3];

	(void)state;
	assert_int_equal(cores_share(&stranger, 1, &three, out), TRIB_ERR_ARGUMENT);
	CPU_SET(CPU_SETSIZE - 1, &beyond.set);
	assert_int_equal(cores_share(&beyond, 1, &three, out), TRIB_ERR_ARGUMENT);
}

static void workers_are_spread_evenly(void **state)
{
	static cpu_set_t out[2 * CPU_SETSIZE];
	unsigned cores, on[CPU_SETSIZE] = { 0 };
	cpu_set_t all;

	(void)state;
	sched_getaffinity(0, sizeof(all), &all);
	cores = (unsigned)CPU_COUNT(&all);
	assert_false(cores_spread(cores - 1, out));
	assert_true(cores_spread(2 * cores, out));
	for (unsigned i = 0; i < 2 * cores; i++) {
		assert_int_equal(CPU_COUNT(&out[i]), 1);
		for (unsigned core = 0; core < CPU_SETSIZE; core++)
			on[core] += (unsigned)CPU_ISSET(core, &out[i]);
	}
	for (unsigned core = 0; core < CPU_SETSIZE; core++)
		assert_int_equal(on[core], CPU_ISSET(core, &all) ? 2 : 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_read),
		cmocka_unit_test(what_is_no_list_is_refused),
		cmocka_unit_test(the_others_share_what_is_left),
		cmocka_unit_test(a_server_that_shares_cores_has_none_of_its_own),
		cmocka_unit_test(hosts_and_cores_must_be_there),
		cmocka_unit_test(workers_are_spread_evenly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
