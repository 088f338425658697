/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launcher: where the ranks of a job can meet, if the user has named nothing. The environment of
 * torchrun, mpirun or srun says where rank 0 runs. A port is derived from what identifies the job,
 * so that two jobs on a host meet at different ports.
 */
#ifndef TRIB_BASE_LAUNCHER_H
#define TRIB_BASE_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#define LAUNCHER_AT 280u

struct launcher_meeting {
	const char *launcher; /* "torchrun"; NULL: no launcher has started this process */
	char at[LAUNCHER_AT]; /* host:port for rank 0; "": the environment does not say */
	const char *why;      /* why `at` is empty */
	bool is_local;        /* all ranks run on this host, so `at` is on loopback */
	uint64_t identity;    /* the same on all ranks of the job; other jobs have another one */
	bool is_secret;       /* other users cannot guess `identity` */
};

/* From the environment of the launcher that gave this process its rank. */
struct launcher_meeting launcher_meet(void);

#endif
