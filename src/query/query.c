/* SPDX-License-Identifier: Apache-2.0 */
#include "query/query.h"

#include "base/clock.h"
#include "base/peer_text.h"
#include "base/settings.h"
#include "wire/parse.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUERY_ASK_MS 2
#define REFUSED_MS 1 /* pause before the next attempt if nobody listens yet */

bool query_read(const struct wire_control *query, const void *packet, size_t bytes, char *out,
                size_t size)
{
	const struct wire_control *header = packet;

	if (wire_parse(packet, bytes) != WIRE_SOUND || header->type != WIRE_ANSWER ||
	    header->cookie != query->cookie || header->pos != query->pos)
		return false;
	peer_text(out, size, wire_payload(header), bytes - WIRE_CONTROL);
	return true;
}

static bool take_answer(int fd, const struct wire_control *query, char *out, size_t size)
{
	uint64_t packet[WIRE_PACKET_MAX / 8];
	ssize_t bytes = recv(fd, packet, sizeof(packet), MSG_DONTWAIT);

	return bytes >= 0 && query_read(query, packet, (size_t)bytes, out, size);
}

trib_status query_page(const char *aggregator, unsigned page, double timeout_s, char *out,
                       size_t size)
{
	struct udp_options options = { .receive_bytes = 65536, .send_bytes = 65536 };
	struct wire_query query = { .header = { .type = WIRE_QUERY, .pos = wire_pos(0, page) } };
	struct udp_address peer;
	uint64_t until = clock_now() + (uint64_t)(timeout_s * 1e9), job;
	bool gso;
	int fd;
	trib_status status;

	if ((status = setting_count(SETTING_COOKIE, &query.header.cookie)) ||
	    (status = setting_count(SETTING_JOB, &job)) ||
	    (status = udp_resolve(aggregator, UDP_DEFAULT_PORT, &peer)) ||
	    (status = udp_open(NULL, &peer, &options, &fd, &gso)))
		return status;
	query.header.job = (uint16_t)job; /* a job of a controller has a cookie of its own */
	wire_seal(&query, sizeof(query));
	while (clock_now() < until) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };

		/* An error here belongs to the packet before: nobody listens yet. */
		if (send(fd, &query, sizeof(query), 0) == sizeof(query) &&
		    poll(&wait, 1, QUERY_ASK_MS) > 0 && take_answer(fd, &query.header, out, size)) {
			close(fd);
			return TRIB_OK;
		}
		poll(NULL, 0, REFUSED_MS);
	}
	close(fd);
	return status_fail(TRIB_ERR_AGGREGATOR,
	                   "no answer from %s within %.1f s: is tribd running there, and is "
	                   "TRIB_COOKIE the one it was started with, or that of TRIB_JOB at its "
	                   "controller?",
	                   aggregator, timeout_s);
}

bool page_is_controllers(const char *page)
{
	return strstr(page, "\"controller\":true") != NULL;
}

double page_number(const char *page, const char *name)
{
	char key[40];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(page, key);
	return at ? strtod(at + strlen(key), NULL) : 0;
}

void page_text(const char *page, const char *name, char *out, size_t size)
{
	char key[40];
	const char *at;
	size_t used = 0;

	snprintf(key, sizeof(key), "\"%s\":\"", name);
	at = strstr(page, key);
	for (at = at ? at + strlen(key) : ""; *at && *at != '"' && used + 1 < size; at++) {
		if (*at == '\\' && at[1])
			at++;
		out[used++] = *at;
	}
	out[used] = '\0';
}
