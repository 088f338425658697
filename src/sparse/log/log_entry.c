/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/log/log_entry.h"

#include "sparse/log/crc32c.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "logs are little-endian");
_Static_assert(sizeof(struct applied_set) == 40, "the layout is that of the file");
_Static_assert(sizeof(struct sparse_client) == 32, "the layout is that of the file");

struct head {
	uint32_t length; /* of the payload */
	uint32_t sum;
	uint16_t kind;
	uint16_t unused;
	uint32_t back; /* to the first entry of the batch, in units of 8 bytes */
};

/* The fixed part of a payload. What a kind does not have is zero. */
struct body {
	uint32_t table, n, width, children;
	uint64_t client, sequence;
	uint32_t incarnation, epoch, heat, flags;
	uint32_t rank, unused;
};

enum { FLAG_ENDED = 1, FLAG_BEGINS_RUN = 2 };

/* The options of a TABLE, behind the body. */
struct options_body {
	uint64_t parameters;
	uint32_t width, optimizer;
	double rate, momentum, beta1, beta2, epsilon, init;
	uint64_t seed;
	char name[SPARSE_NAME_ROOM];
};

_Static_assert(sizeof(struct head) == ENTRY_HEAD_BYTES, "the layout is that of the file");
_Static_assert(sizeof(struct body) == 56, "the layout is that of the file");
_Static_assert(sizeof(struct options_body) == 136, "the layout is that of the file");

/* What a kind has behind its body, in this order. */
struct parts {
	const char *name;
	bool options, records, clients, keys, heats, rows;
};

static const struct parts *parts_of(uint32_t kind)
{
	static const struct parts all[] = {
		[SPARSE_ENTRY_TABLE] = { .name = "table", .options = true },
		[SPARSE_ENTRY_CLIENT] = { .name = "client" },
		[SPARSE_ENTRY_PUSH] = { .name = "push", .keys = true, .rows = true },
		[SPARSE_ENTRY_OPEN] = { .name = "open" },
		[SPARSE_ENTRY_FLUSH] = { .name = "flush",
		                         .records = true,
		                         .keys = true,
		                         .rows = true },
		[SPARSE_ENTRY_SEAL] = { .name = "seal" },
		[SPARSE_ENTRY_ROWS] = { .name = "rows", .keys = true, .heats = true, .rows = true },
		[SPARSE_ENTRY_CLIENTS] = { .name = "clients", .clients = true },
		[SPARSE_ENTRY_INCARNATION] = { .name = "incarnation", .records = true },
		[SPARSE_ENTRY_END] = { .name = "end" },
	};

	return kind < sizeof(all) / sizeof(all[0]) && all[kind].name ? &all[kind] : NULL;
}

const char *sparse_entry_name(uint32_t kind)
{
	const struct parts *parts = parts_of(kind);

	return parts ? parts->name : "unknown";
}

/* Where the parts of a payload begin. */
struct layout {
	size_t options, records, clients, keys, heats, rows, end;
};

static uint64_t up_to_8(uint64_t n)
{
	return (n + 7) & ~7ull;
}

/* False: the payload would be too long. 32-bit counts cannot overflow 64 bits here. */
static bool layout_make(struct layout *at, const struct parts *parts, const struct body *body)
{
	uint64_t n = body->n, end = sizeof(*body);

	at->options = end;
	end += parts->options ? sizeof(struct options_body) : 0;
	at->records = end;
	end += parts->records ? body->children * (uint64_t)sizeof(struct applied_set) : 0;
	at->clients = end;
	end += parts->clients ? n * sizeof(struct sparse_client) : 0;
	at->keys = end;
	end += parts->keys ? n * 8 : 0;
	at->heats = end;
	end += parts->heats ? up_to_8(n * 4) : 0;
	at->rows = end;
	if (end > ENTRY_BYTES_MAX || body->width > ENTRY_BYTES_MAX)
		return false;
	end += parts->rows ? up_to_8(n * body->width * 4) : 0;
	at->end = end;
	return end <= ENTRY_BYTES_MAX;
}

/* ---- writing ---- */

