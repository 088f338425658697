/* SPDX-License-Identifier: Apache-2.0 */
/* trib nodes: the machines that a controller knows. */
#include "cli/cmd/cmd.h"
#include "cli/cmd/list_command.h"
#include "cli/cmd/node_colour.h"
#include "query/remote.h"

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
	printf("%-20s %-24s %s%-7s%s %5.0f %5.0f %% %8.1f G %5.0f %% %10s  %-5s %-5s %s%s\n",
	       remote_text(node, "name"), remote_text(node, "address"),
	       colour_on(node_colour(remote_text(node, "state"))), remote_text(node, "state"),
	       colour_off(), remote_number(node, "cores"), remote_number(node, "load") * 100,
	       memory / (1u << 30),
	       memory > 0 ? remote_number(node, "memory_used") / memory * 100 : 0, rate,
	       remote_text(node, "plane"), job, *remote_text(node, "above") ? "above " : "",
	       *remote_text(node, "rack") ? remote_text(node, "rack") : remote_text(node, "above"));
}

/* Tells if a link was measured to carry less than it claims. */
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
	printf("%-20s measured: its link carries %s out and %s in; plans use that\n", "", out, in);
}

static void print_head(void)
{
	printf("%-20s %-24s %-7s %5s %7s %10s %7s %10s  %-5s %-5s %s\n", "NAME", "ADDRESS", "STATE",
	       "CORES", "LOAD", "MEMORY", "USED", "LINK", "PLANE", "JOB", "RACK");
}

static void print_row(const json_t *node)
{
	print_node(node);
	print_slow(node);
}

static const char about[] =
	"Lists the machines that have joined a controller: their cores, memory and links, how\n"
	"busy they are, and whether they send heartbeats. Plans avoid a node that is loaded, if\n"
	"there are others, and a node that is drained, until trib node resume. JOB is the job "
	"that\n"
	"has leased the machine (trib job new --hosts), free, or turns if jobs take turns there.";

int cli_nodes(int argc, char **argv)
{
	static const struct list_command command = {
		.name = "trib nodes",
		.usage = "trib nodes [OPTION]...",
		.about = about,
		.example = "trib nodes --json",
		.path = "/v1/nodes",
		.field = "nodes",
		.none = "no nodes yet: start tribd --join on machines that may aggregate",
		.print_head = print_head,
		.print_row = print_row,
	};

	return list_command_run(&command, argc, argv);
}
