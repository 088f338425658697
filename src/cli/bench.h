/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench: every system does the same allreduce, on the same hosts, in turns.
 *
 * bench.c reads the command line, bench_place.c brings the hosts, bench_limit.c
 * says what their links allow, bench_cores.c gives them cores of their own,
 * bench_systems.c and bench_mpi.c know how each system is started, bench_job.c
 * runs it once, bench_allreduce.c decides what runs when, bench_stats.c
 * condenses, and bench_table.c, bench_json.c and bench_plot.c show it.
 * bench_merge.c shows what was saved, which bench_saved.c reads.
 */
#ifndef TRIB_CLI_BENCH_H
#define TRIB_CLI_BENCH_H

#include "cli/bench_cores.h"
#include "cli/bench_stats.h"
#include "cli/trees.h"
#include "net/cluster.h"

#define BENCH_SIZES_MAX 16
#define BENCH_SYSTEMS_MAX 12
#define BENCH_TREES_MAX 6
#define BENCH_LABEL 24

/* Trees as they were asked for, under a name. */
struct bench_trees {
	char label[BENCH_LABEL];
	const char *wanted;
};

struct bench_late {
	char host[16];
	double seconds; /* it comes to every allreduce so much later */
};

struct bench_options {
	struct cluster_options net; /* of the cluster to make */
	const char *net_name;       /* of the one that is there already */
	uint64_t hosts;             /* 0: as many as there are, or 4 */
	uint64_t mtu;
	bool is_server;   /* the aggregator is one more host, not the switch */
	uint64_t servers; /* so many of them; 0: one */
	struct bench_trees trees[BENCH_TREES_MAX];
	unsigned n_trees; /* 0: one aggregator */
	uint64_t sizes[BENCH_SIZES_MAX];
	unsigned n_sizes;
	uint64_t iterations, warmup, repeats;
	const char *against;
	uint64_t pool_bytes, lanes;
	double timeout_s; /* of one run; 0: chosen by its size */
	double busy;      /* share of the servers' cores that other work has */
	struct bench_late late[CLUSTER_HOSTS_MAX];
	unsigned n_late;
	struct bench_cores cores[CLUSTER_HOSTS_MAX];
	unsigned n_cores;  /* 0: hosts share all cores */
	bool copied;       /* packets to aggregators come as XDP's do, on every plane */
	bool nic;          /* ... as a NIC's driver has them: net/relay.h */
	const char *plane; /* of the first system; NULL: udp */
	bool to_one;       /* a reduce to the first host instead of an allreduce */
	bool check;
	const char *json, *plot;
};

/* Where the systems run. */
struct bench_place {
	struct cluster cluster; /* n is 0 on loopback */
	bool made;              /* by us, so that we remove it */
	unsigned workers;
	uint64_t slowest_bps;               /* among the workers' links; 0: not shaped */
	uint64_t server_bps;                /* that all workers share; 0: not shaped, or a switch */
	cpu_set_t cores[CLUSTER_HOSTS_MAX]; /* with --cores: of each host */
};

/* One way a system can do an allreduce. */
struct bench_variant {
	const char *name;
	const char *words[8]; /* for mpirun, the program or the environment; NULL-ended */
};

struct bench_job;
struct bench_run;

struct bench_system {
	const char *name;
	const char *plane;
	const char *program;  /* below bench/peers */
	const char *launcher; /* that has to be installed as well, or NULL */
	bool aggregates;
	bool tuned; /* all variants are tried, and at each size the best there is measured */
	const struct bench_variant
		*variants; /* the first is the default; one without a name ends them */
	trib_status (*prepare)(const struct bench_run *run, struct bench_job *job);
	const struct trees *trees; /* as chosen for a row; NULL: not with aggregators of ours */
};

/* Of all workers and aggregators of ours; those of other systems are not counted. */
struct bench_packets {
	double fragments, fragments_again; /* that workers sent, and repeats among them */
	double results_again;              /* that aggregators sent once more, asked by one */
};

