/* SPDX-License-Identifier: Apache-2.0 */
#include "control/agent/heartbeat.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/settings.h"
#include "control/transport/client.h"
#include "control/transport/heartbeat_answer.h"
#include "control/transport/state_dir.h"
#include "control/agent/link_probe.h"
#include "control/transport/http.h"
#include "control/agent/host_info.h"
#include "control/transport/node_report.h"
#include "plane/aggregator.h"
#include "plane/xdp/xdp.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define CALL_S 2.0 /* timeout of a heartbeat: the next one says the same */
#define GOODBYE_S 0.5
#define LINK_EVERY (10 * NSEC_PER_SEC)
#define STATS_EVERY (NSEC_PER_SEC / 4)
/* Room for communicators in a heartbeat. */
#define JOBS_BYTES (HTTP_BODY_MAX - NODE_REPORT_BYTES_MAX)

struct agent {
	struct agent_options options;
	struct client *client;
	struct host_info info;
	struct node_report report;
	char path[3 * TREE_NAME_MAX + 16];
	uint64_t link_at; /* when the link's rate was last read */
	uint64_t stats_at;
	json_t *jobs;     /* the aggregator's communicators */
	uint64_t jobs_at; /* when they were read */
	bool is_short;    /* not all ranks fitted into a heartbeat */
	uint64_t heartbeat_ns;
	bool joined, told;              /* the last heartbeat was answered; a failure was logged */
	struct heartbeat_answer answer; /* the last one; too large for a stack */
	struct link_probe *probe;       /* NULL: the link cannot be probed */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop, soon; /* soon: send the next heartbeat at once */
};

/* ---- the report ---- */

/* Brackets of an IPv6 address have to be escaped in a path. */
static void make_path(struct agent *agent)
{
	size_t used = (size_t)snprintf(agent->path, sizeof(agent->path), "/v1/nodes/");

	for (const char *p = agent->report.address; *p; p++)
		used += (size_t)snprintf(agent->path + used, sizeof(agent->path) - used,
		                         strchr("[]%", *p) ? "%%%02X" : "%c", *p);
}

/* The aggregator's address for workers: where it listens, else the local end to the controller. */
static bool look_address(struct agent *agent)
{
	const struct endpoint *endpoint = client_endpoint(agent->client);
	struct udp_address peer, local = agent->options.listen;
	char text[300], interface[64];
	bool six = strchr(endpoint->host, ':') != NULL;
	uint64_t link_bps;

	snprintf(text, sizeof(text), six ? "[%s]:%u" : "%s:%u", endpoint->host, endpoint->port);
	if (udp_resolve(text, CONTROL_PORT, &peer) != TRIB_OK ||
	    udp_route(&peer, &local, interface, sizeof(interface)) != TRIB_OK)
		return false;
	if (udp_is_any(&agent->options.listen))
		udp_set_port(&local, udp_port(&agent->options.listen));
	else
		local = agent->options.listen;
	udp_text(&local, agent->report.address, sizeof(agent->report.address));
	make_path(agent);
	link_bps = agent->options.link_bps ? agent->options.link_bps : link_rate(interface);
	if (link_bps != agent->report.link_bps && agent->probe)
		link_probe_forget(agent->probe, clock_now()); /* samples of another link */
	agent->report.link_bps = link_bps;
	return true;
}

static void look_plane(struct agent *agent)
{
	struct node_report *report = &agent->report;
	const char *plane = aggregator_plane(agent->options.aggregator);

	snprintf(report->plane, sizeof(report->plane), "%.*s", (int)strcspn(plane, ":"), plane);
	snprintf(report->planes, sizeof(report->planes), "udp tcp pisa%s",
	         xdp_is_built() && strstr(report->rights, "bpf") ? " tc xdp" : "");
}

/* Logs when heartbeats become too short for all ranks, and when all ranks fit again. */
static void tell_short(struct agent *agent, unsigned untold, unsigned comms)
{
	if (untold && !agent->is_short)
		log_warn("heartbeats omit the ranks of %u of %u communicators: there is room for "
		         "%u bytes (trib top --aggregator shows them)",
		         untold, comms, JOBS_BYTES);
	if (!untold && agent->is_short)
		log_notice("heartbeats report the ranks of all communicators again");
	agent->is_short = untold;
}

