/* SPDX-License-Identifier: Apache-2.0 */
/* trib explain JOB: the plan of a job, its rate, and what limits it. */
#include "cli/cmd/explain.h"
#include "query/remote.h"
#include "control/policy/rank_health.h"
#include "plan/tree/ring_seats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void tell_times(const char *what, double bps, double than)
{
	char rate[24];

	if (bps <= 0)
		return;
	remote_rate(bps, rate, sizeof(rate));
	printf("  %-30s %s", what, rate);
	if (than > 0)
		printf(", %.0f %% of it", bps / than * 100);
	putchar('\n');
}

static void tell_verdict(const json_t *verdict, bool past)
{
	double rate = remote_number(verdict, "rate_bps");
	double aggregators = remote_number(verdict, "aggregators");
	double trees = remote_number(verdict, "trees");

	printf("  It %s %.0f aggregator%s in %.0f tree%s, %.0f deep.\n", past ? "used" : "uses",
	       aggregators, aggregators == 1 ? "" : "s", trees, trees == 1 ? "" : "s",
	       remote_number(verdict, "depth"));
	tell_times(past ? "the plan could carry" : "the plan can carry", rate, 0);
	tell_times(past ? "no trees could carry more than" : "no trees can carry more than",
	           remote_number(verdict, "bound_bps"), 0);
	tell_times("the best single star", remote_number(verdict, "star_bps"), rate);
	tell_times("a ring of the workers", remote_number(verdict, "ring_bps"), rate);
	printf("  What limit%s the plan: %s.\n  What set%s the bound: %s.\n", past ? "ed" : "s",
	       remote_text(verdict, "limit"), past ? "" : "s", remote_text(verdict, "bounded"));
}

/*
 * The throughput that was measured, beside the plan's rate. The plan's rate is for the time of
 * communication alone.
 */
static void tell_throughput(const json_t *it, double planned, bool past)
{
	double runs = remote_number(it, "runs_bps"), share = remote_number(it, "share");
	bool communicates = share >= RANK_COMMUNICATES;
	char rate[24], plan[24];

	if (runs <= 0)
		return;
	remote_rate(communicates ? runs / share : runs, rate, sizeof(rate));
	remote_rate(planned, plan, sizeof(plan));
	if (communicates)
		printf("  It %s at %s while it communicate%s, of %s planned.\n",
		       past ? "ran" : "runs", rate, past ? "d" : "s", plan);
	else
		printf("  It %s %s, over all of its time.\n", past ? "summed" : "sums", rate);
}

static void tell_ring(const json_t *it, bool past)
{
	printf("  It %s among its %zu ranks, which listen%s here:\n    %s\n"
	       "  When the plan was made, no aggregator was available%s.\n",
	       past ? "summed" : "sums", json_array_size(json_object_get(it, "members")),
	       past ? "ed" : "", remote_text(it, "plan"), past ? "" : "; trib_regroup asks again");
}

static void tell_plan(const char *plan)
{
	for (const char *end; *plan; plan = *end ? end + 1 : end) {
		end = plan + strcspn(plan, ";|");
		printf("    %.*s\n", (int)(end - plan), plan);
		if (*end == '|')
			printf("  and, in its turns, at an aggregator that jobs share:\n");
	}
}

/* Why earlier plans were replaced. */
static void tell_history(const json_t *history)
{
	for (size_t i = 0; i < json_array_size(history); i++) {
		const json_t *plan = json_array_get(history, i);
		time_t made_at = (time_t)remote_number(plan, "made_at");
		struct tm local;
		char when[32];

		localtime_r(&made_at, &local);
		strftime(when, sizeof(when), "%F %T", &local);
		printf("  %s  plan %.0f: %s\n", when, remote_number(plan, "generation"),
		       remote_text(plan, "why"));
	}
}

