/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ranks at work say of themselves in their reports, and aggregators hand on
 * with their beats: how much of their time they wait, and what their links carry;
 * and how far aggregators are, so how fast a plan really is.
 */
#include "control/controller_internal.h"

#include "base/log.h"
#include "control/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINKS_EVERY 1000000000ull
#define LATE_OLD (3 * 1000000000ull)          /* a plan that is younger has hardly begun */
#define SILENT_SPARE (2 * 1000000000ull)      /* a beat that is late does not make a rate unknown */
#define LINKS_FORGOTTEN (600 * 1000000000ull) /* a slow link may have been mended */

void words_clear(struct words *words)
{
	*words = (struct words){ .share = -1 };
	for (unsigned i = 0; i < SEATS_MAX; i++)
		words->all[i].waits = -1;
}

/* The seat of a rank of the newest plan. */
static struct seat *seat_of_rank(struct gathering *gathering, unsigned rank)
{
	uint64_t seats = gathering->members;

	while (rank-- && seats)
		seats &= seats - 1;
	return seats ? &gathering->seats[__builtin_ctzll(seats)] : NULL;
}

static unsigned ranks_of(const struct gathering_entry *entry)
{
	return (unsigned)__builtin_popcountll(entry->gathering.members);
}

/* Which ranks have an aggregator of the plan beside them. */
static void find_aggregators(const struct controller *controller,
                             const struct gathering_entry *entry, const struct plan_wish *wish,
                             bool *aggregates)
{
	memset(aggregates, 0, SEATS_MAX * sizeof(*aggregates));
	for (unsigned i = 0; i < controller->nodes.n; i++) {
		const struct node *node = controller->nodes.all[i];

		if (!plan_has(entry->gathering.plan, node->report.address))
			continue;
		for (unsigned r = 0; r < wish->ranks; r++) {
			const struct plan_wish one = { .ranks = 1, .where = { wish->where[r] } };

			aggregates[r] |= planner_is_ranks(&one, node);
		}
	}
}

/* What the agent beside a rank says of its link; 0: there is none, or it does not know. */
static double claimed(const struct controller *controller, const struct seat *seat)
{
	const struct plan_wish one = { .ranks = 1, .where = { seat->where } };

	for (unsigned i = 0; i < controller->nodes.n; i++)
		if (planner_is_ranks(&one, controller->nodes.all[i]))
			return (double)controller->nodes.all[i]->report.link_bps;
	return 0;
}

/* What its link is known to carry; 0: nothing is. */
static double link_of(const struct controller *controller, const struct seat *seat)
{
	unsigned n, first = nodes_at(&controller->nodes, seat->where, &n);
	double seen = n ? controller->nodes.all[first]->out_bps : 0;

	return seat->measured > 0 ? seat->measured : seen > 0 ? seen : claimed(controller, seat);
}

/* For the next plan: links that carry less than this one counts on, and who is alike. */
static void look_at_links(struct controller *controller, struct gathering_entry *entry,
                          uint64_t now)
{
	unsigned n = ranks_of(entry);
	bool aggregates[SEATS_MAX];
	double slow[SEATS_MAX];
	struct plan_wish wish;

	gathering_wish(&entry->gathering, entry->gathering.members, &wish);
	find_aggregators(controller, entry, &wish, aggregates);
	ranks_slow(entry->words.all, n, entry->verdict.rate_bps, aggregates, slow);
	for (unsigned r = 0; r < n; r++) {
		const struct rank_word *word = &entry->words.all[r];
		struct seat *seat = seat_of_rank(&entry->gathering, r);

		if (word->waits >= 0)
			seat->round = ranks_round(word->waits, entry->words.rate_bps,
			                          link_of(controller, seat));
		if (seat->measured > 0 && word->carries_bps > RANKS_APART * seat->measured) {
			seat->measured = 0;
			entry->words.links_at = now;
		}
		if (now > seat->measured_at + LINKS_FORGOTTEN)
			seat->measured = 0; /* nobody knows better: no reason for a move */
		if (!(slow[r] > 0))
			continue;
		if (!(seat->measured > 0)) {
			log_notice(
				"job %u: the link of rank %u (%s) carries %.0f Mb/s where %.0f are "
				"planned with: the next plan counts on that",
				entry->gathering.job, r, seat->host, slow[r] / 1e6,
				entry->verdict.rate_bps / 1e6);
			entry->words.links_at = now;
		}
		seat->measured = slow[r];
		seat->measured_at = now;
	}
}

/* A rank that an aggregator heard of `silent` seconds before it said so lives, and works where it
 * is. */
