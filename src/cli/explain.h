/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIB_CLI_EXPLAIN_H
#define TRIB_CLI_EXPLAIN_H

#include <stdbool.h>

/* trib explain JOB, at a controller; an exit code. */
int explain_job(const char *job, const char *controller, bool json);

#endif
