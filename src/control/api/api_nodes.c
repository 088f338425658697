/* SPDX-License-Identifier: Apache-2.0 */
#include "control/api/api_nodes.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/jobs/job_table.h"
#include "control/migration/migration.h"
#include "control/placement/host_lease.h"
#include "control/placement/host_lease_show.h"
#include "control/telemetry/probe_scheduler.h"
#include "control/policy/link_estimate.h"
#include "control/transport/node_report.h"

#include <stdlib.h>
#include <string.h>

#define JOBS_AGE_S 1.5 /* assumed age of "jobs", if the heartbeat does not say it */

/* A node's detail is the JSON of its aggregator's communicators. */
void api_forget_node(struct node *node)
{
	json_decref(node->detail);
	node->detail = NULL;
}

/* `job`: the job that has the host; 0: none. */
static json_t *node_to_json(const struct controller *controller, const struct node *node,
                            uint16_t job, uint64_t now)
{
	enum node_state state = node_state(node, now, &controller->limits);
	json_t *json = node_report_to_json(&node->report);

	json_object_set_new(json, "state", json_string(node_state_name(state)));
	json_object_set_new(json, "silent_s",
	                    node->heartbeat_at ? json_real((double)(now - node->heartbeat_at) / 1e9)
	                                       : json_null());
	json_object_set_new(json, "drained", json_boolean(node->drained));
	if (job)
		json_object_set_new(json, "job", json_integer(job));
	if (node->detail)
		json_object_set(json, "jobs", node->detail);
	json_object_set_new(json, "ways",
	                    link_samples_to_json(node->samples, node->n_samples, now));
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
		host_lease_mark(controller, jobs);
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

/* Communicators of the aggregator, and the age of that information (older agents omit it). */
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

static void take_samples(struct node *node, const json_t *json, uint64_t now)
{
	struct link_sample samples[LINK_SAMPLES_MAX];
	unsigned n = link_samples_from_json(samples, json_object_get(json, "ways"), now);

	link_estimate_steady(samples, n, node->samples, node->n_samples);
	memcpy(node->samples, samples, n * sizeof(*samples));
	node->n_samples = n;
}

/* A heartbeat. An agent joins with it, too: whatever either side lost, the next one repairs. */
void api_put_node(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct controller *controller = context;
	enum node_state before = NODE_LIVE;
	struct node_report report;
	uint64_t now = clock_now();
	char secret[SECRET_TEXT];
	struct node *node;
	bool facts, known;
	json_t *leave, *probe, *jobs;

	if (node_report_from_json(&report, request->json) != TRIB_OK) {
		http_fail(reply, HTTP_BAD_REQUEST, "%s", trib_last_error());
		return;
	}
	if (strcmp(report.address, request->part)) {
		http_fail(reply, HTTP_BAD_REQUEST,
		          "the address in the path differs from \"address\"");
		return;
	}
	pthread_mutex_lock(&controller->lock);
	node = nodes_find(&controller->nodes, report.address);
	known = node != NULL;
	if (known)
		before = node_state(node, now, &controller->limits);
	node = nodes_heartbeat(&controller->nodes, &report, now, &facts);
	if (!node) {
		pthread_mutex_unlock(&controller->lock);
		http_fail(reply, HTTP_UNAVAILABLE, "the limit of %u nodes is reached", NODES_MAX);
		return;
	}
	take_detail(node, request->json, now);
	take_samples(node, request->json, now);
	node_watch(node, now, &controller->limits);
	host_lease_hear_node(controller, node);
	note_change(node, known, before);
	probe = probe_scheduler_for_node(controller, node, now);
	leave = migration_for_node(controller, node, now);
	jobs = job_table_roster(controller);
	if (facts && store_put_node(controller->store, node) != TRIB_OK)
		log_error("%s", trib_last_error());
	pthread_mutex_unlock(&controller->lock);
	secret_print(&controller->secret, secret);
	reply->json = json_pack("{s:f, s:s}", "beat_s", (double)controller->heartbeat_ns / 1e9,
	                        "secret", secret);
	json_object_set_new(reply->json, "jobs", jobs);
	if (leave)
		json_object_set_new(reply->json, "leave", leave);
	if (probe)
		json_object_set_new(reply->json, "gauge", probe);
}

/* Drains or resumes a node: plans avoid it, and running jobs leave it; or plans may use it. */
void api_patch_node(void *context, const struct http_request *request, struct http_reply *reply)
{
	const json_t *drained = json_object_get(request->json, "drained");
	struct controller *controller = context;
	trib_status status = TRIB_OK;
	struct node *node;

	if (!json_is_boolean(drained) || json_object_size(request->json) != 1) {
		http_fail(reply, HTTP_BAD_REQUEST,
		          "only \"drained\" of a node can be changed, to true or false");
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
		node->judged_at = 0; /* judge at its next heartbeat */
		status = store_put_node(controller->store, node);
		reply->json = node_to_json(controller, node, 0, clock_now());
	}
	pthread_mutex_unlock(&controller->lock);
	if (status != TRIB_OK)
		http_fail(reply, HTTP_FAILED, "%s", trib_last_error());
}

/* The goodbye of a live node. A dead node is forgotten. */
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
