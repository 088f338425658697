/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire format. The test reads docs/wire.md and docs/wire/: every struct, value and packet there
 * must equal the code's, no more and no less. test_wire_parse.c tests the parser.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/checksum.h"
#include "wire/parse.h"
#include "wire/path_packet.h"
#include "wire/sparse_packet.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define countof(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the code, as tables ---- */

struct field {
	const char *owner, *name;
	size_t offset, size;
};

#define FIELD(type, name)                                                                   \
	{                                                                                   \
#type, #name, offsetof(struct type, name), sizeof(((struct type *)0)->name) \
	}

static const struct field fields[] = {
	FIELD(wire_header, magic),
	FIELD(wire_header, type),
	FIELD(wire_header, flags),
	FIELD(wire_header, check),
	FIELD(wire_header, comm),
	FIELD(wire_header, child),
	FIELD(wire_header, op),
	FIELD(wire_header, pos),
	FIELD(wire_header, ack),
	FIELD(wire_header, scale),
	FIELD(wire_header, from),
	FIELD(wire_header, to),
	FIELD(wire_control, magic),
	FIELD(wire_control, type),
	FIELD(wire_control, flags),
	FIELD(wire_control, check),
	FIELD(wire_control, comm),
	FIELD(wire_control, child),
	FIELD(wire_control, unused),
	FIELD(wire_control, job),
	FIELD(wire_control, epoch),
	FIELD(wire_control, ack),
	FIELD(wire_control, token),
	FIELD(wire_control, cookie),
	FIELD(wire_control, pos),
	FIELD(wire_call, count),
	FIELD(wire_call, number),
	FIELD(wire_call, rank),
	FIELD(wire_call, kind),
	FIELD(wire_call, type),
	FIELD(wire_call, op),
	FIELD(wire_call, root),
	FIELD(wire_call, per_word),
	FIELD(wire_call, open),
	FIELD(wire_call, before),
	FIELD(wire_report, base),
	FIELD(wire_report, stamp),
	FIELD(wire_report, bits),
	FIELD(wire_report, away),
	FIELD(wire_report, young),
	FIELD(wire_report, want),
	FIELD(wire_report, waiting),
	FIELD(wire_report, carried),
	FIELD(wire_report, waited),
	FIELD(wire_report, again),
	FIELD(wire_report, judged),
	FIELD(wire_report, lost),
	FIELD(wire_report, call),
	FIELD(wire_report, serial),
	FIELD(wire_report, missing),
	FIELD(wire_status, low),
	FIELD(wire_status, waiting),
	FIELD(wire_status, base),
	FIELD(wire_status, stamp),
	FIELD(wire_status, bits),
	FIELD(wire_status, rate),
	FIELD(wire_status, serial),
	FIELD(wire_status, asks),
	FIELD(wire_status, unused),
	FIELD(wire_status, missing),
	FIELD(wire_status, complete),
	FIELD(wire_join, key),
	FIELD(wire_join, pool_bytes),
	FIELD(wire_join, nonce),
	FIELD(wire_join, covers),
	FIELD(wire_join, ranks),
	FIELD(wire_join, rank),
	FIELD(wire_join, size),
	FIELD(wire_join, payload),
	FIELD(wire_join, lanes),
	FIELD(wire_join, timeout_ms),
	FIELD(wire_join, pid),
	FIELD(wire_join, generation),
	FIELD(wire_join, tree),
	FIELD(wire_join, hops),
	FIELD(wire_join, height),
	FIELD(wire_join, port),
	FIELD(wire_join, waits),
	FIELD(wire_join, tries),
	FIELD(wire_join, tcp),
	FIELD(wire_join, wire),
	FIELD(wire_join, engine),
	FIELD(wire_join, unused),
	FIELD(wire_join, host),
	FIELD(wire_join, up),
	FIELD(wire_hop, ranks),
	FIELD(wire_hop, address),
	FIELD(wire_hop, port),
	FIELD(wire_hop, family),
	FIELD(wire_hop, rdma),
	FIELD(wire_hop, unused),
	FIELD(wire_welcome, cookie),
	FIELD(wire_welcome, present),
	FIELD(wire_welcome, verdict),
	FIELD(wire_welcome, cells),
	FIELD(wire_welcome, payload),
	FIELD(wire_welcome, lanes),
	FIELD(wire_welcome, engine),
	FIELD(wire_welcome, layouts),
	FIELD(wire_welcome, comm),
	FIELD(wire_welcome, epoch),
	FIELD(wire_welcome, port),
	FIELD(wire_welcome, multicast_port),
	FIELD(wire_welcome, multicast_group),
	FIELD(wire_welcome, dead_after_ms),
	FIELD(wire_welcome, rank),
	FIELD(wire_welcome, size),
	FIELD(wire_welcome, generation),
	FIELD(wire_welcome, rate),
	FIELD(wire_welcome, text),
	FIELD(wire_abort, status),
	FIELD(wire_abort, rank),
	FIELD(wire_abort, text),
	FIELD(wire_turn, key),
	FIELD(wire_turn, peer_key),
	FIELD(wire_turn, nonce),
	FIELD(wire_turn, serial),
	FIELD(wire_turn, session),
	FIELD(wire_turn, change),
	FIELD(wire_turn, from),
	FIELD(wire_turn, to),
	FIELD(wire_turn, next),
	FIELD(wire_turn, finished),
	FIELD(wire_turn, base),
	FIELD(wire_turn, generation),
	FIELD(wire_turn, age_us),
	FIELD(wire_turn, busy_us),
	FIELD(wire_turn, compute_us),
	FIELD(wire_turn, rank),
	FIELD(wire_turn, ops),
	FIELD(wire_turn, word),
	FIELD(wire_turn, phase),
	FIELD(wire_turn, flags),
	FIELD(wire_turn, unused),
	FIELD(wire_turn, star),
	FIELD(wire_turn, unused_too),
	FIELD(wire_turn_op, start_us),
	FIELD(wire_turn_op, plain_us),
	FIELD(wire_turn_op, fast_us),
	FIELD(sparse_setup, width),
	FIELD(sparse_setup, rows),
	FIELD(sparse_setup, kind),
	FIELD(sparse_setup, layout),
	FIELD(sparse_setup, generation),
	FIELD(sparse_setup, unused),
	FIELD(sparse_rows, n),
	FIELD(sparse_rows, width),
	FIELD(sparse_rows, unused),
	FIELD(sparse_record, low),
	FIELD(sparse_record, seen),
	FIELD(sparse_record, durable),
	FIELD(path_data, magic),
	FIELD(path_data, kind),
	FIELD(path_data, path),
	FIELD(path_data, check),
	FIELD(path_data, sequence),
	FIELD(path_data, message),
	FIELD(path_data, unit),
	FIELD(path_data, bytes),
	FIELD(path_control, magic),
	FIELD(path_control, kind),
	FIELD(path_control, path),
	FIELD(path_control, check),
	FIELD(path_control, sequence),
	FIELD(path_control, delivered),
	FIELD(path_control, credit),
	FIELD(path_control, held),
	FIELD(path_control, id),
	FIELD(path_control, unused),
	FIELD(path_ack, came),
	FIELD(path_carrier, serial),
	FIELD(path_carrier, heard),
	FIELD(path_carrier, qpn),
	FIELD(path_carrier, psn),
	FIELD(path_carrier, epoch),
	FIELD(path_carrier, phase),
	FIELD(path_carrier, asks),
	FIELD(path_greeting, magic),
	FIELD(path_greeting, epoch),
	FIELD(path_greeting, id),
	FIELD(path_frame, message),
	FIELD(path_frame, bytes),
	FIELD(path_frame, delivered),
	FIELD(path_frame, credit),
	FIELD(path_address, raw),
	FIELD(path_address, port),
	FIELD(path_address, size),
	FIELD(path_address, unused),
	FIELD(path_hello, key),
	FIELD(path_hello, from),
	FIELD(path_hello, to),
	FIELD(path_hello, unit),
	FIELD(path_hello, longest),
	FIELD(path_hello, addresses),
	FIELD(path_hello, at),
	FIELD(path_hello, own),
};

