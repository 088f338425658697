/* SPDX-License-Identifier: Apache-2.0 */
/* How far a job is, as users see it. All functions need the controller's lock. */
#ifndef TRIB_CONTROL_JOBS_JOB_STATE_H
#define TRIB_CONTROL_JOBS_JOB_STATE_H

#include "control/state/controller_state.h"

enum job_state {
	JOB_QUEUED,   /* it asked for hosts, and has none yet */
	JOB_NEW,      /* no rank has come */
	JOB_STARTING, /* ranks wait for the first plan */
	JOB_RUNNING,
	JOB_SILENT, /* its ranks have given no sign of life for a minute */
	JOB_ENDED,  /* its ranks have said goodbye */
};

enum job_state job_state(const struct job_entry *entry, uint64_t now);
const char *job_state_name(enum job_state state);

#endif
