/* SPDX-License-Identifier: Apache-2.0 */
#include "control/api/routes.h"

#include "base/clock.h"
#include "control/api/api_jobs.h"
#include "control/api/api_metrics.h"
#include "control/api/api_nodes.h"
#include "control/placement/host_lease_show.h"
#include "control/sharing/turn_server.h"

static void get_version(void *context, const struct http_request *request, struct http_reply *reply)
{
	(void)context;
	(void)request;
	reply->json = json_pack("{s:s, s:i}", "tributary", TRIB_VERSION, "api", 1);
}

static void get_status(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct controller *controller = context;
	unsigned states[NODE_STATES_END] = { 0 }, jobs = 0, waiting;
	json_t *nodes = json_object();
	uint32_t hosts[HOST_STATES_END];
	uint64_t now = clock_now();

	(void)request;
	pthread_mutex_lock(&controller->lock);
	for (unsigned i = 0; i < controller->nodes.n; i++)
		states[node_state(controller->nodes.all[i], now, &controller->limits)]++;
	for (unsigned i = 0; i < JOBS_MAX; i++)
		jobs += controller->jobs[i] != NULL;
	host_lease_count(controller, now, hosts, &waiting);
	pthread_mutex_unlock(&controller->lock);
	for (unsigned i = 0; i < NODE_STATES_END; i++)
		json_object_set_new(nodes, node_state_name((enum node_state)i),
		                    json_integer(states[i]));
	reply->json = json_pack("{s:s, s:s, s:f, s:f, s:i, s:o}", "version", TRIB_VERSION,
	                        "address", controller->address, "uptime_s",
	                        (double)(now - controller->started_at) / 1e9, "dead_after_s",
	                        (double)controller->limits.dead_after / 1e9, "jobs", (int)jobs,
	                        "nodes", nodes);
	json_object_set_new(reply->json, "placement",
	                    json_string(host_policy_name(controller->placement)));
	json_object_set_new(reply->json, "jobs_waiting", json_integer(waiting));
	json_object_set_new(reply->json, "hosts",
	                    json_pack("{s:i, s:i, s:i}", "free", (int)hosts[HOST_FREE], "busy",
	                              (int)hosts[HOST_BUSY], "away", (int)hosts[HOST_AWAY]));
}

static void get_turns(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct controller *controller = context;

	(void)request;
	pthread_mutex_lock(&controller->lock);
	reply->json = turn_server_to_json(controller);
	pthread_mutex_unlock(&controller->lock);
}

const struct http_route api_routes[] = {
	{ "GET", "/v1", get_version, true },
	{ "GET", "/v1/status", get_status, false },
	{ "GET", "/v1/nodes", api_get_nodes, false },
	{ "PUT", "/v1/nodes/*", api_put_node, false },
	{ "PATCH", "/v1/nodes/*", api_patch_node, false },
	{ "DELETE", "/v1/nodes/*", api_delete_node, false },
	{ "GET", "/v1/jobs", api_get_jobs, false },
	{ "POST", "/v1/jobs", api_post_job, false },
	{ "GET", "/v1/jobs/*", api_get_job, false },
	{ "PATCH", "/v1/jobs/*", api_patch_job, false },
	{ "DELETE", "/v1/jobs/*", api_delete_job, false },
	{ "GET", "/v1/turns", get_turns, false },
	{ "GET", "/metrics", api_get_metrics, false },
	{ 0 },
};
