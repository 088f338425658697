/* SPDX-License-Identifier: Apache-2.0 */
/* The systems of `trib bench latency`, and the settings that each is tried with. */
#include "bench/latency/bench_latency.h"

#include "bench/bed/mpi_job.h"
#include "bench/bed/size_list.h"
#include "bench/report/cpu_time.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SMALL 65536u /* bytes: rings are tried from here on, other algorithms up to here */
#define IP_UDP 28u   /* bytes of the headers of a UDP packet */

/* ---- Tributary ---- */

static const struct bench_variant slot[] = { { .name = "slot", .words = { "TRIB_ENGINE=slot" } },
	                                     { 0 } };
static const struct bench_variant dense[] = { { .name = "dense", .words = { "TRIB_ENGINE=dense" } },
	                                      { 0 } };
static const struct bench_variant automatic[] = {
	{ .name = "auto", .words = { "TRIB_ENGINE=auto", "TRIB_WAY=auto" } }, { 0 }
};

/* ---- peers ---- */

#define POSTED(algorithm) "--mca", "coll_libnbc_iallreduce_algorithm", algorithm

static const struct bench_variant openmpi_one[] = {
	{ .name = "default" },
	{ .name = "default, spinning", .spins = true },
	{ .name = "recursive doubling", .words = { OPENMPI_TUNED("3") }, .to = SMALL },
	{ .name = "recursive doubling, spinning",
	  .words = { OPENMPI_TUNED("3") },
	  .to = SMALL,
	  .spins = true },
	{ .name = "linear", .words = { OPENMPI_TUNED("1") }, .to = SMALL },
	{ .name = "linear, spinning", .words = { OPENMPI_TUNED("1") }, .to = SMALL, .spins = true },
	{ .name = "Rabenseifner", .words = { OPENMPI_TUNED("6") }, .from = SMALL / 16 },
	{ .name = "ring", .words = { OPENMPI_TUNED("4") }, .from = SMALL },
	{ .name = "segmented ring", .words = { OPENMPI_TUNED("5") }, .from = SMALL },
	{ .name = "segmented ring, 256K",
	  .words = { OPENMPI_TUNED("5"), "segment" },
	  .from = 4 * SMALL },
	{ 0 },
};

static const struct bench_variant openmpi_many[] = {
	{ .name = "default" },
	{ .name = "default, spinning", .spins = true },
	{ .name = "binomial", .words = { POSTED("2") } },
	{ .name = "recursive doubling", .words = { POSTED("4") } },
	{ .name = "recursive doubling, spinning", .words = { POSTED("4") }, .spins = true },
	{ .name = "ring", .words = { POSTED("1") } },
	{ 0 },
};

static const struct bench_variant gloo_one[] = {
	{ .name = "bcube", .words = { "--algorithm", "bcube" } },
	{ .name = "ring", .words = { "--algorithm", "ring" } },
	{ .name = "halving doubling", .words = { "--algorithm", "halving_doubling" } },
	{ .name = "ring chunked", .words = { "--algorithm", "ring_chunked" }, .from = SMALL },
	{ 0 },
};

/* Gloo has no call that returns before the sum is there. */
static const struct bench_variant gloo_many[] = {
	{ .name = "bcube, one by one", .words = { "--algorithm", "bcube" } },
	{ .name = "ring, one by one", .words = { "--algorithm", "ring" } },
	{ 0 },
};

static const struct {
	const char *name;
	const struct bench_variant *one, *many; /* NULL: as in src/bench/bed */
} peers[] = {
	{ "openmpi", openmpi_one, openmpi_many },
	{ "gloo", gloo_one, gloo_many },
	{ "mpich", NULL, NULL },
};

#define PEERS_N (sizeof(peers) / sizeof(*peers))
#define PEERS_ALL "openmpi,gloo"

/* ---- Tributary's systems ---- */

/* The last three are the peer openmpi with Tributary's adapter. Without an aggregator, Open MPI
 * itself carries small vectors, with the variant that is best for it. */
static const struct {
	const char *name, *base, *plane;
	const struct bench_variant *variants;
} ours[] = {
	{ "xdp", "tributary", "xdp", slot },
	{ "tc", "tributary", "tc", slot },
	{ "udp", "tributary", "udp", slot },
	{ "pisa", "tributary", "pisa", slot },
	{ "dense", "tributary", "xdp", dense },
	{ "dense-udp", "tributary", "udp", dense },
	{ "auto", "tributary", "xdp", automatic },
	{ "auto-tc", "tributary", "tc", automatic },
	{ "auto-udp", "tributary", "udp", automatic },
	{ "mpi-xdp", "mpi-trib", "xdp", bench_plain_variants },
	{ "mpi-udp", "mpi-trib", "udp", bench_plain_variants },
	{ "mpi-none", "mpi-trib-ring", "tcp", openmpi_one },
};

#define OURS_N (sizeof(ours) / sizeof(*ours))

/* ---- a bare round trip ---- */

