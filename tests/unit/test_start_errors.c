/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What trib_init says when a job cannot start: a wrong cookie or none, a closed port, another size.
 * And what an aggregator that listens on all addresses calls itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cluster.h"
#include "path/udp.h"
#include "wire/parse.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

static double seconds(void)
{
	return (double)clock_now() / 1e9;
}

static trib_options rank_of(const struct cluster *cluster, int rank, int size, double timeout_s)
{
	trib_options options = TRIB_OPTIONS_INIT;

	options.aggregator = cluster->address;
	options.has_rank = 1;
	options.rank = rank;
	options.size = size;
	options.timeout_s = timeout_s;
	return options;
}

static void wrong_cookie(const char *plane)
{
	struct cluster cluster;
	double start = seconds();
	trib_options options;
	trib_comm *comm;

	setenv("TRIB_PLANE", plane, 1);
	cluster_start(&cluster, 1, 0);
	options = rank_of(&cluster, 0, 2, 20);
	setenv("TRIB_COOKIE", "bad0bad0bad0bad0", 1);
	assert_int_equal(trib_init(&comm, &options), TRIB_ERR_REFUSED);
	setenv("TRIB_COOKIE", CLUSTER_COOKIE_TEXT, 1);
	assert_true(error_has("wrong cookie") && error_has(cluster.address));
	assert_true(seconds() - start < 10);
	aggregator_stop(cluster.aggregator);
	assert_true(cluster_count(&cluster, "drops", "cookie") > 0);
	aggregator_free(cluster.aggregator);
	unsetenv("TRIB_PLANE");
}

static void test_wrong_cookie(void **state)
{
	(void)state;
	wrong_cookie("udp");
	wrong_cookie("tcp");
}

/* The aggregator may still start, so the deadline passes first. */
static void test_closed_port(void **state)
{
	struct cluster cluster;
	trib_options options;
	trib_comm *comm;

	(void)state;
	cluster_start(&cluster, 1, 0);
	cluster_stop(&cluster);
	options = rank_of(&cluster, 0, 2, 0.5);
	assert_int_equal(trib_init(&comm, &options), TRIB_ERR_AGGREGATOR);
	assert_true(error_has("port has been closed") && error_has(cluster.address));
}

struct starter {
	trib_options options;
	pthread_t thread;
};

static void *start_main(void *argument)
{
	struct starter *starter = argument;
	trib_comm *comm = NULL;

	demand(trib_init(&comm, &starter->options) == TRIB_OK);
	demand(trib_barrier(comm) == TRIB_OK);
	demand(trib_finalize(comm) == TRIB_OK);
	return NULL;
}

/* Two ranks of three have started in vain. Right after that they start as two. */
static void test_retry_with_another_size(void **state)
{
	struct starter starters[2];
	struct cluster cluster;
	trib_options options;
	trib_comm *comm;

	(void)state;
	cluster_start(&cluster, 1, 0);
	options = rank_of(&cluster, 1, 3, 0.3);
	assert_int_equal(trib_init(&comm, &options), TRIB_ERR_TIMEOUT);
	for (int r = 0; r < 2; r++) {
		starters[r].options = rank_of(&cluster, r, 2, 20);
		demand(!pthread_create(&starters[r].thread, NULL, start_main, &starters[r]));
	}
	for (int r = 0; r < 2; r++)
		pthread_join(starters[r].thread, NULL);
	cluster_stop(&cluster);
}

static void *wait_main(void *argument)
{
	struct starter *starter = argument;
	trib_comm *comm;

	demand(trib_init(&comm, &starter->options) == TRIB_ERR_TIMEOUT);
	return NULL;
}

/* If the others still wait, the rank of another size is wrong. */
static void test_two_sizes_at_once(void **state)
{
	struct starter waiting;
	struct cluster cluster;
	trib_options options;
	trib_comm *comm;

	(void)state;
	cluster_start(&cluster, 1, 0);
	waiting.options = rank_of(&cluster, 0, 3, 4);
	demand(!pthread_create(&waiting.thread, NULL, wait_main, &waiting));
	nap_ms(500);
	options = rank_of(&cluster, 1, 2, 20);
	assert_int_equal(trib_init(&comm, &options), TRIB_ERR_REFUSED);
	assert_true(error_has("the job has 2 ranks, others said 3"));
	pthread_join(waiting.thread, NULL);
	cluster_stop(&cluster);
}

/* A REPORT of an unknown communicator: the answer names the aggregator. */
static void test_own_name(void **state)
{
	struct aggregator_options options = { .threads = 1, .cookie = CLUSTER_COOKIE };
	const struct udp_options sizes = { .receive_bytes = 1 << 16, .send_bytes = 1 << 16 };
	struct {
		struct wire_control header;
		struct wire_report report;
	} question = { .header = { .type = WIRE_REPORT, .cookie = 77, .job = 7, .comm = 3 } };
	uint64_t packet[WIRE_PACKET_MAX / 8] = { 0 };
	const struct wire_abort *answer = (const void *)(packet + WIRE_CONTROL / 8);
	struct pollfd wait = { .events = POLLIN };
	struct aggregator *aggregator = NULL;
	struct udp_address peer;
	char name[32];
	bool gso;
	int fd;

	(void)state;
	demand(udp_resolve("0.0.0.0:0", 0, &options.listen) == TRIB_OK);
	demand(aggregator_start(&options, &aggregator) == TRIB_OK);
	snprintf(name, sizeof(name), "127.0.0.1:%u", aggregator_port(aggregator));
	demand(udp_resolve(name, 0, &peer) == TRIB_OK);
	demand(udp_open(NULL, &peer, &sizes, &fd, &gso) == TRIB_OK);
	wire_seal(&question, sizeof(question));
	assert_true(send(fd, &question, sizeof(question), 0) == sizeof(question));
	wait.fd = fd;
	assert_int_equal(poll(&wait, 1, 10000), 1);
	assert_true(recv(fd, packet, sizeof(packet), 0) ==
	            WIRE_CONTROL + sizeof(struct wire_abort));
	assert_non_null(strstr(answer->text, name));
	assert_null(strstr(answer->text, "0.0.0.0"));
	close(fd);
	aggregator_stop(aggregator);
	aggregator_free(aggregator);
}

/* Without a cookie, ranks meet on loopback alone. */
static void test_open_rendezvous(void **state)
{
	trib_options options = TRIB_OPTIONS_INIT;
	trib_comm *comm;

	(void)state;
	options.has_rank = 1;
	options.size = 2;
	options.timeout_s = 0.5;
	setenv("TRIB_RENDEZVOUS", "192.0.2.1:7650", 1);
	unsetenv("TRIB_COOKIE");
	assert_int_equal(trib_init(&comm, &options), TRIB_ERR_CONFIG);
	assert_true(error_has("TRIB_COOKIE is not set") && error_has("192.0.2.1:7650"));
	setenv("TRIB_RENDEZVOUS", "127.0.0.1:0", 1);
	assert_int_equal(trib_init(&comm, &options), TRIB_ERR_TIMEOUT); /* rank 1 does not come */
	unsetenv("TRIB_RENDEZVOUS");
	setenv("TRIB_COOKIE", CLUSTER_COOKIE_TEXT, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_cookie),
		cmocka_unit_test(test_closed_port),
		cmocka_unit_test(test_retry_with_another_size),
		cmocka_unit_test(test_two_sizes_at_once),
		cmocka_unit_test(test_own_name),
		cmocka_unit_test(test_open_rendezvous),
	};

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
