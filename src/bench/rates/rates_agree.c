/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/rates/rates_agree.h"

#include "base/clock.h"
#include "bench/report/samples.h"
#include "bench/rates/rates_talk.h"
#include "net/cluster.h"
#include "net/kernel/netns.h"
#include "plane/aggregator.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PORT 7700
#define COOKIE 0x7261746573ull
#define PATIENCE_MS 2000
#define SPEAK_MS 50 /* a rank that sends repeats its report, or it would count as idle */
#define CALM_MS 30
#define LEAVE_MS 300 /* until all BYEs have reached the root */
#define SERVERS_MAX 3u
#define BUFFER_BYTES (1 << 20)

struct agree {
	struct cluster cluster;
	unsigned workers, levels, servers;
	struct aggregator *aggregators[SERVERS_MAX]; /* the root first */
	struct udp_address at[SERVERS_MAX];
	int home;
	struct talk one, two;
	uint32_t before[TALKERS_MAX]; /* the rates that the first job's workers knew */
};

static trib_status aggregator_open(struct agree *agree, unsigned i, uint64_t link_bps)
{
	const struct cluster_host *host = &agree->cluster.hosts[agree->workers + i];
	struct aggregator_options options = { .cookie = COOKIE,
		                              .threads = 1,
		                              .link_bps = link_bps,
		                              .socket = { .receive_bytes = BUFFER_BYTES,
		                                          .send_bytes = BUFFER_BYTES } };
	trib_status status = udp_resolve(host->address, PORT, &options.listen);

	agree->at[i] = options.listen;
	if (status == TRIB_OK) /* the root is above all others */
		status = network_list_parse(&options.parents,
		                            agree->cluster.hosts[agree->workers].address);
	if (status == TRIB_OK)
		status = cluster_enter(host);
	if (status == TRIB_OK)
		status = aggregator_start(&options, &agree->aggregators[i]);
	return status;
}

/* Each worker on its own host; with two levels, half of them below each aggregator. */
static trib_status talk_open(struct agree *agree, struct talk *talk, unsigned job, unsigned levels)
{
	unsigned half = (agree->workers + 1) / 2;
	trib_status status = TRIB_OK;

	*talk = (struct talk){ .job = (uint16_t)job,
		               .cookie = COOKIE,
		               .has_parent = levels > 1,
		               .parent = agree->at[0] };
	for (unsigned i = 0; i < agree->workers && status == TRIB_OK; i++) {
		uint64_t all = (1ull << agree->workers) - 1, first = (1ull << half) - 1;
		unsigned below = levels == 1 ? 0 : i < half ? 1 : 2;

		status = cluster_enter(&agree->cluster.hosts[i]);
		if (status == TRIB_OK)
			status = talk_add(talk, &agree->at[below],
			                  below == 0   ? all
			                  : below == 1 ? first
			                               : all & ~first);
	}
	return status;
}

static bool all_have_news(void *context)
{
	const struct agree *agree = context;

	for (unsigned i = 0; i < agree->one.n; i++)
		if (agree->one.all[i].rate == agree->before[i])
			return false;
	return true;
}

/* Waits until nothing is in flight, and the aggregators know which children send. */
static void calm(struct agree *agree)
{
	struct talk *talks[] = { &agree->one, &agree->two };

	for (unsigned k = 0; k < 3; k++) {
		for (unsigned i = 0; i < agree->one.n; i++)
			talk_say(&agree->one, i, false);
		talk_hear(talks, 2, CALM_MS, NULL, NULL);
	}
	for (unsigned i = 0; i < agree->one.n; i++)
		agree->before[i] = agree->one.all[i].rate;
}

/*
 * The second job begins or stops sending. Gives the seconds until all workers of the first job
 * know another rate.
 */
static trib_status second_says(struct agree *agree, bool is_idle, double *seconds)
{
	struct talk *talks[] = { &agree->one, &agree->two };
	uint64_t started, last = 0;

	calm(agree);
	started = clock_now();
	for (unsigned i = 0; i < agree->two.n; i++)
		talk_say(&agree->two, i, is_idle);
	talk_hear(talks, 2, PATIENCE_MS, all_have_news, agree);
	if (!all_have_news(agree))
		return status_fail(TRIB_ERR_AGGREGATOR,
		                   "not every worker was told another rate within %g s",
		                   PATIENCE_MS / 1e3);
	for (unsigned i = 0; i < agree->one.n; i++)
		if (agree->one.all[i].told_at > last)
			last = agree->one.all[i].told_at;
	*seconds = (double)(last - started) / 1e9;
	return TRIB_OK;
}

