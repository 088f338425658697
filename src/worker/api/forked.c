/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork() copies a communicator, but not its threads; its sockets stay those of the parent. So a
 * child process can neither use nor close what its parent has opened.
 */
#include "worker/api/api.h"

#include <unistd.h>

/* Forks between the first process that opened a communicator and this one. */
static unsigned forks;

static void note_fork(void)
{
	forks++;
}

static void watch_forks(void)
{
	/* Without memory for it, children are not told apart: as bad as any other lack of memory.
	 */
	pthread_atfork(NULL, NULL, note_fork);
}

unsigned forked_times(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	return forks;
}

trib_status forked_check(const struct trib_comm *comm, const char *what)
{
	if (comm->forks == forks)
		return TRIB_OK;
	return status_fail(TRIB_ERR_ARGUMENT,
	                   "%s: rank %d's communicator belongs to the parent of this process (pid "
	                   "%d): after fork() only the parent can use or close it; call trib_init "
	                   "after fork()",
	                   what, comm->config.rank, (int)getpid());
}
