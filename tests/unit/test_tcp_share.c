/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that share a link in turns do not keep BBR, and keep any other choice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/tcp.h"

#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a connection with this choice has after tcp_share(). False: the kernel lacks the choice. */
static bool shared(const char *choice, char *out, socklen_t room)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool has;

	assert_true(fd >= 0);
	has = !setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, choice, (socklen_t)strlen(choice));
	tcp_share(fd);
	memset(out, 0, room);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, out, &room), 0);
	close(fd);
	return has;
}

static void bbr_goes(void **state)
{
	char name[16];

	(void)state;
	if (!shared("bbr", name, sizeof(name))) {
		printf("the kernel has no bbr\n");
		skip();
	}
	assert_true(strcmp(name, "cubic") == 0 || strcmp(name, "reno") == 0);
}

static void others_stay(void **state)
{
	char name[16];

	(void)state;
	assert_true(shared("reno", name, sizeof(name)));
	assert_string_equal(name, "reno");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bbr_goes),
		cmocka_unit_test(others_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