/* What ranks report: how long they wait, and which links are slow. */
static void tell_ranks(const json_t *it, bool past)
{
	const json_t *ranks = json_object_get(it, "ranks");
	double share = json_object_get(it, "share") ? remote_number(it, "share") : -1, most = 0;

	for (size_t i = 0; i < json_array_size(ranks); i++) {
		const json_t *rank = json_array_get(ranks, i);
		double waits = remote_number(rank, "waits");

		most = waits > most ? waits : most;
		if (json_object_get(rank, "measured_bps")) {
			double link = remote_number(rank, "link_bps");
			char measured[24], claims[24];

			remote_rate(remote_number(rank, "measured_bps"), measured,
			            sizeof(measured));
			remote_rate(link, claims, sizeof(claims));
			printf("  %s (rank %.0f): measured %s%s%s; the next plan uses that\n",
			       remote_text(rank, "host"), remote_number(rank, "rank"), measured,
			       link > 0 ? " of " : "", link > 0 ? claims : "");
		}
	}
	if (share >= 0)
		printf("  Communication %s %.1f %% of the step, by the rank that waits least; "
		       "the rank that waits most %s %.1f %%.\n",
		       past ? "took" : "takes", share * 100, past ? "waited" : "waits", most * 100);
	if (!past && json_is_true(json_object_get(it, "frugal")))
		printf("  That is little, so plans use no aggregators on machines other than the "
		       "ranks' own.\n");
}

static void tell_communicator(const json_t *it, bool past)
{
	const json_t *verdict = json_object_get(it, "verdict");
	double generation = remote_number(it, "generation");
	bool rings = ring_seats_are(remote_text(it, "plan"));
	char members[128], waiting[128];

	remote_ranks(json_object_get(it, "members"), members, sizeof(members));
	remote_ranks(json_object_get(it, "waiting"), waiting, sizeof(waiting));
	if (generation == 0) {
		printf("Communicator %s has no plan yet; of its %.0f ranks these wait: %s\n",
		       remote_text(it, "key"), remote_number(it, "size"),
		       *waiting ? waiting : "none");
		return;
	}
	printf("Communicator %s, plan %.0f, for ranks %s:\n", remote_text(it, "key"), generation,
	       members);
	if (rings)
		tell_ring(it, past);
	else
		tell_plan(remote_text(it, "plan"));
	if (*waiting)
		printf("  Ranks that wait for the next plan: %s\n", waiting);
	if (verdict) {
		tell_verdict(verdict, past);
		tell_throughput(it, remote_number(verdict, "rate_bps"), past);
	} else if (!rings) {
		printf("  An earlier version of the controller made it, and did not say why.\n");
	}
	if (!past) {
		explain_away(remote_number(it, "away"));
		explain_wire(it, stdout);
	}
	tell_ranks(it, past);
	tell_history(json_object_get(it, "history"));
}

int explain_job(const char *job, const char *controller, bool json)
{
	struct client *client;
	json_t *answer, *list;
	char path[64];
	bool past;

	if (client_find(controller, &client) != TRIB_OK)
		return remote_fail("trib explain");
	snprintf(path, sizeof(path), "/v1/jobs/%.20s", job);
	if (remote_get(client, path, &answer) != TRIB_OK) {
		client_free(client);
		return remote_fail("trib explain");
	}
	json_object_del(answer, "cookie"); /* the cookie is secret, and nobody asked for it */
	if (json) {
		remote_dump(answer);
	} else {
		past = !strcmp(remote_text(answer, "state"), "ended");
		printf("Job %.0f (%s), policy %s, %s.\n", remote_number(answer, "id"),
		       remote_text(answer, "name"), remote_text(answer, "policy"),
		       past ? "has ended" : remote_text(answer, "state"));
		list = json_object_get(answer, "communicators");
		for (size_t i = 0; i < json_array_size(list); i++)
			tell_communicator(json_array_get(list, i), past);
	}
	json_decref(answer);
	client_free(client);
	return 0;
}
