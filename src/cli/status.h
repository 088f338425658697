/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_CLI_STATUS_H
#define TRIB_CLI_STATUS_H

/* A line on the controller, where there is one. */
void status_controller(const char *controller);
/* The same as JSON; an exit code. */
int status_json(const char *controller);

#endif
