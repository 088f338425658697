/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bed: several systems do the same allreduce, or the same training, on the same hosts, in
 * turns. Every benchmark that compares systems stands on this room.
 *
 * bench_hosts.c makes the hosts, host_cores.c gives them cores. systems.c and
 * mpi_job.c know how each system is started: they build a job (job_build.c).
 * plane_ways.c chooses systems that differ in their plane.
 * peer_job.c runs a job once, and stray_processes.c ends what it left behind.
 * interleave.c decides the order of runs. size_list.c reads and writes sizes.
 * bench_driver.c is the command of a benchmark: from its options to its exit code.
 *
 * This room starts processes only through src/launch, and must not know the inside
 * of a plane or of a worker: it measures them from outside. It must not know how a
 * benchmark shows its results, and so includes no other room of src/bench but
 * report.
 */
#ifndef TRIB_BENCH_BED_BENCH_BED_H
#define TRIB_BENCH_BED_BENCH_BED_H

#include "bench/bed/host_cores.h"
#include "bench/report/samples.h"
#include "launch/tree_layout.h"
#include "net/cluster.h"

#define BENCH_SIZES_MAX 16
#define BENCH_TREES_MAX 6
#define BENCH_LABEL 24

/* Trees as --trees names them. */
struct bench_trees {
	char label[BENCH_LABEL];
	const char *wanted;
};

struct bench_late {
	char host[16];
	double seconds; /* delay of this host before every allreduce */
};

enum bench_collective { BENCH_ALLREDUCE, BENCH_REDUCE_SCATTER, BENCH_ALLGATHER, BENCH_COLLECTIVES };

/* What a user can ask of the hosts and of every run. A benchmark offers a part of it. */
struct bench_options {
	struct cluster_options net; /* of the cluster to make */
	const char *net_name;       /* of an existing cluster; NULL: make one */
	uint64_t hosts;             /* 0: as many as the cluster has, or 4 */
	uint64_t mtu;
	bool is_server;   /* the aggregator is a host of its own, not the switch */
	uint64_t servers; /* number of aggregators; 0: 1 */
	struct bench_trees trees[BENCH_TREES_MAX];
	unsigned n_trees; /* 0: one aggregator */
	uint64_t sizes[BENCH_SIZES_MAX];
	unsigned n_sizes;
	uint64_t iterations, warmup, repeats;
	const char *against;
	uint64_t pool_bytes, lanes;
	double timeout_s; /* of one run; 0: chosen by the size of the vector */
	double busy;      /* share of the servers' cores that is given to other work */
	struct bench_late late[CLUSTER_HOSTS_MAX];
	unsigned n_late;
	struct bench_cores cores[CLUSTER_HOSTS_MAX];
	unsigned n_cores; /* 0: hosts share all cores */
	bool spread;      /* workers are bound to cores in turn, if no core stays without one */
	bool copied; /* packets to aggregators are copied on every plane, as veth does for XDP */
	bool nic;    /* servers receive packets in pages, as from a NIC's driver: net/relay.h */
	const char *plane; /* plane of the first system; NULL: udp */
	const char *type;  /* of the elements, as programs of bench/peers take it */
	enum bench_collective collective;
	bool to_one; /* a reduce to the first host instead of an allreduce */
	bool check;
	uint64_t many;   /* vectors that are posted together; 0 and 1: one, by a blocking call */
	unsigned trials; /* of every variant, of which the shortest counts; 0: 1 */
	bool hurry;      /* else every run waits until the machine is idle, for a second at most */
	bool mean_of_ranks; /* an iteration's time is the mean over ranks, not the slowest rank's */
	bool no_cpu_time;   /* nobody counts the time of XDP programs and workers, which slows them
	                     */
	const char *json, *plot;
};

/* Where the systems run. */
struct bench_place {
	struct cluster cluster; /* its n is 0 on loopback */
	bool made;              /* this process made the cluster, and removes it */
	unsigned workers;
	uint64_t slowest_bps; /* the slowest link of a worker; 0: links are not shaped */
	uint64_t server_bps;  /* link of the server that all workers share; 0: not shaped, or a
	                         switch */
	cpu_set_t cores[CLUSTER_HOSTS_MAX]; /* cores of each host, with --cores or `spread` */
	bool spread;                        /* `cores` has one for each worker; servers have all */
};

/* One algorithm of a system. */
struct bench_variant {
	const char *name;
	const char
		*words[10]; /* arguments of mpirun or of the program, or environment; NULL-ended */
	bool spins;         /* ranks spin while they wait: not tried with more ranks than cores */
	uint64_t from, to;  /* sizes in bytes at which it is tried; 0: no bound */
};

/* Of a system that has one algorithm. */
extern const struct bench_variant bench_plain_variants[];

struct bench_job;
struct bench_run;
struct word_list;

