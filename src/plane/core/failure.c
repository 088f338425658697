/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/core/internal.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char *comm_describe_rank(const struct comm *comm, unsigned rank, char *out, size_t size)
{
	const struct child *child = &comm->children[rank & 63];
	char address[64];

	snprintf(out, size, "rank %u (host %.40s, %s, pid %u)", rank, child->join.host,
	         udp_text(&child->address, address, sizeof(address)), child->join.pid);
	return out;
}

void registry_fail(struct comm *comm, trib_status status, unsigned rank, const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&lock);
	if (!atomic_load_explicit(&comm->failed, memory_order_relaxed)) {
		comm->abort.status = status;
		comm->abort.rank = rank;
		va_start(args, format);
		vsnprintf(comm->abort.text, sizeof(comm->abort.text), format, args);
		va_end(args);
		atomic_store_explicit(&comm->failed, true, memory_order_release);
		log_warn("job %u, communicator %u: %s", comm->job, comm->id, comm->abort.text);
	}
	pthread_mutex_unlock(&lock);
}

void lane_send_abort(struct thread *thread, struct lane *lane, unsigned child)
{
	struct {
		struct wire_header header;
		struct wire_abort abort;
	} packet = { .header = wire_answer(lane->comm, lane, WIRE_ABORT, (uint8_t)child),
		     .abort = lane->comm->abort };

	if (lane->known & dense_bit(child))
		thread_send(thread, &packet, sizeof(packet), &lane->addresses[child]);
}
