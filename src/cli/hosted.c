/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/hosted.h"

#include "cli/remote.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 10.0
#define LEASE_S 5.0       /* while it runs; a controller that starts again waits for longer */
#define WAIT_LEASE_S 15.0 /* a place in the queue is not lost because the controller is slow */
#define RENEW_US 1000000
#define POLL_US 200000
#define LATE_MOST 40u /* polls that may fail in a row while waiting */

struct hosted {
	const char *command;
	struct client *client;
	json_t *job;
	char controller[300], path[32];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool has_thread, stop, handed_over;
};

static trib_status lease_renew(struct hosted *hosted, double lease_s, json_t **answer)
{
	json_t *body = json_pack("{s:f}", "lease_s", lease_s);
	trib_status status =
		client_call(hosted->client, "PATCH", hosted->path, body, PATIENCE_S, answer);

	json_decref(body);
	return status;
}

/* ---- waiting ---- */

static bool is_placed(const struct hosted *hosted)
{
	return !strcmp(remote_text(hosted->job, "state"), "placed");
}

static void say_hosts(const struct hosted *hosted)
{
	const json_t *list = json_object_get(hosted->job, "placed");

	fprintf(stderr, "%s: job %.0f has", hosted->command, remote_number(hosted->job, "id"));
	for (size_t i = 0; i < json_array_size(list); i++) {
		char name[72], rack[72];

		remote_plain(json_array_get(list, i), "name", name, sizeof(name));
		remote_plain(json_array_get(list, i), "rack", rack, sizeof(rack));
		fprintf(stderr, "%s %s (%s)", i ? "," : "", name, rack);
	}
	fputc('\n', stderr);
}

/* Said when it begins and when it changes. */
static trib_status wait_placed(struct hosted *hosted)
{
	char said[400] = "", why[400];
	unsigned late = 0;

	while (!is_placed(hosted)) {
		json_t *answer = NULL;
		trib_status status;

		remote_plain(hosted->job, "why", why, sizeof(why));
		if (strcmp(why, said) != 0)
			fprintf(stderr, "%s: job %.0f waits: %s\n", hosted->command,
			        remote_number(hosted->job, "id"), why);
		memcpy(said, why, sizeof(said));
		usleep(POLL_US);
		status = lease_renew(hosted, WAIT_LEASE_S, &answer);
		if (status != TRIB_OK && (client_status(hosted->client) || ++late > LATE_MOST))
			return status;
		if (status != TRIB_OK)
			continue;
		late = 0;
		json_decref(hosted->job);
		hosted->job = answer;
	}
	return TRIB_OK;
}

/* ---- while it runs ---- */

static void *renew_main(void *context)
{
	struct hosted *hosted = context;
	bool told = false;

	pthread_mutex_lock(&hosted->lock);
	while (!hosted->stop) {
		struct timespec until;
		trib_status status;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += RENEW_US / 1000000;
		pthread_cond_timedwait(&hosted->wake, &hosted->lock, &until);
		if (hosted->stop)
			break;
		pthread_mutex_unlock(&hosted->lock);
		status = lease_renew(hosted, LEASE_S, NULL);
		if (status != TRIB_OK && !told)
			fprintf(stderr, "%s: %s; the job goes on\n", hosted->command,
			        trib_last_error());
		told = status != TRIB_OK;
		pthread_mutex_lock(&hosted->lock);
	}
	pthread_mutex_unlock(&hosted->lock);
	return NULL;
}

/* Signals are for who started us, not for its thread. */
static trib_status renew_start(struct hosted *hosted)
{
	sigset_t all, before;
	int failed;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&hosted->thread, NULL, renew_main, hosted);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	hosted->has_thread = !failed;
	return failed ? status_fail(TRIB_ERR_SYSTEM, "cannot start a thread for the job's lease")
	              : TRIB_OK;
}

static void renew_stop(struct hosted *hosted)
{
	if (!hosted->has_thread)
		return;
	pthread_mutex_lock(&hosted->lock);
	hosted->stop = true;
	pthread_cond_signal(&hosted->wake);
	pthread_mutex_unlock(&hosted->lock);
	pthread_join(hosted->thread, NULL);
	hosted->has_thread = false;
}

