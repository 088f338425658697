/* SPDX-License-Identifier: Apache-2.0 */
#include "control/api/api_jobs.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/settings.h"
#include "control/jobs/job_state.h"
#include "control/jobs/job_table.h"
#include "control/placement/host_lease.h"
#include "control/placement/host_lease_show.h"
#include "control/state/plan_history.h"
#include "control/telemetry/rank_telemetry.h"
#include "control/transport/node_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static json_t *hex(uint64_t number)
{
	return json_sprintf("%" PRIx64, number);
}

/* In the form that TRIB_COOKIE needs. */
static json_t *cookie_text(uint64_t cookie)
{
	return json_sprintf("%0*" PRIx64, COOKIE_DIGITS, cookie);
}

static json_t *membership_to_json(const struct membership *membership, uint64_t now)
{
	json_t *json =
		json_pack("{s:o, s:i, s:i, s:s, s:o, s:o}", "key", hex(membership->key), "size",
	                  (int)membership->size, "generation", (int)membership->generation, "plan",
	                  membership->plan, "members", seats_to_json(membership->members),
	                  "waiting", seats_to_json(membership_waiting(membership, now)));
	json_t *hosts = json_object();

	for (unsigned i = 0; i < SEATS_MAX; i++) {
		char rank[8];

		snprintf(rank, sizeof(rank), "%u", i);
		if (membership->seats[i].host[0])
			json_object_set_new(hosts, rank, json_string(membership->seats[i].host));
	}
	json_object_set_new(json, "hosts", hosts);
	return json;
}

static json_t *job_to_json(const struct controller *controller, const struct job_entry *entry,
                           uint64_t now)
{
	const struct job *job = &entry->job;
	json_t *list = json_array(), *json;

	json = json_pack("{s:i, s:s, s:i, s:i, s:s, s:I, s:I, s:s}", "id", (int)job->id, "name",
	                 job->name, "size", (int)job->size, "min", (int)job->min, "policy",
	                 policy_name(job->policy), "made_at", (json_int_t)job->made_at, "age_s",
	                 (json_int_t)(time(NULL) - job->made_at), "state",
	                 job_state_name(job_state(entry, now)));
	host_lease_to_json(controller, entry, json);
	for (const struct membership_entry *at = entry->memberships; at; at = at->next) {
		json_t *one = membership_to_json(&at->membership, now);
		const char *wire = membership_wire(&at->membership);
		double runs_bps = rank_telemetry_rate(at, now);

		if (at->verdict.trees)
			json_object_set_new(one, "verdict", verdict_to_json(&at->verdict));
		json_object_set_new(one, "history", plan_history_to_json(at));
		json_object_set_new(one, "ranks", rank_telemetry_to_json(controller, at));
		json_object_set_new(one, "frugal", json_boolean(at->membership.frugal));
		if (wire)
			json_object_set_new(one, "wire", json_string(wire));
		if (at->telemetry.share >= 0)
			json_object_set_new(one, "share", json_real(at->telemetry.share));
		if (runs_bps > 0)
			json_object_set_new(one, "runs_bps", json_real(runs_bps));
		if (at->telemetry.away > 0)
			json_object_set_new(one, "away", json_real(at->telemetry.away));
		json_array_append_new(list, one);
	}
	json_object_set_new(json, "communicators", list);
	return json;
}

void api_get_jobs(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct controller *controller = context;
	json_t *list = json_array();
	uint64_t now = clock_now();

	(void)request;
	pthread_mutex_lock(&controller->lock);
	for (unsigned i = 0; i < JOBS_MAX; i++)
		if (controller->jobs[i])
			json_array_append_new(list,
			                      job_to_json(controller, controller->jobs[i], now));
	pthread_mutex_unlock(&controller->lock);
	reply->json = json_pack("{s:o}", "jobs", list);
}

/* Needs the lock. NULL: `reply` says that there is no such job. */
static struct job_entry *job_find(struct controller *controller, const char *part,
                                  struct http_reply *reply)
{
	char *end;
	unsigned long id = strtoul(part, &end, 10);

