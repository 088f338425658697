/* SPDX-License-Identifier: Apache-2.0 */
#include "control/transport/node_report.h"

#include "base/clock.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum field_type { FIELD_TEXT, FIELD_U32, FIELD_U64, FIELD_DOUBLE };

/* clang-format off */
#define PLACE(field) #field, offsetof(struct node_report, field)
#define TEXT(field) { PLACE(field), sizeof(((struct node_report *)0)->field), FIELD_TEXT, false }
#define FIELD(type, field) { PLACE(field), 0, FIELD_##type, false }
#define LATER(type, field) { PLACE(field), 0, FIELD_##type, true }
#define TEXT_LATER(field) { PLACE(field), sizeof(((struct node_report *)0)->field), FIELD_TEXT, true }
/* clang-format on */

/* A field has the same name in JSON and in C, except gauge_port. */
static const struct field {
	const char *name;
	size_t offset, size;
	enum field_type type;
	bool may_miss; /* older agents omit it: it is 0 or empty then */
} fields[] = {
	TEXT(address),
	TEXT(name),
	TEXT(version),
	TEXT(plane),
	TEXT(planes),
	TEXT(rights),
	FIELD(U64, incarnation),
	FIELD(U32, cores),
	FIELD(U32, threads),
	FIELD(U64, memory),
	FIELD(U64, memory_used),
	FIELD(U64, link_bps),
	FIELD(U64, payload),
	FIELD(DOUBLE, load),
	FIELD(DOUBLE, busy),
	LATER(U32, is_switch),
	LATER(U32, capacity),
	TEXT_LATER(rack),
	TEXT_LATER(above),
	{ "gauge_port", offsetof(struct node_report, probe_port), 0, FIELD_U32, true },
};

#define FAILED_S 60 /* 60 s: an older failed probe may be repeated */

#define FIELDS_N (sizeof(fields) / sizeof(*fields))

bool name_is_good(const char *name)
{
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr(".:-_[]%", *p))
			return false;
	return *name != '\0';
}

json_t *seats_to_json(uint64_t seats)
{
	json_t *list = json_array();

	for (; seats; seats &= seats - 1)
		json_array_append_new(list, json_integer(__builtin_ctzll(seats)));
	return list;
}

static uint64_t seat_from_json(const json_t *json)
{
	json_int_t seat = json_is_integer(json) ? json_integer_value(json) : -1;

	return seat >= 0 && seat < 64 ? 1ull << seat : 0;
}

uint64_t ranks_from_json(const json_t *comm)
{
	const json_t *children = json_object_get(comm, "children");
	uint64_t ranks = 0;

	for (size_t i = 0; i < json_array_size(children); i++) {
		const json_t *child = json_array_get(children, i);
		const json_t *covers = json_object_get(child, "covers");

		if (!covers)
			ranks |= seat_from_json(json_object_get(child, "rank"));
		for (size_t k = 0; k < json_array_size(covers); k++)
			ranks |= seat_from_json(json_array_get(covers, k));
	}
	return ranks;
}

static json_t *child_to_json(const struct stats_child *child)
{
	json_t *json =
		json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:I}", "rank", (int)child->rank, "host",
	                  child->host, "done", (json_int_t)child->done, "last",
	                  (json_int_t)child->last, "judged", (json_int_t)child->judged, "missed",
	                  (json_int_t)child->missed, "repeated", (json_int_t)child->repeated);

	if (child->covers)
		json_object_set_new(json, "covers", seats_to_json(child->covers));
	if (child->waits >= 0)
		json_object_set_new(json, "waits", json_real(child->waits));
	json_object_set_new(json, "silent_s", json_real(child->silent_s));
	if (child->carries_bps > 0)
		json_object_set_new(json, "carries_bps", json_real(child->carries_bps));
	if (child->away > 0)
		json_object_set_new(json, "away", json_real(child->away));
	return json;
}

static json_t *children_to_json(const struct stats *stats, const struct stats_comm *comm)
{
	json_t *list = json_array();

	for (unsigned k = 0; k < comm->n; k++)
		json_array_append_new(list, child_to_json(&stats->children[comm->first + k]));
	return list;
}

