/* SPDX-License-Identifier: Apache-2.0 */
#include "control/telemetry/rank_telemetry.h"

#include "base/log.h"
#include "control/transport/node_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LINKS_EVERY 1000000000ull
/* Judgements in a row: a rank that has no core for a moment does not have a slow link. */
#define LINKS_SLOW_LOOKS 3u
#define LATE_OLD (3 * 1000000000ull) /* 3 s: a younger plan is not judged */
/* 2 s: a late heartbeat does not make the throughput unknown */
#define SILENT_SPARE (2 * 1000000000ull)
/* 10 min: then a slow link may have been repaired */
#define LINKS_FORGOTTEN (600 * 1000000000ull)

void rank_telemetry_clear(struct rank_telemetry *telemetry)
{
	*telemetry = (struct rank_telemetry){ .share = -1 };
	for (unsigned i = 0; i < SEATS_MAX; i++)
		telemetry->all[i].waits = -1;
}

/* The seat of a rank of the newest plan. */
static struct seat *seat_of_rank(struct membership *membership, unsigned rank)
{
	uint64_t seats = membership->members;

	while (rank-- && seats)
		seats &= seats - 1;
	return seats ? &membership->seats[__builtin_ctzll(seats)] : NULL;
}

static unsigned ranks_of(const struct membership_entry *entry)
{
	return (unsigned)__builtin_popcountll(entry->membership.members);
}

/* aggregates[rank]: an aggregator of the plan runs beside the rank. */
static void find_aggregators(const struct controller *controller,
                             const struct membership_entry *entry, const struct plan_wish *wish,
                             bool *aggregates)
{
	memset(aggregates, 0, SEATS_MAX * sizeof(*aggregates));
	for (unsigned i = 0; i < controller->nodes.n; i++) {
		const struct node *node = controller->nodes.all[i];

		if (!plan_has(entry->membership.plan, node->report.address))
			continue;
		for (unsigned r = 0; r < wish->ranks; r++) {
			const struct plan_wish one = { .ranks = 1, .where = { wish->where[r] } };

			aggregates[r] |= planner_is_ranks(&one, node);
		}
	}
}

/* The rate that the agent beside a rank claims; 0: no agent, or unknown. */
static double claimed(const struct controller *controller, const struct seat *seat)
{
	const struct plan_wish one = { .ranks = 1, .where = { seat->where } };

	for (unsigned i = 0; i < controller->nodes.n; i++)
		if (planner_is_ranks(&one, controller->nodes.all[i]))
			return (double)controller->nodes.all[i]->report.link_bps;
	return 0;
}

/* The best known rate of a rank's link; 0: unknown. */
static double link_of(const struct controller *controller, const struct seat *seat)
{
	unsigned n, first = nodes_at(&controller->nodes, seat->where, &n);
	double seen = n ? controller->nodes.all[first]->out_bps : 0;

	return seat->measured > 0 ? seat->measured : seen > 0 ? seen : claimed(controller, seat);
}

/* Has the link been slow LINKS_SLOW_LOOKS times in a row? */
static bool lasts(uint8_t *looks, bool is_slow)
{
	if (!is_slow)
		*looks = 0;
	else if (*looks < LINKS_SLOW_LOOKS)
		++*looks;
	return *looks == LINKS_SLOW_LOOKS;
}

/* Notes slow links and similar ranks for the next plan. */
static void judge_links(struct controller *controller, struct membership_entry *entry, uint64_t now)
{
	unsigned n = ranks_of(entry);
	bool aggregates[SEATS_MAX];
	double slow[SEATS_MAX];
	struct plan_wish wish;

	membership_wish(&entry->membership, entry->membership.members, &wish);
	find_aggregators(controller, entry, &wish, aggregates);
	rank_health_slow(entry->telemetry.all, n, entry->verdict.rate_bps, aggregates, slow);
	for (unsigned r = 0; r < n; r++) {
		const struct rank_sample *sample = &entry->telemetry.all[r];
		struct seat *seat = seat_of_rank(&entry->membership, r);

		if (sample->waits >= 0)
			seat->round = rank_health_round(sample->waits, entry->telemetry.rate_bps,
			                                link_of(controller, seat));
		if (seat->measured > 0 && sample->carries_bps > RANK_LINK_APART * seat->measured) {
			seat->measured = 0;
			entry->telemetry.links_changed_at = now;
		}
		if (now > seat->measured_at + LINKS_FORGOTTEN)
			seat->measured = 0; /* no news, so no reason to migrate */
		if (!lasts(&entry->telemetry.slow_looks[r], slow[r] > 0))
			continue;
		if (!(seat->measured > 0)) {
			log_notice("job %u: the link of rank %u (%s) carries %.0f Mb/s, but %.0f "
			           "Mb/s were planned: the next plan uses the measured rate",
			           entry->membership.job, r, seat->host, slow[r] / 1e6,
			           entry->verdict.rate_bps / 1e6);
			entry->telemetry.links_changed_at = now;
		}
		seat->measured = slow[r];
		seat->measured_at = now;
	}
}

/* An aggregator heard the rank `silent` seconds before its report: the rank and its node are alive.
 */
