/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/parse.h"

#include "wire/brief.h"
#include "wire/checksum.h"

#include <string.h>

static bool is_child(uint8_t index)
{
	return index < WIRE_CHILDREN_MAX || index == WIRE_ALL;
}

static bool is_text(const char *text, size_t size)
{
	return memchr(text, 0, size) != NULL;
}

static bool fragment_ok(const struct wire_header *header)
{
	return is_child(header->child) &&
	       (header->child != WIRE_ALL || header->type == WIRE_RESULT) &&
	       header->op < WIRE_OPS_END && is_child(header->from);
}

/* Checks that the payload has the form that the type requires. */
static bool control_ok(const struct wire_control *control, size_t payload)
{
	const void *body = wire_payload(control);

	if (!is_child(control->child) || wire_lane(control) >= WIRE_LANES_MAX)
		return false;
	switch (control->type) {
	case WIRE_REPORT: {
		const struct wire_report *report = body;
		return payload >= WIRE_REPORT_LEAST && payload <= sizeof(*report) &&
		       report->bits <= WIRE_GROUP && report->call.kind < WIRE_CALLS_END &&
		       control->child != WIRE_ALL;
	}
	case WIRE_STATUS: {
		const struct wire_status *status = body;
		return payload >= WIRE_STATUS_LEAST && payload <= sizeof(*status) &&
		       (payload - WIRE_STATUS_LEAST) % 16 == 0 && status->bits <= WIRE_GROUP;
	}
	case WIRE_JOIN: {
		const struct wire_join *join = body;
		return payload >= WIRE_JOIN_LEAST - WIRE_CONTROL &&
		       is_text(join->host, sizeof(join->host)) && join->hops <= WIRE_HOPS_MAX;
	}
	case WIRE_WELCOME: {
		const struct wire_welcome *welcome = body;
		size_t room = sizeof(welcome->text);

		if (payload < sizeof(*welcome))
			return false;
		if (welcome->verdict == WIRE_PLAN) /* the text may continue in the padding */
			room = payload - offsetof(struct wire_welcome, text);
		return is_text((const char *)body + offsetof(struct wire_welcome, text), room);
	}
	case WIRE_ABORT: {
		const struct wire_abort *abort = body;
		return payload == sizeof(*abort) && is_text(abort->text, sizeof(abort->text));
	}
	case WIRE_ANSWER:
		return payload > 0 && is_text(body, payload);
	case WIRE_TURN: {
		const struct wire_turn *turn = body;
		const struct wire_hop *hop = (const void *)(turn + 1);
		if (payload < sizeof(*turn) || turn->word >= WIRE_TURN_WORDS_END ||
		    turn->phase >= WIRE_TURN_PHASES_END || turn->ops > WIRE_TURN_OPS_MAX ||
		    turn->from > turn->to)
			return false;
		if (turn->word == WIRE_TURN_MOVE)
			return !turn->ops && payload == sizeof(*turn) + sizeof(*hop) &&
			       (hop->family == 4 || hop->family == 6);
		return payload >= sizeof(*turn) + turn->ops * sizeof(struct wire_turn_op);
	}
	case WIRE_QUERY: /* padding makes room for the answer */
		return true;
	default: /* BYE */
		return payload == 0;
	}
}

static enum wire_fault parse(const void *data, size_t bytes, bool is_frame)
{
	const struct wire_header *header = data;

	if (bytes < WIRE_HEADER || bytes > WIRE_PACKET_MAX || bytes % 8)
		return WIRE_FAULT_LENGTH;
	if (header->magic != WIRE_MAGIC)
		return WIRE_FAULT_MAGIC;
	if (header->type == 0 || header->type >= WIRE_TYPES_END)
		return WIRE_FAULT_TYPE;
	if (wire_is_fragment(header))
		return fragment_ok(header) ? WIRE_SOUND : WIRE_FAULT_CONTENT;
	if (bytes < WIRE_CONTROL)
		return WIRE_FAULT_LENGTH;
	if (!is_frame && header->check != wire_check(data, bytes))
		return WIRE_FAULT_CHECK;
	return control_ok(data, bytes - WIRE_CONTROL) ? WIRE_SOUND : WIRE_FAULT_CONTENT;
}

enum wire_fault wire_parse(const void *data, size_t bytes)
{
	return parse(data, bytes, false);
}

enum wire_fault wire_parse_frame(const void *data, size_t bytes)
{
	return parse(data, bytes, true);
}

void wire_seal(void *data, size_t bytes)
{
	struct wire_header *header = data;

	header->magic = WIRE_MAGIC;
	header->check = wire_check(data, bytes);
}
