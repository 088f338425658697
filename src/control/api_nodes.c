/* SPDX-License-Identifier: Apache-2.0 */
#include "control/controller_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/links.h"
#include "control/report.h"

#include <stdlib.h>
#include <string.h>

#define JOBS_AGE_S 1.5

/* A node's detail is what its aggregator says of the jobs that it has. */
void api_forget_node(struct node *node)
{
	json_decref(node->detail);
	node->detail = NULL;
}

/* `job`: that has the machine; 0: none. */
static json_t *node_to_json(const struct controller *controller, const struct node *node,
                            uint16_t job, uint64_t now)
{
	enum node_state state = node_state(node, now, &controller->limits);
	json_t *json = report_to_json(&node->report);

	json_object_set_new(json, "state", json_string(node_state_name(state)));
	json_object_set_new(json, "silent_s",
	                    node->beat_at ? json_real((double)(now - node->beat_at) / 1e9)
	                                  : json_null());
	json_object_set_new(json, "drained", json_boolean(node->drained));
	if (job)
		json_object_set_new(json, "job", json_integer(job));
	if (node->detail)
		json_object_set(json, "jobs", node->detail);
	json_object_set_new(json, "ways", ways_to_json(node->ways, node->n_ways, now));
	if (node->out_bps > 0)
		json_object_set_new(json, "out_bps", json_real(node->out_bps));
	if (node->in_bps > 0)
		json_object_set_new(json, "in_bps", json_real(node->in_bps));
	return json;
}

void api_get_nodes(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct controller *controller = context;
	json_t *list = json_array();
	uint64_t now = clock_now();
	uint16_t *jobs;

	(void)request;
	pthread_mutex_lock(&controller->lock);
	jobs = calloc(controller->nodes.n + 1, sizeof(*jobs));
	if (jobs)
		admitting_mark(controller, jobs);
	for (unsigned i = 0; i < controller->nodes.n; i++)
		json_array_append_new(list, node_to_json(controller, controller->nodes.all[i],
		                                         jobs ? jobs[i] : 0, now));
	pthread_mutex_unlock(&controller->lock);
	free(jobs);
	reply->json = json_pack("{s:o}", "nodes", list);
}

static void note_change(const struct node *node, bool was_known, enum node_state before)
{
	const struct node_report *report = &node->report;

	if (!was_known)
		log_notice("node %s (%s) has joined: %u cores, plane %s", report->address,
		           report->name, report->cores, report->plane);
	else if (before == NODE_SILENT || before == NODE_LEFT)
		log_notice("node %s (%s) is back", report->address, report->name);
}

/* What its aggregator has, and since when it is so: agents of earlier versions do not say. */
static void take_detail(struct node *node, const json_t *json, uint64_t now)
{
	const json_t *age = json_object_get(json, "jobs_age_s");
	double age_s = json_is_number(age) ? json_number_value(age) : JOBS_AGE_S;
	uint64_t age_ns = age_s >= 0 && age_s < 3600 ? (uint64_t)(age_s * 1e9) : 0;

	api_forget_node(node);
	if (!json_is_array(json_object_get(json, "jobs")))
		return;
	node->detail = json_incref(json_object_get(json, "jobs"));
	node->detail_at = now > age_ns ? now - age_ns : 0;
}

static void take_ways(struct node *node, const json_t *json, uint64_t now)
{
	struct node_way ways[NODE_WAYS];
	unsigned n = ways_from_json(ways, json_object_get(json, "ways"), now);

	links_steady(ways, n, node->ways, node->n_ways);
	memcpy(node->ways, ways, n * sizeof(*ways));
	node->n_ways = n;
}

/* A beat, which is also how an agent joins: whatever was lost on either side, the next one heals.
 */
