/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trib top of a controller: its nodes, and for each communicator which ranks come late and
 * which ranks' links lose packets.
 */
#include "cli/cmd/node_colour.h"
#include "cli/cmd/top.h"
#include "cli/cmd/top_ranks.h"
#include "query/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODES_MAX 16384u

struct look {
	struct look_ranks ranks;
	unsigned n_nodes;
	struct {
		char address[64];
		double payload;
	} nodes[NODES_MAX];
};

bool top_has_controller(void)
{
	struct client *client;

	if (client_find(NULL, &client) != TRIB_OK)
		return false;
	client_free(client);
	return true;
}

static void take_node(struct look *look, const json_t *node)
{
	if (look->n_nodes < NODES_MAX) {
		remote_plain(node, "address", look->nodes[look->n_nodes].address,
		             sizeof(look->nodes->address));
		look->nodes[look->n_nodes++].payload = remote_number(node, "payload");
	}
	ranks_take(&look->ranks, json_object_get(node, "jobs"));
}

/* What a node had added at the last look; -1: unknown. */
static double payload_before(const struct look *before, const char *address)
{
	for (unsigned i = 0; i < before->n_nodes; i++)
		if (!strcmp(before->nodes[i].address, address))
			return before->nodes[i].payload;
	return -1;
}

static void show_node(const json_t *node, const struct look *before, double seconds)
{
	double payload = remote_number(node, "payload");
	double then = payload_before(before, remote_text(node, "address"));
	char name[64], rate[24] = "-";

	remote_plain(node, "name", name, sizeof(name));
	if (then >= 0 && seconds > 0 && payload >= then)
		remote_rate((payload - then) * 8 / seconds, rate, sizeof(rate));
	printf("%-20s %-24s %s%-7s%s %5.0f %% %6.2f %12s\n", name, remote_text(node, "address"),
	       colour_on(node_colour(remote_text(node, "state"))), remote_text(node, "state"),
	       colour_off(), remote_number(node, "load") * 100, remote_number(node, "busy"), rate);
}

static int show(struct client *client, struct look *look, struct look *before, double every,
                bool once)
{
	json_t *answer, *list;

	if (remote_get(client, "/v1/nodes", &answer) != TRIB_OK)
		return remote_fail("trib top");
	list = json_object_get(answer, "nodes");
	memset(look, 0, sizeof(*look));
	for (size_t i = 0; i < json_array_size(list); i++)
		take_node(look, json_array_get(list, i));
	if (isatty(STDOUT_FILENO) && !once)
		printf("\033[H\033[J");
	printf("%-20s %-24s %-7s %7s %6s %12s\n", "NAME", "ADDRESS", "STATE", "LOAD", "BUSY",
	       "ADDS");
	for (size_t i = 0; i < json_array_size(list); i++)
		show_node(json_array_get(list, i), before, every);
	ranks_print(stdout, &look->ranks, &before->ranks);
	fflush(stdout);
	json_decref(answer);
	return 0;
}

static int watch(struct client *client, double every, bool once)
{
	struct look *look = calloc(1, sizeof(*look)), *before = calloc(1, sizeof(*before)), *swap;
	int code = look && before ? 0 : EXIT_FAILURE;

	while (!code) {
		code = show(client, look, before, every, once);
		if (code || once)
			break;
		swap = before, before = look, look = swap;
		usleep((useconds_t)(every * 1e6));
	}
	free(look);
	free(before);
	return code;
}

int top_controller(const char *controller, double every, bool once, bool json)
{
	struct client *client;
	json_t *answer;
	int code = 0;

	if (client_find(controller, &client) != TRIB_OK)
		return remote_fail("trib top");
	if (!json)
		code = watch(client, every, once);
	else if (remote_get(client, "/v1/nodes", &answer) == TRIB_OK) {
		remote_dump(answer);
		json_decref(answer);
	} else {
		code = remote_fail("trib top");
	}
	client_free(client);
	return code;
}