struct value {
	const char *owner, *name;
	uint64_t value;
};

#define VALUE(owner, name)         \
	{                          \
		owner, #name, name \
	}

static const struct value values[] = {
	VALUE("constants", WIRE_MAGIC),
	VALUE("constants", WIRE_HEADER),
	VALUE("constants", WIRE_CONTROL),
	VALUE("constants", WIRE_PAYLOAD_MIN),
	VALUE("constants", WIRE_JOIN_LEAST),
	VALUE("constants", WIRE_QUERY_BYTES),
	VALUE("constants", WIRE_PAYLOAD_MAX),
	VALUE("constants", WIRE_ALL),
	VALUE("constants", WIRE_CHILDREN_MAX),
	VALUE("constants", WIRE_GROUP),
	VALUE("constants", WIRE_LANES_MAX),
	VALUE("constants", WIRE_HOPS_MAX),
	VALUE("constants", WIRE_LANE_SHIFT),
	VALUE("constants", WIRE_NAME_MAX),
	VALUE("constants", WIRE_TEXT_MAX),
	VALUE("constants", WIRE_PLAN_PART),
	VALUE("constants", WIRE_PLAN_MAX),
	VALUE("constants", WIRE_TURN_OPS_MAX),
	VALUE("wire_type", WIRE_DATA),
	VALUE("wire_type", WIRE_RESULT),
	VALUE("wire_type", WIRE_REPORT),
	VALUE("wire_type", WIRE_STATUS),
	VALUE("wire_type", WIRE_JOIN),
	VALUE("wire_type", WIRE_WELCOME),
	VALUE("wire_type", WIRE_ABORT),
	VALUE("wire_type", WIRE_BYE),
	VALUE("wire_type", WIRE_QUERY),
	VALUE("wire_type", WIRE_ANSWER),
	VALUE("wire_type", WIRE_TURN),
	VALUE("wire_flag", WIRE_HEARS_MULTICAST),
	VALUE("wire_flag", WIRE_ECHO),
	VALUE("wire_flag", WIRE_AT_REST),
	VALUE("wire_flag", WIRE_AVERAGE),
	VALUE("wire_flag", WIRE_RESENT),
	VALUE("wire_flag", WIRE_PADDING_SHIFT),
	VALUE("wire_flag", WIRE_TYPE_SHIFT),
	VALUE("wire_op", WIRE_ADD8),
	VALUE("wire_op", WIRE_ADD32),
	VALUE("wire_op", WIRE_ADD64),
	VALUE("wire_op", WIRE_MIN_I8),
	VALUE("wire_op", WIRE_MIN_U8),
	VALUE("wire_op", WIRE_MIN_I32),
	VALUE("wire_op", WIRE_MIN_U32),
	VALUE("wire_op", WIRE_MIN_I64),
	VALUE("wire_op", WIRE_MIN_U64),
	VALUE("wire_op", WIRE_MAX_I8),
	VALUE("wire_op", WIRE_MAX_U8),
	VALUE("wire_op", WIRE_MAX_I32),
	VALUE("wire_op", WIRE_MAX_U32),
	VALUE("wire_op", WIRE_MAX_I64),
	VALUE("wire_op", WIRE_MAX_U64),
	VALUE("wire_op", WIRE_MAX_U16),
	VALUE("wire_op", WIRE_OR64),
	VALUE("wire_call_kind", WIRE_CALL_NONE),
	VALUE("wire_call_kind", WIRE_CALL_ALLREDUCE),
	VALUE("wire_call_kind", WIRE_CALL_REDUCE),
	VALUE("wire_call_kind", WIRE_CALL_BROADCAST),
	VALUE("wire_call_kind", WIRE_CALL_ALLGATHER),
	VALUE("wire_call_kind", WIRE_CALL_REDUCE_SCATTER),
	VALUE("wire_call_kind", WIRE_CALL_BARRIER),
	VALUE("wire_call_kind", WIRE_CALL_SPLIT),
	VALUE("wire_verdict", WIRE_JOINED),
	VALUE("wire_verdict", WIRE_WAIT),
	VALUE("wire_verdict", WIRE_REFUSED),
	VALUE("wire_verdict", WIRE_PLAN),
	VALUE("wire_turn_word", WIRE_TURN_STATE),
	VALUE("wire_turn_word", WIRE_TURN_PREPARE),
	VALUE("wire_turn_word", WIRE_TURN_COMMIT),
	VALUE("wire_turn_word", WIRE_TURN_ABORT),
	VALUE("wire_turn_word", WIRE_TURN_FENCE),
	VALUE("wire_turn_word", WIRE_TURN_FENCED),
	VALUE("wire_turn_word", WIRE_TURN_MOVE),
	VALUE("wire_turn_phase", WIRE_TURN_NONE),
	VALUE("wire_turn_phase", WIRE_TURN_ASKED),
	VALUE("wire_turn_phase", WIRE_TURN_SET),
	VALUE("wire_turn_phase", WIRE_TURN_DROPPED),
	VALUE("wire_turn_flag", WIRE_TURN_DONE),
	VALUE("wire_turn_flag", WIRE_TURN_FAILED),
	VALUE("wire_turn_flag", WIRE_TURN_JOINING),
	VALUE("wire_turn_flag", WIRE_TURN_ASTRAY),
	VALUE("constants", SPARSE_ROWS_MAX),
	VALUE("constants", SPARSE_BLOCK_ROWS),
	VALUE("constants", SPARSE_WINDOW),
	VALUE("constants", SPARSE_LARGEST),
	VALUE("constants", SPARSE_ADDENDS),
	VALUE("sparse_kind", SPARSE_SETUP),
	VALUE("sparse_kind", SPARSE_PUSH),
	VALUE("sparse_kind", SPARSE_PULL),
	VALUE("sparse_kind", SPARSE_FREEZE),
	VALUE("sparse_kind", SPARSE_READ),
	VALUE("sparse_kind", SPARSE_RELEASE),
	VALUE("sparse_kind", SPARSE_WRITE),
	VALUE("sparse_kind", SPARSE_NEWS),
	VALUE("sparse_flag", SPARSE_URGENT),
	VALUE("sparse_flag", SPARSE_VOID),
	VALUE("sparse_flag", SPARSE_REFUSED),
	VALUE("sparse_refusal", SPARSE_UNREADY),
	VALUE("sparse_refusal", SPARSE_OTHER_MAP),
	VALUE("sparse_refusal", SPARSE_FULL),
	VALUE("sparse_refusal", SPARSE_TOO_FAR),
	VALUE("sparse_refusal", SPARSE_OTHER_EPOCH),
	VALUE("sparse_refusal", SPARSE_BAD),
	VALUE("sparse_refusal", SPARSE_FROZEN),
	VALUE("sparse_layout", SPARSE_VALUES),
	VALUE("sparse_layout", SPARSE_ONE_BANK),
	VALUE("constants", PATH_MAGIC),
	VALUE("constants", PATH_MAGIC_NAME),
	VALUE("constants", PATH_ADDRESSES),
	VALUE("constants", PATH_ACK_BITS),
	VALUE("path_kind", PATH_DATA),
	VALUE("path_kind", PATH_ACK),
	VALUE("path_kind", PATH_PROBE),
	VALUE("path_kind", PATH_HELLO),
	VALUE("path_kind", PATH_WELCOME),
	VALUE("path_kind", PATH_BYE),
	VALUE("path_kind", PATH_CARRIER),
	VALUE("path_flag", PATH_WANTS_ACK),
	VALUE("path_flag", PATH_ANSWERS),
};