/* ---- beginning and end ---- */

static trib_status ask(struct hosted *hosted, const struct hosted_wish *wish)
{
	json_t *body =
		json_pack("{s:s, s:s, s:I, s:I, s:I, s:b, s:f}", "name",
	                  wish->name ? wish->name : "job", "policy", wish->policy, "hosts",
	                  (json_int_t)wish->hosts, "per_host", (json_int_t)wish->per_host, "min",
	                  (json_int_t)wish->min, "wait", wish->waits, "lease_s", WAIT_LEASE_S);
	const struct endpoint *endpoint;
	trib_status status =
		client_call(hosted->client, "POST", "/v1/jobs", body, PATIENCE_S, &hosted->job);
	bool six;

	json_decref(body);
	if (status != TRIB_OK)
		return status;
	endpoint = client_endpoint(hosted->client);
	six = strchr(endpoint->host, ':') != NULL;
	snprintf(hosted->controller, sizeof(hosted->controller), six ? "[%s]:%u" : "%s:%u",
	         endpoint->host, endpoint->port);
	snprintf(hosted->path, sizeof(hosted->path), "/v1/jobs/%.0f",
	         remote_number(hosted->job, "id"));
	return TRIB_OK;
}

trib_status hosted_start(const struct hosted_wish *wish, struct hosted **out)
{
	struct hosted *hosted = calloc(1, sizeof(*hosted));
	trib_status status;

	if (!hosted)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a job");
	hosted->command = wish->command;
	pthread_mutex_init(&hosted->lock, NULL);
	pthread_cond_init(&hosted->wake, NULL);
	if ((status = client_find(wish->controller, &hosted->client)) ||
	    (status = ask(hosted, wish)) || (status = wait_placed(hosted)) ||
	    (status = renew_start(hosted))) {
		hosted_end(hosted);
		return status;
	}
	say_hosts(hosted);
	*out = hosted;
	return TRIB_OK;
}

void hosted_hand_over(struct hosted *hosted)
{
	renew_stop(hosted);
	hosted->handed_over = true;
	if (lease_renew(hosted, 0, NULL) != TRIB_OK)
		fprintf(stderr, "%s: %s\n", hosted->command, trib_last_error());
}

void hosted_end(struct hosted *hosted)
{
	char why[400];

	if (!hosted)
		return;
	renew_stop(hosted);
	snprintf(why, sizeof(why), "%s", trib_last_error());
	/* One that is over already is no error: who asked for it gets what he wants. */
	if (hosted->job && !hosted->handed_over &&
	    client_call(hosted->client, "DELETE", hosted->path, NULL, PATIENCE_S, NULL) !=
	            TRIB_OK &&
	    client_status(hosted->client) != 404)
		fprintf(stderr, "%s: job %.0f may still have its hosts: %s\n", hosted->command,
		        remote_number(hosted->job, "id"), trib_last_error());
	status_fail(TRIB_OK, "%s", why); /* what was wrong before is what is to be said */
	json_decref(hosted->job);
	client_free(hosted->client);
	pthread_mutex_destroy(&hosted->lock);
	pthread_cond_destroy(&hosted->wake);
	free(hosted);
}

/* ---- what it has ---- */

unsigned hosted_count(const struct hosted *hosted)
{
	return (unsigned)json_array_size(json_object_get(hosted->job, "placed"));
}

const char *hosted_address(const struct hosted *hosted, unsigned host)
{
	return remote_text(json_array_get(json_object_get(hosted->job, "placed"), host), "address");
}

const char *hosted_controller(const struct hosted *hosted)
{
	return hosted->controller;
}

uint64_t hosted_job(const struct hosted *hosted)
{
	return (uint64_t)remote_number(hosted->job, "id");
}

uint64_t hosted_cookie(const struct hosted *hosted)
{
	return strtoull(remote_text(hosted->job, "cookie"), NULL, 16);
}

void hosted_dump(const struct hosted *hosted)
{
	remote_dump(hosted->job);
}
