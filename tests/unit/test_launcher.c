/* SPDX-License-Identifier: Apache-2.0 */
/* Where ranks meet, by the environment of their launcher; and ranks that meet there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/launcher.h"
#include "base/settings.h"
#include "cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const names[] = {
	"RANK",
	"WORLD_SIZE",
	"LOCAL_WORLD_SIZE",
	"MASTER_ADDR",
	"MASTER_PORT",
	"TORCHELASTIC_RUN_ID",
	"OMPI_COMM_WORLD_RANK",
	"OMPI_COMM_WORLD_SIZE",
	"OMPI_COMM_WORLD_LOCAL_SIZE",
	"OMPI_MCA_orte_hnp_uri",
	"OMPI_MCA_orte_precondition_transports",
	"OMPI_MCA_ess_base_jobid",
	"PMI_RANK",
	"PMI_SIZE",
	"MPI_LOCALNRANKS",
	"PMIX_RANK",
	"PMIX_NAMESPACE",
	"SLURM_PROCID",
	"SLURM_NTASKS",
	"SLURM_JOB_ID",
	"SLURM_JOBID",
	"SLURM_STEP_ID",
	"SLURM_STEPID",
	"SLURM_STEP_NODELIST",
	"SLURM_JOB_NODELIST",
	"SLURM_NODELIST",
	"SLURM_STEP_NUM_NODES",
	"SLURM_JOB_NUM_NODES",
	"SLURM_NNODES",
	"TRIB_RANK",
	"TRIB_SIZE",
};

static int clear(void **state)
{
	(void)state;
	for (unsigned i = 0; i < countof(names); i++)
		unsetenv(names[i]);
	return 0;
}

/* NAME=value, separated by blanks, and nothing else. */
static struct launcher_meeting meet(const char *environment)
{
	char text[512], *save = NULL;

	clear(NULL);
	snprintf(text, sizeof(text), "%s", environment);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		*strchr(word, '=') = '\0';
		setenv(word, word + strlen(word) + 1, 1);
	}
	return launcher_meet();
}

static bool is_at(const struct launcher_meeting *meeting, const char *host)
{
	size_t n = strlen(host);
	long port = strncmp(meeting->at, host, n) || meeting->at[n] != ':'
	                    ? 0
	                    : strtol(meeting->at + n + 1, NULL, 10);

	return port >= 20000 && port < 30000;
}

#define TORCH "RANK=1 WORLD_SIZE=8 MASTER_PORT=29500 "

static void test_torchrun(void **state)
{
	struct launcher_meeting m = meet(TORCH "MASTER_ADDR=node7 LOCAL_WORLD_SIZE=4"), other;

	(void)state;
	assert_string_equal(m.launcher, "torchrun");
	assert_true(is_at(&m, "node7") && !m.is_local && !m.is_secret);
	other = meet(TORCH "MASTER_ADDR=node7 LOCAL_WORLD_SIZE=4 TORCHELASTIC_RUN_ID=b");
	assert_true(other.identity != m.identity && strcmp(other.at, m.at) != 0);
	m = meet(TORCH "MASTER_ADDR=node7 LOCAL_WORLD_SIZE=8");
	assert_true(is_at(&m, "127.0.0.1") && m.is_local);
	m = meet(TORCH "MASTER_ADDR=fd00::2");
	assert_true(is_at(&m, "[fd00::2]"));
	m = meet("RANK=1 WORLD_SIZE=8");
	assert_true(!m.at[0] && strstr(m.why, "MASTER_ADDR"));
	m = meet(TORCH "MASTER_ADDR=a;b");
	assert_true(!m.at[0] && strstr(m.why, "malformed"));
}

#define SLURM "SLURM_PROCID=1 SLURM_NTASKS=8 SLURM_JOB_ID=77 SLURM_STEP_ID=0 "

static void test_srun(void **state)
{
	static const char *const lists[][2] = {
		{ "n1", "n1" },
		{ "n1,n2", "n1" },
		{ "gpu[01-04,7],n2", "gpu01" },
		{ "rack[3,5-6]n[10-12]", "rack3n10" },
		{ "a-b.c[002]x", "a-b.c002x" },
	};
	struct launcher_meeting m, other;
	char text[256];

	(void)state;
	for (unsigned i = 0; i < countof(lists); i++) {
		snprintf(text, sizeof(text), SLURM "SLURM_STEP_NODELIST=%s", lists[i][0]);
		m = meet(text);
		assert_string_equal(m.launcher, "srun");
		assert_true(is_at(&m, lists[i][1]) && !m.is_secret);
	}
	m = meet(SLURM "SLURM_JOB_NODELIST=n1");
	other = meet("SLURM_PROCID=1 SLURM_NTASKS=8 SLURM_JOB_ID=77 SLURM_STEP_ID=1 "
	             "SLURM_JOB_NODELIST=n1");
	assert_true(m.identity != other.identity && strcmp(m.at, other.at) != 0);
	m = meet(SLURM "SLURM_JOB_NODELIST=n1 SLURM_NNODES=1");
	assert_true(is_at(&m, "127.0.0.1") && m.is_local);
	m = meet("PMI_RANK=1 PMI_SIZE=8 " SLURM "SLURM_STEP_NODELIST=n1");
	assert_string_equal(m.launcher, "srun");
	m = meet(SLURM "SLURM_STEP_NODELIST=n[");
	assert_true(is_at(&m, "n"));
	m = meet(SLURM);
	assert_true(!m.at[0] && strstr(m.why, "SLURM_STEP_NODELIST"));
}

