/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/stats/describe.h"

#include "base/clock.h"
#include "plane/core/join_check.h"
#include "plane/lane/lane_kind.h"
#include "plane/lane/link_share.h"
#include "plane/stats/totals.h"

#include <stdarg.h>
#include <stdio.h>

#define WHY_MAX 140 /* bytes of the reason, in the page with the counters */
#define CHILDREN_A_PAGE 6u
#define INTERFACES_A_PAGE 4u

struct text {
	char *out;
	size_t size, used;
};

static void put(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *text, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text->out + text->used, text->size - text->used, format, args);
	va_end(args);
	if (n > 0)
		text->used += (size_t)n;
	if (text->used >= text->size)
		text->used = text->size - 1;
}

/* A JSON string; the value may come from the network. */
static void put_text(struct text *text, const char *name, const char *value)
{
	put(text, "\"%s\":\"", name);
	for (; *value; value++)
		put(text, *value == '"' || *value == '\\' ? "\\%c" : "%c",
		    (unsigned char)*value < 0x20 ? ' ' : *value);
	put(text, "\"");
}

static void put_counts(struct text *text, const char *name, const char *(*name_of)(unsigned i),
                       const uint64_t *counts, unsigned n)
{
	const char *comma = "";

	put(text, ",\"%s\":{", name);
	for (unsigned i = 0; i < n; i++) {
		if (!name_of(i))
			continue;
		put(text, "%s\"%s\":%llu", comma, name_of(i), (unsigned long long)counts[i]);
		comma = ",";
	}
	put(text, "}");
}

static void put_kernel(struct text *text, const struct totals *totals)
{
	put(text, ",\"kernel_s\":%.6f,\"kernel_packets\":%llu,\"kernel_payload_bytes\":%llu",
	    totals->kernel_s, (unsigned long long)totals->kernel_packets,
	    (unsigned long long)totals->kernel_payload);
	put(text, ",\"kernel_results\":%llu,\"kernel_busy\":%llu,\"kernel_pools\":%u",
	    (unsigned long long)totals->kernel_results, (unsigned long long)totals->kernel_busy,
	    totals->kernel_pools);
	put(text, ",\"kernel_queued\":%llu,\"kernel_queue_full\":%llu",
	    (unsigned long long)totals->kernel_queued, (unsigned long long)totals->kernel_full);
}

/* What the switch has counted, and how much of each stage's memory its last program takes. */
static void put_switch(struct text *text, const struct aggregator *aggregator,
                       const struct engine_counts *counts)
{
	const struct engine_use *use = &aggregator->switch_use;

	put(text, ",\"switch_packets\":%llu,\"switch_passes\":%llu,\"switch_recirculations\":%llu",
	    (unsigned long long)counts->packets, (unsigned long long)counts->passes,
	    (unsigned long long)counts->recirculations);
	put(text, ",\"switch_refused\":%llu,\"switch_broken\":%llu,\"switch_memory\":[",
	    (unsigned long long)counts->refused, (unsigned long long)counts->broken);
	for (uint32_t i = 0; i < use->stages; i++)
		put(text, "%s%.2f", i ? "," : "", use->share[i] / 100.0);
	put(text, "]");
}

static void put_plane(struct text *text, const struct aggregator *aggregator, size_t most)
{
	char why[sizeof(aggregator->plane)];

	snprintf(why, sizeof(why), "%.*s", (int)most, plane_text(aggregator));
	put_text(text, "plane", plane_name(aggregator));
	put(text, ",");
	put_text(text, "why", why);
}

