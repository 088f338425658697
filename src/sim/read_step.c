/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/json_read.h"
#include "sim/read.h"

#include <stdlib.h>
#include <string.h>

#define NAME_ROOM 32
#define BYTES_MAX 1e15

struct op {
	double start_s, bytes;
};

static trib_status op_add(struct sim_step *step, unsigned *room, const struct op *op)
{
	if (step->n == *room) {
		unsigned more = *room ? 2 * *room : 16;
		double *start = realloc(step->start_s, more * sizeof(*start));
		uint64_t *bytes;

		if (start)
			step->start_s = start;
		bytes = realloc(step->bytes, more * sizeof(*bytes));
		if (bytes)
			step->bytes = bytes;
		if (!start || !bytes)
			return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u allreduces", more);
		*room = more;
	}
	step->start_s[step->n] = op->start_s;
	step->bytes[step->n++] = (uint64_t)op->bytes;
	return TRIB_OK;
}

static trib_status op_read(struct json_reader *reader, struct op *op)
{
	bool first = true, more;
	char name[NAME_ROOM];
	trib_status status = json_take(reader, '{', "expected { before an allreduce");

	*op = (struct op){ -1, -1 };
	while (status == TRIB_OK && (status = json_more(reader, '}', &first, &more)) == TRIB_OK &&
	       more) {
		if ((status = json_name(reader, name, sizeof(name))) != TRIB_OK)
			return status;
		if (!strcmp(name, "start"))
			status = json_number(reader, &op->start_s);
		else if (!strcmp(name, "size"))
			status = json_number(reader, &op->bytes);
		else
			status = json_skip(reader);
	}
	if (status == TRIB_OK && !(op->start_s >= 0 && op->start_s <= READ_TIME_MAX))
		return json_fail(reader, "an allreduce has a \"start\" of 0 s or more");
	if (status == TRIB_OK && !(op->bytes >= 0 && op->bytes <= BYTES_MAX))
		return json_fail(reader, "an allreduce has a \"size\" of 0 bytes or more");
	return status;
}

static trib_status ops_read(struct json_reader *reader, struct sim_step *step, unsigned *room)
{
	bool first = true, more;
	struct op op;
	trib_status status = json_take(reader, '[', "expected [ before the allreduces");

	while (status == TRIB_OK && (status = json_more(reader, ']', &first, &more)) == TRIB_OK &&
	       more) {
		if (step->n == READ_OPS_MAX)
			return json_fail(reader, "more than 65536 allreduces in a step");
		if ((status = op_read(reader, &op)) == TRIB_OK)
			status = op_add(step, room, &op);
	}
	return status;
}

static trib_status members_read(struct json_reader *reader, struct sim_step *step)
{
	bool first = true, more, has_ops = false;
	char name[NAME_ROOM];
	unsigned room = 0;
	trib_status status = json_take(reader, '{', "expected { before a step");

	step->compute_s = -1;
	while (status == TRIB_OK && (status = json_more(reader, '}', &first, &more)) == TRIB_OK &&
	       more) {
		if ((status = json_name(reader, name, sizeof(name))) != TRIB_OK)
			return status;
		if (!strcmp(name, "duration")) {
			status = json_number(reader, &step->compute_s);
		} else if (!strcmp(name, "allreduces") && !has_ops) {
			has_ops = true;
			status = ops_read(reader, step, &room);
		} else {
			status = json_skip(reader);
		}
	}
	if (status != TRIB_OK)
		return status;
	if (json_peek(reader))
		return json_fail(reader, "something follows behind the step");
	if (!(step->compute_s > 0 && step->compute_s <= READ_TIME_MAX) || !has_ops)
		return json_fail(reader, "a step has a \"duration\" above 0 s, and \"allreduces\"");
	return TRIB_OK;
}

trib_status read_step(struct sim_step *step, const char *text)
{
	struct json_reader reader = { .at = text, .line = 1 };
	trib_status status;

	*step = (struct sim_step){ 0 };
	status = members_read(&reader, step);
	if (status != TRIB_OK)
		step_free(step);
	return status;
}

void step_free(struct sim_step *step)
{
	free(step->start_s);
	free(step->bytes);
	*step = (struct sim_step){ 0 };
}
