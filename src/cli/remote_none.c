/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that ask a controller, in a build that cannot. */
#include "cli/cli.h"
#include "cli/status.h"

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