static const struct {
	const char *name;
	size_t size;
} structs[] = {
	{ "wire_header", sizeof(struct wire_header) },
	{ "wire_control", sizeof(struct wire_control) },
	{ "wire_call", sizeof(struct wire_call) },
	{ "wire_report", sizeof(struct wire_report) },
	{ "wire_status", sizeof(struct wire_status) },
	{ "wire_join", sizeof(struct wire_join) },
	{ "wire_hop", sizeof(struct wire_hop) },
	{ "wire_welcome", sizeof(struct wire_welcome) },
	{ "wire_abort", sizeof(struct wire_abort) },
	{ "wire_turn", sizeof(struct wire_turn) },
	{ "wire_turn_op", sizeof(struct wire_turn_op) },
	{ "sparse_setup", sizeof(struct sparse_setup) },
	{ "sparse_rows", sizeof(struct sparse_rows) },
	{ "sparse_record", sizeof(struct sparse_record) },
	{ "path_data", sizeof(struct path_data) },
	{ "path_control", sizeof(struct path_control) },
	{ "path_ack", sizeof(struct path_ack) },
	{ "path_carrier", sizeof(struct path_carrier) },
	{ "path_greeting", sizeof(struct path_greeting) },
	{ "path_frame", sizeof(struct path_frame) },
	{ "path_address", sizeof(struct path_address) },
	{ "path_hello", sizeof(struct path_hello) },
};

