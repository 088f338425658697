/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packet parser. It must not read outside the datagram. A packet that it accepts must have
 * every property that receivers rely on. Each input is tried unchanged and with a correct checksum,
 * which a fuzzer does not find.
 */
#include "fuzz.h"
#include "wire/brief.h"
#include "wire/parse.h"

#include <string.h>

static const struct wire_unsent unsent = { 0x0123456789abcdef, 0x0200000000000007 };

/* Building a REPORT or STATUS again makes it no longer, with the same content. */
static void whole_check(const struct wire_control *header, size_t bytes)
{
	struct wire_whole room, cut, again;
	size_t whole = WIRE_CONTROL +
	               (header->type == WIRE_REPORT ? sizeof(room.report) : sizeof(room.status));
	const struct wire_control *made = wire_make_whole(header, bytes, &room);
	uint32_t sent;

	memcpy(&cut, made, whole);
	sent = wire_cut(&cut);
	demand(sent <= bytes);
	demand(memcmp(made, wire_make_whole(&cut.header, sent, &again), whole) == 0);
}

static void sound_check(const struct wire_header *packet, size_t bytes)
{
	const struct wire_control *header = wire_control(packet);

	demand(bytes >= WIRE_HEADER && bytes % 8 == 0 && bytes <= WIRE_PACKET_MAX);
	demand(packet->type > 0 && packet->type < WIRE_TYPES_END);
	demand(packet->child < WIRE_CHILDREN_MAX || packet->child == WIRE_ALL);
	if (!header) {
		demand(packet->child < WIRE_CHILDREN_MAX || packet->type == WIRE_RESULT);
		demand(packet->op < WIRE_OPS_END);
		demand(packet->from < WIRE_CHILDREN_MAX || packet->from == WIRE_ALL);
		return;
	}
	demand(bytes >= WIRE_CONTROL);
	demand(wire_lane(header) < WIRE_LANES_MAX);
	if (header->type == WIRE_REPORT || header->type == WIRE_STATUS)
		whole_check(header, bytes);
	if (header->type == WIRE_REPORT)
		demand(((const struct wire_report *)wire_payload(header))->bits <= WIRE_GROUP);
	if (header->type == WIRE_STATUS)
		demand(((const struct wire_status *)wire_payload(header))->bits <= WIRE_GROUP);
	if (header->type == WIRE_WELCOME)
		demand(strlen(((const struct wire_welcome *)wire_payload(header))->text) <
		       WIRE_TEXT_MAX);
}

static void datagram_try(const void *datagram, size_t bytes)
{
	enum wire_fault fault = wire_parse(datagram, bytes);

	demand(fault < WIRE_FAULTS_END);
	if (fault == WIRE_SOUND)
		sound_check(datagram, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of the exact size, aligned as the parser requires. */
	uint8_t *datagram = malloc(size ? size : 1);

	demand(datagram);
	memcpy(datagram, data, size);
	datagram_try(datagram, size);
	if (size >= WIRE_HEADER && size % 8 == 0) {
		const struct wire_header *header = (const void *)datagram;
		size_t wrong = size / 2;

		if (wire_is_fragment(header)) {
			wire_seal_fragment(datagram, size, &unsent);
			demand(wire_is_intact(header, size, &unsent));
			datagram_try(datagram, size);
			datagram[wrong] ^= 1;
			demand(!wire_is_intact(header, size, &unsent));
		} else if (size >= WIRE_CONTROL) {
			wire_seal(datagram, size);
			datagram_try(datagram, size);
			demand(wire_parse(datagram, size) != WIRE_FAULT_CHECK);
			datagram[wrong] ^= 1;
			demand(wire_parse(datagram, size) != WIRE_SOUND);
		}
	}
	free(datagram);
	return 0;
}
