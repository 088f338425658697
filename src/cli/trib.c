/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/settings.h"
#include "cli/cmd/cmd.h"
#include "cli/cmd/controller_status.h"
#include "net/cluster.h"
#include "net/state.h"
#include "options/command_table.h"
#include "options/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int cli_status(int argc, char **argv);

static const struct command commands[] = {
	{ "status", cli_status, "virtual clusters and the controller; also without a command" },
	{ "nodes", cli_nodes, "list the machines of a controller" },
	{ "node", cli_node, "take machines out of plans and back in: drain, resume, forget" },
	{ "jobs", cli_jobs, "list the jobs of a controller" },
	{ "job", cli_job, "make and end jobs: new, end" },
	{ "net", cli_net,
	  "virtual clusters on this machine: up, exec, list, cut, slow, restore, down" },
	{ "run", cli_run, "start workers, and an aggregator if none is given" },
	{ "bench", cli_bench, "measure: allreduce, latency, path, glm, sparse and more" },
	{ "glm", cli_glm, "linear models on many workers: train, predict, inspect, make" },
	{ "sparse", cli_sparse, "sparse training: rows of a table that many workers train" },
	{ "cookie", cli_cookie, "draw the secret that workers and an aggregator share" },
	{ "check", cli_check, "check what this machine can do, and say what to fix" },
	{ "explain", cli_explain, "say where an aggregator sums, and why" },
	{ "plan", cli_plan, "plan how a cluster sums: trees, shares, and the bound" },
	{ "sim", cli_sim, "simulate many jobs on one fabric: hosts, trees, turns" },
	{ "show", cli_show,
	  "show config: each setting and where its value comes from; show paths PEER" },
	{ "top", cli_top, "watch an aggregator at work" },
	{ 0 },
};

static void help_print(void)
{
	printf("Usage: trib [COMMAND [ARGUMENT]...]\n\n"
	       "Sums vectors of many workers in the network. Without a command: trib status.\n\n"
	       "Commands:\n");
	commands_print(commands, stdout);
	printf("\n`trib COMMAND --help` says more. Settings are TRIB_ variables: `trib show "
	       "config`.\n\n"
	       "Example:\n"
	       "  trib net up --hosts 4 --link 1gbit\n"
	       "  trib run -n 4 --net trib -- ./train\n");
}

/* ---- trib status ---- */

struct clusters {
	unsigned complete;
	char first[32]; /* the cluster that is proposed for trib run */
	unsigned workers;
};

static trib_status cluster_print(void *context, const char *name)
{
	static struct cluster cluster;
	struct clusters *clusters = context;
	unsigned servers = 0;

	if (cluster_load(name, &cluster) != TRIB_OK) {
		printf("  cluster %s: %s\n", name, trib_last_error());
		return TRIB_OK;
	}
	for (unsigned i = 0; i < cluster.n; i++)
		servers += cluster.hosts[i].is_server;
	printf("  cluster %s: workers %u, servers %u%s\n", name, cluster.n - servers, servers,
	       cluster.is_switch      ? " (s1 is the switch)"
	       : cluster.fabric.leafs ? " (a leaf-spine fabric)"
	                              : "");
	if (clusters->complete++ == 0) {
		snprintf(clusters->first, sizeof(clusters->first), "%s", name);
		clusters->workers = cluster.n - servers;
	}
	return TRIB_OK;
}

static int status_print(const char *controller)
{
	bool is_root = geteuid() == 0;
	struct clusters clusters = { 0 };

	printf("trib " TRIB_VERSION ", %s\n",
	       is_root ? "as root" : "not as root: virtual clusters need root, jobs do not");
	if (state_each(cluster_print, &clusters) != TRIB_OK)
		printf("  clusters: %s\n", trib_last_error());
	if (!clusters.complete)
		printf("  no virtual clusters\n");
	if (status_controller)
		status_controller(controller);
	printf("\nNext:\n");
	if (clusters.complete)
		printf("  trib run -n %u --net %s -- COMMAND\n"
		       "                             run a job on the cluster\n",
		       clusters.workers, clusters.first);
	else if (is_root)
		printf("  trib net up --hosts 4      make a cluster of four hosts\n");
	printf("  trib run -n 4 -- COMMAND   run a job on this machine alone\n  trib check         "
	       "        check what this machine can do\n  trib --help                list all "
	       "commands\n");
	return 0;
}

static int cli_status(int argc, char **argv)
{
	const char *controller = NULL;
	bool json = false;
	const struct option_row rows[] = {
		{ "controller", 'c', OPTION_TEXT, &controller, "CONTROLLER",
		  "the controller to ask (default: TRIB_CONTROLLER, or one on this machine)",
		  "10.0.0.1:7600#sha256//..." },
		{ "json", 'j', OPTION_JSON, &json, "FILE", "print what the controller says as JSON",
		  NULL },
		{ 0 },
	};
	const struct options options = {
		"trib status [OPTION]...",
		"Shows the virtual clusters on this machine and, if there is a controller, its "
		"nodes and jobs.",
		"trib status --json",
		rows,
	};
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
	if (json && !status_json)
		return cmd_left_out("status --json");
	return json ? status_json(controller) : status_print(controller);
}

/* ---- an unknown command ---- */

static unsigned min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Letters to insert, delete or change until one word is the other. */
static unsigned word_distance(const char *a, const char *b)
{
	unsigned row[32], n = (unsigned)strlen(b);

	if (strlen(a) > 30 || n > 30)
		return 99;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			unsigned change = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			row[j] = min(change, min(row[j], row[j - 1]) + 1);
		}
	}
	return row[n];
}

static int command_unknown(const char *name)
{
	const char *nearest = NULL;
	unsigned best = 3; /* a distance above two letters makes no suggestion */

	for (const struct command *command = commands; command->name; command++) {
		unsigned distance = word_distance(name, command->name);

		if (*name && strncmp(command->name, name, strlen(name)) == 0)
			distance = 0;
		if (distance < best && distance < strlen(command->name)) {
			best = distance;
			nearest = command->name;
		}
	}
	fprintf(stderr, "trib: there is no command \"%s\"", name);
	fprintf(stderr, nearest ? "; did you mean \"%s\"?\n" : "\n", nearest);
	fprintf(stderr, "Try: trib --help\n");
	return EXIT_USAGE;
}

static void log_prepare(void)
{
	uint64_t level;

	log_set_prefix("trib");
	if (setting_count(SETTING_LOG, &level) == TRIB_OK)
		log_set_level((enum log_level)level);
	else
		log_warn("%s", trib_last_error());
}

/* Output that was lost, on a full disk for example, is a failure. */
static int output_end(int code)
{
	bool lost = fflush(stdout) != 0;
	int error = lost ? errno : 0;

	if (code || (!lost && !ferror(stdout)))
		return code;
	fprintf(stderr, "trib: cannot write the output%s%s\n", error ? ": " : "",
	        error ? strerror(error) : "");
	return 1;
}

static int command_run(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct command *command;

	if (!name)
		return status_print(NULL);
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		help_print();
		return 0;
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		printf("trib " TRIB_VERSION "\n");
		return 0;
	}
	command = command_find(commands, name);
	if (!command)
		return command_unknown(name);
	return command->run ? command->run(argc - 1, argv + 1) : cmd_left_out(name);
}

int main(int argc, char **argv)
{
	log_prepare();
	return output_end(command_run(argc, argv));
}
