/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_CLI_TOP_H
#define TRIB_CLI_TOP_H

#include <stdbool.h>

/* Is one named, or on this machine? */
bool top_has_controller(void);
/* trib top of a controller; an exit code. */
int top_controller(const char *controller, double every, bool once, bool json);

#endif
