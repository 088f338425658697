/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_CLI_CMD_CONTROLLER_STATUS_H
#define TRIB_CLI_CMD_CONTROLLER_STATUS_H

/* Both are NULL in a build without the control plane. */

/* Prints a line on the controller, if there is one. */
void status_controller(const char *controller) __attribute__((weak));
/* Prints the controller's status as JSON; returns an exit code. */
int status_json(const char *controller) __attribute__((weak));

#endif
