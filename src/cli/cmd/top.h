/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_CLI_CMD_TOP_H
#define TRIB_CLI_CMD_TOP_H

#include <stdbool.h>

/* Is a controller named, or on this machine? NULL in a build without the control plane. */
bool top_has_controller(void) __attribute__((weak));
/* trib top of a controller; an exit code. NULL in a build without the control plane. */
int top_controller(const char *controller, double every, bool once, bool json)
	__attribute__((weak));

#endif
