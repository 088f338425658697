/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open MPI and MPICH start their ranks themselves. mpirun runs on the first host and reaches
 * the others through a script, the agent, in place of ssh.
 */
#include "bench/bed/mpi_job.h"

#include "launch/mpi_launch.h"

#include <stdio.h>
#include <string.h>

const struct bench_variant bench_openmpi_variants[] = {
	{ .name = "default" },
	{ .name = "ring", .words = { OPENMPI_TUNED("4") } },
	{ .name = "segmented ring", .words = { OPENMPI_TUNED("5") } },
	/* Segments of 1 MB, the default, leave links idle between them. */
	{ .name = "segmented ring, 256K", .words = { OPENMPI_TUNED("5"), "segment" } },
	{ 0 },
};

#define BLOCK(algorithm) OPENMPI_TUNED_CALL("coll_tuned_reduce_scatter_block_algorithm", algorithm)
#define COUNTS(algorithm)                                                           \
	OPENMPI_TUNED_CALL("coll_tuned_reduce_scatter_algorithm", algorithm), "-x", \
		"PEER_MPI_CALL=MPI_Reduce_scatter"

const struct bench_variant bench_openmpi_scatter[] = {
	{ .name = "default" },
	{ .name = "block, recursive halving", .words = { BLOCK("3") } },
	{ .name = "block, butterfly", .words = { BLOCK("4") } },
	{ .name = "recursive halving", .words = { COUNTS("2") } },
	{ .name = "ring", .words = { COUNTS("3") } },
	{ .name = "butterfly", .words = { COUNTS("4") } },
	{ 0 },
};

const struct bench_variant bench_openmpi_gather[] = {
	{ .name = "default" },
	{ .name = "recursive doubling",
	  .words = { OPENMPI_TUNED_CALL("coll_tuned_allgather_algorithm", "3") } },
	{ .name = "ring", .words = { OPENMPI_TUNED_CALL("coll_tuned_allgather_algorithm", "4") } },
	{ .name = "neighbor exchange",
	  .words = { OPENMPI_TUNED_CALL("coll_tuned_allgather_algorithm", "5") } },
	{ 0 },
};

#define NONBLOCKING "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=nb", "MPIR_CVAR_DEVICE_COLLECTIVES=none"

const struct bench_variant bench_mpich_variants[] = {
	{ .name = "default" },
	{ .name = "ring",
	  .words = { NONBLOCKING, "MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM=tsp_ring" } },
	{ .name = "recursive exchange",
	  .words = { NONBLOCKING, "MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM=tsp_recexch_reduce_"
	                          "scatter_recexch_allgatherv" } },
	{ 0 },
};

const struct bench_variant bench_mpich_scatter[] = {
	{ .name = "default" },
	{ .name = "pairwise",
	  .words = { "MPIR_CVAR_REDUCE_SCATTER_BLOCK_INTRA_ALGORITHM=pairwise",
	             "MPIR_CVAR_DEVICE_COLLECTIVES=none" } },
	{ 0 },
};

const struct bench_variant bench_mpich_gather[] = {
	{ .name = "default" },
	{ .name = "ring",
	  .words = { "MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM=ring",
	             "MPIR_CVAR_DEVICE_COLLECTIVES=none" } },
	{ 0 },
};

static void hosts_text(const struct bench_run *run, char *out, size_t room)
{
	out[0] = '\0';
	for (unsigned rank = 0; rank < run->place->workers; rank++) {
		size_t used = strlen(out);

		snprintf(out + used, room - used, "%s%s", rank ? "," : "",
		         run_address(run, (int)rank));
	}
}

static void mca_add(struct word_list *argv, const char *name, const char *value)
{
	words_add(argv, "--mca");
	words_add_option(argv, name, value);
}

static trib_status mpirun_task(const struct bench_run *run, struct bench_job *job,
                               struct bench_task **task)
{
	if (job_folder(job) != TRIB_OK ||
	    (run->place->cluster.n &&
	     mpi_agent_write(job->folder, &run->place->cluster, run->place->workers,
	                     run->place->spread ? run->place->cores : NULL) != TRIB_OK))
		return TRIB_ERR_SYSTEM;
	job->has_strays = true;
	*task = job_task(job, run, 0);
	snprintf((*task)->label, sizeof((*task)->label), "mpirun");
	words_add(&(*task)->argv, "%s", run->system->launcher);
	words_add(&(*task)->env, "TMPDIR=%s", job->folder);
	return TRIB_OK;
}