static json_t *comm_to_json(const struct stats_comm *comm)
{
	return json_pack("{s:i, s:i, s:o, s:i, s:s, s:i, s:I}", "job", (int)comm->job, "comm",
	                 (int)comm->comm, "key", json_sprintf("%" PRIx64, comm->key), "generation",
	                 (int)comm->generation, "state", comm->state, "size", (int)comm->size,
	                 "finished_bytes", (json_int_t)comm->finished_bytes);
}

/* The length in the format of client_call. */
static size_t json_bytes(const json_t *json)
{
	return json_dumpb(json, NULL, 0, JSON_COMPACT);
}

/*
 * The list of communicators matters most: plans and leases depend on it. Their children show
 * stragglers, and are added while there is room.
 */
json_t *stats_to_json(const struct stats *stats, size_t room, unsigned *untold)
{
	json_t *list = json_array();
	size_t used;

	*untold = 0;
	for (unsigned i = 0; i < stats->n_comms; i++)
		if (strcmp(stats->comms[i].state, "failed") != 0)
			json_array_append_new(list, comm_to_json(&stats->comms[i]));
	used = json_bytes(list);
	for (unsigned i = 0, at = 0; i < stats->n_comms; i++) {
		json_t *comm, *children;

		if (strcmp(stats->comms[i].state, "failed") == 0)
			continue;
		comm = json_array_get(list, at++);
		if (*untold) { /* do not make children that do not fit */
			++*untold;
			continue;
		}
		children = children_to_json(stats, &stats->comms[i]);
		used += strlen(",\"children\":") + json_bytes(children);
		if (used > room)
			++*untold;
		else
			json_object_set(comm, "children", children);
		json_decref(children);
	}
	return list;
}

json_t *link_samples_to_json(const struct link_sample *samples, unsigned n, uint64_t now)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:f, s:f, s:b, s:b, s:f}", "with", samples[i].with,
		                        "out_bps", samples[i].out_bps, "in_bps", samples[i].in_bps,
		                        "out_strained", (int)samples[i].out_strained, "in_strained",
		                        (int)samples[i].in_strained, "age_s",
		                        (double)clock_since(now, samples[i].at) / 1e9));
	return list;
}

static bool is_rate(double bps)
{
	return bps >= 0 && bps <= NODE_BPS_MAX;
}

unsigned link_samples_from_json(struct link_sample samples[LINK_SAMPLES_MAX], json_t *json,
                                uint64_t now)
{
	unsigned n = 0;

	for (size_t i = 0; i < json_array_size(json) && n < LINK_SAMPLES_MAX; i++) {
		struct link_sample sample = { 0 };
		const char *with;
		int out_strained, in_strained;
		double age_s;

		if (json_unpack(json_array_get(json, i), "{s:s, s:F, s:F, s:b, s:b, s:F}", "with",
		                &with, "out_bps", &sample.out_bps, "in_bps", &sample.in_bps,
		                "out_strained", &out_strained, "in_strained", &in_strained, "age_s",
		                &age_s) ||
		    strlen(with) >= sizeof(sample.with) || !name_is_good(with) ||
		    !is_rate(sample.out_bps) || !is_rate(sample.in_bps) ||
		    !(age_s >= 0 && age_s * 1e9 < (double)now) ||
		    (age_s > FAILED_S && !(sample.out_bps > 0 || sample.in_bps > 0)))
			continue;
		snprintf(sample.with, sizeof(sample.with), "%s", with);
		sample.out_strained = out_strained;
		sample.in_strained = in_strained;
		sample.at = now - (uint64_t)(age_s * 1e9);
		samples[n++] = sample;
	}
	return n;
}

json_t *verdict_to_json(const struct plan_verdict *verdict)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:i, s:i, s:i, s:s, s:s}", "rate_bps",
	                 verdict->rate_bps, "bound_bps", verdict->bound_bps, "star_bps",
	                 verdict->star_bps, "ring_bps", verdict->ring_bps, "trees",
	                 (int)verdict->trees, "depth", (int)verdict->depth, "aggregators",
	                 (int)verdict->aggregators, "limit", verdict->limit, "bounded",
	                 verdict->bounded);
}

