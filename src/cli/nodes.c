/* SPDX-License-Identifier: Apache-2.0 */
/* trib nodes: the machines that a controller knows. */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/remote.h"

#include <stdio.h>
#include <string.h>

static void print_node(const json_t *node)
{
	double memory = remote_number(node, "memory"), link = remote_number(node, "link_bps");
	char rate[24] = "?", job[16] = "", *end;

	if (link > 0)
		remote_rate(link, rate, sizeof(rate));
	if (link > 0 && remote_number(node, "is_switch") > 0) { /* of each port */
		end = rate + strlen(rate);
		snprintf(end, (size_t)(rate + sizeof(rate) - end), " each");
	}
	if (remote_number(node, "job") > 0)
		snprintf(job, sizeof(job), "%.0f", remote_number(node, "job"));
	else if (remote_number(node, "capacity") > 0)
		snprintf(job, sizeof(job), "turns");
	else if (*remote_text(node, "rack"))
		snprintf(job, sizeof(job), "free");
	printf("%-20s %-24s %-7s %5.0f %5.0f %% %8.1f G %5.0f %% %10s  %-5s %-5s %s%s\n",
	       remote_text(node, "name"), remote_text(node, "address"), remote_text(node, "state"),
	       remote_number(node, "cores"), remote_number(node, "load") * 100, memory / (1u << 30),
	       memory > 0 ? remote_number(node, "memory_used") / memory * 100 : 0, rate,
	       remote_text(node, "plane"), job, *remote_text(node, "above") ? "above " : "",
	       *remote_text(node, "rack") ? remote_text(node, "rack") : remote_text(node, "above"));
}

/* Where a link was seen to carry less than it claims. */
static void print_slow(const json_t *node)
{
	double link = remote_number(node, "link_bps");
	char out[24], in[24], claimed[24] = "what others do";

	if (!json_object_get(node, "out_bps") && !json_object_get(node, "in_bps"))
		return;
	if (link > 0)
		remote_rate(link, claimed, sizeof(claimed));
	snprintf(out, sizeof(out), "%s", claimed);
	snprintf(in, sizeof(in), "%s", claimed);
	if (json_object_get(node, "out_bps"))
		remote_rate(remote_number(node, "out_bps"), out, sizeof(out));
	if (json_object_get(node, "in_bps"))
		remote_rate(remote_number(node, "in_bps"), in, sizeof(in));
	printf("%-20s its link carries %s out and %s in, which plans count on\n", "", out, in);
}

static int print_nodes(struct client *client, bool json)
{
	json_t *answer, *list;

	if (remote_get(client, "/v1/nodes", &answer) != TRIB_OK)
		return remote_fail("trib nodes");
	if (json) {
		remote_dump(answer);
		json_decref(answer);
		return 0;
	}
	list = json_object_get(answer, "nodes");
	if (json_array_size(list))
		printf("%-20s %-24s %-7s %5s %7s %10s %7s %10s  %-5s %-5s %s\n", "NAME", "ADDRESS",
		       "STATE", "CORES", "LOAD", "MEMORY", "USED", "LINK", "PLANE", "JOB", "RACK");
	else
		printf("no nodes yet: start tribd --join on machines that may aggregate\n");
	for (size_t i = 0; i < json_array_size(list); i++) {
		print_node(json_array_get(list, i));
		print_slow(json_array_get(list, i));
	}
	json_decref(answer);
	return 0;
}

int cli_nodes(int argc, char **argv)
{
	const char *controller = NULL;
	bool json = false;
	const struct option_row rows[] = {
		REMOTE_ROW(&controller),
		{ "json", 'j', OPTION_FLAG, &json, NULL, "for programs", NULL },
		{ 0 },
	};
	const struct options options = {
		"trib nodes [OPTION]...",
		"Lists the machines that have joined a controller: what they have, what of it is "
		"in "
		"use, and\nwhether they live. A node that is loaded is left out of plans where "
		"there are others;\none that is drained is left out until trib node resume. JOB: "
		"the "
		"one that has the machine (trib\njob new --hosts), or free, or turns where jobs "
		"take turns.",
		"trib nodes --json",
		rows,
	};
	struct client *client;
	int code;

	if (!options_parse_all(&options, argc, argv, &code))
		return code;
	if (client_find(controller, &client) != TRIB_OK)
		return remote_fail("trib nodes");
	code = print_nodes(client, json);
	client_free(client);
	return code;
}