static void look_jobs(struct agent *agent)
{
	uint64_t now = clock_now();
	struct stats *stats;
	unsigned untold;

	if (aggregator_stats(agent->options.aggregator, &stats) != TRIB_OK)
		return;
	agent->jobs_at = now;
	json_decref(agent->jobs);
	agent->jobs = stats_to_json(stats, JOBS_BYTES, &untold);
	tell_short(agent, untold, stats->n_comms);
	agent->report.payload = stats->payload;
	stats_free(stats);
}

static bool look(struct agent *agent)
{
	uint64_t now = clock_now();

	if (now >= agent->stats_at + STATS_EVERY) {
		agent->stats_at = now;
		look_jobs(agent);
	}
	host_info_look(&agent->info, &agent->report);
	look_plane(agent);
	if (agent->link_at && now < agent->link_at + LINK_EVERY)
		return true;
	if (!look_address(agent))
		return false;
	agent->link_at = now;
	return true;
}

/* ---- the answer ---- */

/* Trees that the aggregator has to leave. The controller repeats this until it has left. */
static void take_leaves(struct agent *agent, const struct heartbeat_answer *answer)
{
	for (unsigned i = 0; i < answer->n_leaves; i++) {
		const struct answer_leave *leave = &answer->leaves[i];

		aggregator_drain(agent->options.aggregator, leave->job, leave->key,
		                 leave->generation, leave->why);
	}
}

/* A probe that the controller orders. A probe that is not possible is reported as failed. */
static void take_probe(struct agent *agent, const struct answer_probe *order)
{
	struct link_probe_request request = { .enough_bps = order->enough_bps };
	uint64_t now = clock_now();

	if (!agent->probe || !*order->with)
		return;
	if (order->forget_s >= 0 && order->forget_s * 1e9 < (double)now)
		link_probe_forget(agent->probe, now - (uint64_t)(order->forget_s * 1e9));
	if (!*order->at || udp_resolve(order->at, UDP_DEFAULT_PORT, &request.at) != TRIB_OK)
		request.at.length = 0;
	snprintf(request.with, sizeof(request.with), "%s", order->with);
	snprintf(request.self, sizeof(request.self), "%s", agent->report.address);
	link_probe_ask(agent->probe, &request);
}

static void take_answer(struct agent *agent, const json_t *json)
{
	struct heartbeat_answer *answer = &agent->answer;

	heartbeat_answer_parse(answer, json);
	if (answer->heartbeat_ns)
		agent->heartbeat_ns = answer->heartbeat_ns;
	take_leaves(agent, answer);
	if (answer->has_roster)
		aggregator_set_roster(agent->options.aggregator, &answer->roster);
	if (answer->has_secret) {
		aggregator_set_secret(agent->options.aggregator, &answer->secret);
		if (agent->probe)
			link_probe_set_secret(agent->probe, &answer->secret);
	}
	take_probe(agent, &answer->probe);
}

/* Logs when the controller begins to answer, and when it stops. */
static void tell(struct agent *agent, bool answered)
{
	if (answered && !agent->joined)
		log_notice("joined the controller at %s as %s",
		           client_endpoint(agent->client)->host, agent->report.address);
	if (!answered && (agent->joined || !agent->told))
		log_warn("%s; this aggregator keeps running and tries again", trib_last_error());
	agent->told = !answered;
	agent->joined = answered;
}

static void send_heartbeat(struct agent *agent)
{
	json_t *body, *answer = NULL;
	trib_status status;

	if (!look(agent)) {
		tell(agent, false);
		return;
	}
	body = node_report_to_json(&agent->report);
	if (agent->jobs) {
		json_object_set(body, "jobs", agent->jobs);
		json_object_set_new(body, "jobs_age_s",
		                    json_real((double)(clock_now() - agent->jobs_at) / 1e9));
	}
	if (agent->probe) {
		struct link_sample samples[LINK_SAMPLES_MAX];
		unsigned n = link_probe_samples(agent->probe, samples);

		json_object_set_new(body, "ways", link_samples_to_json(samples, n, clock_now()));
	}
	status = client_call(agent->client, "PUT", agent->path, body, CALL_S, &answer);
	json_decref(body);
	if (status == TRIB_OK)
		take_answer(agent, answer);
	tell(agent, status == TRIB_OK);
	json_decref(answer);
}

