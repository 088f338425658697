/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/host_lease_client.h"

#include "query/remote.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 10.0 /* seconds: timeout of a request to the controller */
/* Seconds of a lease while the job runs. A restarted controller waits longer before it ends jobs.
 */
#define LEASE_S 5.0
/* Seconds of a lease while the job waits. Longer than PATIENCE_S: a slow answer keeps its place. */
#define WAIT_LEASE_S 15.0
#define RENEW_US 1000000 /* 1 s between two renewals while the job runs */
#define POLL_US 200000   /* 0.2 s between two questions while the job waits */
#define LATE_MOST 40u    /* calls that may fail in a row while waiting */

struct host_lease {
	const char *command;
	struct client *client;
	json_t *job;
	char controller[300], path[32];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool has_thread, stop, handed_over;
};

static trib_status lease_renew(struct host_lease *lease, double lease_s, json_t **answer)
{
	json_t *body = json_pack("{s:f}", "lease_s", lease_s);
	trib_status status =
		client_call(lease->client, "PATCH", lease->path, body, PATIENCE_S, answer);

	json_decref(body);
	return status;
}

/* ---- waiting ---- */

static bool is_placed(const struct host_lease *lease)
{
	return !strcmp(remote_text(lease->job, "state"), "placed");
}

static void say_hosts(const struct host_lease *lease)
{
	const json_t *list = json_object_get(lease->job, "placed");

	fprintf(stderr, "%s: job %.0f has", lease->command, remote_number(lease->job, "id"));
	for (size_t i = 0; i < json_array_size(list); i++) {
		char name[72], rack[72];

		remote_plain(json_array_get(list, i), "name", name, sizeof(name));
		remote_plain(json_array_get(list, i), "rack", rack, sizeof(rack));
		fprintf(stderr, "%s %s (%s)", i ? "," : "", name, rack);
	}
	fputc('\n', stderr);
}

/* Prints why the job waits, at the beginning and whenever the reason changes. */
static trib_status wait_placed(struct host_lease *lease)
{
	char said[400] = "", why[400];
	unsigned late = 0;

	while (!is_placed(lease)) {
		json_t *answer = NULL;
		trib_status status;

		remote_plain(lease->job, "why", why, sizeof(why));
		if (strcmp(why, said) != 0)
			fprintf(stderr, "%s: job %.0f waits: %s\n", lease->command,
			        remote_number(lease->job, "id"), why);
		memcpy(said, why, sizeof(said));
		usleep(POLL_US);
		status = lease_renew(lease, WAIT_LEASE_S, &answer);
		if (status != TRIB_OK && (client_status(lease->client) || ++late > LATE_MOST))
			return status;
		if (status != TRIB_OK)
			continue;
		late = 0;
		json_decref(lease->job);
		lease->job = answer;
	}
	return TRIB_OK;
}

/* ---- while it runs ---- */

static void *renew_main(void *context)
{
	struct host_lease *lease = context;
	bool told = false;

	pthread_mutex_lock(&lease->lock);
	while (!lease->stop) {
		struct timespec until;
		trib_status status;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += RENEW_US / 1000000;
		pthread_cond_timedwait(&lease->wake, &lease->lock, &until);
		if (lease->stop)
			break;
		pthread_mutex_unlock(&lease->lock);
		status = lease_renew(lease, LEASE_S, NULL);
		if (status != TRIB_OK && !told)
			fprintf(stderr, "%s: %s; the job goes on\n", lease->command,
			        trib_last_error());
		told = status != TRIB_OK;
		pthread_mutex_lock(&lease->lock);
	}
	pthread_mutex_unlock(&lease->lock);
	return NULL;
}

/* Signals are for the main thread, not for this one. */
static trib_status renew_start(struct host_lease *lease)
{
	sigset_t all, before;
	int failed;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&lease->thread, NULL, renew_main, lease);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	lease->has_thread = !failed;
	return failed ? status_fail(TRIB_ERR_SYSTEM, "cannot start a thread for the job's lease")
	              : TRIB_OK;
}

