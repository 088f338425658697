/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/trees/plan_watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_NS (NSEC_PER_SEC / 10) /* 0.1 s: most trees are joined before the first query */
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

bool plan_has_silent(const char *text, uint32_t generation, char *out, size_t size)
{
	static const char name[] = "\"silent\":\"";
	const char *at = strstr(text, name);
	size_t length;

	if (!at || !generation || number_in(text, "\"generation\":") != generation)
		return false;
	at += sizeof(name) - 1;
	length = strcspn(at, "\"");
	if (!length || length >= size || at[length] != '"')
		return false;
	memcpy(out, at, length);
	out[length] = '\0';
	return true;
}

void plan_watch_open(const struct trib_comm *comm, struct plan_watch *watch)
{
	struct udp_options options = { .receive_bytes = 1 << 16, .send_bytes = 1 << 16 };
	bool gso;

	*watch = (struct plan_watch){ .fd = -1, .ask_at = UINT64_MAX };
	if (!comm->config.controller.length || !comm->config.generation)
		return;
	if (udp_open(NULL, &comm->config.controller, &options, &watch->fd, &gso) != TRIB_OK) {
		log_debug("cannot watch the plan: %s", trib_last_error());
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

void plan_query(const struct trib_comm *comm, int fd)
{
	struct wire_query query = { .header = { .type = WIRE_QUERY,
		                                .cookie = comm->config.cookie,
		                                .job = comm->config.job,
		                                .child = (uint8_t)(comm->config.rank + 1),
		                                .pos = comm->config.key & WIRE_POSITION_MASK } };

	wire_seal(&query, sizeof(query));
	/* If no controller runs, there is no newer plan either. */
	if (send(fd, &query, sizeof(query), MSG_DONTWAIT) < 0)
		log_debug("asking the controller about the plan: %s", strerror(errno));
}

const char *plan_answer(const struct trib_comm *comm, int fd, void *packet)
{
	const struct comm_config *config = &comm->config;
	const struct wire_control *header = packet;
	ssize_t bytes;

	while ((bytes = recv(fd, packet, PLAN_ANSWER_BYTES, MSG_DONTWAIT)) >= 0)
		if (wire_parse(packet, (size_t)bytes) == WIRE_SOUND &&
		    header->type == WIRE_ANSWER && header->cookie == config->cookie &&
		    header->job == config->job && header->pos == (config->key & WIRE_POSITION_MASK))
			return wire_payload(header);
	return NULL;
}

void plan_watch_ask(const struct trib_comm *comm, struct plan_watch *watch)
{
	if (watch->fd < 0 || clock_now() < watch->ask_at)
		return;
	watch->ask_at = clock_now() + EVERY_NS;
	plan_query(comm, watch->fd);
}

trib_status plan_watch_hear(const struct trib_comm *comm, struct plan_watch *watch)
{
	uint64_t packet[PLAN_ANSWER_BYTES / 8];
	const char *text;

	while (watch->fd >= 0 && (text = plan_answer(comm, watch->fd, packet)))
		if (plan_is_given_up(text, comm->config.generation))
			return status_fail(TRIB_ERR_AGGREGATOR,
			                   "another rank has given up the trees of plan %u",
			                   comm->config.generation);
	return TRIB_OK;
}