static void see(struct controller *controller, struct gathering *gathering, unsigned rank,
                const json_t *silent, uint64_t said_at)
{
	double seconds = json_is_number(silent) ? json_number_value(silent) : -1;
	uint64_t at;
	unsigned first, n;

	if (!(seconds >= 0 && seconds * 1e9 < (double)said_at))
		return;
	at = said_at - (uint64_t)(seconds * 1e9);
	gathering_see(gathering, rank, at);
	first = nodes_at(&controller->nodes, seat_of_rank(gathering, rank)->where, &n);
	for (unsigned i = first; i < first + n; i++)
		if (controller->nodes.all[i]->worked_at < at)
			controller->nodes.all[i]->worked_at = at;
}

/* Of one tree, while the aggregator lives; another one may have the number later. */
static uint64_t tree_id(const struct controller *controller, const struct node *node,
                        const json_t *comm)
{
	char text[TREE_NAME_MAX + 48];
	int length = snprintf(text, sizeof(text), "%s %" PRIu64 " %" JSON_INTEGER_FORMAT,
	                      node->report.address, node->report.incarnation,
	                      json_integer_value(json_object_get(comm, "comm")));

	return secret_hash(&controller->secret, text, (size_t)length);
}

double words_rate(const struct gathering_entry *entry, uint64_t now)
{
	unsigned trees = entry->verdict.trees ? entry->verdict.trees : 1;

	return pace_bps(&entry->words.pace, trees, now);
}

/* Only where all ranks come together a vector is finished; further down it would count again. */
static void look_at_pace(struct controller *controller, struct gathering_entry *entry,
                         const struct node *node, const json_t *comm, uint64_t now)
{
	const json_t *finished = json_object_get(comm, "finished_bytes");
	struct words *words = &entry->words;
	unsigned n = ranks_of(entry);

	if (json_is_integer(finished) && json_integer_value(finished) >= 0 && n &&
	    ranks_from_json(comm) == ~0ull >> (64 - n))
		pace_take(&words->pace, tree_id(controller, node, comm),
		          (uint64_t)json_integer_value(finished), node->detail_at,
		          controller->limits.dead_after + SILENT_SPARE);
	words->rate_bps = words_rate(entry, now);
	if (now < entry->planned_at + LATE_OLD ||
	    !ranks_late(words->rate_bps, words->share, entry->verdict.rate_bps))
		words->late_since = 0;
	else if (!words->late_since)
		words->late_since = now;
}

void words_take(struct controller *controller, struct gathering_entry *entry,
                const struct node *node, const json_t *comm, uint64_t now)
{
	const struct mover mover = moves_mover(controller, now);
	const json_t *children = json_object_get(comm, "children");
	struct words *words = &entry->words;
	unsigned n = ranks_of(entry);
	int side;

	for (size_t i = 0; i < json_array_size(children); i++) {
		const json_t *child = json_array_get(children, i);
		const json_t *waits = json_object_get(child, "waits");
		const json_t *carries = json_object_get(child, "carries_bps");
		json_int_t rank = json_integer_value(json_object_get(child, "rank"));

		if (rank < 0 || rank >= n || json_object_get(child, "covers"))
			continue;
		see(controller, &entry->gathering, (unsigned)rank,
		    json_object_get(child, "silent_s"), node->detail_at);
		if (json_is_number(waits) && json_number_value(waits) <= 1)
			words->all[rank].waits = json_number_value(waits);
		if (json_is_number(carries) && json_number_value(carries) > 0)
			words->all[rank].carries_bps = json_number_value(carries);
	}
	words->share = ranks_share(words->all, n);
	side = mover_side(&mover, words->share);
	if (side != words->side || !words->since) {
		words->side = side;
		words->since = now;
	}
	look_at_pace(controller, entry, node, comm, now);
	if (now >= words->looked_at + LINKS_EVERY) {
		words->looked_at = now;
		look_at_links(controller, entry, now);
	}
}

json_t *words_to_json(const struct controller *controller, const struct gathering_entry *entry)
{
	struct gathering gathering = entry->gathering;
	json_t *list = json_array();

	for (unsigned r = 0; r < ranks_of(entry); r++) {
		const struct rank_word *word = &entry->words.all[r];
		const struct seat *seat = seat_of_rank(&gathering, r);
		double link = claimed(controller, seat);
		json_t *one = json_pack("{s:i, s:s}", "rank", (int)r, "host", seat->host);

		if (word->waits >= 0)
			json_object_set_new(one, "waits", json_real(word->waits));
		if (word->carries_bps > 0)
			json_object_set_new(one, "carries_bps", json_real(word->carries_bps));
		if (seat->measured > 0)
			json_object_set_new(one, "measured_bps", json_real(seat->measured));
		if (link > 0)
			json_object_set_new(one, "link_bps", json_real(link));
		json_array_append_new(list, one);
	}
	return list;
}