#define OMPI "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=8 OMPI_MCA_ess_base_jobid=5 "

static void test_mpirun(void **state)
{
	struct launcher_meeting m;

	(void)state;
	m = meet(OMPI "OMPI_MCA_orte_hnp_uri=5.0;tcp://10.0.0.1,10.1.0.1:4567;tcp6://[fd00::2]:1 "
	              "OMPI_MCA_orte_precondition_transports=eca3d7f800684871-3d472aed42ffe222");
	assert_string_equal(m.launcher, "Open MPI");
	assert_true(is_at(&m, "10.0.0.1") && m.is_secret && !m.is_local);
	m = meet(OMPI "OMPI_COMM_WORLD_LOCAL_SIZE=8");
	assert_true(is_at(&m, "127.0.0.1") && m.is_local && !m.is_secret);
	m = meet(OMPI);
	assert_true(!m.at[0] && strstr(m.why, "where rank 0 runs"));
	m = meet("PMI_RANK=1 PMI_SIZE=8 MPI_LOCALNRANKS=4");
	assert_string_equal(m.launcher, "MPICH");
	assert_true(!m.at[0] && strstr(m.why, "where rank 0 runs"));
}

/* The user's own rank may be another one, so the launcher's rank 0 says nothing. */
static void test_no_launcher(void **state)
{
	struct launcher_meeting m = meet(SLURM "SLURM_STEP_NODELIST=n1 TRIB_RANK=3 TRIB_SIZE=4");

	(void)state;
	assert_null(m.launcher);
	m = meet("RANK=3");
	assert_null(m.launcher);
}

/* 0: the sum is right. */
static int run_rank(int rank)
{
	int sum = rank + 1;
	trib_comm *comm;

	if (trib_init(&comm, NULL) != TRIB_OK ||
	    trib_allreduce(comm, TRIB_IN_PLACE, &sum, 1, TRIB_I32, TRIB_SUM) != TRIB_OK) {
		fprintf(stderr, "rank %d: %s\n", rank, trib_last_error());
		return 1;
	}
	return trib_finalize(comm) != TRIB_OK || sum != 6;
}

/* Each rank is a process of its own: the environment differs. */
static void test_meeting(void **state)
{
	int children[3], status;

	clear(state);
	unsetenv("TRIB_COOKIE");
	setenv("TRIB_TIMEOUT", "20", 1);
	for (int rank = 0; rank < 3; rank++) {
		children[rank] = fork();
		if (children[rank] == 0) {
			char text[256];

			snprintf(text, sizeof(text),
			         "RANK=%d WORLD_SIZE=3 LOCAL_WORLD_SIZE=3 MASTER_ADDR=n "
			         "MASTER_PORT=%d",
			         rank, (int)getppid());
			meet(text);
			_exit(run_rank(rank));
		}
	}
	for (int rank = 0; rank < 3; rank++) {
		assert_int_equal(waitpid(children[rank], &status, 0), children[rank]);
		assert_int_equal(status, 0);
	}
}

/* Rank 0 says that it cannot listen where it should, and what to set. */
static void test_rank_0_elsewhere(void **state)
{
	trib_comm *comm;

	(void)state;
	meet("RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 MASTER_ADDR=192.0.2.77 MASTER_PORT=1");
	assert_int_equal(trib_init(&comm, NULL), TRIB_ERR_CONFIG);
	assert_non_null(strstr(trib_last_error(), "TRIB_COOKIE is not set"));
	setenv("TRIB_COOKIE", CLUSTER_COOKIE_TEXT, 1);
	setenv("TRIB_TIMEOUT", "1", 1);
	assert_true(trib_init(&comm, NULL) < 0);
	assert_non_null(strstr(trib_last_error(), "192.0.2.77"));
	meet("RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.2 MASTER_PORT=1");
	assert_int_equal(trib_init(&comm, NULL), TRIB_ERR_CONFIG);
	assert_non_null(strstr(trib_last_error(), "TRIB_RENDEZVOUS=address:port"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_torchrun, clear),
		cmocka_unit_test_setup(test_srun, clear),
		cmocka_unit_test_setup(test_mpirun, clear),
		cmocka_unit_test_setup(test_no_launcher, clear),
		cmocka_unit_test_setup(test_meeting, clear),
		cmocka_unit_test_setup(test_rank_0_elsewhere, clear),
	};

	cluster_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
