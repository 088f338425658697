/* SPDX-License-Identifier: Apache-2.0 */
/* From bytes of a peer to a message: every length and every field is checked here. */
#include "sparse/wire/sparse_message.h"

#include "sparse/wire/half.h"

#include <math.h>
#include <string.h>

_Static_assert(sizeof(struct message_header) == MESSAGE_HEADER, "the header has no holes");
_Static_assert(sizeof(struct sparse_table_options) == SPARSE_NAME_ROOM + 72,
               "the options of a table have no holes");
_Static_assert(sizeof(struct message_hello) ==
                       sizeof(struct sparse_table_options) + 5 * 8 + 10 * 4 + MESSAGE_NAME,
               "HELLO has no holes");
_Static_assert(sizeof(struct message_hello) % 8 == 0, "payloads are multiples of 8");
_Static_assert(sizeof(struct message_welcome) == 16, "WELCOME has no holes");
_Static_assert(sizeof(struct message_hot) == 24 + 24 + MESSAGE_ADDRESS, "HOT has no holes");
_Static_assert(sizeof(struct message_record) == 40, "SEALED has no holes");

#define TIMEOUT_MAX 1e9 /* seconds */

static const char *const names[MESSAGE_KINDS] = {
	[MESSAGE_HELLO] = "HELLO",   [MESSAGE_WELCOME] = "WELCOME", [MESSAGE_REFUSED] = "REFUSED",
	[MESSAGE_PUSH] = "PUSH",     [MESSAGE_ACK] = "ACK",         [MESSAGE_PULL] = "PULL",
	[MESSAGE_ROWS] = "ROWS",     [MESSAGE_STEP] = "STEP",       [MESSAGE_CLOCK] = "CLOCK",
	[MESSAGE_HEAT] = "HEAT",     [MESSAGE_NOTICE] = "NOTICE",   [MESSAGE_HOT] = "HOT",
	[MESSAGE_MAP] = "MAP",       [MESSAGE_LOST] = "LOST",       [MESSAGE_SEALED] = "SEALED",
	[MESSAGE_STATUS] = "STATUS", [MESSAGE_BYE] = "BYE",         [MESSAGE_COUNTS] = "COUNTS",
};

const char *message_name(enum message_kind kind)
{
	return kind < MESSAGE_KINDS && names[kind] ? names[kind] : "unknown";
}

trib_status message_header_read(const uint8_t *bytes, struct message_header *out)
{
	memcpy(out, bytes, sizeof(*out));
	if (out->magic != MESSAGE_MAGIC)
		return status_fail(TRIB_ERR_REFUSED,
		                   "these bytes are no message of sparse training (0x%08x)",
		                   out->magic);
	if (out->version != MESSAGE_VERSION)
		return status_fail(TRIB_ERR_REFUSED,
		                   "version %u of the messages, this side has %u: install the same "
		                   "version of Tributary on all machines",
		                   out->version, MESSAGE_VERSION);
	if (!out->kind || out->kind >= MESSAGE_KINDS)
		return status_fail(TRIB_ERR_REFUSED, "a message of the unknown kind %u", out->kind);
	if (out->bytes > MESSAGE_MAX || out->bytes % 8)
		return status_fail(TRIB_ERR_REFUSED, "a %s message of %u bytes",
		                   message_name(out->kind), out->bytes);
	return TRIB_OK;
}

static trib_status length_fail(const struct message_header *header)
{
	return status_fail(TRIB_ERR_REFUSED, "a %s message of %u rows has %u bytes",
	                   message_name(header->kind), header->count, header->bytes);
}

static uint64_t rounded(uint64_t bytes)
{
	return (bytes + 7) & ~7ull;
}

/* ---- kinds with rows and keys ---- */

static trib_status rows_parse(const struct message_header *header, const uint8_t *payload,
                              struct message *out)
{
	bool is_push = header->kind == MESSAGE_PUSH;
	uint64_t value = header->flags & MESSAGE_F16 ? 2 : 4, n = header->count;
	uint64_t head = 8, keys = is_push ? n * sizeof(uint64_t) : 0;

	if (header->bytes < head)
		return length_fail(header);
	memcpy(&out->width, payload, sizeof(out->width));
	if (!out->width || out->width > SPARSE_WIDTH_MAX)
		return status_fail(TRIB_ERR_REFUSED, "a %s message with rows of %u values",
		                   message_name(header->kind), out->width);
	/* n is below 2^32 and width below 2^13: the product has room. */
	if (head + keys + rounded(n * out->width * value) != header->bytes)
		return length_fail(header);
	out->keys = is_push ? (const void *)(payload + head) : NULL;
	out->rows = payload + head + keys;
	return TRIB_OK;
}

/* Keys, and `per_key` bytes behind `before` bytes for each. */
static trib_status keys_parse(const struct message_header *header, const uint8_t *payload,
                              size_t before, size_t per_key, struct message *out)
{
	if (before + header->count * (uint64_t)per_key != header->bytes)
		return length_fail(header);
	out->keys = (const void *)(payload + before);
	out->counts = per_key > sizeof(uint64_t) ? out->keys + header->count : NULL;
	return TRIB_OK;
}

static trib_status text_parse(const struct message_header *header, const uint8_t *payload,
                              struct message *out)
{
	if (rounded(header->count) != header->bytes)
		return length_fail(header);
	out->text = (const char *)payload;
	return TRIB_OK;
}

