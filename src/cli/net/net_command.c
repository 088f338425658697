/* SPDX-License-Identifier: Apache-2.0 */
/* trib net: up, down and exec; net_list.c and net_link.c have the other commands. */
#include "cli/cmd/cmd.h"

#include "base/settings.h"
#include "cli/net/net_command.h"
#include "net/cluster.h"
#include "net/fabric_plan.h"
#include "net/names.h"
#include "net/state.h"
#include "options/net_options.h"
#include "options/command_table.h"
#include "options/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXIT_NOT_FOUND 127 /* as shells do */
#define EXIT_NOT_RUN 126

static int net_fail(const char *command)
{
	fprintf(stderr, "trib net %s: %s\n", command, trib_last_error());
	return 1;
}

static unsigned count_clamp(uint64_t count)
{
	return count > UINT32_MAX ? UINT32_MAX : (unsigned)count;
}

/* What trib net up is asked for. */
static struct {
	struct cluster_options cluster;
	uint64_t hosts, servers, mtu, leafs, spines, paths;
} up = { .hosts = 4, .servers = 1, .mtu = 1500 };

static struct net_fault faults[] = {
	{ &up.cluster, FAULT_LOSS },
	{ &up.cluster, FAULT_DUP },
	{ &up.cluster, FAULT_REORDER },
	{ &up.cluster, FAULT_CORRUPT },
};
static struct option_hook up_loss = { net_fault_take, &faults[0] };
static struct option_hook up_dup = { net_fault_take, &faults[1] };
static struct option_hook up_reorder = { net_fault_take, &faults[2] };
static struct option_hook up_corrupt = { net_fault_take, &faults[3] };
static struct option_hook up_link = { net_link_take, &up.cluster };
static struct option_hook up_route = { net_route_take, &up.cluster.fabric };
static struct option_hook up_hash = { net_hash_take, &up.cluster.fabric };

static const struct option_row up_rows[] = {
	{ "name", 0, OPTION_TEXT, &up.cluster.name, "NAME", "name of the cluster (default trib)",
	  "job2" },
	{ "hosts", 0, OPTION_COUNT, &up.hosts, "N", "number of workers, h1 to hN (default 4)",
	  "8" },
	{ "servers", 0, OPTION_COUNT, &up.servers, "M", "number of servers, s1 to sM (default 1)",
	  "2" },
	{ "switch", 0, OPTION_FLAG, &up.cluster.is_switch, NULL,
	  "s1 is a switch with one port (p1 to pN) for each worker", NULL },
	{ "link", 0, OPTION_HOOK, &up_link, "[HOST=]RATE",
	  "rate of every link, or of one host's link; may be repeated", "h2=500mbit" },
	{ "leaf", 0, OPTION_COUNT, &up.leafs, "L",
	  "hosts hang below L leafs, which are routers; needs --spine", "2" },
	{ "spine", 0, OPTION_COUNT, &up.spines, "S",
	  "number of spines; each leaf has a link to each spine", "4" },
	{ "core", 0, OPTION_RATE, &up.cluster.fabric.core_bps, "RATE",
	  "rate of each link between leafs and spines", "500mbit" },
	{ "paths", 0, OPTION_COUNT, &up.paths, "K",
	  "alias addresses of each host (default: one for each spine)", "4" },
	{ "route", 0, OPTION_HOOK, &up_route, "ecmp|static",
	  "leafs choose a spine by a hash (default), or spine k for alias k", "static" },
	{ "hash", 0, OPTION_HOOK, &up_hash, "l4|l3",
	  "the hash covers addresses and ports (default), or addresses only", "l3" },
	{ "mtu", 0, OPTION_COUNT, &up.mtu, "BYTES", "MTU of every link (default 1500)", "9000" },
	{ "no-offload", 0, OPTION_FLAG, &up.cluster.no_offload, NULL,
	  "packets cross links one by one, as on a real wire", NULL },
	{ "loss", 0, OPTION_HOOK, &up_loss, "[LINK=]P", "probability that a UDP packet is lost",
	  "0.01" },
	{ "dup", 0, OPTION_HOOK, &up_dup, "[LINK=]P", "probability that a UDP packet arrives twice",
	  "0.1%" },
	{ "reorder", 0, OPTION_HOOK, &up_reorder, "[LINK=]P",
	  "probability that the next UDP packet overtakes it", "0.05" },
	{ "corrupt", 0, OPTION_HOOK, &up_corrupt, "[LINK=]P",
	  "probability that 1 to 3 bits of a UDP payload flip", "0.001" },
	{ "seed", 0, OPTION_COUNT, &up.cluster.seed, "S", "seed of the faults (default 0)", "7" },
	{ 0 },
};

static const struct options up_options = {
	"trib net up [OPTION]...",
	"Makes a virtual cluster on this machine: network namespaces as hosts, and links\n"
	"between them. Faults happen on every link, or on one link, in both directions.\n"
	"They imply --no-offload. With --leaf and --spine, routers are between the hosts.",
	"trib net up --hosts 4 --servers 1 --link 1gbit --link h2=500mbit", up_rows
};