static void see(struct controller *controller, struct membership *membership, unsigned rank,
                const json_t *silent, uint64_t said_at)
{
	double seconds = json_is_number(silent) ? json_number_value(silent) : -1;
	uint64_t at;
	unsigned first, n;

	if (!(seconds >= 0 && seconds * 1e9 < (double)said_at))
		return;
	at = said_at - (uint64_t)(seconds * 1e9);
	membership_see(membership, rank, at);
	first = nodes_at(&controller->nodes, seat_of_rank(membership, rank)->where, &n);
	for (unsigned i = first; i < first + n; i++)
		if (controller->nodes.all[i]->worked_at < at)
			controller->nodes.all[i]->worked_at = at;
}

/* A key for one tree of one run of the aggregator: comm numbers are reused. */
static uint64_t tree_id(const struct controller *controller, const struct node *node,
                        const json_t *comm)
{
	char text[TREE_NAME_MAX + 48];
	int length = snprintf(text, sizeof(text), "%s %" PRIu64 " %" JSON_INTEGER_FORMAT,
	                      node->report.address, node->report.incarnation,
	                      json_integer_value(json_object_get(comm, "comm")));

	return secret_hash(&controller->secret, text, (size_t)length);
}

double rank_telemetry_rate(const struct membership_entry *entry, uint64_t now)
{
	unsigned trees = entry->verdict.trees ? entry->verdict.trees : 1;

	if (entry->telemetry.away > 0)
		return 0; /* roots do not see what goes around the ring */
	return throughput_bps(&entry->telemetry.throughput, trees, now);
}

/* Only the root of a tree, where all ranks come together, counts: else bytes would count twice. */
static void take_throughput(struct controller *controller, struct membership_entry *entry,
                            const struct node *node, const json_t *comm, uint64_t now)
{
	const json_t *finished = json_object_get(comm, "finished_bytes");
	struct rank_telemetry *telemetry = &entry->telemetry;
	unsigned n = ranks_of(entry);

	if (json_is_integer(finished) && json_integer_value(finished) >= 0 && n &&
	    ranks_from_json(comm) == ~0ull >> (64 - n))
		throughput_take(&telemetry->throughput, tree_id(controller, node, comm),
		                (uint64_t)json_integer_value(finished), node->detail_at,
		                controller->limits.dead_after + SILENT_SPARE);
	telemetry->rate_bps = rank_telemetry_rate(entry, now);
	if (now < entry->planned_at + LATE_OLD ||
	    !rank_health_late(telemetry->rate_bps, telemetry->share, entry->verdict.rate_bps))
		telemetry->late_since = 0;
	else if (!telemetry->late_since)
		telemetry->late_since = now;
}

void rank_telemetry_take(struct controller *controller, struct membership_entry *entry,
                         const struct node *node, const json_t *comm, uint64_t now)
{
	const json_t *children = json_object_get(comm, "children");
	struct rank_telemetry *telemetry = &entry->telemetry;
	unsigned n = ranks_of(entry);
	double away = 0;
	bool ranks = false;
	int side;

	for (size_t i = 0; i < json_array_size(children); i++) {
		const json_t *child = json_array_get(children, i);
		const json_t *waits = json_object_get(child, "waits");
		const json_t *carries = json_object_get(child, "carries_bps");
		json_int_t rank = json_integer_value(json_object_get(child, "rank"));

		if (rank < 0 || rank >= n || json_object_get(child, "covers"))
			continue;
		see(controller, &entry->membership, (unsigned)rank,
		    json_object_get(child, "silent_s"), node->detail_at);
		if (json_is_number(waits) && json_number_value(waits) <= 1)
			telemetry->all[rank].waits = json_number_value(waits);
		if (json_is_number(carries) && json_number_value(carries) > 0)
			telemetry->all[rank].carries_bps = json_number_value(carries);
		away = fmax(away, json_number_value(json_object_get(child, "away")));
		ranks = true;
	}
	if (ranks)
		telemetry->away = away;
	telemetry->share = rank_health_share(telemetry->all, n);
	side = migration_side(controller->exit_below, telemetry->share);
	if (side != telemetry->side || !telemetry->since) {
		telemetry->side = side;
		telemetry->since = now;
	}
	take_throughput(controller, entry, node, comm, now);
	if (now >= telemetry->looked_at + LINKS_EVERY) {
		telemetry->looked_at = now;
		judge_links(controller, entry, now);
	}
}

json_t *rank_telemetry_to_json(const struct controller *controller,
                               const struct membership_entry *entry)
{
	struct membership membership = entry->membership;
	json_t *list = json_array();

	for (unsigned r = 0; r < ranks_of(entry); r++) {
		const struct rank_sample *sample = &entry->telemetry.all[r];
		const struct seat *seat = seat_of_rank(&membership, r);
		double link = claimed(controller, seat);
		json_t *one = json_pack("{s:i, s:s}", "rank", (int)r, "host", seat->host);

		if (wire_setting_name(seat->wire))
			json_object_set_new(one, "wire",
			                    json_string(wire_setting_name(seat->wire)));
		if (sample->waits >= 0)
			json_object_set_new(one, "waits", json_real(sample->waits));
		if (sample->carries_bps > 0)
			json_object_set_new(one, "carries_bps", json_real(sample->carries_bps));
		if (seat->measured > 0)
			json_object_set_new(one, "measured_bps", json_real(seat->measured));
		if (link > 0)
			json_object_set_new(one, "link_bps", json_real(link));
		json_array_append_new(list, one);
	}
	return list;
}