/* ---- the document ---- */

struct document {
	bool struct_seen[countof(structs)], field_seen[countof(fields)],
		value_seen[countof(values)];
	const char *page; /* that is being read */
	char owner[64];   /* struct of the current table */
	size_t end;       /* end of the last field: there are no gaps */
	uint8_t packet[256];
	size_t packet_bytes;
};

static void check_field(struct document *document, const char *name, size_t offset, size_t size)
{
	for (size_t i = 0; i < countof(fields); i++) {
		if (strcmp(fields[i].owner, document->owner) || strcmp(fields[i].name, name))
			continue;
		assert_false(document->field_seen[i]);
		document->field_seen[i] = true;
		assert_int_equal(fields[i].offset, offset);
		assert_int_equal(fields[i].size, size);
		assert_int_equal(offset, document->end);
		document->end = offset + size;
		return;
	}
	fail_msg("%s: %s has no field %s", document->page, document->owner, name);
}

static void check_value(struct document *document, const char *name, uint64_t value)
{
	for (size_t i = 0; i < countof(values); i++) {
		if (strcmp(values[i].owner, document->owner) || strcmp(values[i].name, name))
			continue;
		assert_false(document->value_seen[i]);
		document->value_seen[i] = true;
		if (values[i].value != value)
			fail_msg("%s: %s is not %llu", document->page, name,
			         (unsigned long long)value);
		return;
	}
	fail_msg("%s: %s has no %s", document->page, document->owner, name);
}