trib_status openmpi_prepare(const struct bench_run *run, struct bench_job *job)
{
	static const struct word_list nothing;

	return openmpi_prepare_with(run, job, &nothing);
}

trib_status openmpi_prepare_with(const struct bench_run *run, struct bench_job *job,
                                 const struct word_list *env)
{
	char subnet[64], hosts[CLUSTER_HOSTS_MAX * 48], agent[96];
	struct bench_task *task;
	struct word_list *argv;

	if (mpirun_task(run, job, &task) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	argv = &task->argv;
	mpi_subnet_text(&run->place->cluster, subnet, sizeof(subnet));
	hosts_text(run, hosts, sizeof(hosts));
	snprintf(agent, sizeof(agent), "%s/agent", job->folder);
	if (run->place->cluster.n) {
		/* The environment may ask for another launcher, such as one for this host alone. */
		mca_add(argv, "plm", "rsh");
		mca_add(argv, "plm_rsh_agent", agent);
		mca_add(argv, "plm_rsh_no_tree_spawn", "1");
		/*
		 * Daemons begin sessions of their own otherwise. The kernel shares cores between
		 * sessions, and a rank that yields its core does so within its session alone
		 * (sched_autogroup_enabled). Ranks of all other systems share a session.
		 */
		words_add(argv, "--leave-session-attached");
		mca_add(argv, "oob_tcp_if_include", subnet);
		words_add_option(argv, "--host", hosts);
	}
	/* TCP alone: hosts share this machine's memory, which MPI would use instead. */
	mca_add(argv, "pml", "ob1");
	mca_add(argv, "btl", "tcp,self");
	mca_add(argv, "btl_tcp_if_include", subnet);
	/*
	 * No binding: there may be fewer cores than ranks, and each host would bind to the
	 * first core.
	 */
	mca_add(argv, "mpi_yield_when_idle", run->variant->spins ? "0" : "1");
	words_add_option(argv, "--bind-to", "none");
	words_add(argv, "--oversubscribe");
	for (const char *const *word = run->variant->words; *word; word++) {
		if (strcmp(*word, "segment") == 0)
			mca_add(argv, "coll_tuned_allreduce_algorithm_segmentsize", "262144");
		else
			words_add(argv, "%s", *word);
	}
	for (unsigned i = 0; i < env->n; i++)
		words_add_option(argv, "-x", env->items[i]);
	words_add_count(argv, "-np", run->place->workers);
	job_program_words(run, argv);
	words_add(&task->env, "OMPI_ALLOW_RUN_AS_ROOT=1");
	words_add(&task->env, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
	return TRIB_OK;
}

trib_status mpich_prepare(const struct bench_run *run, struct bench_job *job)
{
	const char *device = run->place->cluster.n ? "eth0" : "lo";
	char hosts[CLUSTER_HOSTS_MAX * 48], agent[96];
	struct bench_task *task;
	struct word_list *argv;

	if (mpirun_task(run, job, &task) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	argv = &task->argv;
	hosts_text(run, hosts, sizeof(hosts));
	snprintf(agent, sizeof(agent), "%s/agent", job->folder);
	if (run->place->cluster.n) {
		words_add_option(argv, "-launcher", "ssh");
		words_add_option(argv, "-launcher-exec", agent);
		words_add_option(argv, "-hosts", hosts);
		words_add_option(argv, "-iface", device);
	}
	words_add_count(argv, "-n", run->place->workers);
	job_program_words(run, argv);
	/* TCP alone, as above, for builds on UCX and on libfabric. */
	words_add(&task->env, "UCX_TLS=tcp,self");
	words_add(&task->env, "UCX_NET_DEVICES=%s", device);
	words_add(&task->env, "FI_PROVIDER=tcp");
	words_add(&task->env, "MPIR_CVAR_NOLOCAL=1");
	for (const char *const *word = run->variant->words; *word; word++)
		words_add(&task->env, "%s", *word);
	return TRIB_OK;
}
