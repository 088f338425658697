/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/allreduce/saved_results.h"
#include "sim/json_read.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define NAME_ROOM 32
#define FIGURE_MAX 1e15
#define RUNS_MAX 1000000
#define SHORTEST_S 1e-9

enum kind { TEXT, NUMBER, RAW };

struct member {
	const char *name;
	size_t at, room;
	enum kind kind;
	bool alike; /* files that differ in it must not be merged */
};

#define OF(object, kind, name, field, alike)                                             \
	{                                                                                \
		name, offsetof(object, field), sizeof(((object *)0)->field), kind, alike \
	}
#define SETTING(kind, name, field) OF(struct bench_saved, kind, name, field, true)
#define REMARK(kind, name, field) OF(struct bench_saved, kind, name, field, false)
#define FIGURE(name, field) OF(struct saved_row, NUMBER, name, field, false)
#define WORDS(name, field) OF(struct saved_row, TEXT, name, field, false)

static const struct member settings[] = {
	SETTING(TEXT, "place", place),
	SETTING(TEXT, "collective", collective),
	SETTING(TEXT, "type", type),
	SETTING(NUMBER, "hosts", hosts),
	SETTING(NUMBER, "loss", loss),
	SETTING(NUMBER, "dup", dup),
	SETTING(NUMBER, "reorder", reorder),
	SETTING(NUMBER, "corrupt", corrupt),
	SETTING(NUMBER, "busy", busy),
	SETTING(NUMBER, "pool_bytes", pool_bytes),
	SETTING(NUMBER, "lanes", lanes),
	SETTING(RAW, "links_bps", links),
	SETTING(RAW, "switch", is_switch),
	SETTING(RAW, "offload", offload),
	SETTING(RAW, "late", late),
	SETTING(RAW, "own_cores", own_cores),
	SETTING(RAW, "copied", copied),
	SETTING(RAW, "nic", nic),
	SETTING(RAW, "trees", trees),
	REMARK(NUMBER, "iterations", iterations),
	REMARK(NUMBER, "repeats", repeats),
	REMARK(TEXT, "left_out", left_out),
	{ 0 },
};

static const struct member figures[] = {
	WORDS("system", system),
	WORDS("plane", plane),
	WORDS("algorithm", algorithm),
	WORDS("note", note),
	FIGURE("bytes", bytes),
	FIGURE("median_s", median_s),
	FIGURE("min_s", min_s),
	FIGURE("p99_s", p99_s),
	FIGURE("limit_s", limit_s),
	FIGURE("spread", spread),
	FIGURE("aggregator_cpu_s", cpu_s),
	FIGURE("aggregated_gb_per_cpu_s", gb_per_cpu_s),
	FIGURE("aggregated_gb_per_cpu_s_min", gb_per_cpu_s_min),
	FIGURE("aggregated_gb_per_cpu_s_max", gb_per_cpu_s_max),
	FIGURE("aggregator_cpu_times", cpu_times),
	FIGURE("aggregator_cpu_times_min", cpu_times_min),
	FIGURE("aggregator_cpu_times_max", cpu_times_max),
	FIGURE("fragments_again", fragments_again),
	FIGURE("results_again", results_again),
	FIGURE("repeats", repeats),
	FIGURE("failed", failed),
	{ 0 },
};

static trib_status figure_take(struct json_reader *reader, double *value)
{
	trib_status status = json_number(reader, value);

	if (status == TRIB_OK && !(*value >= 0 && *value <= FIGURE_MAX))
		return json_fail(reader, "a figure is below 0 or above 1e15");
	return status;
}

static trib_status raw_take(struct json_reader *reader, struct saved_raw *raw)
{
	trib_status status;

	json_peek(reader);
	raw->at = reader->at;
	status = json_skip(reader);
	raw->bytes = (size_t)(reader->at - raw->at);
	return status;
}

static trib_status value_take(struct json_reader *reader, const struct member *member, void *into)
{
	void *field = (char *)into + member->at;

	if (member->kind == RAW)
		return raw_take(reader, field);
	if (json_peek(reader) == 'n')
		return json_skip(reader);
	return member->kind == TEXT ? json_text(reader, field, member->room)
	                            : figure_take(reader, field);
}

