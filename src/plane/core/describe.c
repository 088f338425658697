/* SPDX-License-Identifier: Apache-2.0 */
/* Counters as JSON, for `trib top`, for tests and for the last line of tribd. */
#include "plane/core/internal.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const drop_names[DROPS_END] = {
	[WIRE_FAULT_LENGTH] = "length",
	[WIRE_FAULT_MAGIC] = "magic",
	[WIRE_FAULT_TYPE] = "type",
	[WIRE_FAULT_CHECK] = "checksum",
	[WIRE_FAULT_CONTENT] = "content",
	[DROP_UNKNOWN] = "unknown",
	[DROP_COOKIE] = "cookie",
	[DROP_EPOCH] = "epoch",
	[DROP_LANE] = "lane",
	[DROP_STRANGER] = "stranger",
	[DROP_REPLAYED] = "replayed",
	[DROP_UNEXPECTED] = "unexpected",
	[DROP_REFUSED] = "refused",
	[DROP_RESULT] = "result",
};

static const char *const verdict_names[DENSE_VERDICTS_END] = {
	[DENSE_ADDED] = "added",         [DENSE_COMPLETE] = "completed",
	[DENSE_DUPLICATE] = "duplicate", [DENSE_FINISHED] = "finished",
	[DENSE_STALE] = "stale",         [DENSE_AHEAD] = "ahead",
	[DENSE_LOWER] = "lower",         [DENSE_MISMATCH] = "mismatch",
	[DENSE_STRANGER] = "stranger",   [DENSE_SUMMED] = "summed",
};

const char *describe_verdict(unsigned verdict)
{
	return verdict_names[verdict];
}

const char *describe_drop(unsigned drop)
{
	return drop_names[drop];
}

#define WHY_MAX 140 /* in the page that has the counters as well */
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

/* A string; what has come from outside may be in it. */
static void put_text(struct text *text, const char *name, const char *value)
{
	put(text, "\"%s\":\"", name);
	for (; *value; value++)
		put(text, *value == '"' || *value == '\\' ? "\\%c" : "%c",
		    (unsigned char)*value < 0x20 ? ' ' : *value);
	put(text, "\"");
}

static void put_counts(struct text *text, const char *name, const char *const *names,
                       const uint64_t *counts, unsigned n)
{
	const char *comma = "";

	put(text, ",\"%s\":{", name);
	for (unsigned i = 0; i < n; i++) {
		if (!names[i])
			continue;
		put(text, "%s\"%s\":%llu", comma, names[i], (unsigned long long)counts[i]);
		comma = ",";
	}
	put(text, "}");
}

static void put_kernel(struct text *text, const struct totals *totals, struct xdp_plane *plane)
{
	put(text, ",\"kernel_s\":%.6f,\"kernel_packets\":%llu,\"kernel_payload_bytes\":%llu",
	    totals->kernel_s, (unsigned long long)totals->kernel_packets,
	    (unsigned long long)totals->kernel_payload);
	put(text, ",\"kernel_results\":%llu,\"kernel_busy\":%llu,\"kernel_pools\":%u",
	    (unsigned long long)totals->kernel_results, (unsigned long long)totals->kernel_busy,
	    xdp_pools(plane));
	put(text, ",\"kernel_queued\":%llu,\"kernel_queue_full\":%llu",
	    (unsigned long long)totals->kernel_queued, (unsigned long long)totals->kernel_full);
}

static void put_plane(struct text *text, const struct aggregator *aggregator, size_t most)
{
	char why[sizeof(aggregator->plane)];

	snprintf(why, sizeof(why), "%.*s", (int)most, aggregator->plane);
	put_text(text, "plane", aggregator->xdp ? "xdp" : aggregator->carrier->plane);
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
	if (aggregator->xdp)
		put_kernel(text, &totals, aggregator->xdp);
	put(text, ",\"packets\":%llu,\"bytes\":%llu,\"payload_bytes\":%llu",
	    (unsigned long long)sum->packets, (unsigned long long)sum->bytes,
	    (unsigned long long)sum->payload);
	put(text, ",\"results\":%llu,\"repeats\":%llu,\"sends\":%llu,\"reports\":%llu",
	    (unsigned long long)sum->results, (unsigned long long)sum->repeats,
	    (unsigned long long)sum->sends, (unsigned long long)sum->reports);
	if (aggregator->options.capacity)
		put(text,
		    ",\"capacity\":%u,\"at_once\":%u,\"most_at_once\":%u,\"over_capacity\":%llu",
		    aggregator->options.capacity, atomic_load(&aggregator->crowd.now),
		    atomic_load(&aggregator->crowd.most),
		    (unsigned long long)atomic_load(&aggregator->crowd.over));
	if (sum->raised)
		put(text, ",\"raised\":%llu,\"lowered\":%llu", (unsigned long long)sum->raised,
		    (unsigned long long)sum->lowered);
	if (sum->raised && aggregator->xdp)
		put(text, ",\"kernel_raised\":%llu,\"kernel_lowered\":%llu,\"kernel_left\":%llu",
		    (unsigned long long)totals.kernel_raised,
		    (unsigned long long)totals.kernel_lowered,
		    (unsigned long long)totals.kernel_left);
	put_counts(text, "verdicts", verdict_names, sum->verdicts, DENSE_VERDICTS_END);
	put_counts(text, "drops", drop_names, sum->drops, DROPS_END);
}