static void put_totals(struct text *text, struct aggregator *aggregator)
{
	struct totals totals;
	const struct counters *sum = &totals.sum;

	totals_read(aggregator, &totals);
	put_plane(text, aggregator, WHY_MAX);
	put(text, ",\"threads\":%u,\"uptime_s\":%.3f,\"cpu_s\":%.6f", aggregator->n_threads,
	    (double)(clock_now() - aggregator->started_at) / 1e9, totals.cpu_s);
	if (aggregator->kernel)
		put_kernel(text, &totals);
	if (aggregator->switch_use.stages)
		put_switch(text, aggregator, &sum->on_switch);
	put(text, ",\"packets\":%llu,\"bytes\":%llu,\"payload_bytes\":%llu",
	    (unsigned long long)sum->packets, (unsigned long long)sum->bytes,
	    (unsigned long long)sum->payload);
	put(text,
	    ",\"results\":%llu,\"repeats\":%llu,\"sends\":%llu,\"messages\":%llu,\"reports\":%llu",
	    (unsigned long long)sum->results, (unsigned long long)sum->repeats,
	    (unsigned long long)sum->sends, (unsigned long long)sum->messages,
	    (unsigned long long)sum->reports);
	if (aggregator->options.capacity)
		put(text,
		    ",\"capacity\":%u,\"at_once\":%u,\"most_at_once\":%u,\"over_capacity\":%llu",
		    aggregator->options.capacity, atomic_load(&aggregator->occupancy.now),
		    atomic_load(&aggregator->occupancy.most),
		    (unsigned long long)atomic_load(&aggregator->occupancy.over));
	if (sum->raised)
		put(text, ",\"raised\":%llu,\"lowered\":%llu", (unsigned long long)sum->raised,
		    (unsigned long long)sum->lowered);
	if (sum->raised && aggregator->kernel)
		put(text, ",\"kernel_raised\":%llu,\"kernel_lowered\":%llu,\"kernel_left\":%llu",
		    (unsigned long long)totals.kernel_raised,
		    (unsigned long long)totals.kernel_lowered,
		    (unsigned long long)totals.kernel_left);
	put_counts(text, "verdicts", verdict_name, sum->verdicts, ENGINE_COUNTED);
	put_counts(text, "drops", drop_name, sum->drops, DROPS_END);
}

int describe_totals(struct aggregator *aggregator, char *out, size_t size)
{
	struct text text = { out, size, 0 };

	put(&text, "{\"tribd\":{");
	put_totals(&text, aggregator);
	put(&text, "}}");
	return (int)text.used;
}

/* A communicator takes as many pages as its children need. */
static unsigned pages_of(const struct comm *comm)
{
	unsigned n = (unsigned)__builtin_popcountll(comm->present);

	return n ? (n + CHILDREN_A_PAGE - 1) / CHILDREN_A_PAGE : 1;
}

static const struct comm *comm_of_page(const struct aggregator *aggregator, uint16_t job,
                                       unsigned page, unsigned *first)
{
	for (unsigned id = 1; id < COMMS_MAX; id++) {
		const struct comm *comm = aggregator->comms[id];
		unsigned pages = comm ? pages_of(comm) : 0;

		if (!comm || comm->retired || (job && comm->job != job))
			continue;
		if (page < pages) {
			*first = page * CHILDREN_A_PAGE;
			return comm;
		}
		page -= pages;
	}
	return NULL;
}

static const char *way_name(uint8_t way)
{
	switch (way) {
	case WIRE_WAIT_POLL:
		return "polling";
	case WIRE_WAIT_SLEEP:
		return "sleeping";
	}
	return "unknown";
}

static void put_children(struct text *text, struct aggregator *aggregator, const struct comm *comm,
                         const struct agg_lane *lane, unsigned first)
{
	const char *comma = "";
	unsigned n = 0;
	double rate;
	char ranks[40];

	if (comm->engine->sums)
		put(text, ",\"sums\":\"%s\"", comm->engine->sums(&lane->engine));
	put(text, ",\"low\":%llu,\"multicast\":%d,\"children\":[",
	    (unsigned long long)lane->does->low(lane), __builtin_popcountll(lane->hears));
	for (uint64_t left = comm->present; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);

		if (first) {
			first--;
			continue;
		}
		if (n++ == CHILDREN_A_PAGE)
			break;
		put(text, "%s{\"rank\":%u,\"host\":\"%.20s\",\"done\":%llu,\"last\":%llu", comma, i,
		    comm->children[i].join.host, (unsigned long long)lane->does->done(lane, i),
		    (unsigned long long)agg_lane_came_last(lane, i));
		put(text, ",\"judged\":%llu,\"missed\":%llu,\"repeated\":%llu",
		    (unsigned long long)lane->judged[i], (unsigned long long)lane->missed[i],
		    (unsigned long long)lane->repeated[i]);
		if (comm->children[i].join.height)
			put(text, ",\"covers\":\"%s\"",
			    ranks_text(join_covers(&comm->children[i].join), ranks, sizeof(ranks)));
		if (!comm->engine->streams)
			put(text, ",\"waits\":\"%s\"", way_name(lane->ways[i]));
		if (lane->away[i])
			put(text, ",\"away\":%.1f", lane->away[i] / 16.0);
		rate = comm->engine->streams ? link_share_given(aggregator, lane, i) : 0;
		if (rate > 0)
			put(text, ",\"rate\":%.0f", rate);
		put(text, "}");
		comma = ",";
	}
	put(text, "]");
}

