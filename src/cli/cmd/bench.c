/* SPDX-License-Identifier: Apache-2.0 */
/* trib bench: the list of benchmarks. Each has a room of its own below src/bench. */
#include "bench/allreduce/bench_allreduce.h"
#include "bench/deploy/bench_deploy.h"
#include "bench/engine/bench_engine.h"
#include "bench/glm/bench_glm.h"
#include "bench/latency/bench_latency.h"
#include "bench/numbers/bench_numbers.h"
#include "bench/path/bench_path.h"
#include "bench/plane/bench_plane.h"
#include "bench/rates/bench_rates.h"
#include "bench/sparse/bench_sparse.h"
#include "bench/store/bench_store.h"
#include "cli/cmd/cmd.h"
#include "options/command_table.h"

#include <stdlib.h>

static const struct command benchmarks[] = {
	{ "allreduce", bench_allreduce_run,
	  "time and bandwidth of sums over several hosts, also of other systems" },
	{ "deploy", bench_deploy_run, "how long an aggregator takes to be ready" },
	{ "engine", bench_engine_run, "CPU time of one packet where it is summed" },
	{ "float-table", bench_float_table_run,
	  "precision of sums of floats by table look-up, beside fixed point" },
	{ "glm", bench_glm_run,
	  "time of an epoch of linear models over several hosts, also over MPI" },
	{ "glm-kernel", bench_glm_kernel_run,
	  "samples a second of linear models on one core, beside what the memory allows" },
	{ "latency", bench_latency_run,
	  "how long small sums take over several hosts, also of other systems" },
	{ "numbers", bench_numbers_run,
	  "how far sums are from the exact ones, here and in a ring" },
	{ "path", bench_path_run,
	  "bandwidth between two hosts over several paths, beside ECMP and multipath TCP" },
	{ "plane", bench_plane_run, "throughput of an aggregator, and its CPU time" },
	{ "plot", bench_merge_run,
	  "table and plot of files that allreduce --json has written; measures nothing" },
	{ "rates", bench_rates_run,
	  "how workers and aggregators agree on rates, and what a slower link does" },
	{ "sparse", bench_sparse_run,
	  "updates of rows that workers push to parameter servers, with and without an "
	  "aggregator" },
	{ "sparse-store", bench_store_run,
	  "memory of a parameter server's rows, beside the bytes of rows and optimizer state" },
	{ 0 },
};

static const struct command_table table = {
	.name = "trib bench",
	.about = "Measurements. Most make virtual clusters of their own, as root, and remove them.",
	.example = "trib bench allreduce --against gloo,ring --plot bench.svg",
	.commands = benchmarks,
};

int cli_bench(int argc, char **argv)
{
	setenv("TRIB_COUNTERS", "on", 1); /* benchmarks read those of their aggregators */
	return command_table_run(&table, argc, argv);
}
