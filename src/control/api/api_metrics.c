/* SPDX-License-Identifier: Apache-2.0 */
#include "control/api/api_metrics.h"

#include "base/clock.h"
#include "control/metrics/prometheus.h"
#include "control/placement/host_lease_show.h"
#include "control/state/controller_state.h"
#include "control/telemetry/rank_telemetry.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static double node_is_live(const struct controller *controller, const struct node *node,
                           uint64_t now)
{
	return node_state(node, now, &controller->limits) <= NODE_DRAINED;
}

static double node_load(const struct controller *controller, const struct node *node, uint64_t now)
{
	(void)controller;
	(void)now;
	return node->report.load;
}

static double node_memory(const struct controller *controller, const struct node *node,
                          uint64_t now)
{
	(void)controller;
	(void)now;
	return (double)node->report.memory_used;
}

static double node_link(const struct controller *controller, const struct node *node, uint64_t now)
{
	(void)controller;
	(void)now;
	return (double)node->report.link_bps / 8;
}

static double node_out(const struct controller *controller, const struct node *node, uint64_t now)
{
	return node->out_bps > 0 ? node->out_bps / 8 : node_link(controller, node, now);
}

static double node_in(const struct controller *controller, const struct node *node, uint64_t now)
{
	return node->in_bps > 0 ? node->in_bps / 8 : node_link(controller, node, now);
}

static double node_silent(const struct controller *controller, const struct node *node,
                          uint64_t now)
{
	(void)controller;
	return node->heartbeat_at ? (double)(now - node->heartbeat_at) / 1e9 : INFINITY;
}

static void put_nodes(FILE *out, const struct controller *controller, uint64_t now)
{
	static const struct {
		const char *name, *help;
		double (*value)(const struct controller *controller, const struct node *node,
		                uint64_t now);
	} rows[] = {
		{ "trib_node_up", "1 if a node sends heartbeats, else 0.", node_is_live },
		{ "trib_node_load", "Share of a node's cores that other programs use.", node_load },
		{ "trib_node_memory_used_bytes", "Memory of a node that is in use.", node_memory },
		{ "trib_node_link_bytes_per_second", "Rate of a node's link; 0: unknown.",
		  node_link },
		{ "trib_node_out_bytes_per_second",
		  "Outgoing rate that plans use for a node: measured if that is less, else "
		  "claimed.",
		  node_out },
		{ "trib_node_in_bytes_per_second",
		  "Incoming rate that plans use for a node: measured if that is less, else "
		  "claimed.",
		  node_in },
		{ "trib_node_silent_seconds", "Time since a node's last heartbeat.", node_silent },
	};

	for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
		metrics_name(out, rows[r].name, "gauge", rows[r].help);
		for (unsigned i = 0; i < controller->nodes.n; i++) {
			const struct node *node = controller->nodes.all[i];

			metrics_put(out, rows[r].name, rows[r].value(controller, node, now), "node",
			            node->report.address, "name", node->report.name, NULL);
		}
	}
}

static double plan_generation(const struct membership_entry *entry, uint64_t now)
{
	(void)now;
	return entry->membership.generation;
}

static double plan_members(const struct membership_entry *entry, uint64_t now)
{
	(void)now;
	return __builtin_popcountll(entry->membership.members);
}

static double plan_waiting(const struct membership_entry *entry, uint64_t now)
{
	return __builtin_popcountll(membership_waiting(&entry->membership, now));
}

/* NAN: unknown, no sample is printed. */
static double plan_share(const struct membership_entry *entry, uint64_t now)
{
	(void)now;
	return entry->telemetry.share >= 0 ? entry->telemetry.share : NAN;
}

static double plan_runs(const struct membership_entry *entry, uint64_t now)
{
	double bps = rank_telemetry_rate(entry, now);

	return bps > 0 ? bps / 8 : NAN;
}

static double plan_planned(const struct membership_entry *entry, uint64_t now)
{
	(void)now;
	return entry->verdict.rate_bps > 0 ? entry->verdict.rate_bps / 8 : NAN;
}