	if (*part >= '0' && *part <= '9' && !*end && id < JOBS_MAX && controller->jobs[id])
		return controller->jobs[id];
	http_fail(reply, HTTP_NOT_FOUND, "there is no job %s", part);
	return NULL;
}

void api_get_job(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct controller *controller = context;
	struct job_entry *entry;

	pthread_mutex_lock(&controller->lock);
	entry = job_find(controller, request->part, reply);
	if (entry) {
		reply->json = job_to_json(controller, entry, clock_now());
		json_object_set_new(reply->json, "cookie", cookie_text(entry->cookie));
	}
	pthread_mutex_unlock(&controller->lock);
}

static bool read_count(const json_t *json, const char *name, uint32_t *out)
{
	const json_t *value = json_object_get(json, name);

	if (!value)
		return true;
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > SEATS_MAX)
		return false;
	*out = (uint32_t)json_integer_value(value);
	return true;
}

#define LEASE_MAX 86400.0

static bool read_lease(const json_t *json, double *lease_s, struct http_reply *reply)
{
	const json_t *lease = json_object_get(json, "lease_s");

	*lease_s = json_number_value(lease);
	if (!lease || (json_is_number(lease) && *lease_s >= 0 && *lease_s <= LEASE_MAX))
		return true;
	http_fail(reply, HTTP_BAD_REQUEST, "\"lease_s\" is seconds up to %.0f", LEASE_MAX);
	return false;
}

/* The part of a request that asks for hosts. */
struct hosts_wish {
	uint32_t hosts, per_host;
	bool waits;
	double lease_s;
};

static bool read_hosts(const json_t *json, struct hosts_wish *wish, struct job *job,
                       struct http_reply *reply)
{
	const json_t *waits = json_object_get(json, "wait");
	uint64_t ranks;

	*wish = (struct hosts_wish){ .per_host = 1, .waits = json_is_true(waits) };
	if (!read_count(json, "hosts", &wish->hosts) ||
	    !read_count(json, "per_host", &wish->per_host) || !wish->per_host ||
	    (waits && !json_is_boolean(waits))) {
		http_fail(
			reply, HTTP_BAD_REQUEST,
			"\"hosts\" and \"per_host\" are numbers up to %u, and \"wait\" is true or "
			"false",
			SEATS_MAX);
		return false;
	}
	ranks = (uint64_t)wish->hosts * wish->per_host;
	if (wish->hosts && (ranks > SEATS_MAX || (job->size && job->size != ranks))) {
		http_fail(reply, HTTP_BAD_REQUEST,
		          "%u hosts with %u ranks each make %llu ranks, but \"size\" is %u, and "
		          "the limit is %u",
		          wish->hosts, wish->per_host, (unsigned long long)ranks, job->size,
		          SEATS_MAX);
		return false;
	}
	if (wish->hosts)
		job->size = (uint32_t)ranks;
	return read_lease(json, &wish->lease_s, reply);
}

static bool read_wish(const json_t *json, struct job *job, struct http_reply *reply)
{
	const json_t *name = json_object_get(json, "name"), *policy;

	if (json && !json_is_object(json)) {
		http_fail(reply, HTTP_BAD_REQUEST, "a job is an object");
		return false;
	}
	if (name && (!json_is_string(name) || strlen(json_string_value(name)) >= JOB_NAME_MAX ||
	             !name_is_good(json_string_value(name)))) {
		http_fail(reply, HTTP_BAD_REQUEST,
		          "\"name\" may have up to %d letters, digits and .:-_[]%%",
		          JOB_NAME_MAX - 1);
		return false;
	}
	snprintf(job->name, sizeof(job->name), "%s", name ? json_string_value(name) : "job");
	policy = json_object_get(json, "policy");
	if (policy &&
	    (!json_is_string(policy) || !policy_parse(json_string_value(policy), &job->policy))) {
		http_fail(reply, HTTP_BAD_REQUEST, "\"policy\" is fail, shrink or wait");
		return false;
	}
	if (!read_count(json, "size", &job->size) || !read_count(json, "min", &job->min)) {
		http_fail(reply, HTTP_BAD_REQUEST, "\"size\" and \"min\" are numbers up to %u",
		          SEATS_MAX);
		return false;
	}
	if (job->size && job->min > job->size) {
		http_fail(reply, HTTP_BAD_REQUEST, "\"min\" (%u) is greater than \"size\" (%u)",
		          job->min, job->size);
		return false;
	}
	return true;
}