/* ---- kinds with fields ---- */

static bool is_text(const char *text, size_t room)
{
	const char *end = memchr(text, 0, room);

	for (const char *p = text; end && p < end; p++)
		if (*p < ' ' || *p > '~')
			return false;
	return end != NULL;
}

static const char *hello_wrong(const struct message_hello *hello)
{
	if (!(hello->largest > 0) || !isfinite(hello->largest) || !(hello->timeout_s > 0) ||
	    hello->timeout_s > TIMEOUT_MAX)
		return "with a limit out of its range";
	if (!hello->workers || hello->workers > MESSAGE_WORKERS_MAX ||
	    hello->rank >= hello->workers)
		return "with a rank that is not below the number of workers";
	if (!hello->shards || hello->shards > MESSAGE_SHARDS_MAX || hello->shard >= hello->shards)
		return "with a shard that is not below the number of shards";
	if (hello->is_bounded > 1 || hello->sums > MESSAGE_SUMS_TABLE || hello->job > UINT16_MAX ||
	    hello->path > MESSAGE_PATH_SERVERS)
		return "with an option that has no meaning";
	if (!is_text(hello->table.name, sizeof(hello->table.name)) || !hello->table.name[0] ||
	    !is_text(hello->host, sizeof(hello->host)))
		return "with a name that is no text";
	return NULL;
}

static trib_status fields_parse(const struct message_header *header, const uint8_t *payload,
                                void *out, size_t size)
{
	if (header->bytes != size)
		return length_fail(header);
	memcpy(out, payload, size);
	return TRIB_OK;
}

static trib_status hello_parse(const struct message_header *header, const uint8_t *payload,
                               struct message *out)
{
	trib_status status = fields_parse(header, payload, &out->u.hello, sizeof(out->u.hello));
	const char *wrong = status == TRIB_OK ? hello_wrong(&out->u.hello) : NULL;

	if (wrong)
		return status_fail(TRIB_ERR_REFUSED, "a HELLO message %s", wrong);
	return status == TRIB_OK ? sparse_table_options_check(&out->u.hello.table) : status;
}

static trib_status hot_parse(const struct message_header *header, const uint8_t *payload,
                             struct message *out)
{
	struct message_hot *hot = &out->u.hot;

	if (header->bytes < sizeof(*hot))
		return length_fail(header);
	memcpy(hot, payload, sizeof(*hot));
	if (!hot->width || hot->width > SPARSE_WIDTH_MAX || hot->kind > 1 || hot->layout > 3 ||
	    hot->job > UINT16_MAX || hot->size < 2 || hot->size > MESSAGE_WORKERS_MAX + 1 ||
	    !is_text(hot->address, sizeof(hot->address)))
		return status_fail(TRIB_ERR_REFUSED, "a HOT message with a field out of its range");
	return keys_parse(header, payload, sizeof(*hot), sizeof(uint64_t), out);
}

static trib_status map_parse(const struct message_header *header, const uint8_t *payload,
                             struct message *out)
{
	if (header->bytes < 8)
		return length_fail(header);
	memcpy(&out->generation, payload, sizeof(out->generation));
	return keys_parse(header, payload, 8, sizeof(uint64_t), out);
}

static trib_status counts_parse(const struct message_header *header, const uint8_t *payload,
                                struct message *out)
{
	if (8 + rounded(header->count) != header->bytes)
		return length_fail(header);
	memcpy(&out->generation, payload, sizeof(out->generation));
	out->pushes = payload + 8;
	return TRIB_OK;
}

trib_status message_parse(const struct message_header *header, const uint8_t *payload,
                          struct message *out)
{
	*out = (struct message){ .kind = header->kind,
		                 .flags = header->flags,
		                 .count = header->count,
		                 .number = header->number };
	switch (out->kind) {
	case MESSAGE_HELLO:
		return hello_parse(header, payload, out);
	case MESSAGE_WELCOME:
		return fields_parse(header, payload, &out->u.welcome, sizeof(out->u.welcome));
	case MESSAGE_SEALED:
		return fields_parse(header, payload, &out->u.record, sizeof(out->u.record));
	case MESSAGE_PUSH:
	case MESSAGE_ROWS:
		return rows_parse(header, payload, out);
	case MESSAGE_PULL:
		return keys_parse(header, payload, 0, sizeof(uint64_t), out);
	case MESSAGE_HEAT:
		return keys_parse(header, payload, 0, 2 * sizeof(uint64_t), out);
	case MESSAGE_HOT:
		return hot_parse(header, payload, out);
	case MESSAGE_MAP:
		return map_parse(header, payload, out);
	case MESSAGE_COUNTS:
		return counts_parse(header, payload, out);
	case MESSAGE_REFUSED:
	case MESSAGE_NOTICE:
	case MESSAGE_LOST:
	case MESSAGE_STATUS:
		return text_parse(header, payload, out);
	default:
		return header->bytes ? length_fail(header) : TRIB_OK;
	}
}

void message_values(const struct message *message, float *out, size_t first, size_t n)
{
	const uint16_t *halves = message->rows;

	if (!(message->flags & MESSAGE_F16)) {
		memcpy(out, (const float *)message->rows + first, n * sizeof(*out));
		return;
	}
	for (size_t i = 0; i < n; i++)
		out[i] = half_value(halves[first + i]);
}