static void put_interfaces(struct text *text, const struct aggregator *aggregator, unsigned page)
{
	const struct kernel *kernel = aggregator->kernel;
	unsigned i = page * INTERFACES_A_PAGE, end = i + INTERFACES_A_PAGE;
	struct kernel_interface interface;

	if (page && !(kernel && kernel->ops->interface(kernel, i, &interface)))
		return;
	put_plane(text, aggregator, sizeof(aggregator->plane));
	put(text, ",\"interfaces\":[");
	for (; kernel && i < end && kernel->ops->interface(kernel, i, &interface); i++) {
		put(text, i + INTERFACES_A_PAGE == end ? "{" : ",{");
		put_text(text, "name", interface.name);
		put(text, ",\"mode\":\"%s\",", interface.mode);
		put_text(text, "why", interface.why);
		put(text, "}");
	}
	put(text, "]");
}

static void put_comm(struct text *text, const struct comm *comm, unsigned first)
{
	char why[sizeof(comm->kernel_why)], ranks[64], address[64];
	unsigned lanes = comm_in_kernel(comm, why, sizeof(why));

	put(text, "\"job\":%u,\"comm\":%u,\"size\":%u,\"state\":\"%s\",\"present\":%llu", comm->job,
	    comm->id, comm->size,
	    atomic_load(&comm->failed) ? "failed"
	    : comm->running            ? "running"
	                               : "forming",
	    (unsigned long long)comm->covered);
	if (comm->first.ranks || comm->generation || comm->tree)
		put(text, ",\"tree\":%u,\"generation\":%u,\"ranks\":\"%s\"", comm->tree,
		    comm->generation, ranks_text(comm->ranks, ranks, sizeof(ranks)));
	if (comm->has_parent) {
		struct udp_address parent;

		hop_address(&comm->first.up[0], &parent);
		put(text, ",\"parent\":\"%s\"", udp_text(&parent, address, sizeof(address)));
	}
	put(text,
	    ",\"engine\":\"%s\",\"lanes\":%u,\"cells\":%u,\"payload\":%u,\"first\":%u,"
	    "\"kernel_lanes\":%u",
	    comm->engine->name, comm->lanes, comm->cells, comm->payload, first, lanes);
	if (*why && !first) {
		put(text, ",");
		put_text(text, "why", why);
	}
}

int describe_page(struct aggregator *aggregator, uint16_t job, unsigned page, char *out,
                  size_t size)
{
	struct text text = { out, size, 0 };
	unsigned first = 0;
	const struct comm *comm = page && page < DESCRIBE_PLANE
	                                  ? comm_of_page(aggregator, job, page - 1, &first)
	                                  : NULL;
	const struct agg_lane *lane = comm ? aggregator->threads[0].lanes[comm->id] : NULL;

	put(&text, "{");
	if (!page)
		put_totals(&text, aggregator);
	if (page >= DESCRIBE_PLANE)
		put_interfaces(&text, aggregator, page - DESCRIBE_PLANE);
	if (comm)
		put_comm(&text, comm, first);
	if (lane && lane->comm == comm)
		put_children(&text, aggregator, comm, lane, first);
	put(&text, "}");
	return (int)text.used;
}
