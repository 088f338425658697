/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a job: in any order of processes, repeatedly at one aggregator, and with rank and
 * size from any launcher.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void sum_of_ranks(trib_comm *comm)
{
	int32_t value = trib_rank(comm) + 1, n = trib_size(comm);

	demand(trib_allreduce(comm, TRIB_IN_PLACE, &value, 1, TRIB_I32, TRIB_SUM) == TRIB_OK);
	demand(value == n * (n + 1) / 2);
}

/* One job right after another: no rank may join the one that has just ended. */
static void again_body(struct rank *rank)
{
	for (int i = 0; i < 10; i++) {
		trib_comm *comm;

		demand(trib_init(&comm, &rank->options) == TRIB_OK);
		sum_of_ranks(comm);
		if (i % 3 == rank->rank)
			nap_ms(30);
		demand(trib_finalize(comm) == TRIB_OK);
	}
}

static void test_again(void **state)
{
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 2, 0);
	cluster_run_bare(&cluster, 3, NULL, again_body, NULL);
	cluster_stop(&cluster);
}

/* The same with several lanes, whose threads release the old job at different times. */
static void lanes_body(struct rank *rank)
{
	static const size_t count = 30000;
	int32_t *values = malloc(count * sizeof(*values));

	demand(values);
	for (int i = 0; i < 20; i++) {
		trib_comm *comm;

		for (size_t k = 0; k < count; k++)
			values[k] = (int32_t)k * (rank->rank + 1);
		demand(trib_init(&comm, &rank->options) == TRIB_OK);
		demand(trib_allreduce(comm, TRIB_IN_PLACE, values, count, TRIB_I32, TRIB_SUM) ==
		       TRIB_OK);
		for (size_t k = 0; k < count; k++)
			demand(values[k] == (int32_t)k * 6);
		demand(trib_finalize(comm) == TRIB_OK);
	}
	free(values);
}

static void test_again_on_lanes(void **state)
{
	const trib_options options = { .struct_size = sizeof(options), .lanes = 4 };
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 4, 0);
	cluster_run_bare(&cluster, 3, &options, lanes_body, NULL);
	cluster_stop(&cluster);
}

/* A communicator gets as many lanes as there are threads. */
static void test_more_lanes_than_threads(void **state)
{
	const trib_options options = { .struct_size = sizeof(options), .lanes = 16 };
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 2, 0);
	cluster_run_bare(&cluster, 3, &options, lanes_body, NULL);
	cluster_stop(&cluster);
}

static void late_body(struct rank *rank)
{
	trib_comm *comm;

	nap_ms((unsigned)(rank->size - rank->rank) * 100);
	demand(trib_init(&comm, &rank->options) == TRIB_OK);
	sum_of_ranks(comm);
	demand(trib_finalize(comm) == TRIB_OK);
}

static void test_one_after_another(void **state)
{
	struct cluster cluster;

	(void)state;
	cluster_start(&cluster, 1, 0);
	cluster_run_bare(&cluster, 4, NULL, late_body, NULL);
	cluster_stop(&cluster);
}

/* Processes that know only their environment. They are forked before any thread starts. */
struct launcher {
	const char *rank, *size, *local; /* variables; `local` is not the rank */
};

static int worker_main(const struct launcher *launcher, int rank, int size, int address_fd)
{
	char number[16], address[32] = "";
	trib_comm *comm;

	snprintf(number, sizeof(number), "%d", rank);
	setenv(launcher->rank, number, 1);
	snprintf(number, sizeof(number), "%d", size);
	setenv(launcher->size, number, 1);
	if (launcher->local)
		setenv(launcher->local, "0", 1);
	if (read(address_fd, address, sizeof(address)) <= 0)
		return 2;
	setenv("TRIB_AGGREGATOR", address, 1);
	setenv("TRIB_TIMEOUT", "20", 1);
	demand(trib_init(&comm, NULL) == TRIB_OK);
	demand(trib_rank(comm) == rank && trib_size(comm) == size);
	sum_of_ranks(comm);
	demand(trib_finalize(comm) == TRIB_OK);
	return 0;
}

