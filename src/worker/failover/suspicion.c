/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane hears nothing (transport/lane_failure.c). The failover thread asks the controller. If the
 * controller does not hear the aggregator either, by heartbeats or by answers to its queries, the
 * trees are given up. That is safe at any time: sums stay exact, and it costs a fraction of a
 * second.
 */
#include "worker/failover/failover.h"
#include "worker/trees/plan_watch.h"

#include "base/clock.h"
#include "base/log.h"

#include <poll.h>
#include <unistd.h>

#define ANSWER_MS 100

void suspicion_settle(struct trib_comm *comm)
{
	struct udp_options options = { .receive_bytes = 1 << 16, .send_bytes = 1 << 16 };
	struct pollfd wait = { .events = POLLIN };
	uint64_t packet[PLAN_ANSWER_BYTES / 8];
	const char *text = NULL;
	char silent[64];
	bool gso;

	if (udp_open(NULL, &comm->config.controller, &options, &wait.fd, &gso) != TRIB_OK) {
		log_debug("cannot ask the controller about silent aggregators: %s",
		          trib_last_error());
		return;
	}
	plan_query(comm, wait.fd);
	if (poll(&wait, 1, ANSWER_MS) > 0)
		text = plan_answer(comm, wait.fd, packet);
	close(wait.fd);
	if (text && plan_has_silent(text, comm->config.generation, silent, sizeof(silent)))
		comm_fail(comm, TRIB_ERR_AGGREGATOR,
		          "no results arrive, and the controller does not hear the aggregator at "
		          "%s either",
		          silent);
}