static trib_status veth_prepare(const struct bench_run *run, struct bench_job *job)
{
	struct bench_task *task = job_service(job, run, run_host(run, -1), "echo");
	char program[4096];

	if (!bench_program_find(run->system->program, program, sizeof(program)))
		return status_fail(TRIB_ERR_CONFIG, "the program %s was not found",
		                   run->system->program);
	words_add(&task->argv, "%s", program);
	words_add(&task->argv, "--serve");
	if (run->variant->spins)
		words_add(&task->argv, "spin");
	words_add(&task->env, "PINGPONG_SERVER=%s:%u", run_address(run, -1), run->port);
	task = job_task(job, run, 0);
	job_program_words(run, &task->argv);
	for (const char *const *word = run->variant->words; *word; word++)
		words_add(&task->argv, "%s", *word);
	words_add(&task->env, "PINGPONG_SERVER=%s:%u", run_address(run, -1), run->port);
	return TRIB_OK;
}

static const struct bench_variant asleep[] = { { .name = "blocking" }, { 0 } };
static const struct bench_variant spinning[] = {
	{ .name = "spinning", .words = { "--algorithm", "spin" }, .spins = true }, { 0 }
};

static const struct bench_system bare[] = {
	{ .name = "veth",
	  .plane = "veth",
	  .program = "pingpong",
	  .variants = asleep,
	  .prepare = veth_prepare,
	  .alone = true },
	{ .name = "veth-spin",
	  .plane = "veth",
	  .program = "pingpong",
	  .variants = spinning,
	  .prepare = veth_prepare,
	  .alone = true },
};

bool latency_system_takes(const struct bench_system *system, const struct bench_place *place,
                          const struct bench_options *options, uint64_t bytes)
{
	unsigned mtu = place->cluster.mtu ? place->cluster.mtu : 1500;

	return !system->alone || (options->many <= 1 && bytes + IP_UDP <= mtu);
}

/* ---- the choice ---- */

bool latency_system_is_peer(const struct bench_system *system)
{
	for (unsigned i = 0; i < PEERS_N; i++)
		if (strcmp(peers[i].name, system->name) == 0)
			return true;
	return false;
}

/* Does Open MPI start it, with Tributary's adapter? */
static bool is_adapter(const struct bench_system *system)
{
	return system->launcher && !latency_system_is_peer(system);
}

/* Why the system cannot run here; NULL: it can. */
static const char *reason_find(const struct bench_system *system, bool many)
{
	const char *why = bench_system_has_trees(system) ? plane_missing(system->plane) : NULL;

	if (why)
		return why;
	if (many && is_adapter(system))
		return "MPI itself carries calls that do not wait";
	if (system->alone && geteuid() != 0)
		return NEEDS_ROOT;
	if (system->variants->spins && cpu_count() < 2)
		return "it needs two cores";
	return bench_system_missing(system);
}

static trib_status system_add(struct latency_report *report, const struct bench_system *system)
{
	const char *why = reason_find(system, report->options->bench.many > 1);

	for (unsigned i = 0; i < report->n_systems; i++)
		if (strcmp(report->systems[i].name, system->name) == 0)
			return TRIB_OK;
	if (why)
		left_out_add(report->left_out, system->name, NULL, why);
	else if (report->n_systems == LATENCY_SYSTEMS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "more than %d systems", LATENCY_SYSTEMS_MAX);
	else
		report->systems[report->n_systems++] = *system;
	return TRIB_OK;
}

static trib_status ours_take(struct latency_report *report, const char *word)
{
	for (unsigned i = 0; i < OURS_N; i++) {
		struct bench_system system;

		if (strcmp(ours[i].name, word) != 0)
			continue;
		system = *bench_system_find(ours[i].base, strlen(ours[i].base));
		system.name = ours[i].name;
		system.plane = ours[i].plane;
		system.variants = ours[i].variants;
		if (system.variants == openmpi_one) {
			system.tuned = true;
			system.tuned_as = "openmpi";
		}
		return system_add(report, &system);
	}
	return status_fail(
		TRIB_ERR_ARGUMENT,
		"--systems: \"%s\" is not one of xdp, tc, udp, pisa, dense, dense-udp, auto, "
		"auto-tc, auto-udp, mpi-xdp, mpi-udp, mpi-none",
		word);
}

static trib_status peer_take(struct latency_report *report, const char *word)
{
	bool many = report->options->bench.many > 1;

	for (unsigned i = 0; i < PEERS_N; i++) {
		const struct bench_variant *variants = many ? peers[i].many : peers[i].one;
		struct bench_system system;

		if (strcmp(peers[i].name, word) != 0)
			continue;
		system = *bench_system_find(word, strlen(word));
		if (variants)
			system.variants = variants;
		return system_add(report, &system);
	}
	return status_fail(TRIB_ERR_ARGUMENT,
	                   "--against: \"%s\" is not one of all, none, openmpi, gloo, mpich", word);
}

/* Calls `take` with every word of a list. */
static trib_status words_take(struct latency_report *report, const char *list,
                              trib_status (*take)(struct latency_report *report, const char *word))
{
	trib_status status = TRIB_OK;
	char word[32];

	while (*list && status == TRIB_OK) {
		list = list_word_next(list, word, sizeof(word));
		status = take(report, word);
	}
	return status;
}

trib_status latency_systems_choose(struct latency_report *report)
{
	const char *against = report->options->bench.against;
	trib_status status = words_take(report, report->options->systems, ours_take);

	if (!against || strcmp(against, "all") == 0)
		against = PEERS_ALL;
	if (status == TRIB_OK && strcmp(against, "none") != 0)
		status = words_take(report, against, peer_take);
	for (unsigned i = 0; i < sizeof(bare) / sizeof(*bare) && status == TRIB_OK; i++)
		status = system_add(report, &bare[i]);
	return status;
}
