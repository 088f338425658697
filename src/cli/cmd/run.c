/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/run_job.h"

#include "base/log.h"
#include "base/settings.h"
#include "cli/cmd/cmd.h"
#include "launch/server_shards.h"
#include "options/options.h"
#include "options/setting_names.h"
#include "wire/packet.h"

#include <string.h>

static const char *options_wrong(const struct run_options *o)
{
	if (o->request.hosts && (o->workers || o->aggregator || o->trees))
		return "--hosts sets the number of workers, and the controller plans the trees: "
		       "leave -n, --aggregator and --trees out";
	if (o->request.hosts && !o->net)
		return "--hosts needs --net; on real machines use trib job new --hosts --hostfile, "
		       "and mpirun";
	if (!o->request.hosts && (o->request.per_host != 1 || o->request.waits ||
	                          o->request.controller || o->request.name))
		return "--per-host, --wait, --controller and --name go with --hosts";
	if (o->request.hosts > RUN_WORKERS_MAX || o->request.per_host > RUN_WORKERS_MAX ||
	    !o->request.per_host || o->request.hosts * o->request.per_host > RUN_WORKERS_MAX)
		return "--hosts times --per-host is from 1 to 64";
	if (!o->workers && !o->request.hosts)
		return "say how many workers with -n";
	if (o->workers > RUN_WORKERS_MAX)
		return "-n is 64 at most: an aggregator takes no more";
	if (!o->plane)
		return "--plane is auto, udp, tc, xdp, tcp or pisa";
	if (o->aggregator && (!strchr(o->aggregator, ':') || strlen(o->aggregator) > 256))
		return "--aggregator must be HOST:PORT";
	if (o->aggregator && o->trees)
		return "--aggregator and --trees cannot be combined";
	if (o->ring && (o->aggregator || o->trees || o->request.hosts || o->servers))
		return "--ring needs no aggregator: leave --aggregator, --trees, --hosts and "
		       "--servers out";
	if (o->mpi && (o->request.hosts || o->servers || o->pin))
		return "--mpi: mpirun places the ranks; leave --hosts, --servers and --pin out";
	if (o->mpirun && !o->mpi)
		return "--mpirun goes with --mpi";
	if (o->lanes > WIRE_LANES_MAX)
		return "--lanes is 16 at most";
	if (o->servers > SHARDS_RUN_MAX)
		return "--servers is 64 at most";
	if (o->server_dir && !o->servers)
		return "--server-dir goes with --servers";
	if (!o->command[0])
		return "there is no command to run";
	return NULL;
}

static struct run_options given = {
	.request = { .command = "trib run", .policy = "fail", .per_host = 1, .min = 1 },
};

