/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/core/failure.h"

#include "base/log.h"
#include "base/peer_text.h"
#include "plane/core/join_check.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char *comm_describe_child(const struct comm *comm, unsigned child, char *out, size_t size)
{
	const struct child *it = &comm->children[child & 63];
	struct udp_address place = it->address;
	char address[64], ranks[40];

	if (it->join.port) /* it listens on another port than it sends from */
		udp_set_port(&place, it->join.port);
	udp_text(&place, address, sizeof(address));
	if (it->join.height)
		snprintf(out, size, "the aggregator at %s (host %.40s, pid %u, rank%s %s)", address,
		         it->join.host, it->join.pid,
		         __builtin_popcountll(join_covers(&it->join)) > 1 ? "s" : "",
		         ranks_text(join_covers(&it->join), ranks, sizeof(ranks)));
	else
		snprintf(out, size, "rank %u (host %.40s, %s, pid %u)", child, it->join.host,
		         address, it->join.pid);
	return out;
}

void comm_set_failed(struct comm *comm, trib_status status, unsigned rank, const char *format, ...)
{
	char text[WIRE_TEXT_MAX]; /* it may quote a peer */
	va_list args;

	pthread_mutex_lock(&lock);
	if (!atomic_load_explicit(&comm->failed, memory_order_relaxed)) {
		comm->abort.status = status;
		comm->abort.rank = rank;
		va_start(args, format);
		vsnprintf(text, sizeof(text), format, args);
		va_end(args);
		peer_text(comm->abort.text, sizeof(comm->abort.text), text, sizeof(text));
		atomic_store_explicit(&comm->failed, true, memory_order_release);
		log_warn("job %u, communicator %u: %s", comm->job, comm->id, comm->abort.text);
	}
	pthread_mutex_unlock(&lock);
}