/* Needs the lock. A job that is refused its hosts is not made. */
static trib_status job_make(struct controller *controller, const struct job *wish,
                            const struct hosts_wish *hosts, struct job_entry **out)
{
	trib_status status = job_table_add(controller, wish, out);
	char why[SENTENCE_MAX];

	if (status != TRIB_OK || !hosts->hosts)
		return status;
	(*out)->hosting = (struct hosting){ .hosts = hosts->hosts, .per_host = hosts->per_host };
	host_lease_renew(*out, hosts->lease_s, clock_now());
	status = host_lease_ask(controller, *out, hosts->waits);
	if (status == TRIB_OK)
		return status;
	snprintf(why, sizeof(why), "%s", trib_last_error());
	job_table_end(controller, (*out)->job.id);
	return status_fail(status, "%s", why);
}

void api_post_job(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct controller *controller = context;
	struct job wish = { .policy = POLICY_FAIL, .min = 1, .made_at = time(NULL) };
	struct hosts_wish hosts;
	struct job_entry *entry;
	trib_status status;

	if (!read_wish(request->json, &wish, reply) ||
	    !read_hosts(request->json, &hosts, &wish, reply))
		return;
	pthread_mutex_lock(&controller->lock);
	status = job_make(controller, &wish, &hosts, &entry);
	if (status == TRIB_OK) {
		reply->status = HTTP_CREATED;
		reply->json = job_to_json(controller, entry, clock_now());
		json_object_set_new(reply->json, "cookie", cookie_text(entry->cookie));
		log_notice("job %u (%s) was created: %u ranks, policy %s", entry->job.id,
		           entry->job.name, entry->job.size, policy_name(entry->job.policy));
	}
	pthread_mutex_unlock(&controller->lock);
	if (status != TRIB_OK)
		http_fail(reply, status == TRIB_ERR_REFUSED ? HTTP_CONFLICT : HTTP_FAILED, "%s",
		          trib_last_error());
}

/* Renews the lease of a job, and shows the job. */
void api_patch_job(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct controller *controller = context;
	struct job_entry *entry;
	double lease_s;

	if (!json_object_get(request->json, "lease_s") || json_object_size(request->json) != 1) {
		http_fail(reply, HTTP_BAD_REQUEST, "only \"lease_s\" of a job can be changed");
		return;
	}
	if (!read_lease(request->json, &lease_s, reply))
		return;
	pthread_mutex_lock(&controller->lock);
	entry = job_find(controller, request->part, reply);
	if (entry) {
		host_lease_renew(entry, lease_s, clock_now());
		reply->json = job_to_json(controller, entry, clock_now());
		json_object_set_new(reply->json, "cookie", cookie_text(entry->cookie));
	}
	pthread_mutex_unlock(&controller->lock);
}

void api_delete_job(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct controller *controller = context;
	trib_status status = TRIB_OK;
	struct job_entry *entry;

	pthread_mutex_lock(&controller->lock);
	entry = job_find(controller, request->part, reply);
	if (entry) {
		log_notice("job %u (%s) has ended", entry->job.id, entry->job.name);
		status = job_table_end(controller, entry->job.id);
	}
	pthread_mutex_unlock(&controller->lock);
	if (status != TRIB_OK)
		http_fail(reply, HTTP_FAILED, "%s", trib_last_error());
}
