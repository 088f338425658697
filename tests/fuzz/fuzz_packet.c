/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packet parser: whatever comes, it reads nothing outside the datagram,
 * and what it calls sound has every property that receivers rely on. Each
 * input is tried as it is, and with a right checksum, which no fuzzer finds.
 */
#include "fuzz.h"
#include "wire/parse.h"

#include <string.h>

static void sound_check(const struct wire_header *header, size_t bytes)
{
	size_t payload = bytes - WIRE_HEADER;

	demand(bytes >= WIRE_HEADER && bytes % 8 == 0 && payload <= WIRE_PAYLOAD_MAX);
	demand(header->type > 0 && header->type < WIRE_TYPES_END);
	demand(wire_lane(header) < WIRE_LANES_MAX);
	demand(header->child < WIRE_CHILDREN_MAX || header->child == WIRE_ALL);
	if (header->type == WIRE_DATA)
		demand(header->child < WIRE_CHILDREN_MAX);
	if (header->type == WIRE_DATA || header->type == WIRE_RESULT) {
		demand(header->op < WIRE_OPS_END);
		demand(header->from < WIRE_CHILDREN_MAX || header->from == WIRE_ALL);
		demand(header->to < WIRE_CHILDREN_MAX || header->to == WIRE_ALL);
	}
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

	demand(fault < WIRE_FAULTS_END && *wire_fault_name(fault));
	if (fault == WIRE_SOUND)
		sound_check(datagram, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of the exact size, aligned as the parser asks. */
	uint8_t *datagram = malloc(size ? size : 1);

	demand(datagram);
	memcpy(datagram, data, size);
	datagram_try(datagram, size);
	if (size >= WIRE_HEADER && size % 8 == 0) {
		wire_seal(datagram, size);
		datagram_try(datagram, size);
		demand(wire_parse(datagram, size) != WIRE_FAULT_CHECK);
		datagram[size / 2] ^= 1;
		demand(wire_parse(datagram, size) != WIRE_SOUND);
	}
	free(datagram);
	return 0;
}
