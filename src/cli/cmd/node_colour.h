/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_CLI_CMD_NODE_COLOUR_H
#define TRIB_CLI_CMD_NODE_COLOUR_H

#include "options/colour.h"

#include <string.h>

/* The colour of a node's state in lists. */
static inline enum colour node_colour(const char *state)
{
	return !strcmp(state, "live")     ? COLOUR_GOOD
	       : !strcmp(state, "silent") ? COLOUR_BAD
	                                  : COLOUR_WARN;
}

#endif
