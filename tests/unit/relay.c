/* SPDX-License-Identifier: Apache-2.0 */
#include "relay.h"

#include "cluster.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

static const struct udp_options options = { .receive_bytes = 8 << 20, .send_bytes = 1 << 20 };

union packet {
	struct wire_header header;
	_Alignas(8) char bytes[WIRE_PACKET_MAX];
};

static unsigned child_of(struct relay *relay, const struct sockaddr_in *from)
{
	unsigned i = 0;
	bool gso;

	while (i < relay->children && (relay->child[i].sin_port != from->sin_port ||
	                               relay->child[i].sin_addr.s_addr != from->sin_addr.s_addr))
		i++;
	if (i == relay->children) {
		demand(i < RELAY_CHILDREN);
		demand(udp_open(NULL, &relay->aggregator, &options, &relay->back[i], &gso) ==
		       TRIB_OK);
		relay->child[i] = *from;
		relay->children++;
	}
	return i;
}

static bool lets_pass(struct relay *relay, bool up, const union packet *packet, ssize_t bytes)
{
	bool good = relay->passes(relay, up, &packet->header, (size_t)bytes);

	relay->dropped += !good;
	return good;
}

static void pass_up(struct relay *relay)
{
	struct sockaddr_in from;
	socklen_t length = sizeof(from);
	union packet packet;
	ssize_t bytes;

	while ((bytes = recvfrom(relay->front, &packet, sizeof(packet), MSG_DONTWAIT, (void *)&from,
	                         &length)) >= 0) {
		unsigned i = child_of(relay, &from);

		if (lets_pass(relay, true, &packet, bytes))
			(void)!send(relay->back[i], &packet, (size_t)bytes, 0);
	}
}

static void pass_down(struct relay *relay, unsigned i)
{
	union packet packet;
	ssize_t bytes;

	while ((bytes = recv(relay->back[i], &packet, sizeof(packet), MSG_DONTWAIT)) >= 0)
		if (lets_pass(relay, false, &packet, bytes))
			(void)!sendto(relay->front, &packet, (size_t)bytes, 0,
			              (const void *)&relay->child[i], sizeof(relay->child[i]));
}

static void *relay_main(void *argument)
{
	struct relay *relay = argument;

	while (!atomic_load(&relay->stop)) {
		struct pollfd waits[1 + RELAY_CHILDREN] = { { .fd = relay->front,
			                                      .events = POLLIN } };

		for (unsigned i = 0; i < relay->children; i++)
			waits[1 + i] = (struct pollfd){ .fd = relay->back[i], .events = POLLIN };
		poll(waits, 1 + relay->children, 10);
		pass_up(relay);
		for (unsigned i = 0; i < relay->children; i++)
			pass_down(relay, i);
	}
	return NULL;
}

void relay_open(struct relay *relay, const char *aggregator, relay_passes *passes)
{
	struct udp_address any;
	bool gso;

	*relay = (struct relay){ .passes = passes };
	demand(udp_resolve("127.0.0.1:0", 0, &any) == TRIB_OK);
	demand(udp_resolve(aggregator, UDP_DEFAULT_PORT, &relay->aggregator) == TRIB_OK);
	demand(udp_open(&any, NULL, &options, &relay->front, &gso) == TRIB_OK);
	any.length = sizeof(any.storage);
	demand(getsockname(relay->front, (void *)&any.storage, &any.length) == 0);
	udp_text(&any, relay->address, sizeof(relay->address));
	demand(pthread_create(&relay->thread, NULL, relay_main, relay) == 0);
}

void relay_stop(struct relay *relay)
{
	atomic_store(&relay->stop, true);
	demand(pthread_join(relay->thread, NULL) == 0);
	close(relay->front);
	for (unsigned i = 0; i < relay->children; i++)
		close(relay->back[i]);
}