static void all_rest(struct agree *agree)
{
	struct talk *talks[] = { &agree->one, &agree->two };

	for (unsigned i = 0; i < agree->two.n; i++)
		talk_say(&agree->two, i, true);
	/* A job that has just joined counts as about to send, for 0.3 s. */
	for (unsigned k = 0; k < 400 / SPEAK_MS; k++) {
		for (unsigned i = 0; i < agree->one.n; i++)
			talk_say(&agree->one, i, false);
		talk_hear(talks, 2, SPEAK_MS, NULL, NULL);
	}
}

static trib_status agree_once(struct agree *agree, unsigned number, struct agree_result *out)
{
	trib_status status = talk_open(agree, &agree->one, 2 * number + 1, agree->levels);
	uint64_t started;

	/*
	 * The second job joins the root directly, so that a change at the root travels down all
	 * levels.
	 */
	if (status == TRIB_OK)
		status = talk_open(agree, &agree->two, 2 * number + 2, 1);
	started = clock_now();
	if (status == TRIB_OK)
		status = talk_join(&agree->one);
	out->times[AGREE_FIRST][out->n] = (double)(clock_now() - started) / 1e9;
	for (unsigned i = 0; i < agree->one.n && status == TRIB_OK; i++)
		if (!agree->one.all[i].rate)
			status = status_fail(TRIB_ERR_AGGREGATOR, "a worker was given no rate");
	if (status == TRIB_OK)
		status = talk_join(&agree->two);
	if (status == TRIB_OK)
		all_rest(agree);
	if (status == TRIB_OK)
		status = second_says(agree, false, &out->times[AGREE_BEGINS][out->n]);
	if (status == TRIB_OK)
		status = second_says(agree, true, &out->times[AGREE_ENDS][out->n]);
	out->n += status == TRIB_OK;
	talk_leave(&agree->two);
	talk_leave(&agree->one);
	talk_close(&agree->two);
	talk_close(&agree->one);
	return status;
}

static trib_status run(struct agree *agree, uint64_t link_bps, unsigned repeats,
                       struct agree_result *out)
{
	trib_status status = TRIB_OK;

	for (unsigned i = 0; i < agree->servers && status == TRIB_OK; i++)
		status = aggregator_open(agree, i, link_bps);
	for (unsigned i = 0; i < repeats && status == TRIB_OK; i++)
		status = agree_once(agree, i, out);
	talk_hear(NULL, 0, LEAVE_MS, NULL, NULL);
	for (unsigned i = 0; i < SERVERS_MAX; i++)
		if (agree->aggregators[i]) {
			aggregator_stop(agree->aggregators[i]);
			aggregator_free(agree->aggregators[i]);
		}
	return status;
}

trib_status agree_run(unsigned workers, uint64_t link_bps, unsigned levels, unsigned repeats,
                      struct agree_result *out)
{
	static struct agree agree;
	char name[32], why[240];
	struct cluster_options net = { .name = name,
		                       .workers = workers,
		                       .servers = levels > 1 ? 3 : 1,
		                       .rate_bps = link_bps };
	trib_status status;

	snprintf(name, sizeof(name), "agree%d", (int)getpid());
	agree = (struct agree){ .workers = workers, .levels = levels, .servers = net.servers };
	memset(out, 0, sizeof(*out));
	out->levels = levels;
	status = cluster_up(&net, &agree.cluster);
	if (status != TRIB_OK)
		return status;
	agree.home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	status = agree.home < 0 ? status_fail_errno("cannot find our own namespace")
	                        : run(&agree, link_bps, repeats, out);
	snprintf(why, sizeof(why), "%s", trib_last_error());
	if (agree.home >= 0 && netns_return(agree.home) != TRIB_OK && status == TRIB_OK)
		return TRIB_ERR_SYSTEM;
	if (cluster_down(name) != TRIB_OK)
		fprintf(stderr, "trib bench rates: %s\n", trib_last_error());
	for (unsigned i = 0; i < AGREE_WHATS && out->n; i++)
		stats_median(out->times[i], out->n); /* sorts them */
	return status == TRIB_OK ? TRIB_OK : status_fail(status, "%s", why);
}
