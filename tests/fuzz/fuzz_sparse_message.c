/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of sparse training. An input is a stream of messages. In a second run the magic numbers
 * and lengths are corrected, because a fuzzer rarely finds them. What the parser lets through must
 * lie within the message, and its fields in their ranges.
 */
#include "fuzz.h"
#include "sparse/wire/sparse_message.h"

#include <stdlib.h>
#include <string.h>

/* Reads everything that a parsed message points to. */
static uint64_t message_digest(const struct message *message)
{
	uint64_t sum = message->kind ^ message->count ^ message->number;
	size_t values = (size_t)message->count * message->width;
	float *rows;

	for (uint32_t i = 0; message->keys && i < message->count; i++)
		sum = sum * 31 + message->keys[i];
	for (uint32_t i = 0; message->counts && i < message->count; i++)
		sum = sum * 31 + message->counts[i];
	for (uint32_t i = 0; message->pushes && i < message->count; i++)
		sum = sum * 31 + message->pushes[i];
	for (uint32_t i = 0; message->text && i < message->count; i++)
		sum = sum * 31 + (uint8_t)message->text[i];
	if (!message->rows)
		return sum;
	rows = malloc((values + 1) * sizeof(*rows));
	demand(rows);
	message_values(message, rows, 0, values);
	for (size_t i = 0; i < values; i++)
		sum += rows[i] > 0;
	free(rows);
	return sum;
}

static void hello_look(const struct message_hello *hello)
{
	demand(hello->rank < hello->workers && hello->shard < hello->shards);
	demand(memchr(hello->host, 0, sizeof(hello->host)));
	demand(sparse_table_options_check(&hello->table) == TRIB_OK);
}

/* A message in memory of its exact size, so that a sanitizer detects reads beyond the end. */
static size_t message_try(const uint8_t *data, size_t size, uint64_t *sum)
{
	struct message_header header;
	struct message message;
	uint8_t *payload;

	if (size < MESSAGE_HEADER || message_header_read(data, &header) != TRIB_OK)
		return 0;
	demand(header.bytes <= MESSAGE_MAX && header.bytes % 8 == 0);
	if (size < MESSAGE_HEADER + header.bytes)
		return 0;
	payload = malloc(header.bytes ? header.bytes : 1);
	demand(payload);
	memcpy(payload, data + MESSAGE_HEADER, header.bytes);
	if (message_parse(&header, payload, &message) == TRIB_OK) {
		*sum = *sum * 31 + message_digest(&message);
		if (message.kind == MESSAGE_HELLO)
			hello_look(&message.u.hello);
	}
	free(payload);
	return MESSAGE_HEADER + header.bytes;
}

static void stream_try(const uint8_t *data, size_t size)
{
	uint64_t sum = 0;
	size_t bytes;

	for (size_t at = 0; (bytes = message_try(data + at, size - at, &sum)) > 0; at += bytes)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);

	demand(copy);
	memcpy(copy, data, size);
	stream_try(copy, size);
	for (size_t at = 0; at + MESSAGE_HEADER <= size;) {
		struct message_header header;
		size_t left = size - at - MESSAGE_HEADER;

		memcpy(&header, copy + at, sizeof(header));
		header.magic = MESSAGE_MAGIC;
		header.version = MESSAGE_VERSION;
		header.kind = (uint8_t)(header.kind % MESSAGE_KINDS);
		header.bytes = (uint32_t)(header.bytes % (left + 1)) & ~7u;
		memcpy(copy + at, &header, sizeof(header));
		at += MESSAGE_HEADER + header.bytes;
	}
	stream_try(copy, size);
	free(copy);
	return 0;
}