static void check_struct(struct document *document, size_t size)
{
	for (size_t i = 0; i < countof(structs); i++) {
		if (strcmp(structs[i].name, document->owner))
			continue;
		assert_int_equal(structs[i].size, size);
		document->struct_seen[i] = true;
		document->end = 0;
		return;
	}
	fail_msg("%s: no struct %s", document->page, document->owner);
}

static void take_line(struct document *document, const char *line)
{
	char name[64];
	unsigned long long a, b;
	long long c;

	if (sscanf(line, "### struct %63[a-z_], %llu bytes", document->owner, &a) == 2)
		check_struct(document, a);
	else if (sscanf(line, "### enum %63[a-z_]", document->owner) == 1 ||
	         sscanf(line, "### %63[a-z]", document->owner) == 1)
		return;
	else if (strncmp(line, "## ", 3) == 0)
		document->owner[0] = 0;
	else if (!document->owner[0])
		return;
	else if (sscanf(line, "| %llu | %llu | `%63[a-z_]` |", &a, &b, name) == 3)
		check_field(document, name, a, b);
	else if (sscanf(line, "| %lli | `%63[A-Z0-9_]` |", &c, name) == 2 ||
	         sscanf(line, "| `%63[A-Z0-9_]` | %lli |", name, &c) == 2)
		check_value(document, name, (uint64_t)c);
	else if (line[0] == '|')
		assert_true(strstr(line, "|---") || strstr(line, "| offset |") ||
		            strstr(line, "| value |"));
}

