/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>

int cmd_left_out(const char *command)
{
	fprintf(stderr,
	        "trib %s: the control plane was left out of this build; install libmicrohttpd-dev, "
	        "libjansson-dev, libsqlite3-dev, libcurl4-gnutls-dev and libgnutls28-dev, and "
	        "build again\n",
	        command);
	return EXIT_FAILURE;
}