static void renew_stop(struct host_lease *lease)
{
	if (!lease->has_thread)
		return;
	pthread_mutex_lock(&lease->lock);
	lease->stop = true;
	pthread_cond_signal(&lease->wake);
	pthread_mutex_unlock(&lease->lock);
	pthread_join(lease->thread, NULL);
	lease->has_thread = false;
}

/* ---- beginning and end ---- */

static trib_status ask(struct host_lease *lease, const struct lease_request *wish)
{
	json_t *body =
		json_pack("{s:s, s:s, s:I, s:I, s:I, s:b, s:f}", "name",
	                  wish->name ? wish->name : "job", "policy", wish->policy, "hosts",
	                  (json_int_t)wish->hosts, "per_host", (json_int_t)wish->per_host, "min",
	                  (json_int_t)wish->min, "wait", wish->waits, "lease_s", WAIT_LEASE_S);
	const struct endpoint *endpoint;
	trib_status status =
		client_call(lease->client, "POST", "/v1/jobs", body, PATIENCE_S, &lease->job);
	bool six;

	json_decref(body);
	if (status != TRIB_OK)
		return status;
	endpoint = client_endpoint(lease->client);
	six = strchr(endpoint->host, ':') != NULL;
	snprintf(lease->controller, sizeof(lease->controller), six ? "[%s]:%u" : "%s:%u",
	         endpoint->host, endpoint->port);
	snprintf(lease->path, sizeof(lease->path), "/v1/jobs/%.0f",
	         remote_number(lease->job, "id"));
	return TRIB_OK;
}

trib_status lease_start(const struct lease_request *wish, struct host_lease **out)
{
	struct host_lease *lease = calloc(1, sizeof(*lease));
	trib_status status;

	if (!lease)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a job");
	lease->command = wish->command;
	pthread_mutex_init(&lease->lock, NULL);
	pthread_cond_init(&lease->wake, NULL);
	if ((status = client_find(wish->controller, &lease->client)) ||
	    (status = ask(lease, wish)) || (status = wait_placed(lease)) ||
	    (status = renew_start(lease))) {
		lease_end(lease);
		return status;
	}
	say_hosts(lease);
	*out = lease;
	return TRIB_OK;
}

void lease_hand_over(struct host_lease *lease)
{
	renew_stop(lease);
	lease->handed_over = true;
	if (lease_renew(lease, 0, NULL) != TRIB_OK)
		fprintf(stderr, "%s: %s\n", lease->command, trib_last_error());
}

void lease_end(struct host_lease *lease)
{
	char why[400];

	if (!lease)
		return;
	renew_stop(lease);
	snprintf(why, sizeof(why), "%s", trib_last_error());
	/* If the job has ended already, that is no error. */
	if (lease->job && !lease->handed_over &&
	    client_call(lease->client, "DELETE", lease->path, NULL, PATIENCE_S, NULL) != TRIB_OK &&
	    client_status(lease->client) != 404)
		fprintf(stderr, "%s: job %.0f may still have its hosts: %s\n", lease->command,
		        remote_number(lease->job, "id"), trib_last_error());
	status_fail(TRIB_OK, "%s", why); /* keeps the error from before */
	json_decref(lease->job);
	client_free(lease->client);
	pthread_mutex_destroy(&lease->lock);
	pthread_cond_destroy(&lease->wake);
	free(lease);
}

/* ---- what the lease has ---- */

unsigned lease_count(const struct host_lease *lease)
{
	return (unsigned)json_array_size(json_object_get(lease->job, "placed"));
}

const char *lease_address(const struct host_lease *lease, unsigned host)
{
	return remote_text(json_array_get(json_object_get(lease->job, "placed"), host), "address");
}

const char *lease_controller(const struct host_lease *lease)
{
	return lease->controller;
}

uint64_t lease_job(const struct host_lease *lease)
{
	return (uint64_t)remote_number(lease->job, "id");
}

uint64_t lease_cookie(const struct host_lease *lease)
{
	return strtoull(remote_text(lease->job, "cookie"), NULL, 16);
}

void lease_dump(const struct host_lease *lease)
{
	remote_dump(lease->job);
}
