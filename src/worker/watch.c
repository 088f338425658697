/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While trees are joined: the controller is asked now and then whether another
 * rank has given them up, because an aggregator that we do not speak to is dead.
 * Those trees will never be complete, and the others wait for us at the
 * controller.
 */
#include "worker/comm.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_NS (NSEC_PER_SEC / 10) /* most trees are joined sooner */
#define EVERY_NS (NSEC_PER_SEC / 10)

static uint64_t number_in(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

bool plan_is_given_up(const char *text, uint32_t generation)
{
	uint64_t newest = number_in(text, "\"generation\":");

	return newest > generation ||
	       (newest == generation &&
	        number_in(text, "\"waiting\":") & number_in(text, "\"members\":"));
}

void plan_watch_open(const struct trib_comm *comm, struct plan_watch *watch)
{
	struct udp_options options = { .receive_bytes = 1 << 16, .send_bytes = 1 << 16 };
	bool gso;

	*watch = (struct plan_watch){ .fd = -1, .ask_at = UINT64_MAX };
	if (!comm->config.controller.length || !comm->config.generation)
		return;
	if (udp_open(NULL, &comm->config.controller, &options, &watch->fd, &gso) != TRIB_OK) {
		log_debug("no look at what others do: %s", trib_last_error());
		watch->fd = -1;
		return;
	}
	watch->ask_at = clock_now() + FIRST_NS;
}

void plan_watch_close(struct plan_watch *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
}

void plan_watch_ask(const struct trib_comm *comm, struct plan_watch *watch)
{
	struct wire_header query = { .type = WIRE_QUERY,
		                     .cookie = comm->config.cookie,
		                     .job = comm->config.job,
		                     .pos = comm->config.key & WIRE_POSITION_MASK };

	if (watch->fd < 0 || clock_now() < watch->ask_at)
		return;
	watch->ask_at = clock_now() + EVERY_NS;
	wire_seal(&query, sizeof(query));
	/* A controller that is not there has made no newer plan either. */
	if (send(watch->fd, &query, sizeof(query), MSG_DONTWAIT) < 0)
		log_debug("asking the controller what others do: %s", strerror(errno));
}

trib_status plan_watch_hear(const struct trib_comm *comm, struct plan_watch *watch)
{
	const struct comm_config *config = &comm->config;
	uint64_t packet[(WIRE_HEADER + WIRE_PAYLOAD_MAX) / 8];
	const struct wire_header *header = (const void *)packet;
	ssize_t bytes;

	while (watch->fd >= 0) {
		bytes = recv(watch->fd, packet, sizeof(packet), MSG_DONTWAIT);
		if (bytes < 0)
			break;
		if (wire_parse(packet, (size_t)bytes) != WIRE_SOUND ||
		    header->type != WIRE_ANSWER || header->cookie != config->cookie ||
		    header->job != config->job || header->pos != (config->key & WIRE_POSITION_MASK))
			continue;
		if (plan_is_given_up(wire_payload(header), config->generation))
			return status_fail(TRIB_ERR_AGGREGATOR,
			                   "another rank has given up the trees of plan %u",
			                   config->generation);
	}
	return TRIB_OK;
}
