/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that ask a controller, in a build that cannot. */
#include "cli/cli.h"
#include "cli/explain.h"
#include "cli/hosted.h"
#include "cli/status.h"
#include "cli/top.h"

#include <stdio.h>
#include <stdlib.h>

static int left_out(const char *command)
{
	fprintf(stderr,
	        "trib %s: the control plane was left out of this build; install libmicrohttpd-dev, "
	        "libjansson-dev, libsqlite3-dev, libcurl4-gnutls-dev and libgnutls28-dev, and "
	        "build again\n",
	        command);
	return EXIT_FAILURE;
}

int cli_nodes(int argc, char **argv)
{
	(void)argc;
	return left_out(argv[0]);
}

int cli_node(int argc, char **argv)
{
	(void)argc;
	return left_out(argv[0]);
}

int cli_jobs(int argc, char **argv)
{
	(void)argc;
	return left_out(argv[0]);
}

int cli_job(int argc, char **argv)
{
	(void)argc;
	return left_out(argv[0]);
}

void status_controller(const char *controller)
{
	(void)controller;
}

int status_json(const char *controller)
{
	(void)controller;
	return left_out("status --json");
}

bool top_has_controller(void)
{
	return false;
}

int top_controller(const char *controller, double every, bool once, bool json)
{
	(void)controller;
	(void)every;
	(void)once;
	(void)json;
	return left_out("top --controller");
}

int explain_job(const char *job, const char *controller, bool json)
{
	(void)job;
	(void)controller;
	(void)json;
	return left_out("explain JOB");
}

trib_status hosted_start(const struct hosted_wish *wish, struct hosted **out)
{
	(void)wish;
	*out = NULL;
	return status_fail(TRIB_ERR_CONFIG,
	                   "--hosts needs the control plane, which was left out of "
	                   "this build");
}

void hosted_end(struct hosted *hosted)
{
	(void)hosted;
}

const char *hosted_address(const struct hosted *hosted, unsigned host)
{
	(void)hosted;
	(void)host;
	return "";
}

const char *hosted_controller(const struct hosted *hosted)
{
	(void)hosted;
	return "";
}

uint64_t hosted_job(const struct hosted *hosted)
{
	(void)hosted;
	return 0;
}

uint64_t hosted_cookie(const struct hosted *hosted)
{
	(void)hosted;
	return 0;
}
