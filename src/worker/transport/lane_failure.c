/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a lane learns that its aggregator is gone: a closed port, a closed connection, an ABORT,
 * or silence.
 *
 * Silence alone proves little. A link that is cut looks like an aggregator that is stopped for a
 * moment, and the timeout is long. So a lane that waits raises a suspicion after SUSPECT_AFTER,
 * and failover asks the controller (failover/suspicion.c). In a tree of several levels the dead
 * aggregator may be further up; there it is enough that no fragment gets done. A lane also waits
 * where a call that passes it by, from rank to rank, waits for other ranks: they may have given up
 * the trees, and then they wait for this rank.
 */
#include "worker/transport/lane_internal.h"

#include "base/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define SUSPECT_AFTER (1600 * 1000000ull) /* 1.6 s of silence: a stop of 1 s is tolerated */
#define SUSPECT_EVERY (200 * 1000000ull)  /* 0.2 s between two suspicions */
/* 1 s between two suspicions if only progress is missing: a slow rank may be the cause. */
#define SUSPECT_STUCK_EVERY (1000 * 1000000ull)

/* The aggregator is lost. If it is the shared star, the turn client decides what follows. */
static void lane_fail(struct lane *lane, trib_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void lane_fail(struct lane *lane, trib_status status, const char *format, ...)
{
	char text[sizeof(lane->comm->failure)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!comm_note_star_lost(lane, status, UINT32_MAX, text))
		comm_fail(lane->comm, status, "%s", text);
}

void lane_on_abort(struct lane *lane, const struct wire_abort *abort)
{
	if (comm_note_star_lost(lane, (trib_status)abort->status, abort->rank, abort->text))
		return;
	comm_fail_told(lane->comm, (trib_status)abort->status, abort->rank, abort->text);
}

void lane_note_error(struct lane *lane, int error)
{
	char address[64];

	trunk_name(lane->trunk, address, sizeof(address));
	if (lane->comm->config.tcp)
		lane_fail(lane, TRIB_ERR_AGGREGATOR,
		          "the aggregator at %s has ended: its connection is closed", address);
	else if (error == -EMSGSIZE)
		comm_fail(lane->comm, TRIB_ERR_SYSTEM,
		          "a link on the way to the aggregator at %s takes no packets of %u bytes: "
		          "its MTU has become smaller since the job began, or it is another path's "
		          "(TRIB_MTU makes packets shorter)",
		          address, lane->comm->payload + WIRE_HEADER);
	else if (error == -ECONNREFUSED)
		closed_port_hint(&lane->closed, clock_now());
}

static bool lane_waits(const struct lane *lane)
{
	struct trib_comm *comm = lane->comm;

	return !stream_is_idle(&lane->stream) ||
	       atomic_load_explicit(&comm->ring_waiting, memory_order_relaxed) ||
	       atomic_load_explicit(&comm->direct_waiting, memory_order_relaxed);
}

static void raise_suspicion(struct lane *lane, uint64_t now)
{
	struct trib_comm *comm = lane->comm;
	uint64_t since = lane->heard_at, every = SUSPECT_EVERY;

	if (!comm->keeps_ledgers)
		return;
	if (!lane_waits(lane) || lane->stream.done != lane->moved || !lane->moved_at) {
		lane->moved = lane->stream.done;
		lane->moved_at = now;
	}
	if (lane->trunk->hops && now < since + SUSPECT_AFTER) {
		since = lane->moved_at;
		every = SUSPECT_STUCK_EVERY;
	}
	if (!lane_waits(lane) || now < since + SUSPECT_AFTER ||
	    now < atomic_load_explicit(&comm->suspected_at, memory_order_relaxed) + every)
		return;
	atomic_store_explicit(&comm->suspected_at, now, memory_order_relaxed);
	pthread_mutex_lock(&comm->lock);
	comm->suspects = true;
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
}

void lane_check_silence(struct lane *lane, uint64_t now)
{
	uint64_t limit = (uint64_t)lane->trunk->welcome.dead_after_ms * 1000000;
	char address[64];

	raise_suspicion(lane, now);
	closed_port_heard(&lane->closed, lane->heard_at);
	if (closed_port_is_proven(&lane->closed, now, CLOSED_PROBES))
		lane_fail(lane, TRIB_ERR_AGGREGATOR,
		          "the aggregator at %s has ended: its port is closed",
		          trunk_name(lane->trunk, address, sizeof(address)));
	closed_port_probes(&lane->closed, now); /* heartbeats are probes, and frequent by now */
	if (!stream_is_idle(&lane->stream) && now > lane->heard_at + limit)
		lane_fail(lane, TRIB_ERR_AGGREGATOR,
		          "the aggregator at %s has been silent for %.1f s",
		          trunk_name(lane->trunk, address, sizeof(address)),
		          (double)(now - lane->heard_at) / 1e9);
}