static const struct option_row rows[] = {
	{ "workers", 'n', OPTION_COUNT, &given.workers, "N", "number of workers to start", "4" },
	{ "net", 0, OPTION_TEXT, &given.net, "NAME",
	  "run on the hosts of this virtual cluster, in turn (default: on this machine)", "trib" },
	{ "hosts", 0, OPTION_COUNT, &given.request.hosts, "N",
	  "in place of -n: lease N hosts from a controller for this job; they are the "
	  "job's until it ends",
	  "4" },
	{ "per-host", 0, OPTION_COUNT, &given.request.per_host, "N",
	  "with --hosts: workers on each host (default 1)", "2" },
	{ "wait", 0, OPTION_FLAG, &given.request.waits, NULL,
	  "with --hosts: wait until there are enough hosts, first come, first served", NULL },
	{ "controller", 'c', OPTION_TEXT, &given.request.controller, "CONTROLLER",
	  "with --hosts: the controller to ask (default: TRIB_CONTROLLER, or one on this "
	  "machine)",
	  "10.0.0.1:7600#sha256//..." },
	{ "name", 0, OPTION_TEXT, &given.request.name, "NAME",
	  "with --hosts: name of the job in lists (default: job)", "resnet" },
	{ "aggregator", 0, OPTION_TEXT, &given.aggregator, "HOST:PORT",
	  "use this aggregator (default: TRIB_TREES, TRIB_AGGREGATOR or TRIB_RENDEZVOUS, if set; "
	  "else start a tribd, on s1 or h1 of the cluster)",
	  "10.0.0.9:7700" },
	{ "trees", 0, OPTION_TEXT, &given.trees, "TREES",
	  "start a tribd on each host that the trees name: star, striped, planned, a file, "
	  "or trees as in the example; a number before a tree is its share: "
	  "2*s1(...);s2(...)",
	  "'s3(s1(0-2),s2(3-5),6)'" },
	{ "ring", 0, OPTION_FLAG, &given.ring, NULL,
	  "start no aggregator: the workers sum among themselves", NULL },
	{ "mpi", 0, OPTION_FLAG, &given.mpi, NULL,
	  "the command is an MPI program: start it with mpirun, its collectives by Tributary",
	  NULL },
	{ "mpirun", 0, OPTION_TEXT, &given.mpirun, "PROGRAM",
	  "with --mpi: the launcher, of Open MPI or MPICH (default: mpirun)", "mpiexec.mpich" },
	{ "plane", 0, OPTION_TEXT, &given.plane_name, "PLANE",
	  "where sums are made: auto (tc if possible, else udp), udp, tc (small vectors in the "
	  "kernel), xdp (in the kernel), tcp, "
	  "for "
	  "comparison, or pisa (small vectors on a model of a switch) (default: TRIB_PLANE, auto)",
	  "xdp" },
	{ "timeout", 0, OPTION_SECONDS, &given.timeout_s, "S", "TRIB_TIMEOUT of the workers",
	  "30" },
	{ "pool", 0, OPTION_BYTES, &given.pool_bytes, "SIZE", "TRIB_POOL of the workers", "64M" },
	{ "lanes", 0, OPTION_COUNT, &given.lanes, "N", "TRIB_LANES of workers and aggregators",
	  "2" },
	{ "servers", 0, OPTION_COUNT, &given.servers, "N",
	  "start N parameter servers for sparse training, and end them after the job; workers find "
	  "them by TRIB_SPARSE_SERVERS",
	  "2" },
	{ "server-dir", 0, OPTION_TEXT, &given.server_dir, "DIR",
	  "with --servers: keep their rows in DIR/0, DIR/1 ..., for the next job (default: a "
	  "temporary folder)",
	  "/var/lib/tributary/words" },
	{ "nccl", 0, OPTION_FLAG, &given.nccl, NULL,
	  "the workers call NCCL: let it use libnccl-net-tributary.so, and tell torch.distributed "
	  "its ranks (NCCL_NET_PLUGIN, NCCL_COLLNET_ENABLE, NCCL_ALGO, RANK, ...)",
	  NULL },
	{ "pin", 0, OPTION_FLAG, &given.pin, NULL, "give each process a core, in turn", NULL },
	{ 0 },
};

static const struct options options = {
	"trib run [OPTION]... -- COMMAND [ARGUMENT]...",
	"Starts workers, and an aggregator if none is given. Prints their output, each line\n"
	"after the name of its process. If a process fails, all others are ended, and trib run\n"
	"exits with the exit code of that process.",
	"trib run -n 4 --net trib -- ./train --epochs 3\n"
	"  trib run --hosts 4 --wait --net trib -- ./train --epochs 3\n"
	"  trib run -n 2 --nccl -- python3 train.py",
	rows,
};

static void warn_setting_name(void *context, const char *name, const char *hint)
{
	(void)context;
	log_warn("%s is set, but is not a setting: %s", name, hint);
}

int cli_run(int argc, char **argv)
{
	int code, first = options_parse(&options, argc, argv, &code);
	const char *wrong;

	if (first < 0)
		return code;
	given.command = argv + first;
	given.plane = run_plane_find(given.plane_name ? given.plane_name
	                                              : setting_text(SETTING_PLANE, NULL));
	wrong = options_wrong(&given);
	if (wrong)
		return options_fail(&options, "%s", wrong);
	setting_names_check(warn_setting_name, NULL);
	return run_job(&given);
}