static void take_packet_line(struct document *document, const char *line)
{
	int used;
	unsigned byte;

	for (; sscanf(line, " %2x%n", &byte, &used) == 1; line += used)
		document->packet[document->packet_bytes++] = (uint8_t)byte;
}

static void read_page(struct document *document, const char *page)
{
	FILE *file = fopen(page, "r");
	char line[1024];
	bool in_packet = false;

	if (!file)
		fail_msg("%s cannot be opened", page);
	document->page = page;
	document->owner[0] = 0;
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "```", 3) == 0)
			in_packet = strncmp(line, "```packet", 9) == 0;
		else if (in_packet)
			take_packet_line(document, line);
		else
			take_line(document, line);
	}
	fclose(file);
}

static struct document *read_document(void)
{
	struct document *document = calloc(1, sizeof(*document));
	glob_t pages;

	assert_non_null(document);
	assert_int_equal(glob(DOCS "/wire/*.md", 0, NULL, &pages), 0);
	read_page(document, DOCS "/wire.md");
	for (size_t i = 0; i < pages.gl_pathc; i++)
		read_page(document, pages.gl_pathv[i]);
	globfree(&pages);
	return document;
}

static void test_document(void **state)
{
	struct document *document = read_document();

	(void)state;
	for (size_t i = 0; i < countof(structs); i++)
		if (!document->struct_seen[i])
			fail_msg("no page has struct %s", structs[i].name);
	for (size_t i = 0; i < countof(fields); i++)
		if (!document->field_seen[i])
			fail_msg("no page has %s.%s", fields[i].owner, fields[i].name);
	for (size_t i = 0; i < countof(values); i++)
		if (!document->value_seen[i])
			fail_msg("no page has %s", values[i].name);
	/* If you add to an enum, change this too. */
	assert_int_equal(WIRE_TYPES_END, WIRE_TURN + 1);
	assert_int_equal(WIRE_OPS_END, WIRE_OR64 + 1);
	free(document);
}

static void test_document_packet(void **state)
{
	struct document *document = read_document();
	const struct wire_unsent unsent = { wire_proof(0x1122334455667788, 7, 1),
		                            wire_pos(1, 0x300000102) };
	uint64_t built[5] = { 0 }, given[5];
	struct wire_header *header = (void *)built;
	const int32_t elements[] = { -2, 1 - 1, 1000 }; /* a negative low half borrows */

	(void)state;
	assert_int_equal(document->packet_bytes, sizeof(given));
	memcpy(given, document->packet, sizeof(given));
	assert_int_equal(wire_parse(given, sizeof(given)), WIRE_SOUND);
	assert_true(wire_is_intact((const void *)given, sizeof(given), &unsent));
	header->type = WIRE_DATA;
	header->flags = WIRE_RESENT | 4 << WIRE_PADDING_SHIFT | (8 & 7) << WIRE_TYPE_SHIFT;
	header->comm = 3;
	header->child = 2;
	header->op = WIRE_ADD64;
	header->pos = 0x102;
	header->ack = 0x100;
	header->scale = 0x21;
	header->from = header->to = WIRE_ALL;
	memcpy(header + 1, elements, sizeof(elements));
	wire_seal_fragment(built, sizeof(built), &unsent);
	assert_memory_equal(built, given, sizeof(given));
	assert_true(wire_pos(1, wire_widen(header->pos, 0x300000100)) == unsent.pos);
	free(document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_document),
		cmocka_unit_test(test_document_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
