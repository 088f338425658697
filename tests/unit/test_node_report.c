/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of an aggregator's communicators: complete, and within the bytes of a heartbeat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/transport/http.h"
#include "control/transport/node_report.h"
#include "plane/core/agg_comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM ((size_t)HTTP_BODY_MAX - NODE_REPORT_BYTES_MAX)

/* Communicators of 64 ranks with large counters; every `failing`th has failed. */
static struct stats many(unsigned n, unsigned failing)
{
	struct stats stats = { .n_comms = n, .n_children = n * WIRE_CHILDREN_MAX };

	stats.comms = calloc(n, sizeof(*stats.comms));
	stats.children = calloc(stats.n_children, sizeof(*stats.children));
	assert_non_null(stats.comms);
	assert_non_null(stats.children);
	for (unsigned i = 0; i < n; i++)
		stats.comms[i] = (struct stats_comm){
			.job = UINT16_MAX,
			.comm = (uint16_t)(i + 1),
			.key = UINT64_MAX - i,
			.generation = INT32_MAX,
			.state = failing && i % failing == 0 ? "failed" : "running",
			.size = WIRE_CHILDREN_MAX,
			.finished_bytes = INT64_MAX - i,
			.first = i * WIRE_CHILDREN_MAX,
			.n = WIRE_CHILDREN_MAX,
		};
	for (unsigned i = 0; i < stats.n_children; i++) {
		struct stats_child *child = &stats.children[i];

		*child = (struct stats_child){ .rank = i % WIRE_CHILDREN_MAX,
			                       .done = UINT32_MAX,
			                       .last = UINT32_MAX,
			                       .judged = UINT32_MAX,
			                       .missed = UINT32_MAX,
			                       .repeated = UINT32_MAX,
			                       .waits = 0.123,
			                       .carries_bps = 12345678901.0,
			                       .away = 12.3 };
		snprintf(child->host, sizeof(child->host), "rack%u-host%u.example.org", i, i);
	}
	return stats;
}

static void give_up(struct stats *stats)
{
	free(stats->comms);
	free(stats->children);
}

/* Counts communicators with children: these come first. */
static unsigned with_children(const json_t *list)
{
	unsigned n = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *children = json_object_get(json_array_get(list, i), "children");

		if (!children)
			continue;
		assert_int_equal(n, i);
		assert_int_equal(json_array_size(children), WIRE_CHILDREN_MAX);
		n++;
	}
	return n;
}

static size_t length(const json_t *json)
{
	return json_dumpb(json, NULL, 0, JSON_COMPACT);
}

static void test_few_are_told_in_full(void **state)
{
	struct stats stats = many(10, 0);
	unsigned untold = 7;
	json_t *list = stats_to_json(&stats, ROOM, &untold);
	const json_t *child =
		json_array_get(json_object_get(json_array_get(list, 2), "children"), 5);

	(void)state;
	assert_int_equal(json_array_size(list), 10);
	assert_int_equal(with_children(list), 10);
	assert_int_equal(untold, 0);
	assert_int_equal(json_integer_value(json_object_get(child, "rank")), 5);
	assert_true(json_integer_value(json_object_get(json_array_get(list, 2),
	                                               "finished_bytes")) == INT64_MAX - 2);
	assert_string_equal(json_string_value(json_object_get(child, "host")),
	                    "rack133-host133.example.org");
	json_decref(list);
	give_up(&stats);
}

/* The most communicators of an aggregator: a heartbeat that is too long would be refused. */
static void test_all_fit_into_a_beat(void **state)
{
	struct stats stats = many(COMMS_MAX - 1, 0);
	unsigned untold;
	json_t *list = stats_to_json(&stats, ROOM, &untold);

	(void)state;
	assert_in_range(length(list), 1, ROOM);
	assert_int_equal(json_array_size(list), COMMS_MAX - 1);
	for (unsigned i = 0; i < COMMS_MAX - 1; i++)
		assert_int_equal(
			json_integer_value(json_object_get(json_array_get(list, i), "comm")),
			i + 1);
	assert_true(with_children(list) > 0);
	assert_int_equal(with_children(list) + untold, COMMS_MAX - 1);
	json_decref(list);
	give_up(&stats);
}