static void launch(const struct launcher *launcher, int size, bool at_once)
{
	struct cluster cluster;
	pid_t pids[4];
	int ends[4][2];

	for (int r = 0; r < size; r++) {
		demand(pipe(ends[r]) == 0);
		pids[r] = fork();
		demand(pids[r] >= 0);
		if (pids[r] == 0)
			_exit(worker_main(launcher, r, size, ends[r][0]));
	}
	cluster_start(&cluster, 1, 0);
	for (int r = 0; r < size; r++) {
		demand(write(ends[r][1], cluster.address, sizeof(cluster.address)) > 0);
		if (!at_once)
			nap_ms(50);
	}
	for (int r = 0; r < size; r++) {
		int status;

		demand(waitpid(pids[r], &status, 0) == pids[r]);
		demand(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		close(ends[r][0]);
		close(ends[r][1]);
	}
	cluster_stop(&cluster);
}

static void test_launchers(void **state)
{
	static const struct launcher launchers[] = {
		{ "TRIB_RANK", "TRIB_SIZE", NULL },
		{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK" },
		{ "PMI_RANK", "PMI_SIZE", NULL },
		{ "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID" },
		{ "RANK", "WORLD_SIZE", "LOCAL_RANK" },
	};

	(void)state;
	for (unsigned i = 0; i < countof(launchers); i++)
		launch(&launchers[i], 2, i % 2);
}

/* Incomplete settings do not count, and our own variables override a launcher's. */
static int odd_main(int which)
{
	trib_options options = TRIB_OPTIONS_INIT;
	trib_comm *comm;

	setenv("TRIB_TIMEOUT", "1", 1);
	switch (which) {
	case 0: /* nothing: alone */
		demand(trib_init(&comm, NULL) == TRIB_OK && trib_size(comm) == 1);
		return trib_finalize(comm);
	case 1:
		setenv("OMPI_COMM_WORLD_RANK", "3", 1);
		setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
		setenv("TRIB_RANK", "0", 1);
		setenv("TRIB_SIZE", "1", 1);
		demand(trib_init(&comm, NULL) == TRIB_OK && trib_size(comm) == 1);
		return trib_finalize(comm);
	case 2:
		setenv("TRIB_RANK", "2", 1);
		setenv("TRIB_SIZE", "2", 1);
		return trib_init(&comm, NULL) != TRIB_ERR_CONFIG;
	case 3:
		setenv("TRIB_RANK", "one", 1);
		setenv("TRIB_SIZE", "2", 1);
		demand(trib_init(&comm, NULL) == TRIB_ERR_CONFIG);
		return !error_has("TRIB_RANK");
	case 4:
		setenv("RANK", "0", 1);
		setenv("WORLD_SIZE", "2", 1);
		demand(trib_init(&comm, NULL) == TRIB_ERR_CONFIG);
		return !error_has("TRIB_AGGREGATOR");
	default: /* options override the environment */
		setenv("TRIB_RANK", "5", 1);
		setenv("TRIB_SIZE", "9", 1);
		options.has_rank = 1;
		options.size = 1;
		demand(trib_init(&comm, &options) == TRIB_OK && trib_size(comm) == 1);
		return trib_finalize(comm);
	}
}

static void test_odd_places(void **state)
{
	(void)state;
	for (int which = 0; which < 6; which++) {
		pid_t pid = fork();
		int status;

		demand(pid >= 0);
		if (pid == 0)
			_exit(odd_main(which));
		demand(waitpid(pid, &status, 0) == pid);
		demand(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_odd_places),
		cmocka_unit_test(test_launchers),
		cmocka_unit_test(test_one_after_another),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_again_on_lanes),
		cmocka_unit_test(test_more_lanes_than_threads),
	};

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
