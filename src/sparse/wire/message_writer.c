/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as bytes: what message_parse reads. */
#include "sparse/wire/half.h"
#include "sparse/wire/sparse_message.h"

#include <string.h>

uint8_t *message_add(struct byte_buffer *out, const struct message_header *about)
{
	struct message_header header = *about;
	uint8_t *payload;

	header.magic = MESSAGE_MAGIC;
	header.version = MESSAGE_VERSION;
	header.bytes = (header.bytes + 7) & ~7u;
	if (!buffer_reserve(out, MESSAGE_HEADER + header.bytes))
		return NULL;
	memcpy(out->data + out->used, &header, sizeof(header));
	payload = out->data + out->used + MESSAGE_HEADER;
	memset(payload, 0, header.bytes);
	out->used += MESSAGE_HEADER + header.bytes;
	return payload;
}

bool message_add_short(struct byte_buffer *out, enum message_kind kind, uint64_t number,
                       uint32_t count)
{
	const struct message_header header = { .kind = (uint8_t)kind,
		                               .count = count,
		                               .number = number };

	return message_add(out, &header) != NULL;
}

/* A message whose payload is `first`, then `second`. */
static bool message_add_two(struct byte_buffer *out, struct message_header header,
                            const void *first, size_t first_bytes, const void *second,
                            size_t second_bytes)
{
	uint8_t *payload;

	header.bytes = (uint32_t)(first_bytes + second_bytes);
	payload = message_add(out, &header);
	if (!payload)
		return false;
	if (first_bytes)
		memcpy(payload, first, first_bytes);
	if (second_bytes)
		memcpy(payload + first_bytes, second, second_bytes);
	return true;
}

bool message_add_text(struct byte_buffer *out, enum message_kind kind, unsigned flags,
                      const char *text)
{
	size_t n = strlen(text);
	const struct message_header header = { .kind = (uint8_t)kind,
		                               .flags = (uint16_t)flags,
		                               .count = (uint32_t)n };

	return message_add_two(out, header, text, n, NULL, 0);
}

bool message_add_lost(struct byte_buffer *out, uint64_t incarnation, const char *why)
{
	size_t n = strlen(why);
	const struct message_header header = { .kind = MESSAGE_LOST,
		                               .count = (uint32_t)n,
		                               .number = incarnation };

	return message_add_two(out, header, why, n, NULL, 0);
}

bool message_add_hello(struct byte_buffer *out, uint64_t client, const struct message_hello *hello)
{
	const struct message_header header = { .kind = MESSAGE_HELLO, .number = client };

	return message_add_two(out, header, hello, sizeof(*hello), NULL, 0);
}

bool message_add_welcome(struct byte_buffer *out, uint64_t applied,
                         const struct message_welcome *welcome)
{
	const struct message_header header = { .kind = MESSAGE_WELCOME, .number = applied };

	return message_add_two(out, header, welcome, sizeof(*welcome), NULL, 0);
}

static bool halves_fit(const float *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (half_overflows(values[i]))
			return false;
	return true;
}

/* A payload of the width, keys and values. */
static bool values_add(struct byte_buffer *out, struct message_header header, uint32_t width,
                       const uint64_t *keys, const float *rows)
{
	const uint32_t head[2] = { width, 0 };
	size_t values = (size_t)header.count * width;
	size_t keys_bytes = keys ? header.count * sizeof(*keys) : 0;
	bool narrow = header.flags & MESSAGE_F16 && halves_fit(rows, values);
	uint8_t *payload;
	uint16_t *halves;

	header.flags = narrow ? MESSAGE_F16 : 0;
	header.bytes = (uint32_t)(sizeof(head) + keys_bytes + values * (narrow ? 2 : 4));
	payload = message_add(out, &header);
	if (!payload)
		return false;
	memcpy(payload, head, sizeof(head));
	if (keys_bytes)
		memcpy(payload + sizeof(head), keys, keys_bytes);
	halves = (void *)(payload + sizeof(head) + keys_bytes);
	if (!narrow && values)
		memcpy(halves, rows, values * sizeof(*rows));
	for (size_t i = 0; narrow && i < values; i++)
		halves[i] = half_from(rows[i]);
	return true;
}

bool message_add_push(struct byte_buffer *out, uint64_t number, unsigned flags,
                      const uint64_t *keys, const float *rows, uint32_t n, uint32_t width)
{
	const struct message_header header = {
		.kind = MESSAGE_PUSH, .flags = (uint16_t)flags, .count = n, .number = number
	};

	return values_add(out, header, width, keys, rows);
}

bool message_add_rows(struct byte_buffer *out, uint64_t number, unsigned flags, const float *rows,
                      uint32_t n, uint32_t width)
{
	const struct message_header header = {
		.kind = MESSAGE_ROWS, .flags = (uint16_t)flags, .count = n, .number = number
	};

	return values_add(out, header, width, NULL, rows);
}

bool message_add_pull(struct byte_buffer *out, uint64_t number, unsigned flags,
                      const uint64_t *keys, uint32_t n)
{
	const struct message_header header = {
		.kind = MESSAGE_PULL, .flags = (uint16_t)flags, .count = n, .number = number
	};

	return message_add_two(out, header, keys, n * sizeof(*keys), NULL, 0);
}

bool message_add_heat(struct byte_buffer *out, const uint64_t *keys, const uint64_t *counts,
                      uint32_t n)
{
	const struct message_header header = { .kind = MESSAGE_HEAT, .count = n };

	return message_add_two(out, header, keys, n * sizeof(*keys), counts, n * sizeof(*counts));
}

uint8_t *message_add_counts(struct byte_buffer *out, uint64_t incarnation, uint32_t generation,
                            unsigned flags, uint32_t n)
{
	const struct message_header header = { .kind = MESSAGE_COUNTS,
		                               .flags = (uint16_t)flags,
		                               .bytes = 8 + n,
		                               .count = n,
		                               .number = incarnation };
	uint8_t *payload = message_add(out, &header);

	if (!payload)
		return NULL;
	memcpy(payload, &generation, sizeof(generation));
	return payload + 8;
}

bool message_add_hot(struct byte_buffer *out, uint64_t incarnation, const struct message_hot *hot,
                     const uint64_t *keys, uint32_t n)
{
	const struct message_header header = { .kind = MESSAGE_HOT,
		                               .count = n,
		                               .number = incarnation };

	return message_add_two(out, header, hot, sizeof(*hot), keys, n * sizeof(*keys));
}

bool message_add_map(struct byte_buffer *out, uint64_t incarnation, uint32_t generation,
                     const uint64_t *keys, uint32_t n)
{
	const struct message_header header = { .kind = MESSAGE_MAP,
		                               .count = n,
		                               .number = incarnation };
	const uint32_t first[2] = { generation, 0 };

	return message_add_two(out, header, first, sizeof(first), keys, n * sizeof(*keys));
}

bool message_add_sealed(struct byte_buffer *out, uint64_t incarnation,
                        const struct message_record *record)
{
	const struct message_header header = { .kind = MESSAGE_SEALED, .number = incarnation };

	return message_add_two(out, header, record, sizeof(*record), NULL, 0);
}

uint32_t message_rows_fit(size_t bytes, uint32_t width)
{
	size_t n = bytes / (sizeof(uint64_t) + width * sizeof(float));

	return n ? (uint32_t)n : 1;
}