static struct body body_of(const struct sparse_entry *entry)
{
	return (struct body){
		.table = entry->table,
		.n = entry->n,
		.width = entry->width,
		.children = entry->children,
		.client = entry->client,
		.sequence = entry->sequence,
		.incarnation = entry->incarnation,
		.epoch = entry->epoch,
		.heat = entry->heat,
		.flags = (entry->has_left || entry->is_sealed ? FLAG_ENDED : 0) |
		         (entry->begins_run ? FLAG_BEGINS_RUN : 0),
		.rank = entry->rank,
	};
}

size_t entry_bytes(const struct sparse_entry *entry)
{
	const struct parts *parts = parts_of(entry->kind);
	struct body body = body_of(entry);
	struct layout at;

	if (!parts || !layout_make(&at, parts, &body))
		return 0;
	return ENTRY_HEAD_BYTES + at.end;
}

static void options_encode(const struct sparse_table_options *options, uint8_t *to)
{
	struct options_body body = {
		.parameters = options->parameters,
		.width = options->width,
		.optimizer = options->optimizer,
		.rate = options->rate,
		.momentum = options->momentum,
		.beta1 = options->beta1,
		.beta2 = options->beta2,
		.epsilon = options->epsilon,
		.init = options->init,
		.seed = options->seed,
	};

	memcpy(body.name, options->name, sizeof(body.name));
	memcpy(to, &body, sizeof(body));
}

/* An empty array may be NULL. */
static void put(uint8_t *to, const void *from, size_t n)
{
	if (n)
		memcpy(to, from, n);
}

void entry_encode(const struct sparse_entry *entry, uint8_t *to)
{
	const struct parts *parts = parts_of(entry->kind);
	struct body body = body_of(entry);
	uint8_t *payload = to + ENTRY_HEAD_BYTES;
	struct layout at = { 0 };
	struct head head = { .kind = (uint16_t)entry->kind };

	layout_make(&at, parts, &body);
	head.length = (uint32_t)at.end;
	memcpy(to, &head, sizeof(head));
	memcpy(payload, &body, sizeof(body));
	/* Only the last 8 bytes of an array can have a gap behind it. */
	if (at.rows > at.heats)
		memset(payload + at.rows - 8, 0, 8);
	if (at.end > at.rows)
		memset(payload + at.end - 8, 0, 8);
	if (parts->options)
		options_encode(&entry->options, payload + at.options);
	put(payload + at.records, entry->records, at.clients - at.records);
	put(payload + at.clients, entry->clients, at.keys - at.clients);
	put(payload + at.keys, entry->keys, at.heats - at.keys);
	put(payload + at.heats, entry->heats, parts->heats ? 4 * (size_t)entry->n : 0);
	put(payload + at.rows, entry->rows, parts->rows ? 4 * (size_t)entry->n * entry->width : 0);
}

static uint32_t sum_of(const uint8_t *bytes, size_t n, const struct entry_place *place)
{
	uint64_t where[2] = { place->file, place->offset };
	uint32_t sum = crc32c(0, where, sizeof(where));

	sum = crc32c(sum, bytes, offsetof(struct head, sum));
	return crc32c(sum, bytes + offsetof(struct head, kind), n - offsetof(struct head, kind));
}

void entry_seal(uint8_t *bytes, const struct entry_place *place)
{
	struct head head;

	memcpy(&head, bytes, sizeof(head));
	head.back = (uint32_t)((place->offset - place->batch) / 8);
	memcpy(bytes, &head, sizeof(head));
	head.sum = sum_of(bytes, ENTRY_HEAD_BYTES + head.length, place);
	memcpy(bytes, &head, sizeof(head));
}

/* ---- reading ---- */

struct entry_head entry_head_read(const uint8_t *bytes, uint64_t offset)
{
	struct head head;
	uint64_t back;

	memcpy(&head, bytes, sizeof(head));
	back = 8 * (uint64_t)head.back;
	return (struct entry_head){
		.ok = parts_of(head.kind) && !head.unused && back <= offset &&
		      head.length % 8 == 0 && head.length >= sizeof(struct body) &&
		      head.length <= ENTRY_BYTES_MAX,
		.kind = head.kind,
		.bytes = ENTRY_HEAD_BYTES + (size_t)head.length,
		.batch = back <= offset ? offset - back : 0,
	};
}

