/* SPDX-License-Identifier: Apache-2.0 */
#include "control/transport/heartbeat_answer.h"

#include "base/peer_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *json, const char *name)
{
	const char *text = json_string_value(json_object_get(json, name));

	return text ? text : "";
}

static bool leave_parse(struct answer_leave *leave, const json_t *json)
{
	json_int_t job = json_integer_value(json_object_get(json, "job"));
	json_int_t generation = json_integer_value(json_object_get(json, "generation"));
	const char *key = text_of(json, "key"), *why = text_of(json, "why");

	if (job <= 0 || job > UINT16_MAX || generation <= 0 || generation > UINT32_MAX || !*key)
		return false;
	*leave = (struct answer_leave){ .job = (uint16_t)job,
		                        .key = strtoull(key, NULL, 16),
		                        .generation = (uint32_t)generation };
	if (!*why)
		why = "the controller says so";
	peer_text(leave->why, sizeof(leave->why), why, strlen(why));
	return true;
}

static void probe_parse(struct answer_probe *probe, const json_t *json)
{
	const char *with = text_of(json, "with"), *at = text_of(json, "at");
	json_int_t enough = json_integer_value(json_object_get(json, "enough_bps"));
	const json_t *forget = json_object_get(json, "forget_s");

	probe->enough_bps = enough > 0 ? (uint64_t)enough : 1;
	probe->forget_s = json_is_number(forget) ? json_number_value(forget) : -1;
	/* A name that does not fit is another node's. */
	if (strlen(with) < sizeof(probe->with))
		peer_text(probe->with, sizeof(probe->with), with, sizeof(probe->with));
	if (strlen(at) < sizeof(probe->at))
		peer_text(probe->at, sizeof(probe->at), at, sizeof(probe->at));
}

static bool is_id(const json_t *json)
{
	return json_is_integer(json) && json_integer_value(json) >= 0 &&
	       json_integer_value(json) < JOB_ROSTER_IDS;
}

/* {"last": 9, "live": [[1, 5], [9, 9]]}. False: malformed. */
static bool roster_parse(struct job_roster *roster, const json_t *json)
{
	const json_t *last = json_object_get(json, "last"), *live = json_object_get(json, "live");

	if (!is_id(last) || !json_is_array(live))
		return false;
	roster->last = (uint16_t)json_integer_value(last);
	for (size_t i = 0; i < json_array_size(live); i++) {
		const json_t *first = json_array_get(json_array_get(live, i), 0);
		const json_t *end = json_array_get(json_array_get(live, i), 1);

		if (!is_id(first) || !is_id(end))
			return false;
		for (json_int_t id = json_integer_value(first); id <= json_integer_value(end); id++)
			bitmap_set(roster->live, (size_t)id);
	}
	return true;
}

void heartbeat_answer_parse(struct heartbeat_answer *answer, const json_t *json)
{
	double heartbeat_s = json_number_value(json_object_get(json, "beat_s"));
	const json_t *leaves = json_object_get(json, "leave");

	*answer = (struct heartbeat_answer){ 0 };
	if (heartbeat_s >= 0.001 && heartbeat_s <= 3600)
		answer->heartbeat_ns = (uint64_t)(heartbeat_s * 1e9);
	answer->has_secret = secret_parse(&answer->secret, text_of(json, "secret"));
	answer->has_roster = roster_parse(&answer->roster, json_object_get(json, "jobs"));
	for (size_t i = 0; i < json_array_size(leaves) && answer->n_leaves < ANSWER_LEAVES_MAX; i++)
		if (leave_parse(&answer->leaves[answer->n_leaves], json_array_get(leaves, i)))
			answer->n_leaves++;
	probe_parse(&answer->probe, json_object_get(json, "gauge"));
}
