/* SPDX-License-Identifier: Apache-2.0 */
/* trib node: takes a machine out of plans (drain), back in (resume), or off the list (forget). */
#include "base/clock.h"
#include "cli/cmd/cmd.h"
#include "options/command_table.h"
#include "options/options.h"
#include "query/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_S 10.0
#define LOOK_EVERY_US 200000
#define EMPTY_FOR (3 * NSEC_PER_SEC / 2)

/* Finds a node by its address, or by a name that only one node has. The caller frees *found. */
static trib_status node_find(struct client *client, const char *which, json_t **found)
{
	trib_status status;
	json_t *answer, *list;
	unsigned same = 0;

	*found = NULL;
	if ((status = remote_get(client, "/v1/nodes", &answer)) != TRIB_OK)
		return status;
	list = json_object_get(answer, "nodes");
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *node = json_array_get(list, i);
		bool is_address = !strcmp(remote_text(node, "address"), which);

		if (!is_address && strcmp(remote_text(node, "name"), which) != 0)
			continue;
		same++;
		json_decref(*found);
		*found = json_incref(node);
		if (is_address) {
			same = 1;
			break;
		}
	}
	json_decref(answer);
	if (same == 1)
		return TRIB_OK;
	json_decref(*found);
	*found = NULL;
	return same ? status_fail(TRIB_ERR_ARGUMENT,
	                          "%u nodes have the name %s: give the address (trib nodes)", same,
	                          which)
	            : status_fail(TRIB_ERR_ARGUMENT,
	                          "there is no node of the name or address %s (trib nodes)", which);
}

/*
 * Writes the jobs that still send to the node, as "3, 7"; returns how many. Jobs without a
 * controller are not counted.
 */
static unsigned node_jobs(const json_t *node, char *out, size_t size)
{
	const json_t *comms = json_object_get(node, "jobs");
	unsigned n = 0;
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < json_array_size(comms); i++) {
		const json_t *comm = json_array_get(comms, i);

		if (strcmp(remote_text(comm, "state"), "failed") == 0 ||
		    remote_number(comm, "generation") == 0)
			continue;
		if (used < size)
			used += (size_t)snprintf(out + used, size - used, "%s%.0f", n ? ", " : "",
			                         remote_number(comm, "job"));
		n++;
	}
	return n;
}

static trib_status node_call(struct client *client, const char *method, const json_t *node,
                             const json_t *wish)
{
	char path[256] = "/v1/nodes/";

	for (const char *p = remote_text(node, "address"); *p && strlen(path) + 4 < sizeof(path);
	     p++)
		snprintf(path + strlen(path), 4, strchr("[]%", *p) ? "%%%02X" : "%c", *p);
	return client_call(client, method, path, wish, PATIENCE_S, NULL);
}

static trib_status node_set(struct client *client, const json_t *node, bool drained)
{
	json_t *wish = json_pack("{s:b}", "drained", (int)drained);
	trib_status status = node_call(client, "PATCH", node, wish);

	json_decref(wish);
	return status;
}

static void say(const json_t *node, const char *what)
{
	printf("node %s (%s) %s\n", remote_text(node, "address"), remote_text(node, "name"), what);
	fflush(stdout);
}

/* The controller's knowledge of a node's jobs. */
struct use {
	unsigned jobs;
	char names[200];
	bool is_silent;    /* from the last heartbeat, which is too old */
	uint64_t heard_at; /* time of the last heartbeat */
};

static trib_status look(struct client *client, const char *address, struct use *use)
{
	json_t *node;
	trib_status status = node_find(client, address, &node);

	if (status != TRIB_OK)
		return status;
	*use = (struct use){ .heard_at = clock_now() };
	if (strcmp(remote_text(node, "state"), "left") != 0) { /* it has left all jobs */
		use->heard_at -= (uint64_t)(remote_number(node, "silent_s") * 1e9);
		use->is_silent = !strcmp(remote_text(node, "state"), "silent");
		use->jobs = node_jobs(node, use->names, sizeof(use->names));
	}
	json_decref(node);
	return TRIB_OK;
}

static int fail_drain(const struct use *use, double seconds)
{
	if (use->is_silent)
		fprintf(stderr,
		        "trib node drain: after %.1f s the controller still hears nothing from it: "
		        "whether jobs still use it is unknown (trib nodes)\n",
		        seconds);
	else
		fprintf(stderr,
		        "trib node drain: after %.1f s job %s still uses it: can another node take "
		        "its place? (trib nodes; the controller's log)\n",
		        seconds, use->names);
	return EXIT_FAILURE;
}

/*
 * Waits until no job sends to the node. A job that has just joined is not in the node's last
 * heartbeat, so several heartbeats must agree.
 */
static int wait_empty(struct client *client, const json_t *node, double seconds)
{
	uint64_t start = clock_now(), empty_since = 0;

	for (;;) {
		struct use use;
		bool is_used;

		if (look(client, remote_text(node, "address"), &use) != TRIB_OK)
			return remote_fail("trib node drain");
		is_used = use.jobs || use.is_silent; /* as far as is known */
		if (is_used)
			empty_since = 0;
		else if (!empty_since)
			empty_since = clock_now();
		else if (use.heard_at > empty_since + EMPTY_FOR)
			break;
		if (is_used && (double)(clock_now() - start) / 1e9 > seconds)
			return fail_drain(&use, seconds);
		usleep(LOOK_EVERY_US);
	}
	printf("no job uses it any more\n");
	return 0;
}