bool entry_check(const uint8_t *bytes, const struct entry_head *head,
                 const struct entry_place *place)
{
	uint32_t sum;

	memcpy(&sum, bytes + offsetof(struct head, sum), sizeof(sum));
	return sum == sum_of(bytes, head->bytes, place);
}

static trib_status wrong(const char *name, const char *what)
{
	return status_fail(TRIB_ERR_ARGUMENT, "an entry of kind %s is malformed: %s", name, what);
}

static trib_status options_parse_body(const uint8_t *from, struct sparse_table_options *options)
{
	struct options_body body;

	memcpy(&body, from, sizeof(body));
	*options = (struct sparse_table_options){
		.parameters = body.parameters,
		.width = body.width,
		.optimizer = body.optimizer,
		.rate = body.rate,
		.momentum = body.momentum,
		.beta1 = body.beta1,
		.beta2 = body.beta2,
		.epsilon = body.epsilon,
		.init = body.init,
		.seed = body.seed,
	};
	memcpy(options->name, body.name, sizeof(options->name));
	return sparse_table_options_check(options);
}

static void body_take(const struct body *body, struct sparse_entry *entry)
{
	entry->table = body->table;
	entry->n = body->n;
	entry->width = body->width;
	entry->client = body->client;
	entry->sequence = body->sequence;
	entry->epoch = body->epoch;
	entry->heat = body->heat;
	entry->incarnation = body->incarnation;
	entry->children = body->children;
	entry->rank = body->rank;
	entry->begins_run = body->flags & FLAG_BEGINS_RUN;
	entry->has_left = entry->kind == SPARSE_ENTRY_CLIENT && body->flags & FLAG_ENDED;
	entry->is_sealed = entry->kind == SPARSE_ENTRY_INCARNATION && body->flags & FLAG_ENDED;
}

static void parts_take(const uint8_t *payload, const struct parts *parts, const struct layout *at,
                       struct sparse_entry *entry)
{
	if (parts->records)
		entry->records = (const struct applied_set *)(payload + at->records);
	if (parts->clients)
		entry->clients = (const struct sparse_client *)(payload + at->clients);
	if (parts->keys)
		entry->keys = (const uint64_t *)(payload + at->keys);
	if (parts->heats)
		entry->heats = (const uint32_t *)(payload + at->heats);
	if (parts->rows)
		entry->rows = (const float *)(payload + at->rows);
}

/* Numbers that are wrong in any state. */
static trib_status numbers_check(const struct sparse_entry *entry, const char *name)
{
	if (entry->children > SPARSE_RECORDS_MAX)
		return wrong(name, "it has too many children");
	for (uint32_t i = 0; entry->records && i < entry->children; i++) {
		if (entry->records[i].seen[0] & 1)
			return wrong(name, "the record of a child has bit 0");
	}
	return TRIB_OK;
}

trib_status entry_parse(const uint8_t *bytes, size_t n, struct sparse_entry *entry)
{
	struct entry_head head;
	const struct parts *parts;
	struct body body;
	struct layout at;

	*entry = (struct sparse_entry){ 0 };
	if (n < ENTRY_HEAD_BYTES + sizeof(body))
		return wrong("unknown", "it is too short");
	head = entry_head_read(bytes, UINT64_MAX);
	parts = parts_of(head.kind);
	if (!head.ok || head.bytes != n)
		return wrong(sparse_entry_name(head.kind), "its head is wrong");
	memcpy(&body, bytes + ENTRY_HEAD_BYTES, sizeof(body));
	if (!layout_make(&at, parts, &body) || ENTRY_HEAD_BYTES + at.end != n)
		return wrong(parts->name, "its length is wrong");
	entry->kind = (enum sparse_entry_kind)head.kind;
	body_take(&body, entry);
	parts_take(bytes + ENTRY_HEAD_BYTES, parts, &at, entry);
	if (parts->options &&
	    options_parse_body(bytes + ENTRY_HEAD_BYTES + at.options, &entry->options) != TRIB_OK)
		return TRIB_ERR_ARGUMENT;
	return numbers_check(entry, parts->name);
}
