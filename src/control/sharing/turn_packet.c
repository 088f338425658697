/* SPDX-License-Identifier: Apache-2.0 */
#include "control/sharing/turn_packet.h"

#include "wire/parse.h"

#include <stddef.h>
#include <sys/socket.h>

struct packet {
	struct wire_control header;
	struct wire_turn turn;
	struct wire_hop hop; /* only in a MOVE */
};

void turn_packet_send(struct controller *controller, uint16_t job, uint64_t cookie,
                      const struct wire_turn *turn, const struct wire_hop *hop,
                      const struct udp_address *to)
{
	struct packet packet = { .header = { .type = WIRE_TURN, .cookie = cookie, .job = job },
		                 .turn = *turn };
	size_t bytes = hop ? sizeof(packet) : offsetof(struct packet, hop);

	if (hop)
		packet.hop = *hop;
	wire_seal(&packet, bytes);
	/* A packet that cannot be sent counts as lost: it is repeated. */
	sendto(controller->fd, &packet, bytes, MSG_DONTWAIT, (const void *)&to->storage,
	       to->length);
}