static void test_failed_are_left_out(void **state)
{
	struct stats stats = many(9, 3);
	unsigned untold;
	json_t *list = stats_to_json(&stats, ROOM, &untold);

	(void)state;
	assert_int_equal(json_array_size(list), 6);
	for (unsigned i = 0; i < 6; i++) {
		const json_t *comm = json_array_get(list, i);
		const json_t *first = json_array_get(json_object_get(comm, "children"), 0);
		unsigned at = (unsigned)json_integer_value(json_object_get(comm, "comm")) - 1;
		char host[WIRE_NAME_MAX];

		assert_string_equal(json_string_value(json_object_get(comm, "state")), "running");
		assert_int_not_equal(at % 3, 0);
		snprintf(host, sizeof(host), "rack%u-host%u.example.org", at * WIRE_CHILDREN_MAX,
		         at * WIRE_CHILDREN_MAX);
		assert_string_equal(json_string_value(json_object_get(first, "host")), host);
	}
	json_decref(list);
	give_up(&stats);
}

static uint64_t ranks_of(const char *children)
{
	char text[400];
	json_t *comm;
	uint64_t ranks;

	snprintf(text, sizeof(text), "{\"children\": %s}", children);
	comm = json_loads(text, 0, NULL);
	assert_non_null(comm);
	ranks = ranks_from_json(comm);
	json_decref(comm);
	return ranks;
}

/*
 * A child that is an aggregator covers all ranks below it. At an inner aggregator not all ranks
 * arrive together.
 */
static void test_ranks_that_come_together(void **state)
{
	struct stats stats = many(2, 0);
	unsigned untold;
	json_t *list;

	(void)state;
	stats.comms[0].n = 2;
	stats.children[0].covers = 0xf0;
	stats.children[0].rank = 4;
	list = stats_to_json(&stats, ROOM, &untold);
	assert_int_equal(ranks_from_json(json_array_get(list, 0)), 0xf2);
	assert_true(ranks_from_json(json_array_get(list, 1)) == UINT64_MAX);
	json_decref(list);
	give_up(&stats);
	assert_int_equal(ranks_of("[{\"rank\": 0}, {\"rank\": 2}]"), 5);
	assert_int_equal(ranks_of("[{\"rank\": 0, \"covers\": []}]"), 0);
	assert_int_equal(ranks_of("[{\"rank\": -1}, {\"rank\": 64}, {\"rank\": 1e9}, {}, 7]"), 0);
	assert_int_equal(ranks_of("[{\"covers\": [-1, 1, 64, null, \"3\", 9223372036854775807]}]"),
	                 2);
	assert_int_equal(ranks_of("{}"), 0);
	assert_int_equal(ranks_of("null"), 0);
}

static void test_a_report_has_room_enough(void **state)
{
	struct node_report report;
	json_t *json;

	(void)state;
	memset(&report, '"', sizeof(report)); /* JSON escapes it as two bytes */
	report.load = report.busy = 1.0 / 3;
	report.address[sizeof(report.address) - 1] = '\0';
	report.name[sizeof(report.name) - 1] = '\0';
	report.version[sizeof(report.version) - 1] = '\0';
	report.plane[sizeof(report.plane) - 1] = '\0';
	report.planes[sizeof(report.planes) - 1] = '\0';
	report.rights[sizeof(report.rights) - 1] = '\0';
	report.rack[sizeof(report.rack) - 1] = '\0';
	report.above[sizeof(report.above) - 1] = '\0';
	json = node_report_to_json(&report);
	assert_in_range(length(json) + strlen(",\"jobs\":,\"jobs_age_s\":") + 32, 1,
	                NODE_REPORT_BYTES_MAX);
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_are_told_in_full),
		cmocka_unit_test(test_all_fit_into_a_beat),
		cmocka_unit_test(test_failed_are_left_out),
		cmocka_unit_test(test_ranks_that_come_together),
		cmocka_unit_test(test_a_report_has_room_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