static void *agent_main(void *context)
{
	struct agent *agent = context;
	uint64_t next = clock_now();

	pthread_mutex_lock(&agent->lock);
	while (!agent->stop) {
		struct timespec until;
		uint64_t now;

		pthread_mutex_unlock(&agent->lock);
		send_heartbeat(agent);
		pthread_mutex_lock(&agent->lock);
		now = clock_now();
		next = next + agent->heartbeat_ns > now ? next + agent->heartbeat_ns : now;
		until = clock_span(next);
		while (!agent->stop && !agent->soon && clock_now() < next)
			pthread_cond_timedwait(&agent->wake, &agent->lock, &until);
		if (agent->soon)
			next = clock_now();
		agent->soon = false;
	}
	pthread_mutex_unlock(&agent->lock);
	if (agent->joined)
		client_call(agent->client, "DELETE", agent->path, NULL, GOODBYE_S, NULL);
	return NULL;
}

/* ---- starting ---- */

/* Called from the probe's thread: the controller waits for the result. */
static void heartbeat_soon(void *context)
{
	struct agent *agent = context;

	pthread_mutex_lock(&agent->lock);
	agent->soon = true;
	pthread_cond_signal(&agent->wake);
	pthread_mutex_unlock(&agent->lock);
}

static trib_status open_client(struct agent *agent)
{
	char state_dir[STATE_DIR_PATH_MAX], token[TOKEN_MAX];
	struct endpoint endpoint;
	trib_status status;

	if ((status = endpoint_parse(&endpoint, agent->options.controller)) ||
	    (status = state_dir_find(agent->options.state, state_dir)) ||
	    (status = token_read(state_dir, token)))
		return status;
	if (!*token)
		return status_fail(TRIB_ERR_CONFIG,
		                   "no token for the controller: set TRIB_TOKEN_FILE to a copy of "
		                   "the controller's token file");
	return client_new(&endpoint, token, &agent->client);
}

static void introduce(struct agent *agent)
{
	struct node_report *report = &agent->report;
	uint32_t random = (uint32_t)clock_now();

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		log_debug("no random numbers: the clock is taken");
	report->incarnation = random;
	report->threads = agent->options.threads;
	report->capacity = agent->options.capacity;
	report->is_switch = agent->options.is_switch;
	if (agent->options.rack)
		snprintf(report->rack, sizeof(report->rack), "%s", agent->options.rack);
	if (agent->options.above)
		snprintf(report->above, sizeof(report->above), "%s", agent->options.above);
	snprintf(report->version, sizeof(report->version), "%s", TRIB_VERSION);
	if (agent->options.name)
		snprintf(report->name, sizeof(report->name), "%s", agent->options.name);
	else
		gethostname(report->name, sizeof(report->name) - 1);
}

trib_status agent_start(const struct agent_options *options, struct agent **out)
{
	struct agent *agent = calloc(1, sizeof(*agent));
	pthread_condattr_t monotonic;
	trib_status status;
	double heartbeat_s;

	if (!agent)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for an agent");
	agent->options = *options;
	if ((status = setting_seconds(SETTING_BEAT, &heartbeat_s)) ||
	    (status = open_client(agent))) {
		free(agent);
		return status;
	}
	agent->heartbeat_ns = (uint64_t)(heartbeat_s * 1e9);
	agent->stats_at = clock_now(); /* no statistics yet: joining must not wait for them */
	introduce(agent);
	pthread_mutex_init(&agent->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&agent->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (link_probe_open(&agent->options.listen, heartbeat_soon, agent, &agent->probe) ==
	    TRIB_OK)
		agent->report.probe_port = link_probe_port(agent->probe);
	else
		log_warn("the link of this node cannot be probed: %s", trib_last_error());
	if (pthread_create(&agent->thread, NULL, agent_main, agent)) {
		link_probe_close(agent->probe);
		client_free(agent->client);
		free(agent);
		return status_fail(TRIB_ERR_SYSTEM, "cannot start the agent's thread");
	}
	*out = agent;
	return TRIB_OK;
}

void agent_stop(struct agent *agent)
{
	if (!agent)
		return;
	pthread_mutex_lock(&agent->lock);
	agent->stop = true;
	pthread_cond_signal(&agent->wake);
	pthread_mutex_unlock(&agent->lock);
	pthread_join(agent->thread, NULL);
	link_probe_close(agent->probe);
	client_free(agent->client);
	json_decref(agent->jobs);
	pthread_cond_destroy(&agent->wake);
	pthread_mutex_destroy(&agent->lock);
	free(agent);
}