static int net_up(int argc, char **argv)
{
	static struct cluster cluster;
	trib_status status;
	int code;

	if (!options_parse_all(&up_options, argc, argv, &code))
		return code;
	up.cluster.workers = count_clamp(up.hosts);
	up.cluster.servers = count_clamp(up.servers);
	up.cluster.mtu = count_clamp(up.mtu);
	up.cluster.fabric.leafs = count_clamp(up.leafs);
	up.cluster.fabric.spines = count_clamp(up.spines);
	up.cluster.fabric.paths = count_clamp(up.paths);
	status = cluster_up(&up.cluster, &cluster);
	if (status == TRIB_ERR_ARGUMENT)
		return options_fail(&up_options, "%s", trib_last_error());
	if (status != TRIB_OK)
		return net_fail("up");
	for (unsigned i = 0; i < cluster.n; i++)
		printf("%-4s %-14s %s\n", cluster.hosts[i].name, cluster.hosts[i].address,
		       cluster.hosts[i].ns);
	return 0;
}

static trib_status name_down(void *context, const char *name)
{
	trib_status status = cluster_down(name);

	(void)context;
	if (status == TRIB_OK)
		printf("%s is gone\n", name);
	return status;
}

static int net_down(int argc, char **argv)
{
	const char *name = NULL;
	bool all = false;
	const struct option_row rows[] = {
		{ "name", 0, OPTION_TEXT, &name, "NAME", "name of the cluster (default trib)",
		  "job2" },
		{ "all", 0, OPTION_FLAG, &all, NULL, "remove every cluster on this machine", NULL },
		{ 0 },
	};
	const struct options options = { "trib net down [OPTION]...",
		                         "Removes a cluster, also one that was left incomplete by "
		                         "a crash. It is no error if\n"
		                         "there is none.",
		                         "trib net down --name job2", rows };
	int code;
	int operand = options_parse(&options, argc, argv, &code);

	if (operand < 0)
		return code;
	if (operand < argc)
		return options_fail(&options,
		                    "%s: unexpected argument; a cluster is given as --name %s",
		                    argv[operand], argv[operand]);
	if (all && name)
		return options_fail(&options, "--all and --name cannot be combined");
	if (!all && !state_exists(name ? name : NAMES_DEFAULT)) {
		printf("there is no cluster named %s\n", name ? name : NAMES_DEFAULT);
		return 0;
	}
	trib_status status = all ? state_each(name_down, NULL) : cluster_down(name);

	return status == TRIB_OK ? 0 : net_fail("down");
}

static int net_exec(int argc, char **argv)
{
	static struct cluster cluster;
	const char *name = NULL;
	const struct option_row rows[] = {
		{ "name", 0, OPTION_TEXT, &name, "NAME", "name of the cluster (default trib)",
		  "job2" },
		{ 0 },
	};
	const struct options options = {
		"trib net exec [OPTION]... HOST [--] COMMAND [ARGUMENT]...",
		"Runs a command on a host of a cluster: in its network, with this machine's "
		"files.\n"
		"The leafs and spines of a fabric are hosts here too: leaf1, spine2.",
		"trib net exec h1 -- cat /proc/net/dev", rows
	};
	int code;
	int operand = options_parse(&options, argc, argv, &code);

	if (operand < 0)
		return code;
	int command = operand + 1;

	if (command < argc && strcmp(argv[command], "--") == 0)
		command++;
	if (operand >= argc || command >= argc)
		return options_fail(&options, "a host and a command are needed");
	if (cluster_load(name, &cluster) != TRIB_OK)
		return net_fail("exec");
	const struct cluster_host *host = cluster_find(&cluster, argv[operand]);
	struct cluster_host router = { 0 };

	if (!host && fabric_find_router(&cluster, argv[operand], router.ns))
		host = &router;
	if (!host) {
		status_fail(TRIB_ERR_ARGUMENT, "the cluster %s has no host %s; it has %s to %s",
		            cluster.name, argv[operand], cluster.hosts[0].name,
		            cluster.hosts[cluster.n - 1].name);
		return net_fail("exec");
	}
	if (cluster_enter(host) != TRIB_OK)
		return net_fail("exec");
	execvp(argv[command], &argv[command]);
	code = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
	status_fail_errno("cannot run %s on %s", argv[command], argv[operand]);
	net_fail("exec");
	return code;
}

static const struct command commands[] = {
	{ "up", net_up, "make a cluster" },
	{ "down", net_down, "remove it" },
	{ "exec", net_exec, "run a command on one of its hosts" },
	{ "list", net_list, "list the clusters on this machine; also without a command" },
	{ "cut", net_cut, "cut links: packets vanish" },
	{ "slow", net_slow, "change the rate of a link" },
	{ "restore", net_restore, "undo cut and slow" },
	{ 0 },
};

static const struct command_table table = {
	.name = "trib net",
	.about = "Virtual clusters on one machine.",
	.example = "trib net up --hosts 4 --link 1gbit\n"
		   "  trib net exec h1 -- bash\n"
		   "  trib net down\n"
		   "  trib net up --hosts 4 --leaf 2 --spine 4 --link 1gbit --core 500mbit\n"
		   "  trib net cut leaf1-spine2",
	.commands = commands,
};

int cli_net(int argc, char **argv)
{
	return argc < 2 ? net_list(argc, argv) : command_table_run(&table, argc, argv);
}