bool verdict_from_json(struct plan_verdict *verdict, json_t *json)
{
	const char *limit = "", *bounded = "";
	int trees = 0, depth = 0, aggregators = 0;

	*verdict = (struct plan_verdict){ 0 };
	if (json_unpack(json, "{s:F, s:F, s:F, s:F, s:i, s:i, s:i, s:s, s:s}", "rate_bps",
	                &verdict->rate_bps, "bound_bps", &verdict->bound_bps, "star_bps",
	                &verdict->star_bps, "ring_bps", &verdict->ring_bps, "trees", &trees,
	                "depth", &depth, "aggregators", &aggregators, "limit", &limit, "bounded",
	                &bounded))
		return false;
	verdict->trees = (unsigned)trees;
	verdict->depth = (unsigned)depth;
	verdict->aggregators = (unsigned)aggregators;
	snprintf(verdict->limit, sizeof(verdict->limit), "%s", limit);
	snprintf(verdict->bounded, sizeof(verdict->bounded), "%s", bounded);
	return true;
}

json_t *node_report_to_json(const struct node_report *report)
{
	json_t *json = json_object();

	for (size_t i = 0; i < FIELDS_N; i++) {
		const void *at = (const char *)report + fields[i].offset;
		json_t *value = NULL;

		switch (fields[i].type) {
		case FIELD_TEXT:
			value = json_string(at);
			break;
		case FIELD_U32:
			value = json_integer(*(const uint32_t *)at);
			break;
		case FIELD_U64:
			value = json_integer((json_int_t) * (const uint64_t *)at);
			break;
		case FIELD_DOUBLE:
			value = json_real(*(const double *)at);
			break;
		}
		json_object_set_new(json, fields[i].name, value);
	}
	return json;
}

/* Printable characters only: others would spoil a table or a log. */
static bool take_text(const struct field *field, char *at, const json_t *value)
{
	const char *text = json_string_value(value);

	if (!text || strlen(text) >= field->size)
		return false;
	for (const char *p = text; *p; p++)
		if (*p < ' ' || *p > '~' || strchr("\"\\<>", *p))
			return false;
	snprintf(at, field->size, "%s", text);
	return true;
}

static bool take_number(const struct field *field, void *at, const json_t *value)
{
	json_int_t number = json_integer_value(value);

	if (field->type == FIELD_DOUBLE) {
		double real = json_number_value(value);

		*(double *)at = real;
		return json_is_number(value) && isfinite(real) && real >= 0 && real < 1e6;
	}
	if (!json_is_integer(value) || number < 0)
		return false;
	if (field->type == FIELD_U32) {
		*(uint32_t *)at = (uint32_t)number;
		return number <= UINT32_MAX;
	}
	*(uint64_t *)at = (uint64_t)number;
	return true;
}

trib_status node_report_from_json(struct node_report *report, const json_t *json)
{
	memset(report, 0, sizeof(*report));
	for (size_t i = 0; i < FIELDS_N; i++) {
		const json_t *value = json_object_get(json, fields[i].name);
		void *at = (char *)report + fields[i].offset;

		if (!value && fields[i].may_miss)
			continue;
		if (!(fields[i].type == FIELD_TEXT ? take_text(&fields[i], at, value)
		                                   : take_number(&fields[i], at, value)))
			return status_fail(TRIB_ERR_ARGUMENT, "\"%s\" is missing or is not %s",
			                   fields[i].name,
			                   fields[i].type == FIELD_TEXT ? "a short plain text"
			                                                : "a number of at least 0");
	}
	if (!name_is_good(report->address) || !strchr(report->address, ':'))
		return status_fail(TRIB_ERR_ARGUMENT, "\"address\" is not HOST:PORT");
	if (report->probe_port > UINT16_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "\"gauge_port\" is not a port");
	if (!rack_is_good(report->rack) || !rack_is_good(report->above))
		return status_fail(
			TRIB_ERR_ARGUMENT,
			"\"rack\" and \"above\" are up to %u names with slashes between them",
			RACK_NAMES_MAX);
	return TRIB_OK;
}