int aggregator_describe(struct aggregator *aggregator, char *out, size_t size)
{
	struct text text = { out, size, 0 };

	put(&text, "{\"tribd\":{");
	put_totals(&text, aggregator);
	put(&text, "}}");
	return (int)text.used;
}

/* Communicators take as many pages as their children need; *first says how many come before. */
static unsigned pages_of(const struct comm *comm)
{
	unsigned n = (unsigned)__builtin_popcountll(comm->present);

	return n ? (n + CHILDREN_A_PAGE - 1) / CHILDREN_A_PAGE : 1;
}

static const struct comm *comm_of_page(const struct aggregator *aggregator, unsigned page,
                                       unsigned *first)
{
	for (unsigned id = 1; id < COMMS_MAX; id++) {
		const struct comm *comm = aggregator->comms[id];
		unsigned pages = comm ? pages_of(comm) : 0;

		if (!comm || comm->retired)
			continue;
		if (page < pages) {
			*first = page * CHILDREN_A_PAGE;
			return comm;
		}
		page -= pages;
	}
	return NULL;
}

static void put_children(struct text *text, struct aggregator *aggregator, const struct comm *comm,
                         const struct lane *lane, unsigned first)
{
	const char *comma = "";
	unsigned n = 0;
	double rate;
	char ranks[40];

	put(text, ",\"low\":%llu,\"multicast\":%d,\"children\":[",
	    (unsigned long long)lane->dense->low, __builtin_popcountll(lane->hears));
	for (uint64_t left = comm->present; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);

		if (first) {
			first--;
			continue;
		}
		if (n++ == CHILDREN_A_PAGE)
			break;
		put(text, "%s{\"rank\":%u,\"host\":\"%.20s\",\"done\":%llu,\"last\":%llu", comma, i,
		    comm->children[i].join.host, (unsigned long long)lane->dense->ack[i],
		    (unsigned long long)lane_came_last(lane, i));
		put(text, ",\"judged\":%llu,\"missed\":%llu,\"repeated\":%llu",
		    (unsigned long long)lane->judged[i], (unsigned long long)lane->missed[i],
		    (unsigned long long)lane->repeated[i]);
		if (comm->children[i].join.height)
			put(text, ",\"covers\":\"%s\"",
			    ranks_text(join_covers(&comm->children[i].join), ranks, sizeof(ranks)));
		rate = rates_given(aggregator, lane, i);
		if (rate > 0)
			put(text, ",\"rate\":%.0f", rate);
		put(text, "}");
		comma = ",";
	}
	put(text, "]");
}

/* The plane, why it is that one, and the interfaces that it is on. */
static void put_interfaces(struct text *text, const struct aggregator *aggregator, unsigned page)
{
	const struct xdp_interface *interface;
	unsigned i = page * INTERFACES_A_PAGE, end = i + INTERFACES_A_PAGE;

	if (!aggregator->xdp ? page : page && !xdp_interface(aggregator->xdp, i))
		return;
	put_plane(text, aggregator, sizeof(aggregator->plane));
	put(text, ",\"interfaces\":[");
	for (; aggregator->xdp && i < end && (interface = xdp_interface(aggregator->xdp, i)); i++) {
		put(text, i + INTERFACES_A_PAGE == end ? "{" : ",{");
		put_text(text, "name", interface->name);
		put(text, ",\"mode\":\"%s\",",
		    interface->lost                 ? "lost"
		    : interface->mode == XDP_NATIVE ? "driver"
		                                    : "generic");
		put_text(text, "why", interface->why);
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
	put(text, ",\"lanes\":%u,\"cells\":%u,\"payload\":%u,\"first\":%u,\"kernel_lanes\":%u",
	    comm->lanes, comm->cells, comm->payload, first, lanes);
	if (*why && !first) {
		put(text, ",");
		put_text(text, "why", why);
	}
}

/* Page 0 is the aggregator, then come the communicators; an empty object ends the book.
 * From DESCRIBE_PLANE on it is the plane. */
int describe_comm(struct aggregator *aggregator, unsigned page, char *out, size_t size)
{
	struct text text = { out, size, 0 };
	unsigned first = 0;
	const struct comm *comm =
		page && page < DESCRIBE_PLANE ? comm_of_page(aggregator, page - 1, &first) : NULL;
	const struct lane *lane = comm ? aggregator->threads[0].lanes[comm->id] : NULL;

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
