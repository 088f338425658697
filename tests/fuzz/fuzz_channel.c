/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that a channel receives. The input is a list of packets, each after a byte that says its
 * path and how it is prepared: as it is, or with a right magic number, id, key and checksum, since
 * a fuzzer finds none of these. In between the channel sends. Memory beyond what `place` gives is
 * never written, and what is delivered was granted.
 */
#include "fuzz.h"
#include "path/channel/channel.h"
#include "wire/checksum.h"

#include <string.h>

#define ID 0x1234567u
#define KEY 99u
#define LONGEST 20000u
#define CREDIT 4u
#define UNIT 512u
#define PACKET (CHANNEL_HEADER + UNIT)

enum prepare { RAW, CONTROL, DATA, PREPARES };

struct side {
	struct channel *channel;
	uint8_t *places[CREDIT];
	uint32_t delivered, granted;
};

static void *place(void *user, uint32_t message, uint32_t bytes)
{
	struct side *side = user;

	demand(message - side->delivered < CREDIT && bytes <= LONGEST);
	demand(!side->places[message % CREDIT]);
	/* The exact size, so that a sanitizer detects writes beyond the end. */
	return side->places[message % CREDIT] = malloc(bytes ? bytes : 1);
}

static void deliver(void *user, uint32_t message, void *memory, uint32_t bytes)
{
	struct side *side = user;

	(void)bytes;
	demand(message == side->delivered && memory == side->places[message % CREDIT]);
	free(memory);
	side->places[message % CREDIT] = NULL;
	side->delivered++;
	channel_grant(side->channel, 1);
}

static void side_open(struct side *side, bool connects, bool carried)
{
	struct channel_config config = {
		.connects = connects,
		.id = ID,
		.key = KEY,
		.self = !connects,
		.peer = connects,
		.name = "peer",
		.unit = UNIT,
		.chunk = 4096,
		.longest = LONGEST,
		.credit = CREDIT,
		.timeout = 1000000000,
		.carried = carried ? 4 : 0,
		.events = { .user = side, .place = place, .deliver = deliver }
	};
	struct path_address at = { .size = 4 };

	memset(side, 0, sizeof(*side));
	side->channel = channel_new(&config, 1);
	demand(side->channel);
	if (connects)
		demand(channel_open_path(side->channel, 0, &at, 1));
}

static void side_close(struct side *side)
{
	channel_free(side->channel);
	for (unsigned i = 0; i < CREDIT; i++)
		free(side->places[i]);
}

static void output(struct side *side, uint64_t now)
{
	static _Alignas(64) uint8_t buffer[16 * 1024];
	uint32_t segment;

	for (unsigned path = 0; path < 3; path++)
		for (unsigned i = 0; i < 8; i++)
			if (!channel_output(side->channel, path, now, buffer, sizeof(buffer),
			                    &segment, NULL))
				break;
}

/* Makes a packet of the other side that gets past the checksum. */
static void prepare(uint8_t *packet, size_t bytes, unsigned path, enum prepare how, bool connects)
{
	struct path_control *control = (struct path_control *)packet;
	struct path_hello *hello = (struct path_hello *)(control + 1);
	uint8_t side = connects ? PATH_ANSWERS : 0;
	struct wire_unsent unsent = { ID, side };

	if (how == RAW || bytes < sizeof(struct path_data))
		return;
	control->magic = PATH_MAGIC;
	control->path = (uint8_t)path;
	if (how == DATA) {
		control->kind = PATH_DATA | side | (control->kind & PATH_WANTS_ACK);
		control->check = wire_check_fragment(packet, bytes, &unsent);
		return;
	}
	if (bytes < sizeof(*control))
		return;
	control->kind = (uint8_t)(PATH_ACK + control->kind % (PATH_KINDS_END - PATH_ACK)) | side;
	control->id = ID;
	if (bytes >= sizeof(*control) + sizeof(*hello) &&
	    ((control->kind ^ side) == PATH_HELLO || (control->kind ^ side) == PATH_WELCOME)) {
		hello->key = KEY;
		hello->from = connects;
		hello->to = !connects;
		hello->unit = UNIT;
	}
	control->check = wire_check(packet, bytes);
}

static void feed(const uint8_t *data, size_t size, bool connects, bool carried)
{
	static const uint8_t message[LONGEST];
	static _Alignas(8) uint8_t packet[PACKET];
	struct side side;
	uint64_t now = 1000;

	side_open(&side, connects, carried);
	channel_send(side.channel, message, LONGEST);
	output(&side, now);
	while (size > 2) {
		unsigned path = data[0] % 3;
		enum prepare how = (enum prepare)(data[0] / 3 % PREPARES);
		size_t bytes = (data[1] * 8u) % (PACKET + 8), given = size - 2;

		if (given > bytes)
			given = bytes;
		memset(packet, 0, sizeof(packet));
		if (bytes > PACKET)
			bytes = PACKET;
		if (given > bytes)
			given = bytes;
		memcpy(packet, data + 2, given);
		prepare(packet, bytes, path, how, connects);
		now += 1000u << (data[0] / 9 % 16);
		channel_receive(side.channel, path, now, packet, bytes);
		output(&side, now);
		data += 2 + given;
		size -= 2 + given;
	}
	channel_close(side.channel, now);
	output(&side, now + 1);
	demand(channel_delivered(side.channel) == side.delivered);
	side_close(&side);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (unsigned way = 0; way < 4; way++)
		feed(data, size, way & 1, way & 2);
	return 0;
}
