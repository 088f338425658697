/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask: asks a controller for a plan as a rank does, and prints the answer: "plan GENERATION
 * RANK/SIZE TREES", "refused WHY", or "wait RANKS" after SECONDS.
 *
 *   ask HOST:PORT JOB COOKIE RANK SIZE NONCE GENERATION SECONDS [LOST]
 *
 * If RANK is "bye", it leaves the job, and prints "bye" when the controller has confirmed.
 */
#include "base/clock.h"
#include "path/udp.h"
#include "wire/parse.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ASK_EVERY_MS 50
#define BYTES 1400

struct packet {
	struct wire_control header;
	union {
		struct wire_join join;
		struct wire_welcome welcome;
		uint8_t payload[WIRE_PAYLOAD_MAX];
	};
};

static int tell(const struct packet *packet)
{
	const struct wire_welcome *welcome = &packet->welcome;
	const char *text = (const char *)welcome + offsetof(struct wire_welcome, text);

	if (welcome->verdict == WIRE_PLAN)
		printf("plan %u %u/%u %s\n", welcome->generation, welcome->rank, welcome->size,
		       text);
	else
		printf("refused %s\n", text);
	return 0;
}

/* Returns 1 if the answer only says to wait, or if there is none. */
static int hear(int fd, struct packet *ask, uint64_t *present)
{
	static struct packet packet;
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	ssize_t bytes;

	if (poll(&wait, 1, ASK_EVERY_MS) <= 0)
		return 1;
	memset(&packet, 0, sizeof(packet));
	bytes = recv(fd, &packet, sizeof(packet), MSG_DONTWAIT);
	if (bytes < 0 || wire_parse(&packet, (size_t)bytes) != WIRE_SOUND)
		return 1;
	if (packet.header.type == WIRE_BYE && packet.header.pos == ask->header.pos) {
		printf("bye\n");
		return 0;
	}
	if (packet.header.type != WIRE_WELCOME || packet.header.cookie != ask->header.cookie ||
	    packet.header.child != ask->header.child)
		return 1;
	if (packet.welcome.verdict != WIRE_WAIT)
		return tell(&packet);
	ask->header.token = packet.header.token;
	*present = packet.welcome.present;
	return 1;
}

int main(int argc, char **argv)
{
	struct udp_options options = { .receive_bytes = 65536, .send_bytes = 65536 };
	static struct packet ask;
	struct udp_address peer;
	uint64_t until, present = 0;
	uint32_t bytes = BYTES;
	bool gso;
	int fd;

	if (argc < 9 || udp_resolve(argv[1], 7600, &peer) != TRIB_OK ||
	    udp_open(NULL, &peer, &options, &fd, &gso) != TRIB_OK) {
		fprintf(stderr, "ask HOST:PORT JOB COOKIE RANK SIZE NONCE GENERATION SECONDS\n");
		return 2;
	}
	ask.header.type = WIRE_JOIN;
	ask.header.job = (uint16_t)strtoul(argv[2], NULL, 10);
	ask.header.cookie = strtoull(argv[3], NULL, 16);
	ask.join.rank = (uint32_t)strtoul(argv[4], NULL, 10);
	ask.join.size = (uint32_t)strtoul(argv[5], NULL, 10);
	ask.join.nonce = strtoull(argv[6], NULL, 10);
	ask.join.generation = (uint32_t)strtoul(argv[7], NULL, 10);
	ask.join.covers = argc > 9 ? strtoull(argv[9], NULL, 10) : 0;
	ask.join.timeout_ms = 10000;
	ask.join.pid = (uint32_t)getpid();
	ask.header.child = (uint8_t)ask.join.rank;
	snprintf(ask.join.host, sizeof(ask.join.host), "h%u", ask.join.rank);
	until = clock_now() + (uint64_t)(strtod(argv[8], NULL) * 1e9);
	if (!strcmp(argv[4], "bye")) {
		ask.header.type = WIRE_BYE;
		ask.header.pos = ask.join.nonce;
		bytes = WIRE_CONTROL;
	}
	while (clock_now() < until) {
		wire_seal(&ask, bytes);
		if (send(fd, &ask, bytes, 0) != bytes)
			usleep(ASK_EVERY_MS * 1000); /* the controller is not there yet */
		else if (hear(fd, &ask, &present) == 0)
			return 0;
		else
			usleep(ASK_EVERY_MS * 1000 / 2);
	}
	printf("wait %llx\n", (unsigned long long)present);
	return 1;
}