void api_put_node(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct controller *controller = context;
	enum node_state before = NODE_LIVE;
	struct node_report report;
	uint64_t now = clock_now();
	char secret[SECRET_TEXT];
	struct node *node;
	bool facts, known;
	json_t *leave, *gauge;

	if (report_from_json(&report, request->json) != TRIB_OK) {
		http_fail(reply, HTTP_BAD_REQUEST, "%s", trib_last_error());
		return;
	}
	if (strcmp(report.address, request->part)) {
		http_fail(reply, HTTP_BAD_REQUEST, "the address in the path is another one");
		return;
	}
	pthread_mutex_lock(&controller->lock);
	node = nodes_find(&controller->nodes, report.address);
	known = node != NULL;
	if (known)
		before = node_state(node, now, &controller->limits);
	node = nodes_beat(&controller->nodes, &report, now, &facts);
	if (!node) {
		pthread_mutex_unlock(&controller->lock);
		http_fail(reply, HTTP_UNAVAILABLE, "there are %u nodes, no more fit", NODES_MAX);
		return;
	}
	take_detail(node, request->json, now);
	take_ways(node, request->json, now);
	node_watch(node, now, &controller->limits);
	admitting_hear_node(controller, node);
	note_change(node, known, before);
	gauge = gauging_for(controller, node, now);
	leave = moves_for(controller, node, now);
	if (facts && store_put_node(controller->store, node) != TRIB_OK)
		log_error("%s", trib_last_error());
	pthread_mutex_unlock(&controller->lock);
	secret_print(&controller->secret, secret);
	reply->json = json_pack("{s:f, s:s}", "beat_s", (double)controller->beat_ns / 1e9, "secret",
	                        secret);
	if (leave)
		json_object_set_new(reply->json, "leave", leave);
	if (gauge)
		json_object_set_new(reply->json, "gauge", gauge);
}

/* Plans do without it, and jobs that run leave it; or they may use it again. */
void api_patch_node(void *context, const struct http_request *request, struct http_reply *reply)
{
	const json_t *drained = json_object_get(request->json, "drained");
	struct controller *controller = context;
	trib_status status = TRIB_OK;
	struct node *node;

	if (!json_is_boolean(drained) || json_object_size(request->json) != 1) {
		http_fail(reply, HTTP_BAD_REQUEST,
		          "what can be changed of a node is \"drained\": true or false");
		return;
	}
	pthread_mutex_lock(&controller->lock);
	node = nodes_find(&controller->nodes, request->part);
	if (!node) {
		http_fail(reply, HTTP_NOT_FOUND, "there is no node %s", request->part);
	} else {
		if (node->drained != json_is_true(drained))
			log_notice("node %s (%s) %s", node->report.address, node->report.name,
			           json_is_true(drained) ? "is drained: plans do without it"
			                                 : "may be used again");
		node->drained = json_is_true(drained);
		node->judged_at = 0; /* with its next beat */
		status = store_put_node(controller->store, node);
		reply->json = node_to_json(controller, node, 0, clock_now());
	}
	pthread_mutex_unlock(&controller->lock);
	if (status != TRIB_OK)
		http_fail(reply, HTTP_FAILED, "%s", trib_last_error());
}

/* One that lives says good-bye; one that does not is forgotten. */
void api_delete_node(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct controller *controller = context;
	enum node_state state;
	trib_status status;
	struct node *node;

	pthread_mutex_lock(&controller->lock);
	node = nodes_find(&controller->nodes, request->part);
	if (!node) {
		pthread_mutex_unlock(&controller->lock);
		http_fail(reply, HTTP_NOT_FOUND, "there is no node %s", request->part);
		return;
	}
	state = node_state(node, clock_now(), &controller->limits);
	if (state <= NODE_DRAINED) {
		node->left = true;
		log_notice("node %s (%s) has left", node->report.address, node->report.name);
		status = store_put_node(controller->store, node);
	} else {
		status = store_drop_node(controller->store, request->part);
		api_forget_node(node);
		nodes_drop(&controller->nodes, node);
	}
	pthread_mutex_unlock(&controller->lock);
	if (status != TRIB_OK)
		http_fail(reply, HTTP_FAILED, "%s", trib_last_error());
}