/* One row of the table. */
struct bench_result {
	const struct bench_system *system;
	const struct bench_variant *variant;
	uint64_t bytes;
	double limit_s; /* what the links set; 0: they set none */
	struct bench_stats stats;
	double cpu_s;                 /* of the aggregator, in all runs */
	struct bench_range added_gb;  /* in a CPU-second of it, in each run */
	struct bench_range cpu_times; /* what the first system's aggregator adds in that time */
	struct bench_packets packets;
	unsigned runs, failed;
	char note[400]; /* why the last of the failed did */
	/* While it is being measured: */
	double *times; /* a row of `iterations` for every run that went well */
	double *added; /* Gb a CPU-second of the aggregator in every run; NaN: not known */
};

struct bench_report {
	const struct bench_options *options;
	const struct bench_place *place;
	struct trees trees[BENCH_TREES_MAX]; /* as in the options; one star where none is given */
	struct bench_system chosen[BENCH_SYSTEMS_MAX];
	char names[BENCH_SYSTEMS_MAX][64];
	const struct bench_system *systems[BENCH_SYSTEMS_MAX]; /* the first is Tributary */
	unsigned n_systems;
	struct bench_result results[BENCH_SIZES_MAX * BENCH_SYSTEMS_MAX]; /* size by size */
	unsigned n;
	char where[256];    /* as bench_place_describe says it */
	char times[64];     /* "3 x 10": repeats and iterations */
	char left_out[512]; /* which systems, and why */
};

/* 0 where there is no result. */
double bench_gbps(const struct bench_result *result);
/* Of what the links allow; 0 where they set no limit. */
double bench_share(const struct bench_result *result);
/* How many times the speed of `peer` Tributary has at that size; 0 where one is missing. */
double bench_gain(const struct bench_report *report, const struct bench_result *peer);

/* Shares that had to be sent again, of fragments and of results; false: nothing was counted. */
bool bench_again(const struct bench_report *report, const struct bench_result *result,
                 double *fragments, double *results);

trib_status bench_place_open(const struct bench_options *options, struct bench_place *place);
void bench_place_close(struct bench_place *place);
/* "4 hosts, 1 Gb/s links, the aggregator is the switch" */
void bench_place_describe(const struct bench_place *place, char *out, size_t room);

/* bench_limit.c: the least time that the links leave for it; 0: they set none. */
double bench_limit(const struct bench_place *place, const struct bench_options *options,
                   const struct bench_system *system, uint64_t bytes);
/* By how much the last worker comes late. */
double bench_latest(const struct bench_options *options);

/* NULL: there is none of that name. */
const struct bench_system *bench_system_find(const char *name, size_t length);
/* Fills report->systems from options->against; what cannot run goes to left_out. */
trib_status bench_systems_choose(struct bench_report *report);
/* Fills report->trees for the hosts of report->place. */
trib_status bench_trees_read(struct bench_report *report);
extern const struct bench_variant bench_openmpi_variants[], bench_mpich_variants[];

/* Measures; what a peer fails at is noted in its row. */
trib_status bench_allreduce(struct bench_report *report);

/* "16M", "2.5e6", "1000": the shortest exact form. */
const char *bench_bytes_text(uint64_t bytes, char out[24]);
void bench_name_text(const struct bench_result *result, char *out, size_t room);

void bench_table_print(const struct bench_report *report);
trib_status bench_json_write(const struct bench_report *report, const char *path);
trib_status bench_plot_write(const struct bench_report *report, const char *path);

/* bench_merge.c */
int bench_merge_run(int argc, char **argv);
/* bench_engine.c */
int bench_engine_run(int argc, char **argv);
/* bench_plane.c */
int bench_plane_run(int argc, char **argv);
/* bench_rates.c */
int bench_rates_run(int argc, char **argv);
/* bench_deploy.c */
int bench_deploy_run(int argc, char **argv);

#endif