static trib_status drain(struct client *client, const json_t *node)
{
	trib_status status = node_set(client, node, true);

	if (status == TRIB_OK)
		say(node, "is drained: plans do without it");
	return status;
}

static trib_status resume(struct client *client, const json_t *node)
{
	trib_status status = node_set(client, node, false);

	if (status == TRIB_OK)
		say(node, "may be used again");
	return status;
}

/*
 * To a node that still sends heartbeats, the same request would count as its own leave, until
 * its next heartbeat.
 */
static trib_status forget(struct client *client, const json_t *node)
{
	const char *state = remote_text(node, "state");
	trib_status status;

	if (strcmp(state, "silent") != 0 && strcmp(state, "left") != 0)
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "node %s (%s) is %s: stop its tribd first, or take it out of "
		                   "plans with trib node drain",
		                   remote_text(node, "address"), remote_text(node, "name"), state);
	status = node_call(client, "DELETE", node, NULL);
	if (status == TRIB_OK)
		say(node, "is forgotten");
	return status;
}

/* The action on each node that is named. */
struct work {
	const char *command;
	trib_status (*change)(struct client *client, const json_t *node);
	double wait_s; /* seconds to wait until no job uses it; 0: do not wait */
	bool no_wait;
};

static int work_on(const struct work *work, struct client *client, const char *which)
{
	json_t *node;
	int code = 0;

	if (node_find(client, which, &node) != TRIB_OK)
		return remote_fail(work->command);
	if (work->change(client, node) != TRIB_OK)
		code = remote_fail(work->command);
	else if (work->wait_s > 0 && !work->no_wait)
		code = wait_empty(client, node, work->wait_s);
	json_decref(node);
	return code;
}

static int work_on_all(const struct options *options, int argc, char **argv,
                       const char **controller, const struct work *work)
{
	struct client *client;
	int code, first = options_parse(options, argc, argv, &code);

	if (first < 0)
		return code;
	if (first == argc)
		return options_fail(options, "which node? trib nodes lists them");
	if (client_find(*controller, &client) != TRIB_OK)
		return remote_fail(work->command);
	for (code = 0; first < argc; first++)
		code |= work_on(work, client, argv[first]);
	client_free(client);
	return code;
}

static int cli_node_drain(int argc, char **argv)
{
	const char *controller = NULL;
	struct work work = { .command = "trib node drain", .change = drain, .wait_s = 30 };
	const struct option_row rows[] = {
		{ "wait", 'w', OPTION_SECONDS, &work.wait_s, "SECONDS",
		  "how long to wait until no job uses the nodes (default 30)", "120" },
		{ "no-wait", 0, OPTION_FLAG, &work.no_wait, NULL, "return at once", NULL },
		REMOTE_ROW(&controller),
		{ 0 },
	};
	const struct options options = {
		"trib node drain [OPTION]... NODE...",
		"Takes nodes out of service: new plans do not use them, and running jobs migrate\n"
		"to other trees, with exact sums. Returns when no job uses the nodes. If the\n"
		"controller does not hear from a node, it cannot know whether jobs use it, and "
		"the\n"
		"command fails. A node stays drained until trib node resume, also if it restarts.\n"
		"NODE is a name or an address (trib nodes).",
		"trib node drain rack3-7 && ssh rack3-7 reboot",
		rows,
	};

	return work_on_all(&options, argc, argv, &controller, &work);
}

static int cli_node_resume(int argc, char **argv)
{
	const char *controller = NULL;
	const struct work work = { .command = "trib node resume", .change = resume };
	const struct option_row rows[] = { REMOTE_ROW(&controller), { 0 } };
	const struct options options = {
		"trib node resume [OPTION]... NODE...",
		"Lets plans use nodes again that were drained. Jobs that run stay where they are.",
		"trib node resume rack3-7",
		rows,
	};

	return work_on_all(&options, argc, argv, &controller, &work);
}

static int cli_node_forget(int argc, char **argv)
{
	const char *controller = NULL;
	const struct work work = { .command = "trib node forget", .change = forget };
	const struct option_row rows[] = { REMOTE_ROW(&controller), { 0 } };
	const struct options options = {
		"trib node forget [OPTION]... NODE...",
		"Removes nodes that are silent or have left from the controller's list. A node "
		"that sends another\nheartbeat is back in the list, and not drained.",
		"trib node forget rack3-7",
		rows,
	};

	return work_on_all(&options, argc, argv, &controller, &work);
}

static const struct command commands[] = {
	{ "drain", cli_node_drain, "take nodes out of plans, while their jobs go on" },
	{ "resume", cli_node_resume, "let plans use nodes again" },
	{ "forget", cli_node_forget, "remove nodes that are gone from the list" },
	{ 0 },
};

static const struct command_table table = {
	.name = "trib node",
	.about =
		"Takes nodes of a controller out of plans and back in, and forgets nodes that are\n"
		"gone.",
	.example = "trib node drain rack3-7\n"
		   "  trib node resume rack3-7",
	.commands = commands,
};

int cli_node(int argc, char **argv)
{
	return command_table_run(&table, argc, argv);
}
