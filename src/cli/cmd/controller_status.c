/* SPDX-License-Identifier: Apache-2.0 */
/* trib status: what the controller says, if there is one. */
#include "cli/cmd/controller_status.h"
#include "cli/cmd/cmd.h"
#include "options/options.h"
#include "query/remote.h"

#include <stdio.h>

/* No controller is no error: most machines have none. */
static void print_controller(const json_t *status)
{
	const json_t *nodes = json_object_get(status, "nodes");

	printf("  controller %s, up %.0f s; nodes: %.0f live, %.0f loaded, %.0f drained, %.0f "
	       "silent; jobs: %.0f\n",
	       remote_text(status, "address"), remote_number(status, "uptime_s"),
	       remote_number(nodes, "live"), remote_number(nodes, "loaded"),
	       remote_number(nodes, "drained"), remote_number(nodes, "silent"),
	       remote_number(status, "jobs"));
}

void status_controller(const char *controller)
{
	struct client *client;
	json_t *answer;

	if (client_find(controller, &client) != TRIB_OK)
		return;
	if (remote_get(client, "/v1/status", &answer) == TRIB_OK) {
		print_controller(answer);
		json_decref(answer);
	} else {
		printf("  controller: %s\n", trib_last_error());
	}
	client_free(client);
}

int status_json(const char *controller)
{
	struct client *client;
	json_t *answer;
	int code = 0;

	if (client_find(controller, &client) != TRIB_OK)
		return remote_fail("trib status");
	if (remote_get(client, "/v1/status", &answer) == TRIB_OK) {
		remote_dump(answer);
		json_decref(answer);
	} else {
		code = remote_fail("trib status");
	}
	client_free(client);
	return code;
}
