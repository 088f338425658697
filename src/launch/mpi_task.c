/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/mpi_task.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789./_-+"

static void __attribute__((format(printf, 2, 3)))
word_add(struct mpi_task *task, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (task->n < MPI_WORDS && vasprintf(&task->words[task->n], format, args) >= 0)
		task->n++;
	va_end(args);
}

static void words_add(struct mpi_task *task, const char *first, const char *second)
{
	word_add(task, "%s", first);
	word_add(task, "%s", second);
}

/* Which MPI is it? By what the launcher says about itself. NULL: there is no such launcher. */
static const char *kind_of(const char *mpirun)
{
	char command[300], line[200];
	const char *kind = NULL;
	FILE *told;

	if (!*mpirun || strlen(mpirun) > 200 || mpirun[strspn(mpirun, NAME_CHARACTERS)])
		return NULL;
	snprintf(command, sizeof(command), "%s --version 2>/dev/null", mpirun);
	told = popen(command, "re");
	while (told && fgets(line, sizeof(line), told)) {
		if (!kind && strstr(line, "Open MPI"))
			kind = "openmpi";
		else if (!kind && (strstr(line, "HYDRA") || strstr(line, "MPICH")))
			kind = "mpich";
	}
	if (told)
		pclose(told);
	return kind;
}

static void hosts_text(const struct cluster *cluster, unsigned n, char *out, size_t room)
{
	*out = '\0';
	for (unsigned i = 0; i < n; i++) {
		size_t used = strlen(out);

		snprintf(out + used, room - used, "%s%s", i ? "," : "", cluster->hosts[i].address);
	}
}

/* Hosts of a virtual cluster share this machine's memory, which MPI must not use. */
static trib_status hosts_add(struct mpi_task *task, bool is_openmpi, const struct cluster *cluster,
                             unsigned n)
{
	char subnet[64], hosts[CLUSTER_HOSTS_MAX * 48];
	trib_status status;

	snprintf(task->folder, sizeof(task->folder), "/tmp/trib-mpi-XXXXXX");
	if (!mkdtemp(task->folder)) {
		task->folder[0] = '\0';
		return status_fail_errno("cannot make a folder in /tmp");
	}
	status = mpi_agent_write(task->folder, cluster, n, NULL);
	hosts_text(cluster, n, hosts, sizeof(hosts));
	mpi_subnet_text(cluster, subnet, sizeof(subnet));
	if (!is_openmpi) {
		words_add(task, "-launcher", "ssh");
		word_add(task, "-launcher-exec");
		word_add(task, "%s/agent", task->folder);
		words_add(task, "-hosts", hosts);
		words_add(task, "-iface", "eth0");
		return status;
	}
	static const char *const set[][2] = {
		{ "plm", "rsh" },
		{ "plm_rsh_no_tree_spawn", "1" },
		{ "pml", "ob1" },
		{ "btl", "tcp,self" },
		{ "plm_rsh_agent", NULL },
		{ "oob_tcp_if_include", NULL },
		{ "btl_tcp_if_include", NULL },
	};
	for (unsigned i = 0; i < sizeof(set) / sizeof(*set); i++) {
		words_add(task, "--mca", set[i][0]);
		if (set[i][1])
			word_add(task, "%s", set[i][1]);
		else if (strstr(set[i][0], "agent"))
			word_add(task, "%s/agent", task->folder);
		else
			word_add(task, "%s", subnet);
	}
	words_add(task, "--host", hosts);
	return status;
}

/* Variables that the launcher gives to ranks. Open MPI has to be told each name. */
static void environment_add(struct mpi_task *task, bool is_openmpi, const char *adapter,
                            char *const *env)
{
	if (!is_openmpi) {
		words_add(task, "-genv", "LD_PRELOAD");
		word_add(task, "%s", adapter);
		return;
	}
	word_add(task, "-x");
	word_add(task, "LD_PRELOAD=%s", adapter);
	for (; *env; env++) {
		size_t name = strcspn(*env, "=");

		if ((*env)[name] && (*env)[name + 1]) {
			word_add(task, "-x");
			word_add(task, "%.*s", (int)name, *env);
		}
	}
}

static trib_status join_words(struct mpi_task *task, char *const *command)
{
	unsigned n = 0;

	while (command[n])
		n++;
	task->argv = calloc(task->n + n + 1, sizeof(*task->argv));
	if (!task->argv || task->n == MPI_WORDS)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for the words of mpirun");
	memcpy(task->argv, task->words, task->n * sizeof(*task->argv));
	memcpy(task->argv + task->n, command, n * sizeof(*task->argv));
	return TRIB_OK;
}

trib_status mpi_task_build(struct mpi_task *task, const char *mpirun, unsigned workers,
                           const struct cluster *cluster, unsigned n_hosts, char *const *env,
                           char *const *command)
{
	char adapter[4096];
	const char *kind = kind_of(mpirun);
	trib_status status = TRIB_OK;
	bool is_openmpi;

	memset(task, 0, sizeof(*task));
	if (!kind)
		return status_fail(TRIB_ERR_CONFIG,
		                   "%s is not a launcher of Open MPI or MPICH, or it is not "
		                   "installed; --mpirun names another one",
		                   mpirun);
	if (!mpi_adapter_find(kind, adapter, sizeof(adapter)))
		return status_fail(
			TRIB_ERR_CONFIG,
			"%s belongs to %s, and libtribmpi-%s.so was not built: its headers "
			"were missing (package lib%s-dev)",
			mpirun, kind, kind, kind);
	is_openmpi = strcmp(kind, "openmpi") == 0;
	word_add(task, "%s", mpirun);
	if (n_hosts)
		status = hosts_add(task, is_openmpi, cluster, n_hosts);
	if (is_openmpi) {
		words_add(task, "--bind-to", "none");
		word_add(task, "--oversubscribe");
		if (geteuid() == 0)
			word_add(task, "--allow-run-as-root");
	}
	environment_add(task, is_openmpi, adapter, env);
	word_add(task, "-n");
	word_add(task, "%u", workers);
	return status == TRIB_OK ? join_words(task, command) : status;
}

static int entry_remove(const char *path, const struct stat *about, int kind, struct FTW *at)
{
	(void)about;
	(void)kind;
	(void)at;
	return remove(path);
}

void mpi_task_end(struct mpi_task *task)
{
	for (unsigned i = 0; i < task->n; i++)
		free(task->words[i]);
	free(task->argv);
	if (task->folder[0])
		nftw(task->folder, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
}
