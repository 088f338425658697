/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/net/net_command.h"

#include "base/settings.h"
#include "net/cluster.h"
#include "options/options.h"

#include <stdio.h>

#define NAME_ROW                                                                             \
	{                                                                                    \
		"name", 0, OPTION_TEXT, &name, "NAME", "name of the cluster (default trib)", \
			"job2"                                                               \
	}

static int link_fail(const char *command)
{
	fprintf(stderr, "trib net %s: %s\n", command, trib_last_error());
	return 1;
}

/* Calls `change` for each link that is named. No link changes if one of the names is wrong. */
static int links_change(const char *command, const char *name, char *const *links, int n,
                        trib_status (*change)(struct cluster *cluster, unsigned link,
                                              uint64_t value),
                        uint64_t value)
{
	static struct cluster cluster;
	trib_status status = cluster_load(name, &cluster);
	unsigned link;

	for (int i = 0; status == TRIB_OK && i < n; i++)
		status = cluster_link_find(&cluster, links[i], &link);
	for (int i = 0; status == TRIB_OK && i < n; i++) {
		status = cluster_link_find(&cluster, links[i], &link);
		if (status == TRIB_OK)
			status = change(&cluster, link, value);
	}
	return status == TRIB_OK ? 0 : link_fail(command);
}

static trib_status change_cut(struct cluster *cluster, unsigned link, uint64_t cut)
{
	return cluster_link_cut(cluster, link, (enum link_cut)cut);
}

static trib_status change_restore(struct cluster *cluster, unsigned link, uint64_t unused)
{
	(void)unused;
	return cluster_link_restore(cluster, link);
}

int net_cut(int argc, char **argv)
{
	const char *name = NULL;
	bool is_down = false;
	const struct option_row rows[] = {
		NAME_ROW,
		{ "down", 0, OPTION_FLAG, &is_down, NULL,
		  "leafs notice it, and route around the link", NULL },
		{ 0 },
	};
	const struct options options = {
		"trib net cut [OPTION]... LINK...",
		"Cuts links of a cluster in both directions: packets vanish, and nobody is told.\n"
		"A link has the name of its host, or of its leaf and spine.",
		"trib net cut leaf1-spine2", rows
	};
	int code, operand = options_parse(&options, argc, argv, &code);

	if (operand < 0)
		return code;
	if (operand >= argc)
		return options_fail(&options, "a link is needed, like h1 or leaf1-spine2");
	return links_change("cut", name, argv + operand, argc - operand, change_cut,
	                    is_down ? LINK_DOWN : LINK_CUT);
}

int net_slow(int argc, char **argv)
{
	const char *name = NULL;
	const struct option_row rows[] = { NAME_ROW, { 0 } };
	const struct options options = {
		"trib net slow [OPTION]... LINK RATE",
		"Changes the rate of a link in both directions, while it is in use.",
		"trib net slow leaf1-spine2 100mbit", rows
	};
	int code, operand = options_parse(&options, argc, argv, &code);
	uint64_t rate;

	if (operand < 0)
		return code;
	if (argc - operand != 2)
		return options_fail(&options, "a link and a rate are needed");
	if (parse_rate(argv[operand + 1], &rate) != TRIB_OK)
		return options_fail(&options, "%s", trib_last_error());
	return links_change("slow", name, argv + operand, 1, cluster_link_slow, rate);
}

int net_restore(int argc, char **argv)
{
	const char *name = NULL;
	const struct option_row rows[] = { NAME_ROW, { 0 } };
	const struct options options = { "trib net restore [OPTION]... LINK...",
		                         "Undoes trib net cut and trib net slow.",
		                         "trib net restore leaf1-spine2", rows };
	int code, operand = options_parse(&options, argc, argv, &code);

	if (operand < 0)
		return code;
	if (operand >= argc)
		return options_fail(&options, "a link is needed, like h1 or leaf1-spine2");
	return links_change("restore", name, argv + operand, argc - operand, change_restore, 0);
}
