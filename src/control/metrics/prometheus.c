/* SPDX-License-Identifier: Apache-2.0 */
#include "control/metrics/prometheus.h"

#include "plane/stats/stats.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#define LABEL_MAX 16

void metrics_name(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_label(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", out);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

void metrics_put(FILE *out, const char *name, double value, ...)
{
	const char *label, *comma = "{";
	va_list args;

	fputs(name, out);
	va_start(args, value);
	while ((label = va_arg(args, const char *))) {
		fprintf(out, "%s%s=\"", comma, label);
		put_label(out, va_arg(args, const char *));
		fputc('"', out);
		comma = ",";
	}
	va_end(args);
	/* Integers exactly, as far as a double has all of them. */
	fprintf(out, value == floor(value) && fabs(value) < 1e15 ? "%s %.0f\n" : "%s %.9g\n",
	        *comma == ',' ? "}" : "", value);
}

/* A metric with one sample. */
static void put_one(FILE *out, const char *name, const char *type, const char *help, double value)
{
	metrics_name(out, name, type, help);
	metrics_put(out, name, value, NULL);
}

static void put_totals(FILE *out, const struct stats *stats)
{
	metrics_name(out, "trib_aggregator_info", "gauge",
	             "The aggregator of this tribd; always 1.");
	metrics_put(out, "trib_aggregator_info", 1, "version", TRIB_VERSION, "plane", stats->plane,
	            NULL);
	put_one(out, "trib_uptime_seconds", "gauge", "Time since the aggregator started.",
	        stats->uptime_s);
	put_one(out, "trib_threads", "gauge", "Threads of the aggregator, one a lane.",
	        stats->threads);
	metrics_name(out, "trib_cpu_seconds_total", "counter",
	             "CPU time of aggregation, by where it is done.");
	metrics_put(out, "trib_cpu_seconds_total", stats->cpu_s, "where", "user", NULL);
	metrics_put(out, "trib_cpu_seconds_total", stats->kernel_s, "where", "kernel", NULL);
	metrics_name(out, "trib_packets_total", "counter",
	             "Packets received, by where they were processed.");
	metrics_put(out, "trib_packets_total", (double)(stats->packets - stats->kernel_packets),
	            "where", "user", NULL);
	metrics_put(out, "trib_packets_total", (double)stats->kernel_packets, "where", "kernel",
	            NULL);
	metrics_name(out, "trib_payload_bytes_total", "counter",
	             "Bytes of vectors that were added, by where they were added.");
	metrics_put(out, "trib_payload_bytes_total",
	            (double)(stats->payload - stats->kernel_payload), "where", "user", NULL);
	metrics_put(out, "trib_payload_bytes_total", (double)stats->kernel_payload, "where",
	            "kernel", NULL);
	put_one(out, "trib_received_bytes_total", "counter", "Bytes of received packets.",
	        (double)stats->bytes);
	put_one(out, "trib_results_total", "counter", "Results sent for the first time.",
	        (double)stats->results);
	put_one(out, "trib_repeats_total", "counter", "Results sent again.",
	        (double)stats->repeats);
	put_one(out, "trib_sends_total", "counter", "Packets handed to the network.",
	        (double)stats->sends);
	put_one(out, "trib_reports_total", "counter", "Reports of children.",
	        (double)stats->reports);
	if (stats->capacity) {
		put_one(out, "trib_capacity", "gauge",
		        "Jobs that may use the aggregator at once (--capacity).", stats->capacity);
		put_one(out, "trib_at_once", "gauge", "Jobs that use the aggregator now.",
		        stats->at_once);
		put_one(out, "trib_at_once_most", "gauge",
		        "Most jobs that used the aggregator at once.", stats->most_at_once);
		put_one(out, "trib_at_work_total", "counter",
		        "Times that a job began to use the aggregator.", (double)stats->turns);
		put_one(out, "trib_over_capacity_total", "counter",
		        "Times that a job began to use it beyond the capacity.",
		        (double)stats->over_capacity);
	}
	metrics_name(out, "trib_fragments_total", "counter",
	             "Fragments by verdict; docs/wire.md lists the verdicts.");
	for (unsigned i = 0; i < stats->n_verdicts; i++)
		metrics_put(out, "trib_fragments_total", (double)stats->verdicts[i].count,
		            "verdict", stats->verdicts[i].name, NULL);
	metrics_name(out, "trib_drops_total", "counter",
	             "Packets dropped, by reason; docs/wire.md lists the reasons.");
	for (unsigned i = 0; i < stats->n_drops; i++)
		metrics_put(out, "trib_drops_total", (double)stats->drops[i].count, "reason",
		            stats->drops[i].name, NULL);
}

/* ---- jobs ---- */

struct comm_labels {
	char job[LABEL_MAX], comm[LABEL_MAX];
};

static struct comm_labels comm_labels(const struct stats_comm *comm)
{
	struct comm_labels labels;

	snprintf(labels.job, sizeof(labels.job), "%u", comm->job);
	snprintf(labels.comm, sizeof(labels.comm), "%u", comm->comm);
	return labels;
}

static double comm_ranks(const struct stats_comm *comm)
{
	return comm->size;
}

static double comm_lanes(const struct stats_comm *comm)
{
	return comm->lanes;
}

static double comm_kernel_lanes(const struct stats_comm *comm)
{
	return comm->kernel_lanes;
}

static double comm_pool(const struct stats_comm *comm)
{
	return (double)comm->pool_bytes;
}

static double comm_done(const struct stats_comm *comm)
{
	return (double)comm->done;
}

static void put_comms(FILE *out, const struct stats *stats)
{
	static const struct {
		const char *name, *type, *help;
		double (*value)(const struct stats_comm *comm);
	} rows[] = {
		{ "trib_job_ranks", "gauge", "Ranks of a communicator.", comm_ranks },
		{ "trib_job_lanes", "gauge", "Lanes of a communicator.", comm_lanes },
		{ "trib_job_kernel_lanes", "gauge", "Lanes that the kernel sums.",
		  comm_kernel_lanes },
		{ "trib_job_pool_bytes", "gauge", "Memory of a communicator's pools.", comm_pool },
		{ "trib_job_fragments_total", "counter",
		  "Fragments that all children have finished, in lane 0.", comm_done },
	};

	for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
		metrics_name(out, rows[r].name, rows[r].type, rows[r].help);
		for (unsigned i = 0; i < stats->n_comms; i++) {
			const struct stats_comm *comm = &stats->comms[i];
			struct comm_labels labels = comm_labels(comm);

			metrics_put(out, rows[r].name, rows[r].value(comm), "job", labels.job,
			            "comm", labels.comm, "state", comm->state, NULL);
		}
	}
}

/* ---- children ---- */

static double child_done(const struct stats_child *child)
{
	return (double)child->done;
}

static double child_last(const struct stats_child *child)
{
	return (double)child->last;
}

static double child_judged(const struct stats_child *child)
{
	return (double)child->judged;
}

static double child_missed(const struct stats_child *child)
{
	return (double)child->missed;
}

static double child_repeated(const struct stats_child *child)
{
	return (double)child->repeated;
}

static double child_silent(const struct stats_child *child)
{
	return child->silent_s;
}

/* NAN: not reported yet. */
static double child_waits(const struct stats_child *child)
{
	return child->waits >= 0 ? child->waits : NAN;
}

static double child_link(const struct stats_child *child)
{
	return child->carries_bps > 0 ? child->carries_bps / 8 : NAN;
}

static void put_child(FILE *out, const char *name, double value, const struct stats_comm *comm,
                      const struct stats_child *child)
{
	struct comm_labels labels = comm_labels(comm);
	char rank[LABEL_MAX];

	snprintf(rank, sizeof(rank), "%u", child->rank);
	metrics_put(out, name, value, "job", labels.job, "comm", labels.comm, "rank", rank, "host",
	            child->host, NULL);
}

static void put_children(FILE *out, const struct stats *stats)
{
	static const struct {
		const char *name, *type, *help;
		double (*value)(const struct stats_child *child);
	} rows[] = {
		{ "trib_child_fragments_total", "counter",
		  "Fragments whose result a child has, in lane 0.", child_done },
		{ "trib_child_last_total", "counter",
		  "Fragments that a child was the last to bring: the others waited for it.",
		  child_last },
		{ "trib_child_judged_total", "counter",
		  "Packets of a child that are known to have arrived or been lost.", child_judged },
		{ "trib_child_missed_total", "counter",
		  "Packets of a child that were lost on the way up.", child_missed },
		{ "trib_child_repeated_total", "counter",
		  "Results that a child got only when sent again: lost on the way down.",
		  child_repeated },
		{ "trib_child_silent_seconds", "gauge", "Time since the last packet of a child.",
		  child_silent },
		{ "trib_child_wait_ratio", "gauge",
		  "Share of its time that a rank waits for results, as it reports.", child_waits },
		{ "trib_child_link_bytes_per_second", "gauge",
		  "Measured rate of a rank's link, as it reports.", child_link },
	};

	for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
		metrics_name(out, rows[r].name, rows[r].type, rows[r].help);
		for (unsigned i = 0; i < stats->n_comms; i++)
			for (unsigned k = 0; k < stats->comms[i].n; k++) {
				const struct stats_comm *comm = &stats->comms[i];
				const struct stats_child *child = &stats->children[comm->first + k];

				double value = rows[r].value(child);

				if (!isnan(value))
					put_child(out, rows[r].name, value, comm, child);
			}
	}
}

void metrics_aggregator(FILE *out, struct aggregator *aggregator)
{
	struct stats *stats;

	if (aggregator_stats(aggregator, &stats) != TRIB_OK)
		return;
	put_totals(out, stats);
	put_comms(out, stats);
	put_children(out, stats);
	stats_free(stats);
	metrics_paths(out);
}
