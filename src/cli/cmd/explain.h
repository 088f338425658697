/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_CLI_CMD_EXPLAIN_H
#define TRIB_CLI_CMD_EXPLAIN_H

#include <stdbool.h>
#include <stdio.h>

/* trib explain JOB, at a controller; an exit code. NULL in a build without the control plane. */
int explain_job(const char *job, const char *controller, bool json) __attribute__((weak));

/* Says that large vectors go among the ranks, which is so many times as fast; 0: they do not. */
void explain_away(double times);

struct json_t;
/*
 * Says how many bits an element of a float sum takes on the wire. `communicator` is one of those in
 * a controller's answer about a job. If its TRIB_WIRE is unknown, nothing is said.
 */
void explain_wire(const struct json_t *communicator, FILE *out);

#endif
