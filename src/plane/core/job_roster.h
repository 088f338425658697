/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs that a controller has, as its agents know them. A job's cookie follows from its id, so
 * an agent could not tell by the cookie that a job has ended.
 */
#ifndef TRIB_PLANE_CORE_JOB_ROSTER_H
#define TRIB_PLANE_CORE_JOB_ROSTER_H

#include "base/bitmap.h"

#define JOB_ROSTER_IDS 65536u
#define JOB_ROSTER_AHEAD 1024u /* jobs that may be made between two heartbeats */

struct job_roster {
	uint16_t last; /* the newest job; ids are given in a circle */
	uint64_t live[JOB_ROSTER_IDS / 64];
};

/* May the job be live? A job that is newer than the roster may be. */
static inline bool job_roster_allows(const struct job_roster *roster, uint16_t job)
{
	uint16_t ahead = (uint16_t)(job - roster->last);

	return !job || bitmap_get(roster->live, job) || (ahead && ahead <= JOB_ROSTER_AHEAD);
}

#endif