struct bench_system {
	const char *name;
	const char *plane;
	const char *program;  /* file name in bench/peers */
	const char *launcher; /* must be installed as well; NULL: not needed */
	bool aggregates;      /* allreduces go through aggregators */
	bool aggregates_all;  /* all collectives do, also if a ring would be faster */
	bool tuned;           /* tries all variants, and measures the best one at each size */
	bool alone;           /* only rank 0 runs */
	/* If this system is measured as well, its best variant is taken: rows then differ by the
	 * system alone. Both have the same list. NULL: none. */
	const char *tuned_as;
	const struct bench_variant
		*variants; /* the first is the default; a variant without a name ends the list */
	/* The same for other collectives than allreduce; NULL: the system has no such one. */
	const struct bench_variant *scatter_variants, *gather_variants;
	trib_status (*prepare)(const struct bench_run *run, struct bench_job *job);
	/* The program and its arguments; NULL: `program`, as programs of bench/peers take them. */
	void (*words)(const struct bench_run *run, struct word_list *argv);
	/*
	 * Takes a time from a line that the first rank prints, and its iteration. False: the line
	 * has none. NULL: every rank prints lines as programs of bench/peers do.
	 */
	bool (*sample)(const struct bench_run *run, const char *line, unsigned *iteration,
	               double *seconds);
	/* The run has succeeded: what its lines told counts. NULL: nobody has to know. */
	void (*succeeded)(const struct bench_run *run);
	const struct tree_layout
		*trees; /* the trees of this row; NULL: the system has no aggregators of ours */
};

/* Packets of all our workers and aggregators. Other systems are not counted. */
struct bench_packets {
	double fragments, fragments_again; /* fragments that workers sent, and how many of them were
	                                      repeats */
	double results_again; /* results that aggregators repeated because a worker asked */
};

/* What is measured of one system at one size. */
struct bench_result {
	const struct bench_system *system;
	const struct bench_variant *variant;
	const struct bench_place *place;
	uint64_t bytes;
	unsigned iterations, warmup; /* of one run */
	double limit_s;              /* least time that the links allow; 0: no limit */
	struct bench_stats stats;
	double cpu_s;                 /* CPU time of the aggregators, over all runs */
	double worker_cpu_s;          /* of all workers, in the timed allreduces of all runs */
	struct bench_range added_gb;  /* Gb that the aggregator adds in a CPU-second, in each run */
	struct bench_range cpu_times; /* CPU time of this aggregator over that of `first`, for the
	                                 same sum */
	struct bench_packets packets;
	unsigned runs, failed;
	unsigned disturbed; /* runs that began although the machine was not idle */
	char note[400];     /* why the last failed run failed */
	/* Only while the result is measured: */
	const struct bench_result *first; /* the result to compare with; NULL: none */
	double *times;                    /* `iterations` times for every run that succeeded */
	double *added; /* Gb that the aggregator added in a CPU-second, in every run; NaN: unknown
	                */
};

trib_status bench_place_open(const struct bench_options *options, struct bench_place *place);
void bench_place_close(struct bench_place *place);
/*
 * `bed` has as many hosts as the largest of `n` numbers. Each number takes the first hosts of it,
 * so that all are measured in turns: `places` and `trees`, which are stars.
 */
trib_status bench_places_open(const struct bench_options *options, const uint64_t *hosts,
                              unsigned n, struct bench_place *bed, struct bench_place *places,
                              struct tree_layout *trees);
/* "4 hosts, 1 Gb/s links, the aggregator is the switch" */
void bench_place_describe(const struct bench_place *place, char *out, size_t room);
/* Delay of the latest worker (--late), in seconds. */
double bench_latest(const struct bench_options *options);

/* NULL: no system has that name. */
const struct bench_system *bench_system_find(const char *name, size_t length);
/* Why a system cannot run on this machine; NULL: it can. Valid until the next call. */
const char *bench_system_missing(const struct bench_system *system);
/* Tributary, on any plane. */
bool bench_system_is_ours(const struct bench_system *system);
/* It runs on trees of aggregators. */
bool bench_system_has_trees(const struct bench_system *system);
/* The system's algorithms for this collective and type of elements; NULL: it has none. */
const struct bench_variant *bench_system_variants(const struct bench_system *system,
                                                  const struct bench_options *options);
/* "reduce-scatter" */
const char *bench_collective_name(enum bench_collective collective);
/* "openmpi (ring)", or the name alone. */
void bench_name_text(const struct bench_result *result, char *out, size_t room);

/* A result that is to be measured: with the system's first variant, and iterations as asked. */
struct bench_result bench_result_of(const struct bench_options *options,
                                    const struct bench_system *system,
                                    const struct bench_place *place, uint64_t bytes);
/*
 * Measures all results, each options->repeats times, in turns. A tuned system first
 * tries its variants. If a system fails, its result says so. TRIB_ERR_CLOSED: a
 * signal has stopped it.
 */
trib_status bench_interleave(const struct bench_options *options, struct bench_result *results,
                             unsigned n);

#endif
