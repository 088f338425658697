/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/core/kernel.h"

#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void comm_enter_kernel(struct comm *comm, unsigned lane)
{
	pthread_mutex_lock(&lock);
	comm->kernel_lanes |= 1u << lane;
	pthread_mutex_unlock(&lock);
}

void comm_leave_kernel(struct comm *comm, unsigned lane, const char *hint, const char *format, ...)
{
	char why[sizeof(comm->kernel_why)];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	log_warn("job %u, communicator %u: lane %u is summed in user space: %s%s", comm->job,
	         comm->id, lane, why, hint);
	pthread_mutex_lock(&lock);
	comm->kernel_lanes &= ~(1u << lane);
	memcpy(comm->kernel_why, why, sizeof(why));
	pthread_mutex_unlock(&lock);
}

void comm_pause_kernel(struct comm *comm, unsigned lane, const char *why)
{
	pthread_mutex_lock(&lock);
	comm->kernel_lanes &= ~(1u << lane);
	snprintf(comm->kernel_why, sizeof(comm->kernel_why), "%s", why);
	pthread_mutex_unlock(&lock);
}

unsigned comm_in_kernel(const struct comm *comm, char *why, size_t size)
{
	unsigned lanes;

	pthread_mutex_lock(&lock);
	lanes = (unsigned)__builtin_popcount(comm->kernel_lanes);
	/* A reason may be left over from a lane that has returned. */
	snprintf(why, size, "%s", lanes == comm->lanes ? "" : comm->kernel_why);
	pthread_mutex_unlock(&lock);
	return lanes;
}