static void put_plans(FILE *out, const struct controller *controller, uint64_t now)
{
	static const struct {
		const char *name, *help;
		double (*value)(const struct membership_entry *entry, uint64_t now);
	} rows[] = {
		{ "trib_plan_generation", "The newest plan of a communicator.", plan_generation },
		{ "trib_plan_members", "Ranks in the newest plan of a communicator.",
		  plan_members },
		{ "trib_plan_waiting", "Ranks that wait for the next plan.", plan_waiting },
		{ "trib_plan_communication_ratio",
		  "Share of a step that communication takes: waiting time of the rank that waits "
		  "least.",
		  plan_share },
		{ "trib_plan_bytes_per_second",
		  "Planned throughput of a communicator that does nothing else.", plan_planned },
		{ "trib_plan_runs_bytes_per_second", "Measured throughput of a communicator.",
		  plan_runs },
	};

	for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
		metrics_name(out, rows[r].name, "gauge", rows[r].help);
		for (unsigned id = 0; id < JOBS_MAX; id++) {
			const struct job_entry *job = controller->jobs[id];
			const struct membership_entry *at = job ? job->memberships : NULL;

			for (; at; at = at->next) {
				double value = rows[r].value(at, now);
				char number[8], key[20];

				if (isnan(value))
					continue;
				snprintf(number, sizeof(number), "%u", id);
				snprintf(key, sizeof(key), "%" PRIx64, at->membership.key);
				metrics_put(out, rows[r].name, value, "job", number, "name",
				            job->job.name, "key", key, NULL);
			}
		}
	}
}

static void put_counts(FILE *out, const struct controller *controller)
{
	static const struct {
		const char *name, *help;
	} rows[COUNTS_END] = {
		[COUNT_JOINS] = { "trib_desk_joins_total", "Requests of ranks for a plan." },
		[COUNT_DROPS] = { "trib_desk_drops_total",
		                  "Packets that were malformed, or had a wrong cookie." },
		[COUNT_PLANS] = { "trib_desk_plans_total", "Plans made." },
		[COUNT_REFUSALS] = { "trib_desk_refusals_total", "Ranks that were refused." },
		[COUNT_MIGRATIONS] = { "trib_moves_total",
		                       "Migrations: plans that a node was told to leave." },
	};

	for (unsigned i = 0; i < COUNTS_END; i++) {
		metrics_name(out, rows[i].name, "counter", rows[i].help);
		metrics_put(out, rows[i].name, (double)controller->counts[i], NULL);
	}
}

static void put_hosts(FILE *out, const struct controller *controller, uint64_t now)
{
	static const char *const names[HOST_STATES_END] = {
		[HOST_FREE] = "free", [HOST_BUSY] = "busy", [HOST_AWAY] = "away"
	};
	uint32_t hosts[HOST_STATES_END];
	unsigned waiting;

	host_lease_count(controller, now, hosts, &waiting);
	metrics_name(out, "trib_hosts", "gauge", "Hosts that run ranks, by state.");
	for (unsigned i = 0; i < HOST_STATES_END; i++)
		metrics_put(out, "trib_hosts", hosts[i], "state", names[i], NULL);
	metrics_name(out, "trib_jobs_waiting", "gauge", "Jobs that wait for hosts.");
	metrics_put(out, "trib_jobs_waiting", waiting, NULL);
}

static void put_all(FILE *out, struct controller *controller)
{
	unsigned states[NODE_STATES_END] = { 0 }, jobs = 0;
	uint64_t now = clock_now();

	metrics_name(out, "trib_controller_info", "gauge",
	             "The controller of this tribd; always 1.");
	metrics_put(out, "trib_controller_info", 1, "version", TRIB_VERSION, NULL);
	for (unsigned i = 0; i < controller->nodes.n; i++)
		states[node_state(controller->nodes.all[i], now, &controller->limits)]++;
	metrics_name(out, "trib_nodes", "gauge", "Nodes, by state.");
	for (unsigned i = 0; i < NODE_STATES_END; i++)
		metrics_put(out, "trib_nodes", states[i], "state",
		            node_state_name((enum node_state)i), NULL);
	for (unsigned i = 0; i < JOBS_MAX; i++)
		jobs += controller->jobs[i] != NULL;
	metrics_name(out, "trib_jobs", "gauge", "Jobs that have not ended.");
	metrics_put(out, "trib_jobs", jobs, NULL);
	put_hosts(out, controller, now);
	put_nodes(out, controller, now);
	put_plans(out, controller, now);
	put_counts(out, controller);
}

void api_get_metrics(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct controller *controller = context;
	struct aggregator *aggregator;
	size_t size;
	FILE *out = open_memstream(&reply->text, &size);

	(void)request;
	if (!out) {
		http_fail(reply, HTTP_FAILED, "no memory for metrics");
		return;
	}
	pthread_mutex_lock(&controller->lock);
	put_all(out, controller);
	aggregator = controller->aggregator;
	pthread_mutex_unlock(&controller->lock);
	if (aggregator)
		metrics_aggregator(out, aggregator);
	fclose(out);
	reply->type = METRICS_TYPE;
}