/* Skips members that the list does not name. */
static trib_status object_take(struct json_reader *reader, const struct member *members, void *into)
{
	bool first = true, more;
	char name[NAME_ROOM];
	trib_status status = json_take(reader, '{', "expected {");

	while (status == TRIB_OK && (status = json_more(reader, '}', &first, &more)) == TRIB_OK &&
	       more) {
		const struct member *member = members;

		if ((status = json_name(reader, name, sizeof(name))) != TRIB_OK)
			return status;
		while (member->name && strcmp(member->name, name) != 0)
			member++;
		status = member->name ? value_take(reader, member, into) : json_skip(reader);
	}
	return status;
}

static bool is_count(double value)
{
	return value >= 0 && value <= RUNS_MAX && value == (unsigned)value;
}

static trib_status row_take(struct json_reader *reader, struct bench_saved *saved)
{
	struct saved_row *row = &saved->rows[saved->n];
	trib_status status;

	if (saved->n == SAVED_ROWS_MAX)
		return json_fail(reader, "more than 192 results");
	*row = (struct saved_row){ 0 };
	if ((status = object_take(reader, figures, row)) != TRIB_OK)
		return status;
	if (!row->system[0])
		return json_fail(reader, "a result has no \"system\" of 63 letters at most");
	if (row->bytes < 4 || row->bytes != (double)(uint64_t)row->bytes)
		return json_fail(reader, "a result has no whole number of \"bytes\", 4 at least");
	if (!is_count(row->repeats) || !is_count(row->failed))
		return json_fail(reader, "\"repeats\" and \"failed\" are counts up to 1000000");
	if ((row->repeats > 0 && row->median_s < SHORTEST_S) ||
	    (row->limit_s > 0 && row->limit_s < SHORTEST_S))
		return json_fail(reader, "\"median_s\" or \"limit_s\" is below a nanosecond");
	saved->n++;
	return TRIB_OK;
}

static trib_status rows_take(struct json_reader *reader, struct bench_saved *saved)
{
	bool first = true, more;
	trib_status status = json_take(reader, '[', "expected [ before the results");

	while (status == TRIB_OK && (status = json_more(reader, ']', &first, &more)) == TRIB_OK &&
	       more)
		status = row_take(reader, saved);
	return status;
}

trib_status saved_read(struct bench_saved *saved, const char *text)
{
	struct json_reader reader = { .at = text, .line = 1 };
	bool first = true, more;
	char name[NAME_ROOM];
	trib_status status = json_take(&reader, '{', "expected {");

	*saved = (struct bench_saved){ 0 };
	while (status == TRIB_OK && (status = json_more(&reader, '}', &first, &more)) == TRIB_OK &&
	       more) {
		if ((status = json_name(&reader, name, sizeof(name))) != TRIB_OK)
			return status;
		if (strcmp(name, "settings") == 0)
			status = object_take(&reader, settings, saved);
		else if (strcmp(name, "results") == 0)
			status = rows_take(&reader, saved);
		else
			status = json_skip(&reader);
	}
	if (status != TRIB_OK)
		return status;
	if (json_peek(&reader))
		return json_fail(&reader, "there is text behind the end");
	if (!saved->place[0] || !saved->collective[0] || saved->hosts < 1)
		return json_fail(&reader, "no \"settings\" of trib bench allreduce are in it");
	if (!saved->n)
		return json_fail(&reader, "no \"results\" are in it");
	if (!is_count(saved->iterations) || !is_count(saved->repeats) || !is_count(saved->hosts))
		return json_fail(&reader, "\"iterations\", \"repeats\" and \"hosts\" are counts up "
		                          "to 1000000");
	return TRIB_OK;
}

/* Compares two pieces of JSON without the white space between their parts. */
static bool raw_same(const struct saved_raw *a, const struct saved_raw *b)
{
	size_t i = 0, k = 0;

	for (;; i++, k++) {
		while (i < a->bytes && isspace((unsigned char)a->at[i]))
			i++;
		while (k < b->bytes && isspace((unsigned char)b->at[k]))
			k++;
		if (i >= a->bytes || k >= b->bytes)
			return i >= a->bytes && k >= b->bytes;
		if (a->at[i] != b->at[k])
			return false;
	}
}

static bool field_same(const struct member *member, const void *a, const void *b)
{
	if (member->kind == TEXT)
		return strcmp(a, b) == 0;
	if (member->kind == NUMBER)
		return *(const double *)a == *(const double *)b;
	return raw_same(a, b);
}

const char *saved_unlike(const struct bench_saved *a, const struct bench_saved *b)
{
	for (const struct member *member = settings; member->name; member++)
		if (member->alike &&
		    !field_same(member, (const char *)a + member->at, (const char *)b + member->at))
			return member->name;
	return NULL;
}
