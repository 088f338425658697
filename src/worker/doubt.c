/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An aggregator whose link is cut gives no sign, and silence alone proves little:
 * it may be stopped for a moment, and the deadline is long. So who waits asks the
 * controller, and if that one does not hear of the aggregator either, by beats or
 * by answers to its own questions, the trees are given up. In a tree it may be
 * one further up, so there it is enough that nothing moves. Giving up trees is
 * safe at any time: sums stay exact, it only costs a fraction of a second.
 */
#include "worker/comm.h"

#include "base/clock.h"
#include "base/log.h"

#include <poll.h>
#include <unistd.h>

#define DOUBT_AFTER (1600 * 1000000ull) /* longer than a stop that is to be borne */
#define DOUBT_EVERY (200 * 1000000ull)
#define WAIT_EVERY \
	(1000 * 1000000ull) /* where it may be a rank that is waited for: others ask too */
#define ANSWER_MS 100

void doubt_raise(struct lane *lane, uint64_t now)
{
	struct trib_comm *comm = lane->comm;
	uint64_t since = lane->heard_at, every = DOUBT_EVERY;

	if (!comm->keeps)
		return;
	if (stream_is_idle(&lane->stream) || lane->stream.done != lane->moved || !lane->moved_at) {
		lane->moved = lane->stream.done;
		lane->moved_at = now;
	}
	if (lane->trunk->hops && now < since + DOUBT_AFTER) {
		since = lane->moved_at;
		every = WAIT_EVERY;
	}
	if (stream_is_idle(&lane->stream) || now < since + DOUBT_AFTER ||
	    now < atomic_load_explicit(&comm->doubted_at, memory_order_relaxed) + every)
		return;
	atomic_store_explicit(&comm->doubted_at, now, memory_order_relaxed);
	pthread_mutex_lock(&comm->lock);
	comm->doubts = true;
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
}

void doubt_settle(struct trib_comm *comm)
{
	struct udp_options options = { .receive_bytes = 1 << 16, .send_bytes = 1 << 16 };
	struct pollfd wait = { .events = POLLIN };
	uint64_t packet[PLAN_ANSWER_BYTES / 8];
	const char *text = NULL;
	char silent[64];
	bool gso;

	if (udp_open(NULL, &comm->config.controller, &options, &wait.fd, &gso) != TRIB_OK) {
		log_debug("nobody to ask what has become of others: %s", trib_last_error());
		return;
	}
	plan_query(comm, wait.fd);
	if (poll(&wait, 1, ANSWER_MS) > 0)
		text = plan_answer(comm, wait.fd, packet);
	close(wait.fd);
	if (text && plan_has_silent(text, comm->config.generation, silent, sizeof(silent)))
		comm_fail(comm, TRIB_ERR_AGGREGATOR,
		          "nothing comes, and the aggregator at %s is silent: the controller does "
		          "not hear of it either",
		          silent);
}
