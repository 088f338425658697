/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/rates/rates_talk.h"

#include "base/clock.h"
#include "wire/parse.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#define TALK_ASK_MS 20
#define PATIENCE_NS (5 * NSEC_PER_SEC)
#define PAYLOAD 1400u
#define POOL (1u << 20)
#define TIMEOUT_MS 60000
#define BUFFER_BYTES (1 << 20)
#define TALKS_MAX 4u

trib_status talk_add(struct talk *talk, const struct udp_address *aggregator, uint64_t ranks)
{
	const struct udp_options options = { .receive_bytes = BUFFER_BYTES,
		                             .send_bytes = BUFFER_BYTES };
	struct talker *talker = &talk->all[talk->n];
	trib_status status;
	bool gso;

	if (talk->n == TALKERS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "more than %u workers", TALKERS_MAX);
	*talker = (struct talker){ .fd = -1, .rank = talk->n, .ranks = ranks };
	status = udp_open(NULL, aggregator, &options, &talker->fd, &gso);
	if (status == TRIB_OK)
		talk->n++;
	return status;
}

void talk_close(struct talk *talk)
{
	while (talk->n)
		close(talk->all[--talk->n].fd);
}

static void send_packet(const struct talker *talker, void *packet, uint32_t bytes)
{
	wire_seal(packet, bytes);
	/* If the network has no room for a packet, it is lost, as anywhere. */
	if (send(talker->fd, packet, bytes, MSG_NOSIGNAL) < 0)
		return;
}

static void ask(const struct talk *talk, struct talker *talker, uint64_t nonce)
{
	struct {
		struct wire_control header;
		struct wire_join join;
		uint8_t padding[WIRE_HEADER + PAYLOAD - WIRE_CONTROL - sizeof(struct wire_join)];
	} packet = { .header = { .type = WIRE_JOIN,
		                 .cookie = talk->cookie,
		                 .job = talk->job,
		                 .child = (uint8_t)talker->rank,
		                 .token = talker->token },
		     .join = { .pool_bytes = POOL,
		               .nonce = nonce + talker->rank,
		               .covers = 1ull << talker->rank,
		               .ranks = talker->ranks,
		               .rank = talker->rank,
		               .size = talk->n,
		               .payload = PAYLOAD,
		               .lanes = 1,
		               .timeout_ms = TIMEOUT_MS,
		               .tree = talk->tree,
		               .pid = (uint32_t)getpid(),
		               .hops = talk->has_parent,
		               .host = "rates" } };

	if (talk->has_parent) {
		struct wire_hop *hop = &packet.join.up[0];
		size_t size;
		const void *raw = udp_raw(&talk->parent, &size);

		hop->ranks = (1ull << talk->n) - 1;
		memcpy(hop->address, raw, size);
		hop->port = udp_port(&talk->parent);
		hop->family = size == 4 ? 4 : 6;
	}
	talker->shown = talker->token;
	send_packet(talker, &packet, sizeof(packet));
}

static struct wire_control header_of(const struct talk *talk, const struct talker *talker,
                                     uint8_t type)
{
	return (struct wire_control){ .type = type,
		                      .cookie = talker->welcome.cookie,
		                      .job = talk->job,
		                      .comm = talker->welcome.comm,
		                      .epoch = talker->welcome.epoch,
		                      .child = (uint8_t)talker->rank,
		                      .token = talker->token };
}

void talk_say(struct talk *talk, unsigned rank, bool is_idle)
{
	struct talker *talker = &talk->all[rank];
	struct {
		struct wire_control header;
		struct wire_report report;
	} packet = { .header = header_of(talk, talker, WIRE_REPORT) };
	uint32_t stamp = (uint32_t)(clock_now() / 1000) | 1;

	talker->is_idle = is_idle;
	/* The stamp grows each time, also twice in a microsecond. */
	talker->stamp = stamp == talker->stamp ? stamp + 2 : stamp;
	packet.report.stamp = talker->stamp;
	packet.report.serial = clock_now();
	packet.report.judged = talker->judged;
	packet.report.lost = talker->lost;
	packet.report.want = talker->want;
	packet.header.flags = is_idle ? WIRE_AT_REST : 0;
	send_packet(talker, &packet, sizeof(packet));
}

