/* SPDX-License-Identifier: Apache-2.0 */
/* Text from peers: bounded, and without bytes that a terminal or a log would obey. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/peer_text.h"
#include "path/network_list.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void test_cleaned(void **state)
{
	char out[16];

	(void)state;
	assert_string_equal(peer_text(out, sizeof(out), "a\033[31m\nb\x7f", 20), "a?[31m?b?");
	assert_string_equal(peer_name(out, sizeof(out), "h-1.x_2 /\n", 20), "h-1.x_2___");
}

/* The text need not end, and the room may be short. */
static void test_bounded(void **state)
{
	const char endless[4] = { 'a', 'b', 'c', 'd' };
	char out[16];

	(void)state;
	assert_string_equal(peer_text(out, sizeof(out), endless, sizeof(endless)), "abcd");
	assert_string_equal(peer_text(out, 3, endless, sizeof(endless)), "ab");
	assert_string_equal(peer_text(out, 1, endless, sizeof(endless)), "");
}

/* A log line is one line, whatever it quotes. */
static void test_log(void **state)
{
	char line[200] = "";
	int pipes[2], kept = dup(STDERR_FILENO);

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	fflush(stderr);
	dup2(pipes[1], STDERR_FILENO);
	log_warn("said: %s", "x\ntribd: error: all is lost\033[2J");
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	assert_true(read(pipes[0], line, sizeof(line) - 1) > 0);
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	assert_null(strchr(line, '\033'));
	close(pipes[0]);
	close(pipes[1]);
	close(kept);
}

static bool has(const char *networks, const char *address)
{
	struct network_list list;
	struct udp_address peer;

	assert_int_equal(network_list_parse(&list, networks), TRIB_OK);
	assert_int_equal(udp_resolve(address, 1, &peer), TRIB_OK);
	return network_list_has(&list, &peer);
}

static void test_networks(void **state)
{
	static const char *const wrong[] = { "",           "10.0.0.0/33", "10.0.0.0/",
		                             "x",          "10.0.0.0/8,", "::/129",
		                             "10.0.0.0/-1" };
	struct network_list list;

	(void)state;
	assert_true(has("10.0.0.0/8", "10.255.0.1:1"));
	assert_false(has("10.0.0.0/8", "11.0.0.1:1"));
	assert_true(has("172.16.0.0/12", "172.31.9.9:1"));
	assert_false(has("172.16.0.0/12", "172.32.0.1:1"));
	assert_true(has("192.0.2.7,fd00::/8", "192.0.2.7:1"));
	assert_false(has("192.0.2.7,fd00::/8", "192.0.2.8:1"));
	assert_true(has("192.0.2.7,fd00::/8", "[fdaa::1]:1"));
	assert_true(has("0.0.0.0/0", "8.8.8.8:1"));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(network_list_parse(&list, wrong[i]), TRIB_ERR_ARGUMENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cleaned),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_networks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