void talk_leave(struct talk *talk)
{
	for (unsigned i = 0; i < talk->n; i++) {
		struct wire_control bye = header_of(talk, &talk->all[i], WIRE_BYE);

		send_packet(&talk->all[i], &bye, sizeof(bye));
	}
}

static void take(struct talker *talker, const struct wire_control *header)
{
	const struct wire_welcome *welcome = wire_payload(header);
	const struct wire_status *status = wire_payload(header);
	uint32_t rate;

	if (header->token)
		talker->token = header->token;
	if (header->type == WIRE_WELCOME && welcome->verdict == WIRE_JOINED &&
	    !talker->welcome.cookie) {
		talker->welcome = *welcome;
		rate = welcome->rate;
	} else if (header->type == WIRE_STATUS && header->child == talker->rank && status->serial &&
	           (int32_t)(status->serial - talker->serial) >= 0) {
		talker->unasked += !status->stamp;
		talker->serial = status->serial;
		rate = status->rate;
	} else {
		return;
	}
	if (rate != talker->rate)
		talker->told_at = clock_now();
	talker->rate = rate;
}

static void take_all(struct talker *talker)
{
	uint64_t buffer[WIRE_PACKET_MAX / 8];
	ssize_t bytes;

	while ((bytes = recv(talker->fd, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
		if (wire_parse(buffer, (size_t)bytes) == WIRE_SOUND)
			take(talker, (const void *)buffer);
}

void talk_hear(struct talk *const *talks, unsigned n, int wait_ms, bool (*enough)(void *context),
               void *context)
{
	uint64_t until = clock_now() + (uint64_t)wait_ms * 1000000;
	struct talker *who[TALKS_MAX * TALKERS_MAX];
	struct pollfd waits[TALKS_MAX * TALKERS_MAX];
	unsigned all = 0;

	for (unsigned i = 0; i < n && i < TALKS_MAX; i++)
		for (unsigned k = 0; k < talks[i]->n; k++) {
			who[all] = &talks[i]->all[k];
			waits[all++] =
				(struct pollfd){ .fd = talks[i]->all[k].fd, .events = POLLIN };
		}
	for (uint64_t now = clock_now(); now < until; now = clock_now()) {
		if (enough && enough(context))
			return;
		if (poll(waits, all, (int)((until - now + 999999) / 1000000)) <= 0)
			continue;
		for (unsigned i = 0; i < all; i++)
			if (waits[i].revents)
				take_all(who[i]);
	}
}

static bool all_are_in(const struct talk *talk)
{
	for (unsigned i = 0; i < talk->n; i++)
		if (!talk->all[i].welcome.cookie)
			return false;
	return true;
}

/* All are in, or have a token to ask again with. */
static bool all_are_answered(void *context)
{
	const struct talk *talk = context;

	for (unsigned i = 0; i < talk->n; i++)
		if (!talk->all[i].welcome.cookie && talk->all[i].token == talk->all[i].shown)
			return false;
	return true;
}

trib_status talk_join(struct talk *talk)
{
	uint64_t nonce = clock_now() << 8, until = clock_now() + PATIENCE_NS;

	while (!all_are_in(talk)) {
		if (clock_now() > until)
			return status_fail(TRIB_ERR_AGGREGATOR,
			                   "not all %u workers could join the aggregator", talk->n);
		for (unsigned i = 0; i < talk->n; i++)
			if (!talk->all[i].welcome.cookie)
				ask(talk, &talk->all[i], nonce);
		talk_hear(&talk, 1, TALK_ASK_MS, all_are_answered, talk);
	}
	return TRIB_OK;
}
